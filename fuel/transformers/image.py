"""Stages that decode, move and convert images."""
from fuel.transformers._image_decode import ImagesFromBytes
from fuel.transformers._image_old import (
    MinimumImageDimensions,
    Random2DRotation,
    RandomFixedSizeCrop,
)
from fuel.transformers._image_sizes import (
    CenterCrop,
    RandomResizedCrop,
    Resize,
)
from fuel.transformers._image_values import Normalize, RandomHorizontalFlip

__all__ = [
    'CenterCrop', 'ImagesFromBytes', 'MinimumImageDimensions', 'Normalize',
    'Random2DRotation', 'RandomFixedSizeCrop', 'RandomHorizontalFlip',
    'RandomResizedCrop', 'Resize']

# Classes are pickled, and shown, under the name that users import.
for _name in __all__:
    globals()[_name].__module__ = __name__
