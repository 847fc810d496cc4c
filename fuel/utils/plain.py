"""Plain values as bytes and back, without pickle.

A value is a letter and what it calls for; lengths are 8 bytes, little
endian:

======  =======================  ==========================================
letter  value                    what follows
======  =======================  ==========================================
N T F   None, True, False        nothing
i       int                      length, two's complement, little endian
f       float                    8 bytes, IEEE 754
s       str                      length, UTF-8
b       bytes                    length, the bytes
( [ {   tuple, list, dict        number of entries (pairs), the entries
a       NumPy array or scalar    a tuple (dtype, shape, bytes), in C order
======  =======================  ==========================================
"""
import math
import re
import struct
from typing import Any

import numpy

_MAX_DEPTH = 32
_DTYPE = re.compile(r'[<>|][biufcSUmM][1-9]\d*(\[\w+\])?')


def encode(value: Any) -> bytes:
    """Return a plain value as bytes.

    Parameters
    ----------
    value : None, bool, int, float, str, bytes, tuple, list, dict or array
        Containers hold such values too. Arrays hold numbers, booleans or
        fixed-width text, not objects.

    Returns
    -------
    bytes
        What `decode` makes an equal value of the same type from.

    Raises
    ------
    TypeError
        For anything else, also for subclasses of these types.
    ValueError
        If containers are nested more than 32 deep.

    Examples
    --------
    >>> from fuel.utils.plain import decode, encode
    >>> decode(encode(('n01.JPEG', 7)))
    ('n01.JPEG', 7)

    """
    parts: list[bytes] = []
    _append(value, parts, _MAX_DEPTH)
    return b''.join(parts)


def _append(value: Any, parts: list[bytes], depth: int) -> None:
    if depth < 0:
        raise ValueError(f'values are nested more than {_MAX_DEPTH} deep')
    type_ = type(value)
    if value is None or type_ is bool:
        parts.append({None: b'N', True: b'T', False: b'F'}[value])
    elif type_ is int:
        size = value.bit_length() // 8 + 1
        _append_sized(b'i', value.to_bytes(size, 'little', signed=True),
                      parts)
    elif type_ is float:
        parts.append(b'f' + struct.pack('<d', value))
    elif type_ is str:
        _append_sized(b's', value.encode('utf-8', 'surrogatepass'), parts)
    elif type_ is bytes:
        _append_sized(b'b', value, parts)
    elif type_ in (tuple, list):
        parts.append((b'(' if type_ is tuple else b'[') + _size(len(value)))
        for entry in value:
            _append(entry, parts, depth - 1)
    elif type_ is dict:
        parts.append(b'{' + _size(len(value)))
        for pair in value.items():
            for entry in pair:
                _append(entry, parts, depth - 1)
    elif isinstance(value, (numpy.ndarray, numpy.generic)):
        _append_array(value, parts, depth)
    else:
        raise TypeError(
            f'{value!r} ({type_.__name__}) cannot be sent: only None, bool, '
            'int, float, str, bytes, tuples, lists and dicts of these, and '
            'arrays can; convert it, or send its bytes')


def _append_array(value: Any, parts: list[bytes], depth: int) -> None:
    dtype = value.dtype
    if dtype.kind not in 'biufcSUmM':
        raise TypeError(
            f'an array of {dtype} cannot be sent; convert it to numbers, or '
            'to lists with .tolist()')
    if not dtype.itemsize:
        # NumPy has no array of empty text: it takes one letter.
        value = numpy.asarray(value).astype(f'{dtype.kind}1')
        dtype = value.dtype
    parts.append(b'a')
    _append((dtype.str, value.shape, value.tobytes()), parts, depth - 1)


def _append_sized(letter: bytes, data: bytes, parts: list[bytes]) -> None:
    parts.append(letter + _size(len(data)))
    parts.append(data)


def _size(size: int) -> bytes:
    return struct.pack('<Q', size)


def decode(data: bytes) -> Any:
    """Return the value that `encode` made bytes of.

    Parameters
    ----------
    data : bytes
        A whole message; it may come from anywhere, nothing in it is run,
        and no more memory is taken than its own size asks for.

    Returns
    -------
    object
        The plain value.

    Raises
    ------
    ValueError
        If the bytes are not a message of `encode`.

    """
    reader = _Reader(data)
    try:
        value = reader.value(_MAX_DEPTH)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f'{len(data)} bytes are not an encoded plain value: at byte '
            f'{reader.position}, {error}') from error
    if reader.position != len(data):
        raise ValueError(
            f'{len(data)} bytes are not an encoded plain value: it ends at '
            f'byte {reader.position}')
    return value


class _Reader:
    """A position in a message."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes."""
        if size > len(self.data) - self.position:
            raise ValueError(f'{size} more bytes are expected')
        self.position += size
        return self.data[self.position - size:self.position]

    def size(self) -> int:
        """Return a length, which cannot be more than what is left."""
        size: int = struct.unpack('<Q', self.take(8))[0]
        if size > len(self.data) - self.position:
            raise ValueError(f'a length of {size} is too large')
        return size

    def value(self, depth: int) -> Any:
        """Return the next value."""
        if depth < 0:
            raise ValueError('values are nested too deep')
        letter = self.take(1)
        if letter in b'NTF':
            return {b'N': None, b'T': True, b'F': False}[letter]
        if letter == b'i':
            return int.from_bytes(
                self.take(self.size()), 'little', signed=True)
        if letter == b'f':
            return struct.unpack('<d', self.take(8))[0]
        if letter == b's':
            return self.take(self.size()).decode('utf-8', 'surrogatepass')
        if letter == b'b':
            return self.take(self.size())
        if letter == b'a':
            return self.array(depth - 1)
        if letter in (b'(', b'['):
            entries = [self.value(depth - 1) for _ in range(self.size())]
            return tuple(entries) if letter == b'(' else entries
        if letter == b'{':
            return {self.value(depth - 1): self.value(depth - 1)
                    for _ in range(self.size())}
        raise ValueError(f'{letter!r} stands for no type')

    def array(self, depth: int) -> Any:
        """Return the next array, or the scalar that has no dimensions."""
        content = self.value(depth)
        if not isinstance(content, tuple) or len(content) != 3:
            raise ValueError('an array has a dtype, a shape and bytes')
        text, shape, data = content
        if (not isinstance(text, str) or not _DTYPE.fullmatch(text)
                or not isinstance(shape, tuple)
                or not isinstance(data, bytes)
                or any(type(size) is not int or size < 0 for size in shape)):
            raise ValueError('an array has a plain dtype and shape')
        dtype = numpy.dtype(text)
        if math.prod(shape) * dtype.itemsize != len(data):
            raise ValueError(
                f'{len(data)} bytes are no array of {text} {shape}')
        array = numpy.empty(shape, dtype)
        if data:
            array.reshape(-1).view(numpy.uint8)[:] = numpy.frombuffer(
                data, numpy.uint8)
        return array if shape else array[()]
