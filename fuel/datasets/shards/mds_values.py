"""The types of the columns of MDS, and their values from their bytes."""
from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.storage.spans import FieldType

NUMBERS = ('uint8', 'int8', 'uint16', 'int16', 'float16', 'uint32', 'int32',
           'float32', 'uint64', 'int64', 'float64')
# The dtypes of arrays, by the numbers that arrays state.
DTYPES = dict(zip((8, 9, 16, 17, 18, 32, 33, 34, 64, 65, 66), NUMBERS,
                  strict=True))
# Number of bytes of a pixel, by the mode of the image.
MODES = {'L': 1, 'P': 1, 'LA': 2, 'La': 2, 'PA': 2, 'RGB': 3, 'YCbCr': 3,
         'LAB': 3, 'HSV': 3, 'RGBA': 4, 'RGBa': 4, 'RGBX': 4, 'CMYK': 4}
WIDE_MODES = {'I': '<i4', 'F': '<f4', 'I;16': '<u2', 'I;16L': '<u2',
              'I;16B': '>u2'}


def type_of_column(encoding: str, size: int | None) -> FieldType:
    """Return what the values of a column are.

    `size`: number of bytes of a value; None if it varies.

    Raises: ValueError if the encoding is not read, or has no such size.
    """
    field = _type_of(encoding)
    wanted = None if field.dtype.hasobject or field.decode is not None else (
        field.dtype.itemsize * math.prod(field.shape))
    if wanted != size:
        raise ValueError(
            f'values of the encoding {encoding!r} have '
            f'{"any number of" if wanted is None else wanted} bytes, but the '
            f'index states {size}')
    return field


def _type_of(encoding: str) -> FieldType:
    if encoding in NUMBERS or encoding == 'int':
        return FieldType(_number_type(
            'int64' if encoding == 'int' else encoding))
    if encoding in ('jpeg', 'png'):
        return FieldType(stage='ImagesFromBytes')
    if encoding in PLAIN:
        return PLAIN[encoding]
    kind, _, rest = encoding.partition(':')
    if kind == 'ndarray':
        name, _, axes = rest.partition(':')
        if not name:
            return FieldType(decode=array_of)
        dtype = _number_type(name)
        if not axes:
            return FieldType(decode=partial(array_of, dtype=dtype),
                             elements=dtype.newbyteorder('='))
        return FieldType(dtype, tuple(map(_axis, axes.split(','))))
    if encoding == 'pkl':
        raise ValueError('values of the encoding pkl are pickles, which may '
                         'run any code, and are not read')
    raise ValueError(f'the encoding {encoding!r} is not read')


def _number_type(name: str) -> numpy.dtype[Any]:
    if name not in NUMBERS:
        raise ValueError(f'there are no arrays of the type {name!r}: the '
                         f'types are {NUMBERS}')
    return numpy.dtype(name).newbyteorder('<')


def _axis(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f'an axis cannot have the length {text!r}')
    return int(text)


def array_of(content: bytes, dtype: numpy.dtype[Any] | None = None,
             ) -> NDArray[Any]:
    """Return an array from its bytes; if `dtype` is None, they state it."""
    if dtype is None:
        if content[:1] == b'' or content[0] not in DTYPES:
            raise ValueError(f'it does not begin with a type of array, but '
                             f'with {content[:1]!r}')
        dtype = _number_type(DTYPES[content[0]])
        content = content[1:]
    # The number of axes, and the bytes of the length of one, as an exponent.
    head = content[0] if content else 0
    start = 1 + (head >> 2 << (head & 3))
    axes = content[1:start]
    if len(axes) < start - 1:
        raise ValueError('its shape is cut off')
    shape = numpy.frombuffer(axes, f'<u{1 << (head & 3)}').tolist()
    return _shaped(content[start:], dtype, shape)


def _shaped(content: bytes, dtype: numpy.dtype[Any],
            shape: Sequence[int]) -> NDArray[Any]:
    """Return an array of its own from its values."""
    needed = dtype.itemsize * math.prod(shape)
    if needed != len(content):
        raise ValueError(f'an array of the shape {tuple(shape)} and the type '
                         f'{dtype} needs {needed} bytes, and there are '
                         f'{len(content)}')
    return numpy.frombuffer(content, dtype).reshape(shape).astype(
        dtype.newbyteorder('='))


def pixels_of(content: bytes) -> NDArray[Any]:
    """Return the pixels of an image, of shape (channel, height, width)."""
    width, height, length = _numbers(content, 0, 3)
    mode = content[12:12 + length].decode()
    pixels = content[12 + length:]
    if mode == '1':
        # Eight pixels a byte, and whole bytes for a line.
        bits = _shaped(pixels, numpy.dtype('u1'), [height, -(-width // 8)])
        return numpy.unpackbits(bits, 1, width)[numpy.newaxis] * numpy.uint8(
            255)
    if mode in WIDE_MODES:
        return _shaped(pixels, numpy.dtype(WIDE_MODES[mode]),
                       [1, height, width])
    if mode not in MODES:
        raise ValueError(f'images of the mode {mode!r} are not read')
    return numpy.ascontiguousarray(_shaped(pixels, numpy.dtype('u1'), [
        height, width, MODES[mode]]).transpose(2, 0, 1))


def list_of(content: bytes, first: int,
             decode: Callable[[bytes], Any] = bytes) -> list[Any]:
    """Return the items of a list.

    `first`: the place of their number, which their sizes follow.
    """
    count, = _numbers(content, first, 1)
    sizes = _numbers(content, first + 4, count)
    start, items = first + 4 + 4 * count, []
    if start + sum(sizes) != len(content):
        raise ValueError(f'a list of {count} items needs '
                         f'{start + sum(sizes)} bytes, and there are '
                         f'{len(content)}')
    for size in sizes:
        items.append(decode(content[start:start + size]))
        start += size
    return items


def _numbers(content: bytes, start: int, count: int) -> list[int]:
    if start + 4 * count > len(content):
        raise ValueError(f'it needs more than {start + 4 * count} bytes, and '
                         f'there are {len(content)}')
    numbers: list[int] = numpy.frombuffer(
        content, '<u4', count, start).tolist() if count else []
    return numbers


def _decimal(content: bytes) -> Decimal:
    try:
        return Decimal(content.decode())
    except InvalidOperation:
        raise ValueError(f'it is not a number: {content!r:.80}') from None


#: The types of columns, by encodings without parameters.
PLAIN = {
    'bytes': FieldType(),
    'str': FieldType(decode=bytes.decode),
    'str_int': FieldType(decode=int),
    'str_float': FieldType(numpy.dtype('float64'), decode=float),
    'str_decimal': FieldType(decode=_decimal),
    'json': FieldType(decode=json.loads),
    'pil': FieldType(decode=pixels_of),
    **dict.fromkeys(('jpeg_array', 'jpegarray'), FieldType(
        decode=partial(list_of, first=0))),
    'list[jpeg]': FieldType(decode=partial(list_of, first=4)),
    'list[png]': FieldType(decode=partial(list_of, first=4)),
    'list[pil]': FieldType(decode=partial(list_of, first=4,
                                          decode=pixels_of))}
