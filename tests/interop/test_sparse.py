"""Sparse batches and the bridges that need no other library."""
import numpy
import pytest
from support.sparse_rows import SparseDataset, assert_same_rows, random_csr

from fuel.interop.chainer import as_dataset, as_iterator, concat_examples
from fuel.interop.paddle import as_provider, to_feed
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream
from fuel.transformers import ToDense

ROWS = random_csr(10, 5)


def batches():
    """Return a stream of sparse batches."""
    return DataStream(
        SparseDataset(ROWS), iteration_scheme=SequentialScheme(10, 4))


def test_chainer_has_sparse_examples_and_dense_arrays():
    """Only data that Chainer computes with must be dense."""
    examples = next(as_iterator(batches()))
    assert 4 == len(examples)
    for place, (x, y) in enumerate(examples):
        assert_same_rows(ROWS.toarray()[place:place + 1], x)
        assert place == y
    for found in (examples, list(examples), as_dataset(
            SparseDataset(ROWS))[:4]):
        with pytest.raises(TypeError, match=r'is sparse.* ToDense\(stream'):
            concat_examples(found)
    x, _ = concat_examples(next(as_iterator(ToDense(batches()))))
    assert numpy.array_equal(ROWS.toarray()[:4], x)


def test_paddle_names_the_stage_that_makes_arrays():
    """The error names it for columns of a feed and of a stream."""
    x = SparseDataset(ROWS)[0][0]
    with pytest.raises(TypeError, match=r"which_sources=\('words',\)"):
        to_feed([[x, 1]], ['words', 'label'])
    with pytest.raises(TypeError, match=r"ToDense\(.*\('x',\)"):
        next(iter(as_provider(batches())()))
    entry = next(iter(as_provider(ToDense(batches()))()))
    assert ROWS.toarray()[0].tolist() == list(entry[0])
