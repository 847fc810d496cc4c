"""Compiled inner loops; each checks its arguments before it runs."""
from fuel.kernels._pixels import convert_images
from fuel.kernels._padding import pad_sequences
from fuel.kernels._rows import as_indices, native, own_record, take, take_row
from fuel.kernels._windows import crop_windows, mirror_images

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
