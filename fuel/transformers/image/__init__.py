"""Stages that decode, move and convert images."""
from fuel.transformers.axis_labels import (ExpectsAxisLabels as
                                           ExpectsAxisLabels)
from fuel.transformers.image.sizes import (
    CenterCrop, MinimumImageDimensions, Resize)
from fuel.transformers.image.decode import ImagesFromBytes
from fuel.transformers.image.mixup import CutMix, MixUp
from fuel.transformers.image.rotation import (
    Random2DRotation, RandomHorizontalFlip)
from fuel.transformers.image.normalize import Normalize
from fuel.transformers.image.random_crop import (RandomFixedSizeCrop,
                                                 RandomResizedCrop)
from fuel.transformers.sourcewise import (SourcewiseTransformer as
                                          SourcewiseTransformer)

__all__ = [
    'CenterCrop', 'CutMix', 'ImagesFromBytes', 'MinimumImageDimensions',
    'MixUp', 'Normalize', 'Random2DRotation', 'RandomFixedSizeCrop',
    'RandomHorizontalFlip', 'RandomResizedCrop', 'Resize']

# Classes are pickled, and shown, under the name that users import.
for _name in __all__:
    globals()[_name].__module__ = __name__
