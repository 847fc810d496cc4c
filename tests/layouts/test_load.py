"""`fuel.load` opens other people's files as they are."""
import numpy
import pytest
from scipy import sparse

import fuel
from fuel.datasets import (  # noqa: F401 - for the calls that are shown
    CSR, Categorical, Constant, Flat, HDF5Dataset, PerRun, PerStep, Ragged,
    Rows, Runs, Scaled)
from support.layouts import MINIATURES

EACH = pytest.mark.parametrize('miniature', MINIATURES, ids=str)


def assert_same_examples(expected, found):
    """Compare the examples of a source, bit by bit."""
    if sparse.issparse(expected):
        assert sparse.issparse(found) and found.dtype == expected.dtype
        numpy.testing.assert_array_equal(expected.toarray(), found.toarray())
        return
    assert len(expected) == len(found)
    if isinstance(expected, numpy.ndarray) and found.dtype != object:
        assert found.dtype == expected.dtype.newbyteorder('=')
    for one, other in zip(expected, found, strict=True):
        numpy.testing.assert_array_equal(one, other)


@EACH
def test_values_are_those_of_the_file(miniature, tmp_path):
    """Of each layout, also by the call that is shown."""
    written = miniature.write(tmp_path, numpy.random.default_rng(1))
    dataset = fuel.load(written.files)
    assert {*written.values} == {*dataset.sources}
    again = eval(repr(dataset))
    for one in (dataset, again):
        batch = one.get_data(None, slice(0, one.num_examples))
        for source, found in zip(one.sources, batch, strict=True):
            assert_same_examples(written.values[source], found)
    if written.runs is not None:
        assert list(written.runs) == dataset.runs.tolist()
    dataset.close(None)
    again.close(None)
