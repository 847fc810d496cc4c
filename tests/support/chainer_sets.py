"""Data sets of Chainer's kind that worker processes read.

They live in a module of their own, so that other processes can import it.
"""
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


class Sampler:
    """Draws orders as users' own samplers do.

    `turn`: called before each order.
    """

    def __init__(self, turn=None):
        # Neither deep copies nor pickles take a module.
        self.numpy = numpy
        self.turn = turn
        self.largest = 100
        self.order = None

    def in_place(self, order, position):
        """Shuffle one array again and again, with the global generator."""
        if self.turn is not None:
            self.turn()
        if self.order is None:
            self.order = order
        self.numpy.random.shuffle(self.order)
        return self.order

    def drawn(self, order, position):
        """Draw a new array from the global generator."""
        return self.numpy.random.permutation(len(order))

    def easy_first(self, order, position):
        """Return examples up to a number that others raise."""
        return order % self.largest

    @staticmethod
    def backwards(order, position):
        """Turn an order, which depends on nothing else."""
        return order[::-1]
