"""Encode a value in one frame, and preserve the types of its parts, such as
tuple and dict."""
from __future__ import annotations

import struct
from typing import Any

import numpy

from fuel.wire.decoding import Decoder
from fuel.wire.encoding import Buffers, encode_item
from fuel.wire.header import (Fields, Limits, WireError, get_field,
                              get_numbers, pack_header, unpack_header)

_LIMITS = Limits(depth=32)
_LENGTH = struct.Struct('<I')
_SIMPLE = frozenset((type(None), bool, int, str, float, bytes))
# Integers of more bits are sent as text.
_BITS = 63


def pack_value(value: object) -> bytes:
    """Return a value as bytes.

    Examples
    --------
    >>> from fuel.wire.values import pack_value, unpack_value
    >>> unpack_value(pack_value(('n01.JPEG', 7)))
    ('n01.JPEG', 7)
    """
    buffers: Buffers = []
    item = _describe(value, buffers, _LIMITS.depth)
    header = pack_header({
        'item': item, 'sizes': [len(buffer) for buffer in buffers]})
    return b''.join([_LENGTH.pack(len(header)), header, *buffers])


def _describe(value: Any, buffers: Buffers, depth: int) -> Fields:
    if depth < 0:
        raise ValueError(
            f'values are nested more than {_LIMITS.depth} deep')
    kind = type(value)
    if kind is int and value.bit_length() > _BITS:
        return {'type': 'integer', 'value': hex(value)}
    if kind in _SIMPLE or (isinstance(value, (numpy.ndarray, numpy.generic))
                           and not value.dtype.hasobject):
        item: Fields = encode_item(value, buffers, 0)
        return item
    if kind in (tuple, list):
        return {'type': kind.__name__, 'items': [
            _describe(entry, buffers, depth - 1) for entry in value]}
    if kind is dict:
        return {'type': 'dict', 'items': [
            [_describe(part, buffers, depth - 1) for part in pair]
            for pair in value.items()]}
    raise TypeError(
        f'{value!r} ({kind.__name__}) cannot be sent: only None, bool, int, '
        'float, str, bytes, tuples, lists and dicts of these, and arrays '
        'without Python objects can; convert it, or send its bytes')


def unpack_value(data: bytes) -> Any:
    """Return the value that :func:`pack_value` packed."""
    try:
        return _unpack(memoryview(data))
    except (TypeError, ValueError, OverflowError, struct.error) as error:
        raise WireError(
            f'{len(data)} bytes are not an encoded value: {error}') from error


def _unpack(data: memoryview) -> Any:
    length, = _LENGTH.unpack_from(data)
    start = _LENGTH.size + length
    fields = unpack_header(bytes(data[_LENGTH.size:start]), _LIMITS)
    buffers = []
    for size in get_numbers(fields, 'sizes'):
        buffers.append(data[start:start + size])
        start += size
    if start != len(data):
        raise WireError(f'{start} bytes are described')
    decoder = _Decoder(buffers, _LIMITS)
    value = decoder.decode(fields.get('item'), 0)
    decoder.check_end()
    return value


class _Decoder(Decoder):
    """Decodes tuples, dicts and long integers, too."""

    def decode(self, item: object, depth: int) -> Any:
        """Return the value that one item describes."""
        kind = item.get('type') if isinstance(item, dict) else None
        if kind in ('tuple', 'dict', 'integer') and (
                depth <= self.limits.depth):
            assert isinstance(item, dict)
            if kind == 'integer':
                return int(get_field(item, 'value', str), 16)
            entries = get_field(item, 'items', list)
            if kind == 'dict':
                return {self.decode(key, depth + 1):
                        self.decode(value, depth + 1)
                        for key, value in entries}
            return tuple(self.decode(one, depth + 1) for one in entries)
        return super().decode(item, depth)
