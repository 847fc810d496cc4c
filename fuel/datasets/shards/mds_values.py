"""The types of the columns of MDS, and their values from their bytes."""
from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.datasets.decoders import IMAGES
from fuel.storage.spans import FieldType

# The types of arrays, by the first byte of an array that states its type.
DTYPES = {bytes([code]): numpy.dtype(name).newbyteorder('<')
          for code, name in {
              8: 'uint8', 9: 'int8', 16: 'uint16', 17: 'int16', 18: 'float16',
              32: 'uint32', 33: 'int32', 34: 'float32', 64: 'uint64',
              65: 'int64', 66: 'float64'}.items()}
NUMBERS = {dtype.name: dtype for dtype in DTYPES.values()}
# The type of a channel, and the number of channels, by the mode of the image.
MODES = {
    **dict.fromkeys(('L', 'P'), ('u1', 1)),
    **dict.fromkeys(('LA', 'La', 'PA'), ('u1', 2)),
    **dict.fromkeys(('RGB', 'YCbCr', 'LAB', 'HSV'), ('u1', 3)),
    **dict.fromkeys(('RGBA', 'RGBa', 'RGBX', 'CMYK'), ('u1', 4)),
    'I': ('<i4', 1), 'F': ('<f4', 1), 'I;16': ('<u2', 1),
    'I;16L': ('<u2', 1), 'I;16B': ('>u2', 1)}


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
    if encoding in TYPES:
        return TYPES[encoding]
    kind, _, rest = encoding.partition(':')
    if kind == 'ndarray':
        name, _, axes = rest.partition(':')
        if name not in NUMBERS:
            raise ValueError(f'there are no arrays of the type {name!r}: the '
                             f'types are {(*NUMBERS,)}')
        dtype = NUMBERS[name]
        if axes:
            return FieldType(dtype, tuple(map(_axis, axes.split(','))))
        return FieldType(decode=partial(array_of, dtype=dtype),
                         elements=dtype.newbyteorder('='))
    if encoding == 'pkl':
        raise ValueError('values of the encoding pkl are pickles, which may '
                         'run any code, and are not read')
    raise ValueError(f'the encoding {encoding!r} is not read')


def _axis(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f'an axis cannot have the length {text!r}')
    return int(text)


def array_of(content: bytes, dtype: numpy.dtype[Any] | None = None,
             ) -> NDArray[Any]:
    """Return an array from its bytes; if `dtype` is None, they state it."""
    if dtype is None:
        code, content = content[:1], content[1:]
        if code not in DTYPES:
            raise ValueError(f'it does not begin with a type of array, but '
                             f'with {code!r}')
        dtype = DTYPES[code]
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
    if mode not in MODES:
        raise ValueError(f'images of the mode {mode!r} are not read')
    dtype, channels = MODES[mode]
    return numpy.ascontiguousarray(_shaped(pixels, numpy.dtype(dtype), [
        height, width, channels]).transpose(2, 0, 1))


def list_of(content: bytes, first: int,
            decode: Callable[[bytes], Any] = bytes) -> list[Any]:
    """Return the items of a list.

    `first`: the place of their number, which their sizes follow.
    """
    count, = _numbers(content, first, 1)
    ends = list(itertools.accumulate(
        _numbers(content, first + 4, count), initial=first + 4 + 4 * count))
    if ends[-1] != len(content):
        raise ValueError(f'a list of {count} items needs {ends[-1]} bytes, '
                         f'and there are {len(content)}')
    return [decode(content[start:stop])
            for start, stop in itertools.pairwise(ends)]


def _numbers(content: bytes, start: int, count: int) -> list[int]:
    if start + 4 * count > len(content):
        raise ValueError(f'it needs more than {start + 4 * count} bytes, and '
                         f'there are {len(content)}')
    numbers: list[int] = numpy.frombuffer(
        content[start:start + 4 * count], '<u4').tolist()
    return numbers


def _decimal(content: bytes) -> Decimal:
    try:
        return Decimal(content.decode())
    except InvalidOperation:
        raise ValueError(f'it is not a number: {content!r:.80}') from None


#: The types of columns, by encodings without parameters.
TYPES = {
    **{name: FieldType(dtype) for name, dtype in NUMBERS.items()},
    'int': FieldType(NUMBERS['int64']),
    'bytes': FieldType(),
    'jpeg': FieldType(stage=IMAGES),
    'png': FieldType(stage=IMAGES),
    'str': FieldType(decode=bytes.decode),
    'str_int': FieldType(decode=int),
    'str_float': FieldType(numpy.dtype('float64'), decode=float),
    'str_decimal': FieldType(decode=_decimal),
    'json': FieldType(decode=json.loads),
    'ndarray': FieldType(decode=array_of),
    'pil': FieldType(decode=pixels_of),
    **dict.fromkeys(('jpeg_array', 'jpegarray'), FieldType(
        decode=partial(list_of, first=0))),
    **dict.fromkeys(('list[jpeg]', 'list[png]'), FieldType(
        decode=partial(list_of, first=4))),
    'list[pil]': FieldType(decode=partial(list_of, first=4,
                                          decode=pixels_of))}
