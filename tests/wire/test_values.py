"""Plain values survive the way through bytes, and bytes do no harm."""
import struct

import numpy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as numpy_st

from fuel.wire.header import pack_header
from fuel.wire.values import pack_value, unpack_value

SCALARS = (st.none() | st.booleans() | st.integers() | st.floats()
           | st.text() | st.binary())
VALUES = st.recursive(
    SCALARS,
    lambda values: st.lists(values) | st.lists(values).map(tuple)
    | st.dictionaries(st.text() | st.integers(), values), max_leaves=20)
ARRAYS = numpy_st.arrays(
    numpy_st.scalar_dtypes() | numpy_st.unicode_string_dtypes()
    | numpy_st.byte_string_dtypes(),
    numpy_st.array_shapes(min_dims=0, min_side=0, max_dims=3))


@given(VALUES)
@example([-128, 127, 128, 2 ** 63, -2 ** 63, 10 ** 30, float('nan'), '\ud800'])
def test_value_comes_back(value):
    """Every plain value comes back with its types."""
    assert repr(value) == repr(unpack_value(pack_value(value)))


@given(ARRAYS)
def test_array_comes_back(array):
    """Arrays and NumPy scalars, with dtype and shape, as the user's own."""
    for given_array in (array, array.T):
        result = unpack_value(pack_value((given_array,)))[0]
        numpy.testing.assert_array_equal(given_array, result)
        if given_array.ndim:
            assert given_array.dtype == result.dtype
            assert result.flags.writeable
            assert result.flags.aligned
    assert numpy.int16 is type(unpack_value(pack_value(numpy.int16(-7))))


@pytest.mark.parametrize('value', [
    {1, 2}, object(), len, 1j, bytearray(b'a'), (1, [set()]),
    numpy.array([None]),
    type('Name', (str,), {})('a')])
def test_other_value_raises(value):
    """A value that is not plain is refused, with the remedy."""
    with pytest.raises(TypeError, match='cannot be sent.*convert (it|them)'):
        pack_value(value)


def message(item, *buffers):
    """Return the bytes of a description and its buffers."""
    header = pack_header({'item': item, 'sizes': list(map(len, buffers))})
    return b''.join([struct.pack('<I', len(header)), header, *buffers])


def test_array_of_objects_raises():
    """The error says which arrays can be sent."""
    with pytest.raises(TypeError, match='arrays without Python objects can'):
        pack_value(numpy.array([1, None], object))


def test_deep_value_raises():
    """Depth has a limit on both sides."""
    value, item = [], {'type': 'value', 'value': 1}
    for _ in range(40):
        value = [value]
        item = {'type': 'tuple', 'items': [item]}
    with pytest.raises(ValueError, match='nested more than 32'):
        pack_value(value)
    with pytest.raises(ValueError, match='nested too deep'):
        unpack_value(message(item))


def decode_or_refuse(encoded):
    """Fail if a message is neither a value nor refused in the one way."""
    try:
        value = unpack_value(encoded)
    except ValueError as error:
        # Its cause is what is wrong; no other error gets out.
        if 'not an encoded value' not in str(error):
            raise
    else:
        assert isinstance(pack_value(value), bytes)


@given(VALUES | ARRAYS, st.data())
def test_damaged_message_raises_or_is_another_value(value, data):
    """Cut or changed bytes never do anything but ValueError."""
    encoded = bytearray(pack_value(value))
    with pytest.raises(ValueError, match='not an encoded value'):
        unpack_value(bytes(encoded[:data.draw(
            st.integers(0, len(encoded) - 1))]))
    position = data.draw(st.integers(0, len(encoded) - 1))
    encoded[position] = data.draw(st.integers(0, 255))
    decode_or_refuse(bytes(encoded))


@given(st.binary(max_size=64))
@example(pack_value(None) + b'N')
@example(message({'type': 'dict', 'items': [[
    {'type': 'list', 'items': []}, {'type': 'value', 'value': 1}]]}))
@example(message({'type': 'dict', 'items': [7]}))
@example(message({'type': 'integer', 'value': 'x'}))
@example(message({'type': 'bytes'}))
@example(message({'type': 'value', 'value': 1}, b'more'))
def test_random_bytes_raise_or_decode(encoded):
    """Strangers' bytes are a ValueError, or a value that they mean."""
    decode_or_refuse(encoded)


@pytest.mark.parametrize('dtype, shape', [
    ('<f8', [2 ** 40]), ('<f8', [2 ** 62, 4]), ('<f8', [-1]),
    ('<f8', ['1']), ('<f8', 1), ('<f4', [1]), ('|O8', [1]),
    ('<f4,O', [1]), ('<S0', [2 ** 40]), ('<S99999999999', []), (8, [1]),
    ('<f8', [0] * 99)])
def test_array_that_is_none_raises(dtype, shape):
    """A header promises no more memory than there are bytes."""
    item = {'type': 'array', 'dtype': dtype, 'shape': shape, 'order': 'C'}
    with pytest.raises(ValueError, match='not an encoded value'):
        unpack_value(message(item, b'12345678'))


def test_array_without_content_of_huge_shape_raises():
    """A shape that NumPy cannot have raises the same error."""
    item = {'type': 'array', 'dtype': '<f8', 'shape': [0] * 99, 'order': 'C'}
    with pytest.raises(ValueError, match='not an encoded value'):
        unpack_value(message(item))
