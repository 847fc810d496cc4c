"""Stages that decode, move and convert images."""
from fuel.transformers.axis_labels import (ExpectsAxisLabels as
                                           ExpectsAxisLabels)
from fuel.transformers.image.center_crop import CenterCrop
from fuel.transformers.image.decode import ImagesFromBytes
from fuel.transformers.image.flip import RandomHorizontalFlip
from fuel.transformers.image.minimum_size import MinimumImageDimensions
from fuel.transformers.image.normalize import Normalize
from fuel.transformers.image.random_crop import (RandomFixedSizeCrop,
                                                 RandomResizedCrop)
from fuel.transformers.image.resize import Resize
from fuel.transformers.image.rotation import Random2DRotation
from fuel.transformers.sourcewise import (SourcewiseTransformer as
                                          SourcewiseTransformer)

__all__ = [
    'CenterCrop', 'ImagesFromBytes', 'MinimumImageDimensions', 'Normalize',
    'Random2DRotation', 'RandomFixedSizeCrop', 'RandomHorizontalFlip',
    'RandomResizedCrop', 'Resize']

# Classes are pickled, and shown, under the name that users import.
for _name in __all__:
    globals()[_name].__module__ = __name__
