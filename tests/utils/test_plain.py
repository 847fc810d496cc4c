"""Plain values survive the way through bytes, and bytes do no harm."""
import struct

import numpy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as numpy_st

from fuel.utils.plain import decode, encode

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
def test_plain_value_comes_back(value):
    """Every plain value, with its types."""
    assert repr(value) == repr(decode(encode(value)))


@given(ARRAYS)
def test_plain_array_comes_back(array):
    """Arrays and NumPy scalars, with dtype and shape, as the user's own."""
    for given_array in (array, array.T):
        result = decode(encode((given_array,)))[0]
        numpy.testing.assert_array_equal(given_array, result)
        if given_array.ndim:
            assert given_array.dtype == result.dtype
            assert result.flags.writeable
            assert result.flags.aligned
    assert numpy.int16 is type(decode(encode(numpy.int16(-7))))


@pytest.mark.parametrize('value', [
    {1, 2}, object(), len, 1j, bytearray(b'a'), (1, [set()]),
    numpy.array([None]), numpy.zeros(2, [('a', int)]),
    type('Name', (str,), {})('a')])
def test_plain_other_value_raises(value):
    """What is not plain is refused with the remedy."""
    with pytest.raises(TypeError, match='cannot be sent.*convert it'):
        encode(value)


def test_plain_deep_value_raises():
    """Depth has a limit on both sides."""
    value = []
    for _ in range(40):
        value = [value]
    with pytest.raises(ValueError, match='nested more than 32'):
        encode(value)
    with pytest.raises(ValueError, match='nested too deep'):
        decode((b'[' + struct.pack('<Q', 1)) * 5000 + b'N')


def decode_or_refuse(message):
    """Fail if a message is neither a value nor refused in the one way."""
    try:
        value = decode(message)
    except ValueError as error:
        # Its cause is what is wrong; no other error gets out.
        if 'not an encoded plain value' not in str(error):
            raise
    else:
        assert isinstance(encode(value), bytes)


@given(VALUES | ARRAYS, st.data())
def test_plain_damaged_message_raises_or_is_another_value(value, data):
    """Cut or changed bytes never do anything but ValueError."""
    message = bytearray(encode(value))
    with pytest.raises(ValueError, match='not an encoded plain value'):
        decode(bytes(message[:data.draw(
            st.integers(0, len(message) - 1))]))
    position = data.draw(st.integers(0, len(message) - 1))
    message[position] = data.draw(st.integers(0, 255))
    decode_or_refuse(bytes(message))


@given(st.binary(max_size=64))
@example(b'N' + b'N')
@example(b'[' + struct.pack('<Q', 2 ** 62))
@example(encode(b'')[:1] + struct.pack('<Q', 2 ** 64 - 1))
def test_plain_random_bytes_raise_or_decode(message):
    """Strangers' bytes are a ValueError, or a value that they mean."""
    decode_or_refuse(message)


@pytest.mark.parametrize('dtype, shape', [
    ('<f8', (2 ** 40,)), ('<f8', (2 ** 62, 4)), ('<f8', (-1,)),
    ('<f8', ('1',)), ('<f8', 1), ('<f4', (1,)), ('|O8', (1,)),
    ('<f4,O', (1,)), ('<S0', (2 ** 40,)), ('<S99999999999', ()), ('f8', (1,)),
    (8, (1,))])
def test_plain_array_that_is_none_raises(dtype, shape):
    """A header promises no more memory than there are bytes."""
    message = b'a' + encode((dtype, shape, b'12345678'))
    with pytest.raises(ValueError, match='not an encoded plain value'):
        decode(message)


def test_plain_empty_array_of_huge_shape_raises():
    """A shape that NumPy cannot have is no other error."""
    with pytest.raises(ValueError, match='not an encoded plain value'):
        decode(b'a' + encode(('<f8', (0,) * 99, b'')))
