"""Use Fuel's streams and data sets in JAX and Grain, and Grain's in Fuel."""
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fuel.utils.extras import from_extra

with from_extra('jax', 'jax'):
    from fuel.interop.jax.stage import ToJax, to_jax

if TYPE_CHECKING:
    from fuel.interop.jax.datasets import GrainDataset as GrainDataset
    from fuel.interop.jax.datasets import GrainIterable as GrainIterable
    from fuel.interop.jax.iter_dataset import (
        StreamIterDataset as StreamIterDataset,
    )
    from fuel.interop.jax.iter_dataset import (
        as_iter_dataset as as_iter_dataset,
    )
    from fuel.interop.jax.source import GrainSource as GrainSource
    from fuel.interop.jax.source import as_source as as_source

__all__ = ['GrainDataset', 'GrainIterable', 'GrainSource',
           'StreamIterDataset', 'ToJax', 'as_iter_dataset', 'as_source',
           'to_jax']

# Names whose modules need Grain; they are imported when they are used.
_OF_GRAIN = {'GrainDataset': 'datasets', 'GrainIterable': 'datasets',
             'GrainSource': 'source', 'StreamIterDataset': 'iter_dataset',
             'as_iter_dataset': 'iter_dataset', 'as_source': 'source'}

# Classes are pickled, and shown, under the name that users import.
ToJax.__module__ = __name__


def __getattr__(name: str) -> Any:
    if name not in _OF_GRAIN:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    with from_extra('jax', 'grain'):
        module = import_module(f'{__name__}.{_OF_GRAIN[name]}')
    value = getattr(module, name)
    if isinstance(value, type):
        value.__module__ = __name__
    return value


def __dir__() -> list[str]:
    # Include the names that are loaded on demand.
    return sorted({*globals(), *__all__})
