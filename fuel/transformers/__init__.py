"""Stages that transform the data of streams.

Arguments that mean the same for all stages that take them:

- ``data_stream``, the stream that the stage reads;
- ``which_sources``, a tuple of names, or one name: the sources to transform,
  while the others pass through. Defaults to all;
- ``seed``, an int: the random draws of a stage depend on it, on the epoch and
  on the number of the batch. Defaults to ``config.default_seed``;
- ``draws``, ``'item'`` or ``'example'``: with ``'example'``, draws depend on
  the example instead of the number of the batch; see
  :class:`SeededTransformer`. Defaults to ``'item'``;
- ``num_threads``, an int: the largest number of threads to use. Defaults to
  the value of ``config.num_threads`` when a batch is transformed;
- ``iteration_scheme``, ``axis_labels`` and ``produces_examples``: see
  :class:`AbstractDataStream` and :class:`Transformer`. Axis labels default to
  those of ``data_stream`` if the stage keeps the axes.
"""
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fuel.exceptions import AxisLabelsMismatchError as AxisLabelsMismatchError
from fuel.streams import AbstractDataStream as AbstractDataStream
from fuel.transformers.sourcewise import (
    AgnosticSourcewiseTransformer, AgnosticTransformer, SourcewiseTransformer)
from fuel.transformers.axis_labels import ExpectsAxisLabels
from fuel.transformers.balanced import BalancedBatches
from fuel.transformers.base import Transformer
from fuel.transformers.batch import Batch, Unpack
from fuel.transformers.cache import Cache
from fuel.transformers.casting import Cast, ForceFloatX
from fuel.transformers.expand import Expand
from fuel.transformers.several import Chain, Merge
from fuel.transformers.filter import Filter, Take
from fuel.transformers.rename import FilterSources, Rename
from fuel.transformers.flatten import Flatten
from fuel.transformers.mapping import Mapping, SortMapping
from fuel.transformers.mark_examples import MarkExamples
from fuel.transformers.mixture import Mix
from fuel.transformers.padding import MarkPadding, Padding
from fuel.transformers.scaling import ScaleAndShift
from fuel.transformers.seeded import SeededTransformer
from fuel.transformers.to_dense import ToDense

if TYPE_CHECKING:
    from fuel.transformers.multiprocessing import (BackgroundProcess,
                                                   MultiProcessing)
    from fuel.transformers.multithreading import MultiThreading

__all__ = [
    'AgnosticSourcewiseTransformer', 'AgnosticTransformer',
    'BackgroundProcess', 'BalancedBatches', 'Batch', 'Cache', 'Cast', 'Chain',
    'Expand', 'ExpectsAxisLabels', 'Filter', 'FilterSources', 'Flatten',
    'ForceFloatX', 'Mapping', 'MarkExamples', 'MarkPadding', 'Merge', 'Mix',
    'MultiProcessing', 'MultiThreading', 'Padding', 'Rename',
    'ScaleAndShift', 'SeededTransformer', 'SortMapping',
    'SourcewiseTransformer', 'Take', 'ToDense', 'Transformer', 'Unpack']

# Most programs do without workers, so these are imported when asked for.
_LAZY = {'BackgroundProcess': 'multiprocessing',
         'MultiProcessing': 'multiprocessing',
         'MultiThreading': 'multithreading'}
# So are these, which have stages of their own.
_MODULES = ('defaults', 'image', 'label_encoding', 'noise', 'sequences',
            'shuffling', 'standardization', 'whitening')

# Classes are pickled, and shown, under the name that users import.
for _name in set(__all__).difference(_LAZY):
    globals()[_name].__module__ = __name__


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f'{__name__}.{name}')
    if name not in _LAZY:
        raise AttributeError(
            f'module {__name__!r} has no attribute {name!r}')
    value = getattr(import_module(f'{__name__}.{_LAZY[name]}'), name)
    value.__module__ = __name__
    return value


def __dir__() -> list[str]:
    # With what is loaded on demand, and without what is imported here.
    return sorted({*_MODULES, *__all__, *(
        name for name in globals() if name.startswith('__'))})
