"""Masked arrays, which JAX does not have."""
import numpy
import pytest
from numpy import ma

from fuel.datasets import IndexableDataset
from fuel.interop.jax import as_source, to_jax
from fuel.streams import DataStream

X = ma.masked_array(numpy.arange(8.).reshape(4, 2), mask=[[0, 1]] + 3 * [
    [0, 0]])
REMEDY = r"'x', .*masked.*numpy\.ma\.filled"


def test_masked_batches_and_examples_are_refused():
    """The error names the source and the remedy."""
    dataset = IndexableDataset({'x': X, 'y': X.data})
    stream = DataStream(dataset, batch_size=2)
    with pytest.raises(TypeError, match=REMEDY):
        next(iter(to_jax(stream)))
    with pytest.raises(TypeError, match=REMEDY):
        _ = as_source(dataset)[0]
    (x, y), *_ = to_jax(stream, which_sources=('y',))
    assert X[:2].tolist() == x.tolist()
    assert X.data[:2].tolist() == y.tolist()
