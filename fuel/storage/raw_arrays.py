"""Readers of raw arrays: files of numbers that do not state their type."""
from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy

from fuel.exceptions import DamagedFileError
from fuel.storage.file_bytes import FileBytes, raw_files_at
from fuel.storage.mapped import copies_as_bytes
from fuel.storage.npy import StoredArray, open_arrays
from fuel.storage.reader import Reader

# The header of llm.c's files has 256 numbers of 32 bits. It begins with a
# magic number, a version and the number of tokens.
HEADER = struct.Struct('<iiI')
HEADER_NBYTES = 1024
# The version and the type of the tokens for each magic number.
TYPES = {20240520: (1, 'uint16'), 20240801: (7, 'uint32')}


def has_header(head: bytes) -> bool:
    """Return whether the first bytes of a file are those of llm.c's header.

    Examples
    --------
    >>> has_header(HEADER.pack(20240520, 1, 5))
    True
    >>> has_header(b'')
    False
    """
    return int.from_bytes(head[:4], 'little') in TYPES


def open_raw(paths: Sequence[str], name: str, dtype: Any) -> Reader:
    """Return a reader of the rows of raw files, which follow each other.

    `dtype`: the type of a row; None for files with llm.c's header.
    """
    wanted = None if dtype is None else numpy.dtype(dtype)
    if wanted is not None and not copies_as_bytes(wanted.base, wanted.shape):
        raise ValueError(
            f"dtype must be of rows of a fixed number of bytes, such as "
            f"'uint16', got {dtype!r}")
    return open_arrays(name, [
        _stored(file, wanted) for file in raw_files_at(paths)])


def _stored(file: FileBytes, wanted: numpy.dtype[Any] | None) -> StoredArray:
    """Return the array in a file."""
    head = file.read(0, HEADER.size)
    offset, count = 0, None
    if has_header(head) and len(head) == HEADER.size:
        offset = HEADER_NBYTES
        known, count = _header_of(file.path, *HEADER.unpack(head))
        if wanted is not None and wanted.newbyteorder('<') != known:
            raise ValueError(
                f"{file.path} has a header of llm.c, by which it holds "
                f"{known}: leave out dtype, or pass '{known}'; got "
                f'{wanted}')
        wanted = known
    if wanted is None:
        raise ValueError(
            f'{file.path} is a raw file, which does not state the type of '
            f"its numbers: pass dtype='uint16', or another type")
    nbytes, each = file.size - offset, wanted.itemsize
    if count is not None and nbytes != count * each:
        raise DamagedFileError(
            f'{file.path} has a header of llm.c, by which it holds {count} '
            f'tokens of {each} bytes after {offset} bytes, but it has '
            f'{file.size} bytes: it was cut, or is still written')
    if nbytes % each:
        raise ValueError(
            f'{file.path} has {nbytes} bytes, which is not a multiple of '
            f'{each}, the number of bytes of a row of {wanted}: pass '
            f'another dtype, or restore the file if it was cut')
    if not nbytes:
        raise ValueError(
            f'{file.path} is empty: perhaps it is still written, or its '
            f'download was broken off')
    return StoredArray(file, (nbytes // each, *wanted.shape), wanted.base,
                       False, offset)


def _header_of(path: str, magic: int, version: int, count: int,
               ) -> tuple[numpy.dtype[Any], int]:
    """Return the type and the number of the tokens after a header."""
    known, dtype = TYPES[magic]
    if version != known:
        raise ValueError(
            f'{path} has a header of llm.c, whose version must be {known}, '
            f'got {version}: write it again with the version that is known')
    return numpy.dtype(dtype).newbyteorder('<'), count
