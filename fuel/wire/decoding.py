"""Decode a batch from a description and buffers that may be malicious."""
from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Literal

import numpy
from numpy.typing import NDArray

from fuel.utils.sparse import SparseRows, make_csr
from fuel.wire.header import (
    LIMITS, PLAIN_KINDS, Limits, WireError, get_field)

# Maximum number of elements in an array of a type without bytes. Without this
# limit, a short message could describe any number of them.
_MOST_EMPTY = 1 << 20
# Smaller buffers are copied: they may share memory with other messages.
_SMALL = 1 << 14
_MOST_FIELDS = 1000
_LONGEST_NAME = 40
_LARGEST_ITEM = 1 << 31
_LONGEST_AXIS = 1 << 48
_NUMBERS = frozenset('biufc')
_INDEX_TYPES = frozenset(map(numpy.dtype, ('i4', 'i8')))


def decode(items: object, buffers: Sequence[Any],
           limits: Limits = LIMITS) -> tuple[Any, ...]:
    """Return the data that :func:`encode` described.

    `buffers`: the frames of the message.  An array uses the memory of its
        buffer if that is writable and aligned; otherwise it is a copy.
    """
    if len(buffers) > limits.frames:
        raise WireError(
            f'a message may have {limits.frames} frames, got {len(buffers)}')
    total = sum(len(memoryview(buffer)) for buffer in buffers)
    if total > limits.total:
        raise WireError(
            f'a message may have {limits.total} bytes, got {total}')
    if not isinstance(items, list):
        raise WireError('the description of a batch must be a list')
    decoder = Decoder(buffers, limits)
    data = tuple(decoder.decode(item, 0) for item in items)
    decoder.check_end()
    return data


class Decoder:
    """Decodes the items of a message, which use its buffers one after
    another."""

    def __init__(self, buffers: Sequence[Any], limits: Limits) -> None:
        self.buffers = buffers
        self.limits = limits
        self.next = 0
        # Number of ragged arrays that the message may still have.
        self._arrays = limits.most_arrays(
            sum(len(memoryview(buffer)) for buffer in buffers))

    def take(self) -> Any:
        """Return the next buffer; raise WireError if there is none."""
        if self.next >= len(self.buffers):
            raise WireError(
                f'more than the {len(self.buffers)} frames are described')
        self.next += 1
        return self.buffers[self.next - 1]

    def check_end(self) -> None:
        """Raise WireError if there are more frames than the items describe."""
        if self.next != len(self.buffers):
            raise WireError(f'{len(self.buffers)} frames came, but '
                            f'{self.next} are described')

    def decode(self, item: object, depth: int) -> Any:
        """Return the data that one item describes."""
        if not isinstance(item, dict) or depth > self.limits.depth:
            raise WireError('not a description of data, or nested too '
                            'deeply')
        kind = get_field(item, 'type', str)
        if kind in ('array', 'scalar'):
            array = self.array(item)
            return array if kind == 'array' else array[()]
        if kind == 'csr':
            return self.sparse(item)
        if kind == 'bytes':
            return bytes(self.take())
        if kind == 'value':
            value = item.get('value')
            if isinstance(value, (dict, list, float)):
                raise WireError('a value is an integer, a text or null')
            return value
        if kind == 'float':
            return self.number(item)
        if kind == 'list':
            return [self.decode(one, depth + 1)
                    for one in get_field(item, 'items', list)]
        if kind == 'strings':
            return self.strings(item)
        if kind == 'ragged':
            return self.ragged(item)
        if kind == 'objects':
            return self.objects(item, depth)
        raise WireError(f'unknown type of data: {kind[:40]!r}')

    def number(self, item: dict[str, Any]) -> float:
        """Return the float that an item describes."""
        try:
            return float.fromhex(get_field(item, 'value', str))
        except (ValueError, OverflowError) as error:
            raise WireError(f'not a number: {error}') from None

    def array(self, item: dict[str, Any]) -> NDArray[Any]:
        """Return the array that an item describes."""
        dtype = rebuild(item.get('dtype'))
        shape = check_shape(item.get('shape'))
        order = item.get('order')
        if order not in ('C', 'F'):
            raise WireError(f'the order of an array is C or F, got '
                            f'{str(order)[:20]}')
        count = math.prod(shape)
        if not count or not dtype.itemsize:
            return _empty(shape, dtype, order)
        flat = own_array(self.take(), dtype, count)
        if order == 'F':
            return flat.reshape(shape[::-1]).T
        return flat.reshape(shape)

    def sparse(self, item: dict[str, Any]) -> SparseRows:
        """Return a sparse batch.

        It raises WireError for invalid indices, with which SciPy's compiled
        code would read and write outside the arrays.
        """
        shape = check_shape(item.get('shape'))
        data, indices, indptr = [
            self.array(get_field(item, name, dict))
            for name in ('data', 'indices', 'indptr')]
        index_type = indices.dtype.newbyteorder('=')
        if data.ndim != 1 or data.dtype.kind not in _NUMBERS:
            raise WireError(f'the values of a sparse batch have the type '
                            f'{data.dtype} and shape {data.shape}')
        if index_type not in _INDEX_TYPES or indices.dtype != indptr.dtype:
            raise WireError(f'the indices of a sparse batch have the types '
                            f'{indices.dtype} and {indptr.dtype}')
        if len(shape) != 2 or indices.shape != data.shape or indptr.shape != (
                shape[0] + 1,) or shape[1] > numpy.iinfo(index_type).max:
            raise WireError(
                f'a sparse batch of shape {shape} with {data.shape} values, '
                f'{indices.shape} columns and {indptr.shape} bounds of rows')
        if indptr[0] or indptr[-1] != len(data) or (
                indptr[1:] < indptr[:-1]).any():
            raise WireError('the rows of a sparse batch do not follow each '
                            'other from its first value to its last')
        if len(indices) and not 0 <= indices.min() <= indices.max() < shape[1]:
            raise WireError(f'a sparse batch of {shape[1]} columns has values '
                            f'in others, from {indices.min()} to '
                            f'{indices.max()}')
        return make_csr(data, indices, indptr, (shape[0], shape[1]))

    def counts(self, size: int) -> list[int]:
        """Return the next buffer as non-negative integers."""
        buffer = self.take()
        if len(memoryview(buffer)) != 8 * size:
            raise WireError(f'{size} lengths take {8 * size} bytes, got '
                            f'{len(memoryview(buffer))}')
        numbers: list[int] = numpy.frombuffer(buffer, '<i8').tolist()
        if numbers and min(numbers) < 0:
            raise WireError('a length is negative')
        return numbers

    def strings(self, item: dict[str, Any]) -> list[Any]:
        """Return the list of bytes or of texts that an item describes."""
        lengths = self.counts(get_field(item, 'count', int))
        content = bytes(self.take())
        if sum(lengths) != len(content):
            raise WireError(f'strings of {sum(lengths)} bytes are described, '
                            f'but {len(content)} came')
        parts = [content[stop - length:stop] for stop, length
                 in zip(accumulate(lengths), lengths, strict=True)]
        if item.get('of') == 'bytes':
            return parts
        try:
            return [part.decode('utf-8', 'surrogatepass') for part in parts]
        except UnicodeDecodeError as error:
            raise WireError(f'not a text: {error}') from None

    def ragged(self, item: dict[str, Any]) -> list[NDArray[Any]]:
        """Return a list of arrays of one type and different shapes."""
        dtype = rebuild(item.get('dtype'))
        dimensions = get_field(item, 'dimensions', int)
        if not 1 <= dimensions <= 32 or not dtype.itemsize:
            raise WireError('ragged arrays have 1 to 32 dimensions and '
                            'elements of at least a byte')
        count = get_field(item, 'count', int)
        self._arrays -= count
        if self._arrays < 0:
            raise WireError(
                f'the message has {-self._arrays} ragged arrays more than a '
                'message of its size may have')
        lengths = self.counts(count * dimensions)
        if max(lengths, default=0) >= _LONGEST_AXIS:
            raise WireError('not the shapes of arrays')
        if dimensions == 1:
            flat = own_array(self.take(), dtype, sum(lengths))
            stops = list(accumulate(lengths))
            return [flat[stop - length:stop]
                    for stop, length in zip(stops, lengths, strict=True)]
        shapes = list(zip(*[iter(lengths)] * dimensions, strict=True))
        sizes = list(map(math.prod, shapes))
        flat = own_array(self.take(), dtype, sum(sizes))
        return [flat[stop - size:stop].reshape(shape) for stop, size, shape
                in zip(accumulate(sizes), sizes, shapes, strict=True)]

    def objects(self, item: dict[str, Any], depth: int) -> NDArray[Any]:
        """Return the array of objects that an item describes."""
        shape = check_shape(item.get('shape'))
        elements = self.decode(item.get('items'), depth + 1)
        if not isinstance(elements, list) \
                or len(elements) != math.prod(shape):
            raise WireError('the elements of an array of objects do not '
                            'fill its shape')
        array = numpy.empty(len(elements), object)
        for place, element in enumerate(elements):
            array[place] = element
        try:
            return array.reshape(shape)
        except ValueError as error:
            raise WireError(f'not a shape: {error}') from None


def own_array(buffer: bytes | bytearray | memoryview, dtype: numpy.dtype[Any],
              count: int) -> NDArray[Any]:
    """Return an aligned, writable array of a buffer's bytes, copied if
    necessary."""
    memory = memoryview(buffer)
    if memory.nbytes != count * dtype.itemsize:
        raise WireError(
            f'{count} elements of {dtype} take {count * dtype.itemsize} '
            f'bytes, got {memory.nbytes}')
    if not count:
        return numpy.empty(0, dtype)
    raw = numpy.frombuffer(memory, numpy.uint8)
    array = raw.view(dtype)
    if raw.nbytes < _SMALL or not (
            array.flags.writeable and array.flags.aligned):
        array = numpy.empty(count, dtype)
        array.view(numpy.uint8)[:] = raw
    if dtype.kind in 'UV':
        # Text, and structures that may have text.
        check_text(array)
    return array


def _empty(shape: list[int], dtype: numpy.dtype[Any],
           order: Literal['C', 'F']) -> NDArray[Any]:
    if not dtype.itemsize and math.prod(shape) > _MOST_EMPTY:
        raise WireError(f'too many elements without content: {shape}')
    try:
        return numpy.ndarray(tuple(shape), dtype, order=order)
    except (ValueError, MemoryError) as error:
        raise WireError(f'not a shape: {error}') from None


def rebuild(described: object, depth: int = 4) -> numpy.dtype[Any]:
    """Return the data type that :func:`~fuel.wire.encoding.describe_dtype`
    described."""
    try:
        dtype = _rebuild(described, depth)
    except (TypeError, ValueError, OverflowError, MemoryError,
            SyntaxError) as error:
        raise WireError(
            f'not a data type: {str(described)[:80]} ({error})') from None
    # The type of a field may have a shape of its own, but the type of an array
    # may not.
    if (dtype.hasobject or dtype.itemsize > _LARGEST_ITEM
            or dtype.subdtype is not None):
        raise WireError(f'a data type that is not allowed: {dtype}')
    return dtype


def _rebuild(described: object, depth: int) -> numpy.dtype[Any]:
    if depth < 0:
        raise ValueError('nested too deeply')
    if isinstance(described, str):
        # Accept only texts that `dtype.str` may be: NumPy's own parser accepts
        # many more.
        if len(described) > _LONGEST_NAME or described[:1] not in '<>|=' \
                or described[1:2] not in PLAIN_KINDS:
            raise ValueError('unknown')
        return numpy.dtype(described)
    if isinstance(described, list):
        base, shape = described
        lengths = tuple(check_shape(shape))
        return numpy.dtype((_rebuild(base, depth - 1), lengths))
    if not isinstance(described, dict) or described.keys() != {
            'names', 'formats', 'offsets', 'itemsize'}:
        raise ValueError('unknown')
    if len(described['formats']) > _MOST_FIELDS or not all(
            type(number) is int and 0 <= number <= _LARGEST_ITEM
            for number in [*described['offsets'], described['itemsize']]):
        raise ValueError('too large')
    if not all(isinstance(name, str) for name in described['names']):
        raise ValueError('a name is a text')
    return numpy.dtype({
        'names': list(described['names']),
        'formats': [_rebuild(one, depth - 1)
                    for one in described['formats']],
        'offsets': described['offsets'], 'itemsize': described['itemsize']})


def check_text(array: NDArray[Any]) -> None:
    """Raise WireError for code points beyond Unicode, on which Python would
    fail later."""
    dtype = array.dtype
    if dtype.names is not None:
        for name in dtype.names:
            check_text(array[name])
    elif dtype.kind == 'U' and array.size and dtype.itemsize:
        codes = numpy.ascontiguousarray(array).view(
            numpy.dtype(numpy.uint32).newbyteorder(dtype.byteorder))
        if int(codes.max()) > sys.maxunicode:
            raise WireError('a text with a code point beyond Unicode')


def check_shape(shape: object) -> list[int]:
    """Return a shape; raise WireError if it is not valid."""
    if not isinstance(shape, list) or len(shape) > 32 or not all(
            type(length) is int and 0 <= length < _LONGEST_AXIS
            for length in shape):
        raise WireError(f'not a shape: {str(shape)[:80]}')
    return shape
