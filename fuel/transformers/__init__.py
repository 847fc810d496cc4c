"""Stages that transform the data of streams."""
from typing import TYPE_CHECKING, Any

from fuel.transformers._base import AgnosticTransformer, Transformer
from fuel.transformers._batch import Batch
from fuel.transformers._cache import Cache
from fuel.transformers._casting import Cast, ForceFloatX
from fuel.transformers._filter import Filter
from fuel.transformers._flatten import Flatten
from fuel.transformers._labels import ExpectsAxisLabels
from fuel.transformers._mapping import Mapping, SortMapping
from fuel.transformers._merge import Merge
from fuel.transformers._padding import Padding
from fuel.transformers._scaling import ScaleAndShift
from fuel.transformers._sources import FilterSources, Rename
from fuel.transformers._sourcewise import (
    AgnosticSourcewiseTransformer,
    SourcewiseTransformer,
)
from fuel.transformers._unpack import Unpack

if TYPE_CHECKING:
    from fuel.transformers._multiprocessing import (
        BackgroundProcess,
        MultiProcessing,
    )

__all__ = [
    'AgnosticSourcewiseTransformer', 'AgnosticTransformer',
    'BackgroundProcess', 'Batch', 'Cache', 'Cast', 'ExpectsAxisLabels',
    'Filter', 'FilterSources', 'Flatten', 'ForceFloatX', 'Mapping', 'Merge',
    'MultiProcessing', 'Padding', 'Rename', 'ScaleAndShift', 'SortMapping',
    'SourcewiseTransformer', 'Transformer', 'Unpack']

# Most programs do without processes, so these are imported when asked for.
_LAZY = ('BackgroundProcess', 'MultiProcessing')

# Classes are pickled, and shown, under the name that users import.
for _name in set(__all__).difference(_LAZY):
    globals()[_name].__module__ = __name__


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(
            f'module {__name__!r} has no attribute {name!r}')
    from fuel.transformers import _multiprocessing
    value = getattr(_multiprocessing, name)
    value.__module__ = __name__
    return value
