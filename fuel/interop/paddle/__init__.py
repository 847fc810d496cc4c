"""PaddlePaddle's data providers and readers on Fuel.

Only :func:`as_iterable` needs PaddlePaddle itself.
"""
from fuel.interop.paddle.providers import (
    ProviderDataset, as_iterable, as_provider)
from fuel.interop.paddle.readers import (
    batch,
    buffered,
    chain,
    compose,
    firstn,
    map_readers,
    shuffle,
)
from fuel.interop.paddle.training import (
    make_minibatch_generator,
    minibatches,
    to_feed,
    train,
)

__all__ = ['ProviderDataset', 'as_iterable', 'as_provider', 'batch',
           'buffered', 'chain', 'compose', 'firstn',
           'make_minibatch_generator', 'map_readers', 'minibatches',
           'shuffle', 'to_feed', 'train']

# Classes are pickled, and shown, under the name that users import.
ProviderDataset.__module__ = __name__
