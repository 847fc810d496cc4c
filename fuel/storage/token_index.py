"""Indexes of sequences of tokens, as Megatron writes them beside raw files."""
from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

from fuel.exceptions import DamagedFileError
from fuel.remote.location import (
    RemotePath, ask_all, beside, fixed_path, located)
from fuel.remote.urls import file_name
from fuel.storage.file_bytes import FileBytes, raw_file_at, raw_files_at
from fuel.storage.npy import StoredArray, open_arrays
from fuel.storage.reader import Reader

Places: TypeAlias = NDArray[numpy.intp]

MAGIC = b'MMIDIDX\0\0'
# Magic number, version, code of the type of the tokens, number of sequences
# and number of bounds of documents. Lengths, offsets and these bounds follow.
HEADER = struct.Struct('<9sQBQQ')
TYPES = {1: 'u1', 2: 'i1', 3: '<i2', 4: '<i4', 5: '<i8', 6: '<f8', 7: '<f4',
         8: '<u2'}


def is_stem(path: str) -> bool:
    """Return whether there is no file at a local path, but an index if
    ``.idx`` is added."""
    return not isinstance(path, RemotePath) and not os.path.exists(
        path) and os.path.isfile(f'{path}.idx')


def is_stem_at_url(path: str) -> bool:
    """Return whether a URL without an extension is that of an index if
    ``.idx`` is added."""
    if not isinstance(path, RemotePath) or not file_name(path) or (
            os.path.splitext(file_name(path))[1]):
        return False
    try:
        return raw_file_at(beside(path, '.idx')).read(
            0, len(MAGIC)) == MAGIC
    except TimeoutError:
        raise
    except (OSError, ValueError):
        # Servers report a missing file in many ways.
        return False


def files_of_tokens(paths: Sequence[str]) -> list[str]:
    """Return paths in which files of tokens replace their indexes; a file
    whose path is given too is not added."""
    known, found = set(paths), []
    for path in paths:
        tokens = path
        if is_stem(path):
            tokens = fixed_path(f'{path}.bin')
        elif is_stem_at_url(path):
            tokens = beside(path, '.bin')
        elif file_name(path).endswith('.idx') and (
                raw_file_at(path).read(0, len(MAGIC)) == MAGIC):
            tokens = fixed_path(beside(path, '.bin'))
        if tokens is path or tokens not in known:
            found.append(tokens)
    return found


def indexes_beside(paths: Sequence[str]) -> list[FileBytes]:
    """Return the indexes beside files of tokens; empty if there is none."""
    found = ask_all(_index_of, paths) if RemotePath in map(
        type, paths) else list(map(_index_of, paths))
    indexes = [index for index in found if index is not None]
    if indexes and len(indexes) < len(paths):
        raise ValueError(
            f'{paths[found.index(None)]} has no index beside it, and '
            f'{indexes[0].path} is one of another file: files that are one '
            f'data set all have an index, or none')
    return indexes


def open_tokens(paths: Sequence[str], name: str,
                indexes: Sequence[FileBytes], dtype: Any,
                ) -> tuple[Reader, list[Places], list[Places], list[Places]]:
    """Return a reader of the tokens of files, which follow each other, and
    for each file the starts and stops of its sequences, and the sequence
    after the last of each document.

    `dtype`: the type that the tokens must have; None for any.
    """
    arrays, starts, stops, ends, first = [], [], [], [], 0
    for file, index in zip(raw_files_at(paths), indexes, strict=True):
        known, offsets, lengths, documents = _read(index, file)
        if dtype is not None and dtype.newbyteorder('<') != known:
            raise ValueError(
                f'{index.path} states that {file.path} holds {known}: leave '
                f"out dtype, or pass '{known}'; got {dtype}")
        starts.append(first + offsets // known.itemsize)
        stops.append(starts[-1] + lengths)
        ends.append(documents)
        arrays.append(StoredArray(
            file, (file.size // known.itemsize,), known, False, 0))
        first += arrays[-1].shape[0]
    return open_arrays(name, arrays), starts, stops, ends


def _index_of(path: str) -> FileBytes | None:
    """Return the index beside a file of tokens; None if there is none."""
    if not file_name(path).endswith('.bin'):
        return None
    # Some servers deny access to files that are not there.
    absent = (FileNotFoundError, PermissionError) if isinstance(
        path, RemotePath) else FileNotFoundError
    try:
        return raw_file_at(beside(located(path), '.idx'))
    except absent:
        return None


def _read(index: FileBytes, file: FileBytes,
          ) -> tuple[numpy.dtype[Any], Places, Places, Places]:
    """Return the type of the tokens in a file, the offset in bytes and the
    number of tokens of each sequence, and the end of each document, in
    sequences."""
    head = index.read(0, HEADER.size)
    if head[:len(MAGIC)] != MAGIC or len(head) < HEADER.size:
        raise DamagedFileError(
            f'{index.path} must be an index of Megatron, since it lies '
            f'beside {file.path}: an index begins with {MAGIC!r} and has at '
            f'least {HEADER.size} bytes, and this has {index.size} and '
            f'begins with {head[:len(MAGIC)]!r}; restore it, or move it away '
            f'if it belongs to something else')
    _, version, code, count, documents = HEADER.unpack(head)
    if version != 1 or code not in TYPES:
        raise DamagedFileError(
            f'{index.path} must have version 1 and a type of 1 to 8, got '
            f'version {version} and type {code}: write it again, or restore '
            f'it')
    nbytes = HEADER.size + 12 * count + 8 * documents
    # A mode of each sequence may follow.
    if index.size not in (nbytes, nbytes + count):
        raise DamagedFileError(
            f'{index.path} states {count} sequences and {documents} bounds '
            f'of documents, which need {nbytes} bytes, but it has '
            f'{index.size}: it was cut, or is still written')
    content = index.read(HEADER.size, nbytes - HEADER.size)
    index.check()
    dtype = numpy.dtype(TYPES[code])
    lengths = numpy.frombuffer(content, '<i4', count).astype(numpy.intp)
    offsets = numpy.frombuffer(content, '<i8', count, 4 * count).astype(
        numpy.intp)
    sizes = lengths * dtype.itemsize
    # No sum of an offset and a size, which may be too large for an integer.
    wrong = (lengths < 0) | (offsets < 0) | (offsets % dtype.itemsize != 0) | (
        offsets > file.size - sizes)
    if wrong.any():
        place = int(wrong.argmax())
        raise DamagedFileError(
            f'{index.path}: sequence {place} has {lengths[place]} tokens of '
            f'{dtype} from byte {offsets[place]} on, which do not lie in '
            f'{file.path} of {file.size} bytes: one of the two is damaged, '
            f'or belongs to another file')
    end = int((offsets + sizes).max(initial=0))
    if end != file.size or not end:
        raise DamagedFileError(
            f'{index.path} states {end} bytes of tokens, but {file.path} has '
            f'{file.size} bytes: one of the two is damaged, empty, or belongs '
            f'to another file')
    bounds = numpy.frombuffer(content, '<i8', documents, 12 * count).astype(
        numpy.intp)
    if not documents or bounds[0] != 0 or bounds[-1] != count or (
            numpy.diff(bounds) < 0).any():
        raise DamagedFileError(
            f'{index.path} must have bounds of documents that go from 0 to '
            f'{count}, the number of sequences, and never fall: it is '
            f'damaged, write it again')
    return dtype, offsets, lengths, bounds[1:]
