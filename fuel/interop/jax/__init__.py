"""Fuel streams and data sets in JAX and Grain, and Grain's in Fuel."""
from fuel.utils.extras import from_extra

with from_extra('jax', 'jax', 'grain'):
    from fuel.interop.jax.datasets import GrainDataset, GrainIterable
    from fuel.interop.jax.iter_dataset import (
        StreamIterDataset,
        as_iter_dataset,
    )
    from fuel.interop.jax.source import GrainSource, as_source
    from fuel.interop.jax.stage import ToJax, to_jax

__all__ = ['GrainDataset', 'GrainIterable', 'GrainSource',
           'StreamIterDataset', 'ToJax', 'as_iter_dataset', 'as_source',
           'to_jax']

# Classes are pickled, and shown, under the name that users import.
for _class in (GrainDataset, GrainIterable, GrainSource, StreamIterDataset,
               ToJax):
    _class.__module__ = __name__
