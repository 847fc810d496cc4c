"""The parts of a source, as readers and kernels need them."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy
from numpy.typing import NDArray

from fuel.kernels.gather import MISSING
from fuel.kernels.part_table import ALL_ROWS, PART, PartTable
from fuel.kernels.tiles import Tiles
from fuel.storage.file_bytes import Ends


# Larger chunks of a remote file are not fetched for one row.
LARGEST_CHUNK = 16 << 20
_NONE: Ends = numpy.empty(0, numpy.int64)

#: A field of a compound type, or several.
Field: TypeAlias = str | Sequence[str]


class PartKind(NamedTuple):
    """What the rows of some parts have in common.

    `tile_shape`: of what a chunk holds of a row.
    `fill`: an element of a chunk that was never written.
    """

    tile_shape: tuple[int, ...]
    fill: Any


class Element(NamedTuple):
    """What a row has of each element of a chunk.

    `stored`: its type in the chunk.
    `dtype`: its type in the row.
    `fields`: offset and bytes of each field that the row has; None for all.
    """

    stored: numpy.dtype[Any]
    dtype: numpy.dtype[Any]
    fields: list[tuple[int, int]] | None = None

    def fill(self, value: Any) -> Any:
        """Return a fill value as the row has it."""
        if self.dtype == self.stored:
            return value
        stored = numpy.array(value, self.stored).tobytes()
        picked = stored if self.fields is None else b''.join(
            stored[offset:offset + nbytes] for offset, nbytes in self.fields)
        return numpy.frombuffer(picked, self.dtype, 1)[0]


def element_of(stored: numpy.dtype[Any], field: Field | None) -> Element:
    """Return what rows have of elements of a type.

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
    """The parts of a source: where its rows lie in the chunks of files.

    `row_shape`: of a row, of elements as a chunk has them.
    `table`: shape (parts,), dtype `PART`.
    `addresses`, `nbytes`: shape (chunks,), dtype int64; where each chunk is,
        or `MISSING` or `OUTSIDE`, and how many bytes it has when decoded.
    `bounds`: shape (parts + 1,); the first row of each part, and the number of
        rows.
    `kernel`: the same for kernels.
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
        # Whether some chunks are fetched in pieces.
        self._is_read_by_rows = bool(
            (table['block_rows'] == ALL_ROWS).any()
            or (nbytes > LARGEST_CHUNK).any())

    @property
    def row_nbytes(self) -> int:
        """Bytes of a row (int)."""
        return self.kernel.row_nbytes

    def stored(self) -> NDArray[numpy.bool_]:
        """Return which chunks are in the file, shape (chunks,)."""
        return self.addresses >= 0

    def _blocks(self, rows: NDArray[numpy.intp]) -> tuple[
            NDArray[Any], NDArray[numpy.intp], NDArray[numpy.intp]]:
        """Return for each row its part, the first chunk of its block and
        its number in the block."""
        found = 0 if len(self.table) == 1 else (
            self.bounds.searchsorted(rows, 'right') - 1)
        parts = self.table[found]
        blocks, inside = numpy.divmod(
            rows - self.bounds[found] + parts['skip'], parts['block_rows'])
        return parts, (parts['first_chunk']
                       + blocks * self._num_tiles[parts['kind']]), inside

    def part_of(self, row: int) -> int:
        """Return the number of the part that a row lies in."""
        return int(self.bounds.searchsorted(row, 'right')) - 1

    def chunks_of(self, rows: NDArray[numpy.intp]) -> NDArray[numpy.intp]:
        """Return the chunks that rows lie in, each once, in their order."""
        chunks: NDArray[numpy.intp] = self.kernel.chunks_of(rows)
        return chunks

    def numbers_of_pieces(self, rows: NDArray[numpy.intp],
                          nbytes: int) -> NDArray[numpy.intp]:
        """Return the number of the chunk that each row lies in, along the
        first axis.

        `nbytes`: what is not chunked counts as chunks of about so many bytes.
        """
        parts, firsts, inside = self._blocks(rows)
        is_whole = self.table['block_rows'] == ALL_ROWS
        if not is_whole.any():
            # A row has a chunk of each of the tiles.
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
        """Return some rows of a range that lie in all chunks of the range."""
        step = int(self.table['block_rows'].min())
        edges = numpy.concatenate([
            numpy.arange(start, stop, step, dtype=numpy.intp),
            self.bounds, self.bounds - 1, [stop - 1]])
        return edges[(edges >= start) & (edges < stop)]

    def lie_in(self, rows: NDArray[numpy.intp],
               chunk: int) -> NDArray[numpy.bool_]:
        """Return which rows lie in a chunk, as a mask."""
        parts, firsts, _ = self._blocks(rows)
        mask: NDArray[numpy.bool_] = (firsts <= chunk) & (
            chunk < firsts + self._num_tiles[parts['kind']])
        return mask

    def starts_of(self, rows: NDArray[numpy.intp]) -> tuple[Ends, Ends]:
        """Return where rows begin, and the bytes from one to the next;
        without those that were never written.

        Of a row in several tiles, where the first of them is.
        """
        parts, chunks, inside = self._blocks(rows)
        strides = self._strides[parts['kind']]
        starts = self.addresses[chunks]
        stored = starts >= 0
        return ((starts + inside * strides + parts['offset'])[stored],
                numpy.broadcast_to(strides, rows.shape)[stored])

    @property
    def longest(self) -> int:
        """Bytes of a row in a chunk, at most (int)."""
        return int(self._strides.max())

    def pieces_of(self, rows: NDArray[numpy.intp]) -> tuple[Ends, Ends]:
        """Return begin and size of the pieces that are fetched for rows: a
        row of what is not chunked, or in chunks larger than `LARGEST_CHUNK`;
        otherwise a chunk."""
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
             chunk_shape: tuple[int, ...] | None = None,
             fill: Any = 0) -> Parts:
    """Return the parts of a source that is one array.

    `chunk_shape`: None for a contiguous one.
    """
    table = numpy.zeros(1, PART)
    table['rows'] = shape[0]
    table['block_rows'] = ALL_ROWS if chunk_shape is None else chunk_shape[0]
    tile_shape = (chunk_shape or shape)[1:]
    nbytes = math.prod(chunk_shape or shape) * dtype.itemsize
    return Parts(
        shape[1:], Element(dtype, dtype), [PartKind(tile_shape, fill)], table,
        addresses, numpy.full(len(addresses), nbytes, numpy.int64))


def parts_of_lengths(row_shape: tuple[int, ...], dtype: numpy.dtype[Any],
                     lengths: Sequence[int], files: Sequence[int] | None,
                     num_files: int) -> Parts:
    """Return the parts of a source, each of them one chunk.

    `lengths`: how many rows each has.
    `files`: the number of the file of each, of `num_files`; None if that is
        the first one of all.
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
    """Return whether rows are bytes that may be copied, and some of them."""
    return not dtype.hasobject and dtype.itemsize * math.prod(row_shape) > 0
