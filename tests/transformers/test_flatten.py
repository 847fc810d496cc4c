"""Flatten."""
import numpy
import pytest

from fuel.datasets import IndexableDataset
from fuel.schemes import SequentialExampleScheme, SequentialScheme
from fuel.streams import DataStream
from fuel.transformers import Flatten, Mapping

BATCHES = SequentialScheme(4, 4)


def cubes(scheme=BATCHES, labels=None):
    """Return a stream over small cubes and numbers."""
    return DataStream(IndexableDataset(
        {'x': numpy.arange(48).reshape(4, 2, 3, 2), 'y': numpy.arange(4)},
        axis_labels=labels), iteration_scheme=scheme)


def test_flatten_makes_matrices_of_batches():
    """The first axis stays; numbers become vectors of one."""
    x, y = next(Flatten(cubes()).get_epoch_iterator())
    numpy.testing.assert_array_equal(numpy.arange(48).reshape(4, 12), x)
    numpy.testing.assert_array_equal(numpy.arange(4).reshape(4, 1), y)


def test_flatten_makes_vectors_of_examples():
    """All elements of an example are in a row."""
    x, y = next(Flatten(cubes(SequentialExampleScheme(4))
                        ).get_epoch_iterator())
    numpy.testing.assert_array_equal(numpy.arange(12), x)
    numpy.testing.assert_array_equal([0], y)


def test_flatten_accepts_lists():
    """They are treated as arrays."""
    stream = DataStream(IndexableDataset([[[1], [2]], [[3], [4]]]),
                        iteration_scheme=SequentialScheme(2, 2))
    assert [[1, 2], [3, 4]] == next(
        Flatten(stream).get_epoch_iterator())[0].tolist()


def test_flatten_empty_batch():
    """It has as many features as any other."""
    stream = Flatten(Mapping(
        cubes(), lambda batch: tuple(part[:0] for part in batch)))
    assert [(0, 12), (0, 1)] == [
        part.shape for part in next(stream.get_epoch_iterator())]


def test_flatten_ragged_batch():
    """Each example is flattened by itself."""
    rows = numpy.empty(2, object)
    rows[:] = [numpy.ones((1, 2)), numpy.ones((2, 2))]
    for data in (rows, [[[1, 2]], [[3, 4], [5, 6]]]):
        stream = DataStream(IndexableDataset(data),
                            iteration_scheme=SequentialScheme(2, 2))
        batch, = next(Flatten(stream).get_epoch_iterator())
        assert [(2,), (4,)] == [row.shape for row in batch]


@pytest.mark.parametrize('scheme, flat, others', [
    (BATCHES, ('batch', 'feature'), ('batch',)),
    (SequentialExampleScheme(4), ('feature',), ())])
def test_flatten_labels(scheme, flat, others):
    """`which_sources=None` works on a labelled stream."""
    labels = {'x': ('batch', 'a', 'b', 'c'), 'y': ('batch',)}
    stream = cubes(scheme, labels)
    assert {'x': flat, 'y': flat} == Flatten(
        stream, which_sources=None).axis_labels
    assert {'x': flat, 'y': flat} == Flatten(stream).axis_labels
    assert {'x': flat, 'y': others} == Flatten(
        stream, which_sources=('x',)).axis_labels
    assert Flatten(cubes(scheme)).axis_labels is None


@pytest.mark.parametrize('scheme', [BATCHES, SequentialExampleScheme(4)])
def test_flatten_carries_missing_labels(scheme):
    """A label may be None, or a bare string."""
    stream = cubes(scheme, {'x': None, 'y': 'batch'})
    labels = Flatten(stream, which_sources=('x',)).axis_labels
    assert {'x': None, 'y': 'batch'} == labels
