"""Readers that copy rows in C, out of mapped files or arrays."""
from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy
from numpy.typing import NDArray

from fuel.kernels import native, take
from fuel.kernels.batches import Part, PlainRows
from fuel.kernels.gather import MISSING, MappedRows, Rows
from fuel.kernels.memory import empty
from fuel.kernels.part_table import ALL_ROWS, PART, PartTable
from fuel.kernels.tiles import Tiles
from fuel.storage.chunk_cache import Ahead
from fuel.storage.file_bytes import (
    Ends, FileBytes, JoinedFile, Versioned, files_of, is_remote, starts_of,
    states_of)
from fuel.storage.paging import BLOCK, paging_of
from fuel.storage.reader import (
    Reader, StoredPieces, check_ranges, no_ranges, own_objects,
    request_missing, rows_of_ranges)
from fuel.utils.threads import map_chunks

# Larger chunks of a remote file are not fetched for one row.
LARGEST_CHUNK = 16 << 20
_NONE: Ends = numpy.empty(0, numpy.int64)

#: A field of a compound type, or several.
Field: TypeAlias = str | Sequence[str]


class PartKind(NamedTuple):
    """Properties that several parts have in common.

    `tile_shape`: shape of the piece of a row that is in one chunk.
    `fill`: value of the elements of a chunk that was never written.
    """

    tile_shape: tuple[int, ...]
    fill: Any


class Element(NamedTuple):
    """Type of the elements of a chunk, and the fields that rows have of it.

    `stored`: type of an element in the chunk.
    `dtype`: type of an element in a row.
    `fields`: offset and size of each field that rows have; None for all.
    """

    stored: numpy.dtype[Any]
    dtype: numpy.dtype[Any]
    fields: list[tuple[int, int]] | None = None

    def fill(self, value: Any) -> Any:
        """Return the fill value of rows, from that of stored elements."""
        if self.dtype == self.stored:
            return value
        stored = numpy.array(value, self.stored).tobytes()
        picked = stored if self.fields is None else b''.join(
            stored[offset:offset + nbytes] for offset, nbytes in self.fields)
        return numpy.frombuffer(picked, self.dtype, 1)[0]


def element_of(stored: numpy.dtype[Any], field: Field | None) -> Element:
    """Return the element for a field, or several fields, of a type.

    Raises: ValueError if there is no such field.
    """
    if field is None:
        return Element(stored, stored)
    names = [field] if isinstance(field, str) else list(field)
    found: Any = stored.fields or {}
    missing = [name for name in names if name not in found]
    if missing or not names:
        raise ValueError(
            f'there is no field {missing[0] if missing else names!r}; the '
            f'type is {stored}')
    fields = [(found[name][1], found[name][0].itemsize) for name in names]
    dtype = found[field][0] if isinstance(field, str) else numpy.dtype(
        [(name, found[name][0]) for name in names])
    return Element(stored, dtype, None if fields == [(0, stored.itemsize)]
                   else fields)


class Parts:
    """The parts of a source: the places of its rows in the chunks of files.

    `row_shape`: shape of a row, in stored elements.
    `table`: shape (parts,), dtype `PART`.
    `addresses`, `nbytes`: shape (chunks,), dtype int64; address of each chunk,
        or `MISSING` or `OUTSIDE`, and number of its bytes when decoded.
    `bounds`: shape (parts + 1,); the first row of each part, and the number of
        rows.
    `kernel`: the same table in the form for kernels.
    """

    def __init__(self, row_shape: tuple[int, ...], element: Element,
                 kinds: Sequence[PartKind], table: NDArray[Any],
                 addresses: NDArray[numpy.int64],
                 nbytes: NDArray[numpy.int64], num_files: int = 1) -> None:
        self.row_shape = row_shape
        self.element = element
        self.table = table
        self.addresses = addresses
        self.nbytes = nbytes
        self.bounds = numpy.zeros(len(table) + 1, numpy.intp)
        numpy.cumsum(table['rows'], out=self.bounds[1:])
        self.kernel = PartTable(
            [(Tiles(row_shape, kind.tile_shape, element.stored.itemsize,
                    element.fields),
              numpy.full(row_shape, element.fill(kind.fill), element.dtype))
             for kind in kinds], table, len(addresses), num_files)
        tiles = [tiles for tiles, _ in self.kernel.kinds]
        self._num_tiles = numpy.array([one.num_tiles for one in tiles])
        self._strides = numpy.array([one.stride for one in tiles])
        # True if some chunks are fetched in pieces.
        self._is_read_by_rows = bool(
            (table['block_rows'] == ALL_ROWS).any()
            or (nbytes > LARGEST_CHUNK).any())

    @property
    def row_nbytes(self) -> int:
        """Bytes of a row (int)."""
        return self.kernel.row_nbytes

    def stored(self) -> NDArray[numpy.bool_]:
        """Return a mask of the chunks in the file, shape (chunks,)."""
        return self.addresses >= 0

    def _blocks(self, rows: NDArray[numpy.intp]) -> tuple[
            NDArray[Any], NDArray[numpy.intp], NDArray[numpy.intp]]:
        """Return for each row its part, the first chunk of its block, and the
        number of the row in the block."""
        found = 0 if len(self.table) == 1 else (
            self.bounds.searchsorted(rows, 'right') - 1)
        parts = self.table[found]
        blocks, inside = numpy.divmod(
            rows - self.bounds[found] + parts['skip'], parts['block_rows'])
        return parts, (parts['first_chunk']
                       + blocks * self._num_tiles[parts['kind']]), inside

    def part_of(self, row: int) -> int:
        """Return the number of the part that has a row."""
        return int(self.bounds.searchsorted(row, 'right')) - 1

    def chunks_of(self, rows: NDArray[numpy.intp]) -> NDArray[numpy.intp]:
        """Return the numbers of the chunks of rows, ascending and distinct."""
        chunks: NDArray[numpy.intp] = self.kernel.chunks_of(rows)
        return chunks

    def numbers_of_pieces(self, rows: NDArray[numpy.intp],
                          nbytes: int) -> NDArray[numpy.intp]:
        """Return for each row the number of its chunk along the first axis.

        `nbytes`: approximate size of the pieces into which an array without
            chunks is divided for this.
        """
        parts, firsts, inside = self._blocks(rows)
        is_whole = self.table['block_rows'] == ALL_ROWS
        if not is_whole.any():
            # Each tile of a row is in a chunk of its own.
            return firsts // self._num_tiles[0] if (
                len(self._num_tiles) == 1) else firsts
        stride = max(1, self.longest)
        step = max(1, nbytes // stride)
        counts = numpy.ones(len(self.addresses), numpy.intp)
        whole = self.table['first_chunk'][is_whole]
        counts[whole] = -(-self.nbytes[whole] // (step * stride))
        pieces: NDArray[numpy.intp] = (
            (numpy.cumsum(counts) - counts)[firsts] + numpy.where(
                parts['block_rows'] == ALL_ROWS, inside // step, 0))
        return pieces

    def rows_of_blocks(self, start: int, stop: int) -> NDArray[numpy.intp]:
        """Return some rows of a range, at least one for each of its chunks."""
        step = int(self.table['block_rows'].min())
        edges = numpy.concatenate([
            numpy.arange(start, stop, step, dtype=numpy.intp),
            self.bounds, self.bounds - 1, [stop - 1]])
        return edges[(edges >= start) & (edges < stop)]

    def lie_in(self, rows: NDArray[numpy.intp],
               chunk: int) -> NDArray[numpy.bool_]:
        """Return a mask of the rows that are in a chunk."""
        parts, firsts, _ = self._blocks(rows)
        mask: NDArray[numpy.bool_] = (firsts <= chunk) & (
            chunk < firsts + self._num_tiles[parts['kind']])
        return mask

    def starts_of(self, rows: NDArray[numpy.intp]) -> tuple[Ends, Ends]:
        """Return the address of each row, and the number of bytes from this
        address to the next row.

        Rows that were never written are left out. For a row in several tiles,
        the address of the first tile is returned.
        """
        parts, chunks, inside = self._blocks(rows)
        strides = self._strides[parts['kind']]
        starts = self.addresses[chunks]
        stored = starts >= 0
        return ((starts + inside * strides + parts['offset'])[stored],
                numpy.broadcast_to(strides, rows.shape)[stored])

    @property
    def longest(self) -> int:
        """The largest number of bytes of a row in a chunk (int)."""
        return int(self._strides.max())

    def pieces_of(self, rows: NDArray[numpy.intp]) -> tuple[Ends, Ends]:
        """Return the starts and sizes of the pieces to fetch for rows: chunks,
        or rows if there are no chunks or chunks exceed `LARGEST_CHUNK`."""
        starts = sizes = _NONE
        if self._is_read_by_rows:
            parts, firsts, _ = self._blocks(rows)
            by_rows = numpy.broadcast_to(
                (self._num_tiles[parts['kind']] == 1)
                & ((parts['block_rows'] == ALL_ROWS)
                   | (self.nbytes[firsts] > LARGEST_CHUNK)), rows.shape)
            starts, sizes = self.starts_of(rows[by_rows])
            rows = rows[~by_rows]
        whole = self.chunks_of(rows)
        whole = whole[self.addresses[whole] >= 0]
        return (numpy.concatenate([starts, self.addresses[whole]]),
                numpy.concatenate([sizes, self.nbytes[whole]]))


def one_part(shape: tuple[int, ...], dtype: numpy.dtype[Any],
             addresses: NDArray[numpy.int64],
             chunk_shape: tuple[int, ...] | None = None) -> Parts:
    """Return the parts of a source that is one array.

    `chunk_shape`: shape of a chunk; None for a contiguous array.
    """
    if chunk_shape is None:
        return parts_of_arrays(shape[1:], dtype, shape[:1], addresses)
    table = numpy.zeros(1, PART)
    table['rows'] = shape[0]
    table['block_rows'] = chunk_shape[0]
    nbytes = math.prod(chunk_shape) * dtype.itemsize
    return Parts(
        shape[1:], Element(dtype, dtype), [PartKind(chunk_shape[1:], 0)],
        table, addresses, numpy.full(len(addresses), nbytes, numpy.int64))


def parts_of_arrays(row_shape: tuple[int, ...], dtype: numpy.dtype[Any],
                    lengths: Sequence[int],
                    addresses: NDArray[numpy.int64]) -> Parts:
    """Return the parts of a source whose parts are contiguous arrays, each in
    its own file.

    `lengths`: number of rows of each part.
    `addresses`: address of each part in the joined file.
    """
    table = numpy.zeros(len(lengths), PART)
    table['rows'] = lengths
    table['block_rows'] = ALL_ROWS
    table['first_chunk'] = table['file'] = numpy.arange(len(lengths))
    nbytes = math.prod(row_shape) * dtype.itemsize
    return Parts(
        row_shape, Element(dtype, dtype), [PartKind(row_shape, 0)], table,
        numpy.where(table['rows'] > 0, addresses, MISSING),
        numpy.multiply(lengths, nbytes, dtype=numpy.int64), len(lengths))


def parts_of_lengths(row_shape: tuple[int, ...], dtype: numpy.dtype[Any],
                     lengths: Sequence[int], files: Sequence[int] | None,
                     num_files: int) -> Parts:
    """Return the parts of a source in which each part is one chunk.

    `lengths`: number of rows of each part.
    `files`: number of the file of each part, less than `num_files`; None if
        all parts are in the first file.
    """
    table = numpy.zeros(len(lengths), PART)
    table['rows'] = lengths
    table['block_rows'] = numpy.maximum(lengths, 1)
    table['first_chunk'] = numpy.arange(len(lengths))
    table['file'] = 0 if files is None else files
    nbytes = math.prod(row_shape) * dtype.itemsize
    return Parts(
        row_shape, Element(dtype, dtype),
        [PartKind(row_shape, numpy.zeros((), dtype))], table,
        numpy.where(table['rows'] > 0, numpy.arange(len(lengths)), MISSING),
        numpy.multiply(lengths, nbytes, dtype=numpy.int64), num_files)


def copies_as_bytes(dtype: numpy.dtype[Any],
                    row_shape: tuple[int, ...]) -> bool:
    """Return whether rows are not empty, and can be copied as bytes."""
    return not dtype.hasobject and dtype.itemsize * math.prod(row_shape) > 0


IndexArray: TypeAlias = NDArray[numpy.intp]
#: Returns file, source and row as text for errors, given part and row in it.
PartNames: TypeAlias = Callable[[int, int], str]
#: Wanted rows: a list of rows; or the first row and the row after the last; or
#: the first row of each range and the number of its rows.
Wanted: TypeAlias = (
    IndexArray | tuple[int, int] | tuple[IndexArray, IndexArray])


class DirectReader(Reader):
    """Base of readers that copy batches in C, by the addresses in a table of
    parts.

    `file`: the file, or several files as one.
    `part_names`: returns names for errors; None if there is a single part.
    """

    _rows: Rows

    def __init__(self, file: Versioned, name: str, parts: Parts,
                 part_names: PartNames | None = None) -> None:
        dtype = parts.element.dtype
        self._row_shape = *parts.row_shape, *dtype.shape
        self._stored_type = dtype.base
        super().__init__(
            file.path, name, (int(parts.bounds[-1]), *self._row_shape),
            dtype.base)
        self._file = file
        self._remote = file if is_remote(file) else None
        self.files: Sequence[Versioned] = file.files if isinstance(
            file, JoinedFile) else (file,)
        self._is_native = self._stored_type == self.dtype
        self._parts = parts
        self._part_names = part_names
        self.part_bounds = parts.bounds

    def _watch(self) -> None:
        """Let the kernel decline batches after a local file has changed."""
        self._rows.watch(states_of(self.files))

    def direct(self) -> Part | None:
        """See :meth:`Reader.direct`."""
        return PlainRows(self._rows, self.shape[1:], self.dtype) if (
            self._is_native) else None

    def _missing_ranges(self, rows: IndexArray) -> tuple[Ends, Ends]:
        """Return the byte ranges of a remote file that rows need, except for
        data that are decoded already."""
        raise NotImplementedError

    def fetch(self, rows: IndexArray, budget: int) -> int | None:
        """See :meth:`Reader.fetch`."""
        assert self._remote is not None
        return request_missing(
            self._remote, self._missing_ranges(rows), budget)

    def read_ranges(self, starts: IndexArray,
                    counts: IndexArray) -> NDArray[Any]:
        """See :meth:`Reader.read_ranges`."""
        return self._read_ranges(*check_ranges(starts, counts))

    @abstractmethod
    def _read_ranges(self, starts: IndexArray,
                     counts: IndexArray) -> NDArray[Any]:
        """Return ranges of rows; the caller has checked the arguments."""

    def _new_batch(self, count: int) -> NDArray[Any]:
        return empty((count, *self._row_shape), self._stored_type)

    def _in_native_order(self, batch: NDArray[Any]) -> NDArray[Any]:
        """Return a batch in native byte order; if possible, its bytes are
        swapped in place."""
        if self._is_native:
            return batch
        if batch.dtype.names is None:
            return batch.byteswap(inplace=True).view(self.dtype)
        return batch.astype(self.dtype)

    def _place_of(self, row: int) -> str:
        """See :meth:`Reader._place_of`."""
        if self._part_names is None:
            return super()._place_of(row)
        part = self._parts.part_of(row)
        return self._part_names(part, row - int(self._parts.bounds[part])
                                + int(self._parts.table['skip'][part]))


# Bytes of a range of rows of a remote file that are fetched at once.
PORTION = 32 << 20


class MappedReader(DirectReader):
    """Reader that copies rows out of a mapped file."""

    _rows: MappedRows

    # Measured on two cores, for random rows of 3 KB. If both cores were free,
    # two threads were 1.5 times as fast as one from 8 MB on, and below 4 MB
    # little faster or slower. If other programs used a core, they were slower.
    THREADS_FROM = 8 << 20

    def __init__(self, file: FileBytes, name: str, parts: Parts,
                 part_names: PartNames | None = None) -> None:
        super().__init__(file, name, parts, part_names)
        self._rows = MappedRows(
            parts.kernel, parts.addresses, list(zip(
                starts_of(file).tolist(),
                [one.memory for one in files_of(file)], strict=True)))
        self._sizes = [one.size for one in files_of(file)]
        # A copy, in which chunks that end outside of their file are `OUTSIDE`.
        parts.addresses = self._rows.addresses
        self._paging = paging_of(file)
        # First byte, byte after the last, and number of bytes of the source.
        self._extent: tuple[int, int, int] | None = None
        stored = parts.addresses >= 0
        if stored.any():
            starts, nbytes = parts.addresses[stored], parts.nbytes[stored]
            self._extent = (int(starts.min()), int((starts + nbytes).max()),
                            int(nbytes.sum()))
        if self._remote is not None:
            self.prefetch_budget(slice(None))
        self._watch()

    def prefetch_budget(self, rows: slice | IndexArray) -> int | None:
        """See :meth:`Reader.prefetch_budget`."""
        budget = (None if self._extent is None
                  else self._paging.begin(*self._extent))
        self._rows.declines = self._paging.fetches_first
        return budget

    def pieces(self, rows: IndexArray) -> StoredPieces | None:
        """See :meth:`Reader.pieces`."""
        are_chunks = bool((self._parts.table['block_rows'] < ALL_ROWS).any())
        if not are_chunks and self._remote is None:
            return None
        return StoredPieces(self._parts.numbers_of_pieces(rows, BLOCK),
                            are_chunks, False, self.row_nbytes)

    def prefetch(self, rows: IndexArray, budget: int,
                 ahead: Ahead | None = None) -> int | None:
        """See :meth:`Reader.prefetch`."""
        nbytes = len(rows) * self._parts.row_nbytes
        if nbytes > budget:
            return None
        self._paging.prefetch(*self._row_pieces(rows))
        return nbytes

    def byte_ranges(self, rows: IndexArray) -> tuple[Ends, Ends]:
        """See :meth:`Reader.byte_ranges`."""
        return self._paging.widen(*self._pieces(rows))

    _missing_ranges = byte_ranges

    def fetch_budget(self, rows: slice | IndexArray) -> int | None:
        """See :meth:`Reader.fetch_budget`."""
        if self._remote is None or not self._paging.fetches_first:
            return None
        return self._remote.prefetch_budget()

    def _pieces(self, rows: IndexArray) -> tuple[Ends, Any]:
        """Return addresses and sizes of the pieces that rows need: rows, or
        chunks of a remote file."""
        if not self._paging.is_remote:
            return self._row_pieces(rows)
        return self._parts.pieces_of(rows)

    def _row_pieces(self, rows: IndexArray) -> tuple[Ends, int]:
        # For a row in several tiles, the first tile is enough: others follow.
        return self._parts.starts_of(rows)[0], self._parts.longest

    def _read_list(self, rows: IndexArray) -> NDArray[Any]:
        batch = self._new_batch(len(rows))
        self._rows.declines = self._paging.fetches_first
        if not (self._rows.declines and rows.size):
            return self._copy(rows, batch)
        self._check_rows(int(rows.min()), int(rows.max()))
        with self._paging.fetched(*self._pieces(rows)):
            return self._copy(rows, batch)

    def _read_ranges(self, starts: IndexArray,
                     counts: IndexArray) -> NDArray[Any]:
        self._rows.declines = self._paging.fetches_first
        if self._rows.declines:
            return self._read_list(rows_of_ranges(starts, counts))
        return self._copy((starts, counts), self._new_batch(int(
            counts.sum())))

    def _read_range(self, start: int, stop: int) -> NDArray[Any]:
        batch = self._new_batch(stop - start)
        if not (self._paging.is_remote and self._paging.fetches_first
                and start < stop):
            return self._copy((start, stop), batch)
        self._check_rows(start, stop - 1)
        step = max(1, PORTION // max(1, self._parts.row_nbytes))
        for low in range(start, stop, step):
            high = min(stop, low + step)
            rows = numpy.arange(low, high, dtype=numpy.intp)
            with self._paging.fetched(*self._pieces(rows)):
                self._copy((low, high), batch[low - start:high - start],
                           is_part=True)
        return self._in_native_order(batch)

    def _copy(self, rows: Wanted, batch: NDArray[Any],
              is_part: bool = False) -> NDArray[Any]:
        try:
            if batch.nbytes < self.THREADS_FROM:
                intact = self._rows.copy(rows, batch)
            else:
                intact = all(map_chunks(
                    lambda begin, end: self._rows.copy(
                        rows, batch, begin, end), len(batch)))
        except IndexError as error:
            raise IndexError(
                f'{self.path}, source {self.name!r}: {error}') from None
        except LookupError as error:
            row = self._first_row(rows, error.args[0])
            raise self._damaged(
                row, f'the file has {self._size_at(row)} bytes and ends '
                f'before this row ends, or gives it a wrong address') from None
        # The rows are valid if the files have not changed.
        if not intact or self._paging.is_remote:
            self._file.check()
        if not intact:
            raise self._damaged(
                int(all_rows(rows)[0]),
                'the disk could not read this or a later row')
        return batch if is_part else self._in_native_order(batch)

    def _first_row(self, rows: Wanted, chunk: int) -> int:
        """Return the first row of a request that is in a chunk."""
        every = all_rows(rows)
        return int(every[self._parts.lie_in(every, chunk)][0])

    def _size_at(self, row: int) -> int:
        """Return the size of the file that has a row."""
        part = self._parts.part_of(row)
        return self._sizes[int(self._parts.table['file'][part])]


def all_rows(rows: Wanted) -> IndexArray:
    """Return the rows of a request as a list of rows."""
    if not isinstance(rows, tuple):
        return rows
    first, second = rows
    if isinstance(first, numpy.ndarray) or isinstance(second, numpy.ndarray):
        return rows_of_ranges(numpy.asarray(first), numpy.asarray(second))
    return numpy.arange(first, second, dtype=numpy.intp)


class ArrayReader(Reader):
    """Reader of the rows of an array in memory.

    `files`: the files from which the rows were read.
    `lengths`: number of rows of each file; None for a single file.
    """

    def __init__(self, path: str, name: str, array: NDArray[Any],
                 files: Sequence[Versioned] = (),
                 lengths: Sequence[int] | None = None) -> None:
        super().__init__(path, name, array.shape, array.dtype)
        self.files = files
        self.array = numpy.ascontiguousarray(native(array))
        self._rows = _mapped(self.array, files, [len(array)] if (
            lengths is None) else lengths) if copies_as_bytes(
                self.dtype, self.shape[1:]) else None

    def direct(self) -> Part | None:
        """See :meth:`Reader.direct`."""
        return None if self._rows is None else PlainRows(
            self._rows, self.shape[1:], self.dtype)

    def byte_ranges(self, rows: NDArray[numpy.intp]) -> tuple[Ends, Ends]:
        """Return empty ranges, since all rows are in memory."""
        return no_ranges()

    def _read_list(self, rows: NDArray[numpy.intp]) -> NDArray[Any]:
        self._check_list(rows)
        if self._rows is not None:
            batch = empty((len(rows), *self.shape[1:]), self.dtype)
            if self._rows.copy(rows, batch):
                return batch
            for file in self.files:
                file.check()
        return own_objects(take(self.array, rows))


def _mapped(array: NDArray[Any], files: Sequence[Versioned],
            lengths: Sequence[int]) -> MappedRows:
    """Return a kernel that copies rows of an array; it declines them after a
    file has changed."""
    num_files = max(1, len(files))
    parts = parts_of_lengths(
        array.shape[1:], array.dtype, lengths,
        range(len(lengths)) if files else None, num_files)
    rows = MappedRows(parts.kernel, numpy.cumsum(parts.nbytes) - parts.nbytes,
                      [(0, array.reshape(-1).view(numpy.uint8))] * num_files)
    if files:
        rows.watch(states_of(files))
    return rows
