"""Readers of the columns of MDS shards."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.datasets.shards.mds_index import Columns
from fuel.exceptions import DamagedFileError
from fuel.kernels.spans import fill_rows
from fuel.storage.decoded import DecodedFile
from fuel.storage.file_bytes import Ends, FileBytes
from fuel.storage.reader import StoredPieces, part_numbers
from fuel.storage.spans import FieldReader, FieldType
from fuel.utils.background import Background
from fuel.utils.io_counts import io_counts

IndexArray = NDArray[numpy.intp]


def sample_ends(read: Callable[[int, int], bytes], size: int, samples: int,
                columns: Columns, path: str) -> Ends:
    """Return the start of each sample of a shard, and the end of the last one.

    `read`: takes the address and the number of bytes, and returns the bytes.
    `size`: number of bytes of the shard.

    Raises: DamagedFileError if they are not sound.
    """
    head = numpy.frombuffer(read(0, 4 * (samples + 2)), '<u4')
    if len(head) < samples + 2 or head[0] != samples:
        raise DamagedFileError(
            f'{path}: it states {head[:1].tolist()} samples, but the index '
            f'{samples}: it is another file than that of the index, or is '
            f'damaged')
    ends = head[1:].astype(numpy.int64)
    sizes = numpy.diff(ends)
    is_bad = (sizes != columns.fixed if None not in columns.sizes
              else sizes < columns.fixed) | (ends[1:] > size)
    if is_bad.any() or ends[0] < head.nbytes or ends[-1] > size:
        number = int(is_bad.argmax()) if samples else 0
        first, last = ends[[number, min(number + 1, samples)]].tolist()
        raise DamagedFileError(
            f'{path}, sample {number}: it cannot lie at the bytes {first} to '
            f'{last} of {size}, with {columns.fixed} bytes at least for its '
            f'columns: the file is damaged, or that of another index; restore '
            f'it from its origin')
    return ends


class ColumnReader(FieldReader):
    """Reader of a column of samples.

    A sample has the sizes of the columns whose size varies, and then the
    values of all columns. In a compressed shard, the places of the samples are
    only known when it is decoded.

    `spans`: the spans of whole samples; in a compressed shard, the start of
        the file.
    `columns`: all columns of the samples.
    `number`: number of the column.
    """

    def __init__(self, file: FileBytes, name: str, spans: tuple[Ends, Ends],
                 field: FieldType, bounds: IndexArray,
                 where: Callable[[int], str], columns: Columns,
                 number: int) -> None:
        super().__init__(file, name, spans, field, bounds, where)
        self._columns = columns
        before, after = columns.sizes[:number], columns.sizes[number + 1:]
        self._size = columns.sizes[number]
        self._before = columns.head + sum(size or 0 for size in before)
        self._after = sum(size or 0 for size in after)
        self._varying = before.count(None)
        self._is_first, self._is_last = (
            self._size is not None and None not in some
            for some in (before, after))
        self._packed = {
            number: one for number, one in enumerate(self.files)
            if isinstance(one, DecodedFile)}
        self._background = Background()

    def prefetch_budget(self, rows: slice | IndexArray) -> int | None:
        """See :meth:`Reader.prefetch_budget`."""
        for one in self._packed.values():
            return one.decoded.store.cache.budget // 2
        return super().prefetch_budget(rows)

    def prefetch(self, rows: IndexArray, budget: int,
                 ahead: Any = None) -> int | None:
        """Decode the shards of rows in the background; prefetch other rows."""
        if not self._packed:
            return super().prefetch(rows, budget)
        absent = [self._packed[number] for number in numpy.unique(
            part_numbers(self.part_bounds, rows)).tolist()
            if number in self._packed and not self._packed[number].is_decoded]
        nbytes = sum(one.size for one in absent)
        if nbytes > budget:
            return None
        self._background.add(*[one.decode for one in absent])
        return nbytes

    def pieces(self, rows: IndexArray) -> StoredPieces | None:
        """See :meth:`Reader.pieces`; a compressed shard is a piece."""
        if not self._packed:
            return super().pieces(rows)
        total = sum(one.size for one in self._packed.values())
        return StoredPieces(part_numbers(self.part_bounds, rows), True, True,
                            total / len(self))

    def _read_list(self, rows: IndexArray) -> NDArray[Any]:
        self._check_list(rows)
        numbers = part_numbers(self.part_bounds, rows)
        shards = numpy.unique(numbers).tolist() if self._packed else []
        if len(shards) < 2:
            return self._read_part(rows, numbers)
        # Each shard is decoded once, even if none of them can be cached.
        batch = numpy.empty((len(rows), *self.shape[1:]), self.dtype)
        for shard in shards:
            here = numpy.flatnonzero(numbers == shard)
            batch[here] = self._read_part(rows[here], numbers[here])
        return batch

    def _read_part(self, rows: IndexArray,
                   numbers: IndexArray) -> NDArray[Any]:
        """Return rows; those of compressed shards are all in one of them.

        `numbers`: the number of the shard of each row.
        """
        starts, sizes = self._starts[rows], self._sizes[rows]
        with self._fetched(starts, sizes):
            if len(rows) and int(numbers[0]) in self._packed:
                self._find_packed(rows, int(numbers[0]), starts, sizes)
            starts, sizes = self._find(rows, numbers, starts, sizes)
            if self._size is not None:
                found = self._fill(rows, numbers, starts, sizes)
            else:
                contents = self._read_spans(numbers, starts, sizes)
        self._check_files(numbers)
        if self._size is not None:
            return found.view(self.field.dtype).reshape(
                len(rows), *self.shape[1:]).astype(self.dtype, copy=False)
        self._refuse_lost(rows, contents, sizes)
        return self._values(rows, contents)

    def _find_packed(self, rows: IndexArray, number: int,
                     starts: Ends, sizes: Ends) -> None:
        """Replace the spans of samples in a compressed shard by theirs in the
        content."""
        first, stop = self.part_bounds[number:number + 2].tolist()
        ends = self._packed[number].memory[
            4:4 * (stop - first + 2)].view('<u4').astype(numpy.int64)
        starts += ends[rows - first]
        sizes[:] = ends[rows - first + 1] - ends[rows - first]

    def _find(self, rows: IndexArray, numbers: IndexArray, starts: Ends,
              sizes: Ends) -> tuple[Ends, Ends]:
        """Return the spans of the column, from those of the samples."""
        if self._is_first or self._is_last:
            # A column of fixed size, at a place that does not vary.
            lengths = numpy.full_like(sizes, self._size)
            return (starts + self._before if self._is_first
                    else starts + sizes - self._after - lengths), lengths
        heads = self._fill(rows, numbers, starts, numpy.full_like(
            sizes, self._columns.head)).view('<u4').astype(numpy.int64)
        needed = heads.sum(1) + self._columns.fixed
        is_bad = needed != sizes
        if is_bad.any():
            place = int(is_bad.argmax())
            raise ValueError(
                f'{self._place_of(int(rows[place]))}: its sizes state '
                f'{needed[place]} bytes, and the sample has {sizes[place]}: '
                f'it is damaged')
        varying = self._varying
        return starts + self._before + heads[:, :varying].sum(1), (
            heads[:, varying].copy() if self._size is None
            else numpy.full_like(sizes, self._size))

    def _fill(self, rows: IndexArray, numbers: IndexArray, starts: Ends,
              sizes: Ends) -> NDArray[numpy.uint8]:
        """Return the bytes of spans of equal size, a row for each."""
        size = int(sizes[0]) if len(sizes) else 0
        found = numpy.empty((len(rows), size), numpy.uint8)
        bad = -1
        if self._is_plain:
            bad = fill_rows(self._descriptors[numbers],
                            starts - self._origins[numbers], found)
            io_counts.count(bytes_read=found.nbytes)
        else:
            for place, start in enumerate(starts.tolist()):
                if self._file.read_into(found[place].data, start) < size:
                    bad = place
        if bad >= 0:
            self._check_files(numbers)
            raise self._cut_off(int(rows[bad]), size)
        return found
