"""Readers of arrays in ``.npy`` and ``.npz`` files, which may be damaged or
malicious."""
from __future__ import annotations

import functools
import io
import lzma
import math
import struct
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

import numpy
from numpy.typing import NDArray

from fuel.exceptions import DamagedFileError, FuelError
from fuel.remote.location import RemotePath, located
from fuel.storage.file_bytes import (
    FileBytes, join_files, raw_files_at, starts_of)
from fuel.storage.layout import native_type
from fuel.storage.mapped import (
    ArrayReader, MappedReader, copies_as_bytes, one_part, parts_of_arrays)
from fuel.storage.reader import PartsReader, Reader
from fuel.suggestions import unlike_first
from fuel.utils.hdf5_errors import is_lack_of_descriptors

# Errors that `zipfile` has raised for archives with changed bytes.
OF_ARCHIVES = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError,
               OSError, NotImplementedError, RuntimeError, struct.error)
# Header of an entry of a ZIP archive, up to the name of the entry.
LOCAL_HEADER = struct.Struct('<4s22xHH')
# The largest number of bytes of an array, limited by offsets in a file.
MAX_NBYTES = 2 ** 62
VERSIONS = (1, 0), (2, 0), (3, 0)
# The first bytes of a ``.npy`` file.
MAGIC = numpy.lib.format.MAGIC_PREFIX


class StoredArray(NamedTuple):
    """An array in a file.

    `dtype`: the type as it is stored.
    `by_columns`: whether the array is stored in Fortran order.
    `offset`: place of the first byte of the array in the file.
    `content`: the array itself, if it was compressed; otherwise None.
    """

    file: FileBytes
    shape: tuple[int, ...]
    dtype: numpy.dtype[Any]
    by_columns: bool
    offset: int
    content: NDArray[Any] | None = None

    @property
    def is_contiguous(self) -> bool:
        """Whether each row is one piece of the file (bool)."""
        return self.content is None and (
            not self.by_columns or len(self.shape) == 1)


def open_npy(paths: Sequence[str], name: str) -> Reader:
    """Return a reader of the array in a ``.npy`` file, or of the concatenated
    arrays in several files."""
    found = []
    for path, file in zip(paths, raw_files_at(paths), strict=True):
        if is_archive(path):
            raise ValueError(
                f'{path}, source {name!r}: this is a .npz file, which has '
                f'sources of its own: pass its path alone')
        with file.open() as stream:
            found.append(_stored(
                file, stream, 0, f'{path}, source {name!r}'))
        file.check()
    return open_arrays(name, found)


def open_npz(paths: Sequence[str],
             asked: Sequence[str] | None = None) -> dict[str, Reader]:
    """Return a mapping from the names of the arrays in a ``.npz`` file to
    readers of the arrays.

    With several files, arrays of the same name are concatenated. Arrays that
    are not compressed (:func:`numpy.savez`) are mapped. Compressed arrays are
    read into memory.

    `asked`: names of the arrays that must exist and have rows. Other arrays
        are left out if they have no rows, or if they are missing or differ in
        another file. None for all arrays.

    Raises: ValueError if a file has other arrays than the first.
    """
    files = raw_files_at(paths)
    for path, file in zip(paths[1:], files[1:], strict=True):
        if file.size >= len(MAGIC) and file.read(0, len(MAGIC)) == MAGIC:
            raise ValueError(
                f'{path} is a .npy file, and {paths[0]} a .npz file: files '
                f'that are one data set are of one kind')
    found = [_arrays_in(file, asked) for file in files]
    if asked is not None:
        common = [name for name in found[0] if name in asked or all(
            name in arrays for arrays in found)]
        found = [{name: arrays[name] for name in common if name in arrays}
                 for arrays in found]
    for path, arrays in zip(paths, found, strict=True):
        if arrays.keys() != found[0].keys():
            raise unlike_first(path, paths[0], 'array', list(arrays),
                               list(found[0]), 'sources=({!r},)')
    readers: dict[str, Reader] = {}
    for name in list(found[0]):
        try:
            # A compressed source is in memory twice while its parts become
            # one array.
            readers[name] = open_arrays(name, [
                arrays.pop(name) for arrays in found])
        except ValueError:
            if asked is None or name in asked:
                raise
    return readers


def _arrays_in(file: FileBytes,
               asked: Sequence[str] | None) -> dict[str, StoredArray]:
    """Return a mapping from names to the arrays in a ``.npz`` file.

    An array that has no rows, or consists of Python objects, is an error if
    `asked` is None or contains its name. Otherwise the array is left out.
    """
    found: dict[str, StoredArray] = {}
    wrong: ValueError | None = None
    with (_naming(f'{file.path} is not a complete .npz file'),
          file.open() as stream, zipfile.ZipFile(stream) as archive):
        for entry in archive.infolist():
            if entry.filename.endswith('.npy'):
                name = entry.filename.removesuffix('.npy')
                try:
                    with _naming(f'{file.path}, source {name!r}'):
                        found[name] = _entry(file, archive, entry, name)
                except ValueError as error:
                    if asked is not None and name in asked:
                        raise
                    wrong = wrong or error
    file.check()
    if wrong is not None and asked is None:
        if not found:
            raise wrong
        raise ValueError(f'{wrong}; sources={tuple(found)} reads the others'
                         ) from wrong
    return found


@contextmanager
def _naming(where: str) -> Iterator[None]:
    """Return a context that replaces `zipfile`'s errors for damage by an error
    that names the file."""
    try:
        yield
    except FuelError:
        raise
    except OF_ARCHIVES as error:
        if is_lack_of_descriptors(error):
            raise
        raise DamagedFileError(
            f'{where}: {error}; it is damaged: restore it from its origin'
        ) from error


def _entry(file: FileBytes, archive: zipfile.ZipFile,
           entry: zipfile.ZipInfo, name: str) -> StoredArray:
    """Return the array of an entry in an archive."""
    where = f'{file.path}, source {name!r}'
    with archive.open(entry) as stream:
        if entry.compress_type != zipfile.ZIP_STORED:
            array = _read_all(stream, where)
            return StoredArray(
                file, array.shape, array.dtype, False, 0, array)
        head = file.read(entry.header_offset, LOCAL_HEADER.size)
        signature, *lengths = LOCAL_HEADER.unpack(head)
        if signature != b'PK\x03\x04':
            raise DamagedFileError(f'{where}: its entry does not begin where '
                                   f'the archive says')
        start = entry.header_offset + LOCAL_HEADER.size + sum(lengths)
        found = _stored(file, stream, start, where)
        nbytes = math.prod(found.shape) * found.dtype.itemsize
        _check_size(stream.tell() + nbytes, entry.file_size, where)
        return found


def _check_size(found: int, expected: int, where: str) -> None:
    if found != expected:
        raise DamagedFileError(
            f'{where}: its header states {found} bytes, the archive '
            f'{expected}: it is damaged')


def _stored(file: FileBytes, stream: IO[bytes], start: int,
            where: str) -> StoredArray:
    """Return the array in the ``.npy`` data that begin at `start` in a
    file."""
    shape, by_columns, dtype = _read_header(stream, where)
    offset = start + stream.tell()
    nbytes = math.prod(shape) * dtype.itemsize
    if offset + nbytes > file.size:
        raise DamagedFileError(
            f'{where}: the array needs {nbytes} bytes from byte {offset} on, '
            f'but the file has {file.size}; it was cut')
    return StoredArray(file, shape, dtype, by_columns, offset)


def open_arrays(name: str, arrays: Sequence[StoredArray]) -> Reader:
    """Return a reader of the rows of concatenated arrays."""
    first = arrays[0]
    for one in arrays:
        if one.shape[1:] != first.shape[1:] or native_type(
                one.dtype) != native_type(first.dtype):
            raise ValueError(
                f'all files must have rows of one type and shape, but '
                f'{first.file.path}, source {name!r}, has {first.dtype} of '
                f'shape {first.shape[1:]}, and {one.file.path} has '
                f'{one.dtype} of shape {one.shape[1:]}')
    reader = _reader(name, arrays)
    reader.part_bounds = _bounds(arrays)
    return reader


def _reader(name: str, arrays: Sequence[StoredArray]) -> Reader:
    """Return a reader of concatenated arrays whose rows have one type and
    shape."""
    first, bounds = arrays[0], _bounds(arrays)
    path, rest, dtype = first.file.path, first.shape[1:], first.dtype
    files = tuple([one.file for one in arrays])
    contents = [one.content for one in arrays if one.content is not None]
    if bounds[-1] and copies_as_bytes(dtype, rest) and all(
            one.is_contiguous and one.dtype == dtype for one in arrays):
        file = join_files(files)
        offsets = numpy.array([one.offset for one in arrays], numpy.int64)
        return MappedReader(file, name, parts_of_arrays(
            rest, dtype, numpy.diff(bounds).tolist(),
            starts_of(file) + offsets))
    if len(contents) == len(arrays):
        return ArrayReader(path, name, numpy.concatenate(contents), files,
                           numpy.diff(bounds).tolist())
    if len(arrays) > 1:
        readers = [_reader(name, [one]) for one in arrays]
        return PartsReader(path, name, rest, dtype, _ReadersOfParts(readers),
                           bounds, files)
    if not bounds[-1] or not copies_as_bytes(dtype, rest):
        return ArrayReader(
            path, name, numpy.empty(first.shape, dtype), files)
    return _by_columns(first.file, name, first.shape, dtype, first.offset)


def _bounds(arrays: Sequence[StoredArray]) -> NDArray[numpy.intp]:
    """Return the first row of each array, and the number of rows."""
    return numpy.cumsum([0, *[one.shape[0] for one in arrays]],
                        dtype=numpy.intp)


class _ReadersOfParts:
    """Rows of parts; each part has its own reader."""

    def __init__(self, readers: Sequence[Reader]) -> None:
        self._readers = readers

    def read(self, part: int, rows: NDArray[numpy.intp]) -> NDArray[Any]:
        """Return rows of a part."""
        batch: NDArray[Any] = self._readers[part].read(rows)
        return batch

    def pieces(self, rows: NDArray[numpy.intp]) -> None:
        """Return None: rows are not stored in pieces."""


def _by_columns(file: FileBytes, name: str, shape: tuple[int, ...],
                dtype: numpy.dtype[Any], offset: int) -> Reader:
    """Return a reader of an array in Fortran order.

    For the kernel, each column is a chunk, which has one element of each row.
    """
    rest = shape[1:]
    places = numpy.arange(math.prod(rest)).reshape(rest, order='F')
    addresses = offset + places.ravel() * (shape[0] * dtype.itemsize)
    try:
        return MappedReader(file, name, one_part(
            shape, dtype, addresses.astype(numpy.int64),
            (shape[0], *[1] * len(rest))))
    except ValueError:
        # Rows have very many elements, and each element is in another page.
        content = file.read(offset, math.prod(shape) * dtype.itemsize)
        return ArrayReader(file.path, name, numpy.frombuffer(
            content, dtype).reshape(shape, order='F'), (file,))


def _read_header(stream: IO[bytes], where: str,
                 ) -> tuple[tuple[int, ...], bool, numpy.dtype[Any]]:
    """Return the shape, whether the array is in Fortran order, and the
    type."""
    try:
        shape, by_columns, dtype = read_npy_header(stream)
    except ValueError as error:
        kind = 'npz' if stream.name.endswith('.npz') else 'npy'
        raise ValueError(f'{where}: this is not a .{kind} file: {error}'
                         ) from error
    if dtype.hasobject:
        raise ValueError(
            f'{where}: arrays of Python objects are pickles, which are not '
            f'read; save numbers, or strings of fixed length')
    if not shape:
        raise ValueError(f'{where}: a scalar has no examples')
    return shape, by_columns, dtype


def _read_all(stream: IO[bytes], where: str) -> NDArray[Any]:
    """Return the content of a compressed array."""
    shape, by_columns, dtype = _read_header(stream, where)
    array = numpy.empty(shape, dtype, order='F' if by_columns else 'C')
    flat = array.reshape(-1, order='A').view(numpy.uint8)
    target = memoryview(flat)  # type: ignore[arg-type]
    done = 0
    while done < len(target):
        part = stream.read(min(1 << 20, len(target) - done))
        if not part:
            raise DamagedFileError(
                f'{where}: it has {done} of {len(target)} bytes')
        target[done:done + len(part)] = part
        done += len(part)
    # Read to the end, where `zipfile` checks the checksum.
    _check_size(done, done + len(stream.read(1)), where)
    return numpy.ascontiguousarray(array)


def is_archive(path: str) -> bool:
    """Return whether a file is a ``.npz`` file, by its first bytes."""
    if isinstance(path, RemotePath):
        return path.open().read(0, 2) == b'PK'
    with open(located(path), 'rb') as stream:
        return stream.read(2) == b'PK'


class NpyHeader(NamedTuple):
    """The header of a ``.npy`` file; `start` is its length."""

    shape: tuple[int, ...]
    by_columns: bool
    dtype: numpy.dtype[Any]
    start: int


def npy_header(content: bytes) -> NpyHeader:
    """Return the header in the first bytes of a ``.npy`` file.

    Raises: ValueError if there is none, or if the array consists of objects.
    """
    # The length of the header is in two or four bytes, by the version.
    stop = 10 if content[6:7] == b'\1' else 12
    return _parsed(content[:stop + int.from_bytes(content[8:stop], 'little')])


@functools.lru_cache(256)
def _parsed(head: bytes) -> NpyHeader:
    """Return a parsed header: many files have the same one, and parsing it
    takes long."""
    stream = io.BytesIO(head)
    shape, by_columns, dtype = read_npy_header(stream)
    if dtype.hasobject:
        raise ValueError('arrays of Python objects are pickles, which are '
                         'not read')
    return NpyHeader(shape, by_columns, dtype, stream.tell())


def npy_array(content: bytes) -> NDArray[Any]:
    """Return the array in the bytes of a ``.npy`` file: a copy, in native
    byte order.

    Raises: ValueError if they are not such a file, or of another length, or
        if the array consists of objects.
    """
    shape, by_columns, dtype, start = npy_header(content)
    count = math.prod(shape)
    if len(content) - start != count * dtype.itemsize:
        raise ValueError(
            f'by its header, the array has {count * dtype.itemsize} bytes, '
            f'and there are {len(content) - start}')
    array = numpy.empty(shape, dtype) if not count * dtype.itemsize else (
        numpy.frombuffer(content, dtype, count, start).reshape(
            shape, order='F' if by_columns else 'C'))
    return numpy.array(array, native_type(dtype), order='C')


def read_npy_header(stream: IO[bytes]
                    ) -> tuple[tuple[int, ...], bool, numpy.dtype[Any]]:
    """Read the header of a ``.npy`` file.

    The stream is left at the first byte of the array.

    Returns: the shape, whether the array is in Fortran order, and the type.

    Raises: ValueError if it is not a header, or does not describe an array.
    """
    layout = numpy.lib.format
    try:
        version = layout.read_magic(stream)
        if version not in VERSIONS:
            raise ValueError(f'unknown version {version}')
        read = (layout.read_array_header_1_0 if version == (1, 0)
                else layout.read_array_header_2_0)
        with warnings.catch_warnings():
            # Warnings about files of Python 2, and about literals.
            warnings.simplefilter('ignore')
            shape, by_columns, dtype = read(stream)
    except OSError:
        raise
    except Exception as error:  # NumPy raises nearly any
        reason = ' '.join(str(error).split())[:200]
        raise ValueError(reason or type(error).__name__) from error
    nbytes = max(1, dtype.itemsize)
    for length in shape:
        if isinstance(length, bool) or length < 0:
            raise ValueError(f'the header names the shape {shape}')
        nbytes *= max(1, length)
    if nbytes > MAX_NBYTES:
        raise ValueError(f'the header names the shape {shape}, which is '
                         'larger than any file')
    return shape, by_columns, dtype
