"""Padding against the loop that defines it."""
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from fuel.kernels import pad_sequences

NUMBERS = st.one_of(
    st.integers(-2 ** 63, 2 ** 63 - 1), st.integers(-5, 5), st.booleans(),
    st.floats(allow_nan=False, width=32),
    st.integers(2 ** 63, 2 ** 64 - 1))
LISTS = st.lists(
    st.lists(st.integers(-9, 9)) | st.lists(NUMBERS)
    | st.lists(st.floats(-9, 9)) | st.lists(st.integers(0, 9)).map(tuple))
DTYPES = ['?', 'u1', '>i2', '<i4', '<i8', '<u8', '<f2', '>f4', '<f8', '<c8']


@st.composite
def array_batches(draw):
    """Draw arrays of one or several types, strided, read-only or neither."""
    rest = draw(st.sampled_from([(), (2,), (2, 3), (0,)]))
    dtypes = draw(st.lists(st.sampled_from(DTYPES), min_size=1, max_size=2))
    batch = []
    for length in draw(st.lists(st.integers(0, 6), max_size=6)):
        array = numpy.arange(2 * length * int(numpy.prod(rest))).reshape(
            2 * length, *rest).astype(draw(st.sampled_from(dtypes)))
        array = array[::2] if draw(st.booleans()) else array[:length].copy()
        array.flags.writeable = draw(st.booleans())
        batch.append(array)
    return batch


def pad_twin(sequences, mask_dtype):
    """Define pad_sequences."""
    arrays = [numpy.asarray(item) for item in sequences]
    typed = [array for array, item in zip(arrays, sequences, strict=True)
             if len(array) or isinstance(item, numpy.ndarray)]
    dtype = numpy.result_type(*typed).newbyteorder('=') if typed else 'f8'
    longest = max(map(len, arrays), default=0)
    rest = typed[0].shape[1:] if typed else ()
    out = numpy.zeros((len(arrays), longest, *rest), dtype)
    mask = numpy.zeros((len(arrays), longest), mask_dtype)
    for i, array in enumerate(arrays):
        if len(array):
            out[i, :len(array)] = array
            mask[i, :len(array)] = 1
    return out, mask


def assert_padded(sequences, mask_dtype):
    """Assert that a batch is padded as defined, types included."""
    expected = pad_twin(sequences, mask_dtype)
    result = pad_sequences(sequences, mask_dtype)
    for a, b in zip(expected, result, strict=True):
        assert_array_equal(a, b)
        assert a.dtype == b.dtype
        assert b.flags.writeable


@given(LISTS, st.sampled_from(['?', 'u1', '<f4', '<f8', '<i8', '<c8']))
def test_pad_sequences_lists_of_numbers_equals_the_loop(batch, mask_dtype):
    """Integers, floats, booleans and large integers get NumPy's common
    type."""
    assert_padded(batch, mask_dtype)


@given(array_batches(), st.sampled_from(['?', '<f4', '<i8']))
def test_pad_sequences_arrays_equals_the_loop(batch, mask_dtype):
    """Any types, strides and shapes behind the first axis."""
    assert_padded(batch, mask_dtype)
    ragged = numpy.empty(len(batch), object)
    for i, array in enumerate(batch):
        ragged[i] = array
    assert_array_equal(pad_twin(batch, '?')[0], pad_sequences(ragged)[0])


def test_pad_sequences_floats_after_integers_are_not_cut():
    """The type is that of the batch, not of its first sequence."""
    padded, _ = pad_sequences([[1, 2], [1.5, 2.5, 3.5]])
    assert_array_equal([[1, 2, 0], [1.5, 2.5, 3.5]], padded)
    padded, _ = pad_sequences([[7, 8.5], [2]])
    assert_array_equal([[7, 8.5], [2, 0]], padded)


@pytest.mark.parametrize('batch', [
    numpy.arange(6).reshape(2, 3), numpy.arange(12, dtype='>i2').reshape(
        2, 3, 2)[:, ::-1], [['a', 'bcd'], ['ef']], [[[1], [2]], [[3]]],
    [numpy.array([1, 2]), [3]], [range(3), range(1)],
    [numpy.array(['x']), numpy.array(['yz', 'w'])]])
def test_pad_sequences_other_batches_equal_the_loop(batch):
    """Regular arrays, strings, nested lists and mixtures work as well."""
    assert_padded(batch, 'float64')


def test_pad_sequences_regular_array_is_not_copied():
    """There is nothing to pad, so the batch goes on as it is."""
    batch = numpy.ones((2, 2))
    assert pad_sequences(batch)[0] is batch


@pytest.mark.parametrize('batch, text', [
    ([[1], 5], 'element 1 of the batch must be a sequence, got 5'),
    ([numpy.array(3)], r'element 0 of the batch must be'),
    ([numpy.zeros((1, 2)), numpy.zeros((1, 3))],
     r'must be equal, got \[\(2,\), \(3,\)\]'),
    ([[[1, 2], [3]]], r'element 0 of the batch must be'),
    (numpy.arange(3), 'element 0 of the batch'),
])
def test_pad_sequences_of_other_values_raises(batch, text):
    """The error names the value that is not a sequence."""
    with pytest.raises(ValueError, match=text):
        pad_sequences(batch)


def test_pad_sequences_mask_of_strings_raises():
    """The mask holds numbers."""
    with pytest.raises(ValueError, match='type of number or bool, got <U1'):
        pad_sequences([[1]], 'U1')


def test_pad_sequences_no_sequences_is_empty():
    """An empty batch gives empty arrays."""
    padded, mask = pad_sequences([])
    assert (0, 0) == padded.shape == mask.shape
