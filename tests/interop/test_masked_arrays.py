"""Masked arrays and the bridges that need no other library."""
import numpy
import pytest
from numpy import ma

from fuel.datasets import IndexableDataset
from fuel.interop.chainer import (ChainerDataset, as_dataset, as_iterator,
                                  concat_examples)
from fuel.interop.paddle import as_provider, to_feed
from fuel.streams import DataStream

X = ma.masked_array(numpy.arange(8.).reshape(4, 2), mask=[[0, 1]] + 3 * [
    [0, 0]])
REMEDY = r'mask.*numpy\.ma\.filled'


def batches():
    """Return a stream of masked batches."""
    return DataStream(IndexableDataset({'x': X, 'y': X[:, 1]}), batch_size=2)


def test_chainer_has_masked_examples_and_plain_arrays():
    """Only data that Chainer computes with must be plain."""
    for found in (next(as_iterator(batches())), as_dataset(
            IndexableDataset({'x': X, 'y': X[:, 1]}))[:2]):
        assert [[0, None], [2, 3]] == [x.tolist() for x, _ in found]
        assert [None, 3] == [y.tolist() for _, y in found]
        with pytest.raises(TypeError, match=REMEDY):
            concat_examples(found)
        with pytest.raises(TypeError, match=REMEDY):
            concat_examples(list(found))


def test_rows_of_other_libraries_keep_masks():
    """A data set of another library may have masked rows."""
    dataset = ChainerDataset([(row, 1) for row in X])
    for place in range(4):
        assert X[place].tolist() == dataset[place][0].tolist()
    assert X.tolist() == dataset[[0, 1, 2, 3]][0].tolist()


def test_paddle_refuses_masked_arrays():
    """Columns of a feed and of a stream are refused."""
    with pytest.raises(TypeError, match=REMEDY):
        to_feed([[X[0], 1]], ['words', 'label'])
    with pytest.raises(TypeError, match=REMEDY):
        next(iter(as_provider(batches())()))
