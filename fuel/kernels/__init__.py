"""Compiled inner loops; each checks its arguments before it runs."""
from fuel.kernels._rows import as_indices, native, take, take_row

__all__ = ['as_indices', 'native', 'take', 'take_row']
