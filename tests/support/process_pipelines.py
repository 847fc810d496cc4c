"""Pipelines that the tests of worker processes and servers run.

They live in a module of their own, so that other processes can import it.
"""
import random
import sys
import time

import numpy

from fuel.datasets import IndexableDataset
from fuel.kernels import outputs
from fuel.schemes import SequentialScheme, ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import AgnosticTransformer, Transformer
from support import stuck

WIDTH = 6000
# Seconds that a slow batch takes.
NAP = .004

# Not in the process that runs the tests.
if 'pytest' not in sys.modules:
    stuck.arm()


def slow(batch):
    """Take long, whatever the machine does."""
    time.sleep(NAP)
    return batch


class Noise(AgnosticTransformer):
    """Adds random numbers: its draws depend on those before."""

    def __init__(self, data_stream, seed=3):
        super().__init__(data_stream, data_stream.produces_examples)
        self.rng = numpy.random.RandomState(seed)

    def transform_any(self, data):
        """Do what the class says."""
        return (data[0] + self.rng.uniform(size=data[0].shape), *data[1:])


class Faulty(AgnosticTransformer):
    """Does something bad with batch number `at`."""

    def __init__(self, data_stream, at, fault):
        super().__init__(data_stream, data_stream.produces_examples)
        self.at = at
        self.fault = fault
        self.count = 0

    def transform_any(self, data):
        """Do what the class says."""
        self.count += 1
        if self.count == self.at + 1:
            self.fault()
        return data


class UnpicklableError(Exception):
    """An error that cannot be pickled back."""

    def __init__(self, one, two):
        super().__init__(one)
        self.two = two


def build(num_examples=24, batch_size=4, width=WIDTH):
    """Return a stream of a large and a small source, shuffled and noisy."""
    dataset = IndexableDataset({
        'features': numpy.arange(num_examples * width, dtype='f8').reshape(
            num_examples, width),
        'targets': numpy.arange(num_examples)})
    return Noise(DataStream(dataset, iteration_scheme=ShuffledScheme(
        num_examples, batch_size)))


def assert_same(expected, actual):
    """Compare lists of batches."""
    expected, actual = list(expected), list(actual)
    assert len(expected) == len(actual)
    for one, other in zip(expected, actual, strict=True):
        assert len(one) == len(other)
        for mine, yours in zip(one, other, strict=True):
            numpy.testing.assert_array_equal(mine, yours)


class Keeper(AgnosticTransformer):
    """Writes where the consumer reads, and keeps what it returned."""

    def __init__(self, data_stream, keep):
        super().__init__(data_stream, data_stream.produces_examples)
        self.keep = keep
        self.kept = []

    def transform_any(self, data):
        """Do what the class says."""
        out = outputs.empty(data[0].shape, 'f4')
        out[...] = data[0]
        if self.keep:
            self.kept.append((
                out if self.keep == 'it' else out[:, 1:], out.copy()))
            for mine, copy in self.kept:
                numpy.testing.assert_array_equal(
                    mine, copy[:, -mine.shape[1]:])
        if self.keep == 'what it was made of':
            out = out + 1
        return (out, *data[1:])


class Shapes(Transformer):
    """Turns each example into data of every kind."""

    def __init__(self, data_stream):
        super().__init__(data_stream, produces_examples=True)

    def get_data(self, request=None):
        """Do what the class says."""
        (number,) = next(self.child_epoch_iterator)
        ragged = numpy.empty(2, object)
        ragged[:] = [numpy.arange(number), numpy.arange(9000. * number)]
        return (ragged, [b'a' * number, 'text'], numpy.empty((0, 3)), number,
                numpy.float32(number), numpy.asfortranarray(
                    numpy.arange(60000.).reshape(200, 300)))


class Slow(AgnosticTransformer):
    """Takes its time, and nothing else."""

    def __init__(self, data_stream, seconds=0.5):
        super().__init__(data_stream, data_stream.produces_examples)
        self.seconds = seconds

    def transform_any(self, data):
        """Do what the class says."""
        time.sleep(self.seconds)
        return data


class BadRows(IndexableDataset):
    """Cannot read example 9."""

    def get_data(self, state=None, request=None):
        """Do what the class says."""
        if 9 in request:
            raise OSError('a bad sector')
        return super().get_data(state, request)


def build_bad():
    """Return a stream of a data set that fails in its third batch."""
    return Noise(DataStream(
        BadRows(numpy.arange(24.)), iteration_scheme=SequentialScheme(24, 4)))


class Unloadable:
    """Does not come back from a pickle."""

    def __call__(self, data):
        """Return the data."""
        return data

    def __reduce__(self):
        return raise_value_error, ()


def raise_value_error():
    """Fail as a pipeline does."""
    raise ValueError('something bad')


def raise_unpicklable():
    """Fail with an error that does not come back from a pickle."""
    raise UnpicklableError('odd', 'very')


def sleep_long():
    """Stall."""
    time.sleep(30)


def draw(batch):
    """Return a batch of draws from the global generators."""
    return (numpy.random.normal(size=2),
            numpy.array([random.random()]))
