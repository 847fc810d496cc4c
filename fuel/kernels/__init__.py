"""Compiled inner loops; each checks its arguments before it runs."""
try:
    from fuel.kernels.padding import pad_sequences
    from fuel.kernels.pixels import convert_images
    from fuel.kernels.rows import (as_indices, native, own_record, take,
                                   take_row)
    from fuel.kernels.windows import crop_windows, mirror_images
except ImportError as error:
    from fuel.kernels.missing import explain_missing
    raise ImportError(explain_missing(error)) from error

__all__ = [
    'as_indices',
    'convert_images',
    'crop_windows',
    'mirror_images',
    'native',
    'own_record',
    'pad_sequences',
    'take',
    'take_row',
]
