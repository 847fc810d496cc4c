"""What ``chainer.iterators`` has to go over data sets."""
from fuel.interop.chainer.sweep_iterators import (
    MultiprocessIterator,
    MultithreadIterator,
    SerialIterator,
)
from fuel.interop.chainer.sweeps import OrderSampler, ShuffleOrderSampler

__all__ = ['MultiprocessIterator', 'MultithreadIterator', 'OrderSampler',
           'SerialIterator', 'ShuffleOrderSampler']
