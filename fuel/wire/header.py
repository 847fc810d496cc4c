"""Headers of messages: small JSON objects, whose fields are checked."""
from __future__ import annotations

import json
from typing import Any, NamedTuple

# The fields of a header, as decoded from JSON; they are checked when used.
Fields = dict[str, Any]

# The first bytes of each header, and the version of the protocol.
MAGIC = b'FUEL'
VERSION = 3
# Kinds of types that are plain bytes: no objects, no types of other packages.
PLAIN_KINDS = frozenset('biufcmMSUV')
# Approximate number of bytes that an array object uses besides its elements.
_BYTES_AN_ARRAY = 128


class WireError(ValueError):
    """A message from outside does not follow the protocol."""


class Limits(NamedTuple):
    """Limits of a message.

    `header`: maximum number of bytes of the header.
    `frames`: maximum number of frames after the header.
    `total`: maximum number of bytes of all frames together.
    `depth`: maximum number of levels of nested lists.
    `arrays`: maximum number of ragged arrays, in addition to one for each 128
        bytes. A small array uses many times as many bytes of memory as it has
        in a message.
    """

    header: int = 1 << 24
    frames: int = 1 << 14
    total: int = 1 << 34
    depth: int = 16
    arrays: int = 1 << 20

    def most_arrays(self, total: int) -> int:
        """Return the greatest number of ragged arrays in a message of `total`
        bytes."""
        return self.arrays + total // _BYTES_AN_ARRAY


LIMITS = Limits()


def pack_header(fields: Fields) -> bytes:
    """Return a header as bytes."""
    return MAGIC + _ENCODER.encode(fields).encode()


def unpack_header(data: bytes, limits: Limits = LIMITS) -> Fields:
    """Return the fields of a header; raise WireError if it is not valid."""
    if len(data) > limits.header:
        raise WireError(
            f'a header may have {limits.header} bytes, got {len(data)}')
    if data[:len(MAGIC)] != MAGIC:
        raise WireError(
            f'a header begins with {MAGIC!r}, got {bytes(data[:8])!r}')
    try:
        fields = _DECODER.decode(data[len(MAGIC):].decode())
    except (ValueError, RecursionError) as error:
        raise WireError(f'the header is not JSON: {error}') from None
    if not isinstance(fields, dict):
        raise WireError(
            'a header is a JSON object, got '
            f'{type(fields).__name__}')
    return fields


def _refuse_constant(name: str) -> Any:
    raise ValueError(f'{name} is not a number')


# Made once: they are used for each message.
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(',', ':'))
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def get_numbers(fields: Fields, name: str) -> list[int]:
    """Return a field that must be a list of non-negative integers; an empty
    list if it is missing."""
    numbers: list[int] = get_field(fields, name, list, [])
    if not all(type(number) is int and 0 <= number < 2 ** 63
               for number in numbers):
        raise WireError(f'the field {name!r} must be a list of integers, got '
                        f'{str(numbers)[:80]}')
    return numbers


def get_field(fields: Fields, name: str, kind: type,
              default: object = ...) -> Any:
    """Return a field of a header; raise WireError unless it has the type
    `kind`, and is from 0 to 2 ** 63 - 1 if it is an integer.

    `default`: returned if the field is missing or None. By default that is an
        error.
    """
    value: Any = fields.get(name)
    if value is None and default is not ...:
        return default
    if type(value) is not kind or (
            isinstance(value, int) and not 0 <= value < 2 ** 63):
        raise WireError(
            f'the field {name!r} must be of type {kind.__name__}, got '
            f'{str(value)[:80]} ({type(value).__name__})')
    return value
