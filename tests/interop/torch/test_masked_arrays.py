"""Masked arrays, which no tensor can be."""
import numpy
import pytest
from numpy import ma
from torch.utils.data import DataLoader

from fuel.datasets import IndexableDataset
from fuel.interop.torch import TorchDataset, as_iterable, as_map, to_torch
from fuel.streams import DataStream
from fuel.transformers import MultiProcessing

X = ma.masked_array(numpy.arange(8.).reshape(4, 2), mask=[[0, 1]] + 3 * [
    [0, 0]])
REMEDY = r"'x', .*masked.*numpy\.ma\.filled"


def dataset():
    """Return a data set of masked and of plain rows."""
    return IndexableDataset({'x': X, 'y': X.data})


def batches():
    """Return a stream of both."""
    return DataStream(dataset(), batch_size=2)


@pytest.mark.parametrize('build', [
    to_torch, lambda stream: to_torch(MultiProcessing(stream)), as_iterable,
    lambda stream: DataLoader(as_iterable(stream), batch_size=None),
    lambda stream: DataLoader(as_iterable(stream), batch_size=None,
                              num_workers=1)],
    ids=['stage', 'processes', 'iterable', 'loader', 'worker'])
def test_masked_batch_is_refused(build):
    """The error names the source and the remedy, in workers as well."""
    with batches() as stream, pytest.raises(TypeError, match=REMEDY):
        next(iter(build(stream)))


def test_masked_rows_of_a_map_style_data_set_are_refused():
    """Examples, batches and requests of a loader are refused."""
    for read in (lambda rows: rows[0], lambda rows: rows[[0, 1]],
                 lambda rows: next(iter(DataLoader(rows, batch_size=2)))):
        with pytest.raises(TypeError, match=REMEDY):
            read(as_map(dataset()))


def test_source_that_is_not_chosen_stays_masked():
    """The stage leaves it alone, as other data that are not tensors."""
    (x, y), *_ = to_torch(batches(), which_sources=('y',))
    assert X[:2].tolist() == x.tolist()
    assert X.data[:2].tolist() == y.tolist()


def test_data_set_of_pytorch_may_have_masked_rows():
    """Masked rows are unchanged."""
    rows = TorchDataset([(row, 1) for row in X], names=('x', 'y'))
    assert X[0].tolist() == rows[0][0].tolist()
    assert X.tolist() == rows[[0, 1, 2, 3]][0].tolist()
