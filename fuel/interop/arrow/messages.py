"""The messages of Arrow's formats for files, by their place in the file.

PyArrow tells neither where a record batch lies nor how many rows it has before
it has read the whole of it.
"""
from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from fuel.exceptions import DamagedFileError
from fuel.storage.file_bytes import FileBytes

# Kinds of messages.
SCHEMA, DICTIONARY, BATCH = 1, 2, 3
# Before the length of a message, but in files older than Arrow 0.15.
CONTINUATION = -1
# The largest number of rows that an array of NumPy can have.
MAX_ROWS = 2 ** 63 - 1


class ArrowMessage(NamedTuple):
    """A message of a file.

    `start`, `stop`: its bytes, with the length before it and its body.
    `kind`: such as `BATCH`.
    `num_rows`: of a record batch; 0 for other kinds.
    """

    start: int
    stop: int
    kind: int
    num_rows: int


def messages(file: FileBytes, start: int) -> Iterator[ArrowMessage]:
    """Find the messages from a byte on, up to the mark of the end.

    Returns: as an iterator, whose last message is empty: the mark.
    Raises: DamagedFileError if there is no such mark.
    """
    expected: tuple[int, ...] = (SCHEMA,)
    while True:
        head = file.read(start, 8)
        try:
            size, = struct.unpack_from('<i', head)
            begin = start + 4
            if size == CONTINUATION:
                size, = struct.unpack_from('<i', head, 4)
                begin += 4
            if not size and expected != (SCHEMA,):
                yield ArrowMessage(start, begin, 0, 0)
                return
            kind, length, num_rows = _fields(file.read(begin, max(0, size)))
            if kind not in expected:
                raise struct.error(f'a message of the kind {kind}')
        except struct.error as error:
            raise DamagedFileError(
                f'{file.path} cannot be read as a Parquet or Arrow file: '
                f'there is no message at byte {start} of {file.size}; it is '
                f'of another kind, damaged, or was cut before the mark of '
                f'its end') from error
        stop = begin + size + length
        if (length < 0 or stop > file.size
                or not 0 <= num_rows <= MAX_ROWS):
            raise DamagedFileError(
                f'{file.path}: the message at byte {start} should have '
                f'{num_rows} rows and end at byte {stop} of {file.size}: the '
                f'file was cut, or is damaged')
        yield ArrowMessage(start, stop, kind, num_rows)
        start = stop
        expected = DICTIONARY, BATCH


def _fields(metadata: bytes) -> tuple[int, int, int]:
    """Return kind, length of the body and rows out of a message's metadata,
    a table of FlatBuffers."""
    table, = struct.unpack_from('<I', metadata)
    kind = _field(metadata, table, 1, '<B')
    num_rows = 0
    if kind == BATCH:
        place = _place(metadata, table, 2)
        batch = place + _number(metadata, place, '<I')
        num_rows = _field(metadata, batch, 0, '<q')
        # Each column tells how many rows it has: look at the first.
        columns = _place(metadata, batch, 1)
        columns += _number(metadata, columns, '<I')
        if (not _number(metadata, columns, '<I')
                or _number(metadata, columns + 4, '<q') != num_rows):
            raise struct.error('no columns, or of another number of rows')
    return kind, _field(metadata, table, 3, '<q'), num_rows


def _field(metadata: bytes, table: int, field: int, code: str) -> int:
    """Return a number of a table; 0, the default, is not stored."""
    place = _place(metadata, table, field)
    return _number(metadata, place, code) if place else 0


def _place(metadata: bytes, table: int, field: int) -> int:
    """Return where a field of a table is stored, 0 if it is not."""
    fields = table - _number(metadata, table, '<i')
    offset = 4 + 2 * field
    if offset >= _number(metadata, fields, '<H'):
        return 0
    offset = _number(metadata, fields + offset, '<H')
    return table + offset if offset else 0


def _number(metadata: bytes, place: int, code: str) -> int:
    if place < 0:
        raise struct.error('a place before the first byte')
    number: int
    number, = struct.unpack_from(code, metadata, place)
    return number
