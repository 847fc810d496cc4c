"""Rows of sparse arrays: made, cut, taken and stacked as they are stored."""
import subprocess
import sys

import numpy
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib import NumpyVersion
from numpy.testing import assert_array_equal
from scipy.sparse import coo_array, csr_array

from fuel.utils.sparse import (cast_rows, copy_rows, count_rows, is_sparse,
                               make_csr, slice_rows, stack_rows, take_rows,
                               to_dense)
from support.sparse_rows import assert_same_rows, sparse_batches

# Newer versions of SciPy have arrays of one dimension.
SINGLE_ROWS = NumpyVersion(scipy.__version__) >= '1.15.0'


def test_make_csr_keeps_arrays_as_they_are():
    """Nothing is copied, and indices keep their type."""
    parts = (numpy.arange(3, dtype='float32'), numpy.arange(3),
             numpy.array([0, 1, 3]))
    batch = make_csr(*parts, (2, 5))
    assert isinstance(batch, csr_array)
    assert (2, 5) == batch.shape
    assert batch.data is parts[0]
    assert batch.indices is parts[1]
    assert batch.indptr is parts[2]
    assert_array_equal([[0, 0, 0, 0, 0], [0, 1, 2, 0, 0]], batch.toarray())


def test_make_csr_gives_each_batch_its_own_object():
    """Batches of one shape do not share what SciPy notes of them."""
    first, second = (make_csr(
        numpy.array([float(place)]), numpy.array([place]),
        numpy.array([0, 1]), (1, 2)) for place in range(2))
    first.data[0] = 7
    assert_array_equal([[7, 0]], first.toarray())
    assert_array_equal([[0, 1]], second.toarray())


def test_make_csr_makes_one_index_type_and_native_bytes():
    """SciPy computes with one type of indices, in the machine's order."""
    batch = make_csr(
        numpy.array([1.5], '>f4'), numpy.array([1], '>i4'),
        numpy.array([0, 1], '>i8'), (1, 2))
    assert numpy.dtype('float32') == batch.data.dtype
    assert batch.data.dtype.isnative
    assert batch.indices.dtype == batch.indptr.dtype == numpy.dtype('int64')
    assert batch.indices.dtype.isnative
    assert_array_equal([[0, 1.5]], batch.toarray())


@pytest.mark.parametrize('value', [
    None, [1], numpy.ones((2, 2)), coo_array(numpy.ones((2, 2)))])
def test_is_sparse_means_rows(value):
    """Other kinds of sparse arrays are not batches, and neither is a row."""
    assert not is_sparse(value)
    rows = csr_array(numpy.ones((2, 2)))
    assert is_sparse(rows)
    if SINGLE_ROWS:
        assert not is_sparse(rows[0])


def test_scipy_is_imported_only_where_a_batch_is_made():
    """It takes longer to import than all of Fuel."""
    program = (
        'import sys; from fuel.utils.sparse import is_sparse, make_csr\n'
        'import fuel.datasets, fuel.streams, fuel.transformers, numpy\n'
        'assert not is_sparse([]) and "scipy.sparse" not in sys.modules\n'
        'zero = numpy.zeros(1, int)\n'
        'assert is_sparse(make_csr(zero[:0], zero[:0], zero, (0, 3)))')
    subprocess.run([sys.executable, '-c', program], check=True)


def test_count_rows_does_not_ask_for_a_length():
    """`len` is an error in SciPy."""
    assert 2 == count_rows(csr_array((2, 5)))
    assert 2 == count_rows([1, 2])
    with pytest.raises(TypeError, match='len'):
        count_rows(3)


@given(sparse_batches(), st.data())
def test_rows_are_those_of_the_dense_array(batch, data):
    """Rows are cut, taken by numbers or a mask, stacked, copied and cast."""
    rows = batch.shape[0]
    dense = to_dense(batch)
    start = data.draw(st.integers(0, rows))
    stop = data.draw(st.integers(start, rows))
    assert_same_rows(dense[start:stop], slice_rows(batch, start, stop), batch)
    order = numpy.array(data.draw(st.lists(
        st.integers(-rows, rows - 1), max_size=8) if rows else st.just([])),
        int)
    assert_same_rows(dense[order], take_rows(batch, order), batch)
    mask = numpy.arange(rows) % 2 == 0
    assert_same_rows(dense[mask], take_rows(batch, mask), batch)
    assert_same_rows(
        dense[::-1], take_rows(batch, slice(None, None, -1)), batch)
    assert_same_rows(numpy.concatenate([dense[start:stop], dense, dense[:1]]),
                     stack_rows([slice_rows(batch, start, stop), batch,
                                 slice_rows(batch, 0, min(rows, 1))]), batch)
    assert_same_rows(dense, copy_rows(batch), batch)
    double = cast_rows(batch, numpy.dtype('float64'))
    assert_array_equal(dense.astype('float64'), double.toarray())
    assert double.indices.dtype == batch.indices.dtype


@pytest.mark.parametrize('make', [
    copy_rows, lambda batch: slice_rows(batch, 0, 2),
    lambda batch: take_rows(batch, [0, 1]), lambda batch: stack_rows([batch])])
def test_rows_have_memory_of_their_own(make):
    """Parts and stacks of batches may be written to."""
    batch = csr_array(numpy.arange(6.).reshape(2, 3))
    before = batch.toarray()
    other = make(batch)
    other.data[:] = 9
    other.indices[:] = 0
    other.indptr[:] = 0
    assert_array_equal(before, batch.toarray())


def test_cast_to_the_same_type_is_the_batch_itself():
    """Data that have the type are passed on."""
    batch = csr_array(numpy.ones((2, 2)))
    assert cast_rows(batch, numpy.dtype('float64')) is batch


def test_stacked_rows_have_one_number_of_columns():
    """The message has both."""
    with pytest.raises(ValueError, match='of 3 and of 4 columns'):
        stack_rows([csr_array((1, 4)), csr_array((1, 3))])


def test_stacked_rows_get_wide_offsets_where_they_need_them():
    """Offsets of more elements than int32 counts, which are not there."""
    part = make_csr(
        numpy.zeros(0, 'int8'), numpy.zeros(0, 'int32'),
        numpy.array([0, 1 << 30], 'int32'), (1, 1))
    stacked = stack_rows([part, part, part])
    assert numpy.dtype('int64') == stacked.indptr.dtype
    assert 3 << 30 == stacked.indptr[-1]
