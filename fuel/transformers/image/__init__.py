"""Stages that decode, move and convert images."""
from fuel.transformers.axis_labels import (
    ExpectsAxisLabels as ExpectsAxisLabels,
)
from fuel.transformers.image.crops import (
    MinimumImageDimensions,
    Random2DRotation,
    RandomFixedSizeCrop,
)
from fuel.transformers.image.decoding import ImagesFromBytes
from fuel.transformers.image.pixel_values import (
    Normalize,
    RandomHorizontalFlip,
)
from fuel.transformers.image.sizes import CenterCrop, RandomResizedCrop, Resize
from fuel.transformers.sourcewise import (
    SourcewiseTransformer as SourcewiseTransformer,
)

__all__ = [
    'CenterCrop', 'ImagesFromBytes', 'MinimumImageDimensions', 'Normalize',
    'Random2DRotation', 'RandomFixedSizeCrop', 'RandomHorizontalFlip',
    'RandomResizedCrop', 'Resize']

# Classes are pickled, and shown, under the name that users import.
for _name in __all__:
    globals()[_name].__module__ = __name__
