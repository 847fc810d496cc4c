"""Data sets of Chainer's kind that worker processes read.

They live in a module of their own, so that other processes can import it.
"""
import os
import time

import numpy

from fuel.interop.chainer import DatasetMixin


class SimpleDataset(DatasetMixin):
    """The example of Chainer's document."""

    def __init__(self, values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def get_example(self, i):
        """Return one of the values."""
        return self.values[i]


class Failing(DatasetMixin):
    """Fails for one example."""

    def __init__(self, error=None):
        self.error = error or ValueError('no such image')

    def __len__(self):
        return 8

    def get_example(self, i):
        """Do what the class says."""
        if i == 3:
            raise self.error
        return i


class Slow(DatasetMixin):
    """Takes its time for each of two examples."""

    def __len__(self):
        return 2

    def get_example(self, i):
        """Do what the class says."""
        time.sleep(.05)
        return i


def global_order(order, position):
    """Return an order that no copy of a position can know."""
    return numpy.random.RandomState(os.getpid() % 2 ** 32).permutation(
        len(order))
