"""The kernels that read rows of arrays in memory."""
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.testing import assert_array_equal

from fuel.kernels import as_indices, take, take_row

DTYPES = ['?', 'u1', '<i2', '>i2', '<f4', '>f8', 'c8', 'S3', '<U2', '>U2',
          'M8[s]', 'f2', 'O', [('a', '<i4'), ('b', '>f4')],
          [('a', '<i4'), ('b', '>f4', (2,))]]


@st.composite
def arrays(draw):
    """Return an array of any type and any strides, with a row at least."""
    dtype = numpy.dtype(draw(st.sampled_from(DTYPES)))
    shape = draw(npst.array_shapes(min_dims=1, max_dims=3, max_side=5))
    count = int(numpy.prod(shape))
    if dtype.kind == 'V':
        array = numpy.zeros(count, dtype)
        array['a'] = numpy.arange(count)
        array['b'].T[...] = -numpy.arange(count)
    else:
        array = numpy.arange(count).astype(dtype)
    array = array.reshape(shape)
    how = draw(st.sampled_from(['plain', 'fortran', 'reversed', 'readonly']))
    if how == 'fortran':
        array = numpy.asfortranarray(array)
    elif how == 'reversed':
        array = array[::-1]
    elif how == 'readonly':
        array.flags.writeable = False
    return array


def assert_own(result, array):
    """Check what holds for every array that is handed out."""
    assert result.flags.writeable
    assert result.flags.aligned
    assert result.dtype.isnative
    assert not numpy.shares_memory(result, array)


@given(array=arrays(), data=st.data())
def test_take_any_array_equals_numpy(array, data):
    """Rows of any array are those that NumPy takes, and the caller's own."""
    indices = data.draw(st.lists(
        st.integers(0, len(array) - 1), max_size=9))
    as_given = data.draw(st.sampled_from(
        [list, lambda i: numpy.array(i, 'u1'),
         lambda i: numpy.array(i, '>i8'), lambda i: numpy.array(i, 'i4')]))
    rows = take(array, as_given(indices))
    assert_array_equal(array[numpy.array(indices, int)], rows)
    assert_own(rows, array)
    assert rows.dtype == array.dtype.newbyteorder('=')


@pytest.mark.parametrize('shape', [(4,), (4, 3), (4, 0)])
def test_arrays_in_fields_come_in_native_order(shape):
    """NumPy says of their types alone whether these are native."""
    dtype = numpy.dtype([('a', '<i4'), ('b', '>f4', (2,))])
    array = numpy.zeros(shape, dtype)
    array['b'].T[...] = 2
    for rows, expected in [
            (take(array, [2, 0]), array[[2, 0]]),
            (take_row(array, 1), array[1])]:
        assert_array_equal(expected, rows)
        assert rows.dtype == dtype.newbyteorder('=')


@given(array=arrays(), data=st.data())
def test_take_row_any_array_equals_numpy(array, data):
    """A row of any array is the one that NumPy indexes."""
    index = data.draw(st.integers(0, len(array) - 1))
    row = take_row(array, index)
    assert_array_equal(array[index], row)
    if isinstance(row, numpy.ndarray):
        assert_own(row, array)
    elif isinstance(row, numpy.void):
        assert row.dtype == array.dtype.newbyteorder('=')
        before = array.copy()
        row['a'] = 99
        assert_array_equal(before, array)


@pytest.mark.parametrize('row_size', [1, 4, 3072, 70000])
def test_take_consecutive_and_repeated_rows_equals_numpy(row_size):
    """Runs of rows, which are copied at once, come out like others."""
    array = numpy.arange(20 * row_size, dtype='u4').reshape(20, row_size)
    for indices in ([3, 4, 5, 6], [0, 1, 1, 2, 2, 3], [9, 8, 7],
                    list(range(20)), [19, 0, 1, 19]):
        assert_array_equal(array[indices], take(array, indices))


@pytest.mark.parametrize('request_, text', [
    ([0, 3], 'element 1 is 3: there are only 3 examples'),
    ([-1], 'element 0 is -1: indices do not count from the end'),
    ([2 ** 70], 'there are only 3 examples'),
    ([0, True], 'numpy.flatnonzero'),
    ([numpy.bool_(False)], 'numpy.flatnonzero'),
    ([0, 1.0], r'element 1 is 1.0 \(float\): convert the indices'),
    ([None], r'element 0 is None \(NoneType\)'),
    ([[0, 1]], 'element 0 is .* one flat list of integers'),
    ([(0, 1)], 'element 0 is .* one flat list of integers'),
    ([numpy.array([1])], 'element 0 is'),
    (numpy.array([True, False, True]), 'boolean mask: pass numpy.flatnonz'),
    (numpy.array([0.0]), 'one-dimensional array of integers'),
    (numpy.array([[0]]), 'one-dimensional array of integers'),
    (numpy.array([0, 3], 'u8'), 'element 1 is 3'),
    (numpy.array([-1], 'i2'), 'element 0 is -1'),
    ('ab', 'a list of integers or an integer array'),
    ((0, 1.5), 'element 1 is 1.5'),
    (None, 'a list of integers or an integer array'),
], ids=repr)
def test_as_indices_bad_request_says_what_to_do(request_, text):
    """A request that is not a list of valid indices names a remedy."""
    with pytest.raises(ValueError, match=text):
        as_indices(request_, 3)


@pytest.mark.parametrize('request_', [
    [2, 0], range(2, -1, -2), numpy.array([2, 0], 'u1'),
    numpy.array([2, 0], '>u8'), [numpy.int8(2), numpy.uint64(0)],
    [numpy.array(2), 0]], ids=repr)
def test_as_indices_any_integers_are_accepted(request_):
    """Lists and arrays of integers of any width mean the same."""
    indices = as_indices(request_, 3)
    assert indices.dtype == numpy.intp
    assert [2, 0] == indices.tolist()


@pytest.mark.parametrize('index', [-1, 3, 2 ** 40])
def test_take_row_out_of_range_raises(index):
    """There is no reading outside the array."""
    with pytest.raises(ValueError, match='index from 0 to 2'):
        take_row(numpy.zeros((3, 2)), index)


def test_take_without_axes_raises():
    """A 0-d array has no rows."""
    with pytest.raises(ValueError, match='0-d array'):
        take(numpy.array(1), [0])
    with pytest.raises(ValueError, match='0-d array'):
        take_row(numpy.array(1), 0)


@pytest.mark.parametrize('function', [take, take_row])
def test_take_none_raises(function):
    """None is not an array."""
    with pytest.raises(TypeError, match='array'):
        function(None, 0)


def test_take_empty_axes_and_empty_requests():
    """Rows of no bytes, and no rows, are arrays of the right shape."""
    assert (2, 0, 3) == take(numpy.zeros((4, 0, 3)), [1, 1]).shape
    assert (0, 3) == take(numpy.zeros((4, 3)), []).shape
    assert (0, 3) == take_row(numpy.zeros((4, 0, 3)), 2).shape


def test_request_that_is_changed_while_it_is_read_is_an_error():
    """An element may be code of a user; nothing is read behind the end."""
    class Clears:
        def __index__(self):
            request.clear()
            return 0

    request = [Clears(), *[0] * 5]
    with pytest.raises(ValueError, match='has 0 after 1 of them were read'):
        take(numpy.arange(5), request)
