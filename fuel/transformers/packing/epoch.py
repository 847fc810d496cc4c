"""One epoch of packing: its open rows, and the position before their data.

Restoring a state reads the data of the open rows again, from this position.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy
from numpy.typing import NDArray

from fuel.epochs.epoch import asking
from fuel.epochs.examples import SourceExamples
from fuel.epochs.pipeline import source_examples
from fuel.epochs.state import position_of
from fuel.kernels.packing import RowPacker
from fuel.transformers.base import check_count
from fuel.transformers.leftovers import Leftover
from fuel.transformers.packing.sequences import (
    Kind,
    as_sequences,
    check_lengths,
    pieces_of,
)
from fuel.typing import State
from fuel.utils.sparse import iterate_rows

#: For each row and each source, the list of the sequences in the row.
Rows: TypeAlias = list[list[list[NDArray[Any]]]]
TooLong: TypeAlias = Literal['error', 'cut', 'split']

# Number of examples that are read together.
EXAMPLES = 64


class PackingReport(NamedTuple):
    """Counts of the rows and sequences that an epoch has packed.

    Attributes
    ----------
    length : int
        Length of a row.
    rows : int
        Number of rows that were delivered.
    items : int
        Number of items of sequences in these rows.
    sequences : int
        Number of sequences that were read; some may be in open rows.
    cut, split, empty : int
        Number of sequences that were cut off, were split, or had no items.

    Examples
    --------
    >>> PackingReport(length=100, rows=3, items=270).padding_share
    0.1

    """

    length: int
    rows: int = 0
    items: int = 0
    sequences: int = 0
    cut: int = 0
    split: int = 0
    empty: int = 0

    @property
    def padding_share(self) -> float:
        """Share of padding in the delivered rows, from 0 to 1 (float)."""
        size = self.rows * self.length
        return round(1 - self.items / size, 12) if size else 0.

    def __str__(self) -> str:
        return (f'{self.sequences} sequences in {self.rows} rows of '
                f'{self.length}, {self.padding_share:.2%} padding; '
                f'{self.cut} cut, {self.split} split, {self.empty} empty')


class Counts(NamedTuple):
    """Counts of the sequences that an epoch has read so far."""

    sequences: int = 0
    cut: int = 0
    split: int = 0
    empty: int = 0


class Block(NamedTuple):
    """Sequences that were read together.

    `parts`: the sequences of each source; split sequences are in pieces.
    `refused`: places of the sequences that are too long.
    `first`: number of sequences that were read before.
    """

    parts: tuple[list[Any], ...]
    lengths: NDArray[numpy.int64]
    refused: list[int]
    first: int


class PackedEpoch(Leftover):
    """Packs the sequences of one epoch.

    `position`: position of the input at which packing can resume.
    `kinds`: type and shape of the items of each source; None until they are
        known.
    `delivered_items`: number of items of sequences in the delivered rows.
    `is_asked`: whether a stage above asks for the examples of data sets. Then
        a list of them follows the lists of sequences in each row.
    """

    def __init__(self, length: int, window: int, too_long: TooLong,
                 dtype: Any, sources: tuple[str, ...],
                 reads_examples: bool) -> None:
        super().__init__(None, None)
        self.kinds: list[Kind | None] = [None] * len(sources)
        self.delivered_items = 0
        self._length = length
        self._window = window
        self._too_long = too_long
        self._dtype = dtype
        self._sources = sources
        self._reads_examples = reads_examples
        self.is_asked = asking.examples
        self._num_lists = len(sources) + self.is_asked
        self._packer = RowPacker(length, window, self._num_lists)
        self._delivered = 0
        self._counts = Counts()
        # Before each block: the child's position, and the open rows.
        self._begun: list[tuple[Any, State]] = []
        # Examples that were read, but are not in a block yet.
        self._examples: list[Any] | None = None
        # For them, or for the sequences of a batch, if they are asked for.
        self._found: list[SourceExamples | None] = []
        self._block: Block | None = None
        # The next sequence of the block.
        self._next = 0
        # Numbers of the sequences for which an error was raised.
        self._refused: list[int] = []
        self._is_over = False

    def report(self) -> PackingReport:
        """Return the report about packing."""
        return PackingReport(self._length, self._delivered,
                             self.delivered_items, *self._counts)

    def take(self, count: int, child: Iterator[Any]) -> Rows:
        """Return the next `count` rows, or fewer at the end of the epoch."""
        self._pack(self._delivered + count, child)
        rows = self._packer.take(count)
        self._delivered += len(rows)
        self._drop_begun()
        return rows

    def _pack(self, wanted: int, child: Iterator[Any]) -> None:
        """Pack until `wanted` rows of the epoch are closed, or to its end."""
        while self._packer.num_closed < wanted and not self._is_over:
            if self._block is None:
                self._read_block(child)
            else:
                self._pack_block(self._block, wanted)

    def _pack_block(self, block: Block, wanted: int) -> None:
        """Pack sequences of a block, up to its end or a too long sequence."""
        stop = next((place for place in block.refused if place >= self._next),
                    len(block.lengths))
        self._next = self._packer.add(
            block.parts, block.lengths, self._next, stop, wanted)
        if self._packer.num_closed >= wanted:
            return
        if self._next == len(block.lengths):
            self._block = None
            return
        number = block.first + self._next
        length = int(block.lengths[self._next])
        self._next += 1
        if number not in self._refused:
            self._refused.append(number)
            raise ValueError(
                f'sequence {number} of the epoch has the length {length}, '
                f'more than the {self._length} of a row: use '
                "too_long='cut' or 'split', longer rows, or leave such "
                'sequences out with Filter')

    def _read_block(self, child: Iterator[Any]) -> None:
        """Read the next block of sequences; at the end, close all rows."""
        if self._examples is None:
            self._begun.append((position_of(child), self._open_rows()))
            self.position = self._begun[0][0]
            self._examples, self._found = [], []
        try:
            parts = self._read_parts(child, self._examples)
        except StopIteration:
            self._examples = None
            self._is_over = True
            self._packer.finish()
            return
        self._examples = None
        self._block, self._next = self._block_of(parts), 0

    def _read_parts(self, child: Iterator[Any], examples: list[Any]
                    ) -> list[list[Any]]:
        """Return sequences for each source, of one batch or of examples."""
        if not self._reads_examples:
            batch = tuple(next(child))
            check_count(batch, self._sources)
            parts = [list(iterate_rows(part))
                     for part in batch[:len(self._sources)]]
            if self.is_asked:
                found = source_examples(child, 1)
                self._found = [found and found.row(number)
                               for number in range(len(parts[0]))]
            return parts
        while len(examples) < EXAMPLES:
            # If reading an example fails, the ones before it are kept.
            try:
                example = tuple(next(child))
            except StopIteration:
                if not examples:
                    raise
                break
            check_count(example, self._sources)
            examples.append(example[:len(self._sources)])
            if self.is_asked:
                self._found.append(source_examples(child, 1))
        return [list(part) for part in zip(*examples, strict=True)]

    def _block_of(self, parts: list[list[Any]]) -> Block:
        """Return a block of sequences; cut, split or refuse too long ones."""
        first = self._counts.sequences
        found: list[Any] = []
        for place, (source, part) in enumerate(
                zip(self._sources, parts, strict=True)):
            arrays, lengths, self.kinds[place] = as_sequences(
                part, source, self.kinds[place], self._dtype, first)
            found.append((arrays, lengths))
        lengths = found[0][1]
        check_lengths(self._sources, [each for _, each in found], first)
        long = numpy.flatnonzero(lengths > self._length)
        mode = self._too_long
        self._counts = Counts(
            first + len(lengths),
            self._counts.cut + len(long) * (mode == 'cut'),
            self._counts.split + len(long) * (mode == 'split'),
            self._counts.empty + int((lengths == 0).sum()))
        lists = (*[arrays for arrays, _ in found],
                 *[self._found] * self.is_asked)
        if not len(long) or mode == 'error':
            return Block(lists, lengths, long.tolist(), first)
        pieces = [pieces_of(int(length), self._length, mode)
                  for length in lengths]
        return Block(
            tuple([[array[piece] if place < len(found) else array
                    for array, each in zip(arrays, pieces, strict=True)
                    for piece in each]
                   for place, arrays in enumerate(lists)]),
            numpy.array([piece.stop - piece.start for each in pieces
                         for piece in each], numpy.int64), [], first)

    def _drop_begun(self) -> None:
        """Drop blocks that no state needs any more."""
        kept = self._begun
        while len(kept) > 1 and _end(kept[1][1]) <= self._delivered:
            kept.pop(0)
            self.position = kept[0][0]
        if self._refused and kept:
            sequences = Counts(*kept[0][1]['counts']).sequences
            self._refused = [number for number in self._refused
                             if number >= sequences]

    def _open_rows(self) -> State:
        """Return the used length of each open row, the number of the oldest,
        and the counts."""
        return {'used': self._packer.used, 'first': self._packer.first,
                'counts': list(self._counts)}

    def state(self) -> State:
        """Return the state of packing, as plain data."""
        # Without a block, nothing was read yet, or nothing since a restart.
        return {
            'delivered': self._delivered, 'items': self.delivered_items,
            **(self._begun[0][1] if self._begun else self._open_rows()),
            'refused': list(self._refused),
            'kinds': [None if kind is None else [kind[0].str, list(kind[1])]
                      for kind in self.kinds]}

    def load(self, state: State, child: Iterator[Any]) -> None:
        """Restore the state that :meth:`state` returned, and read the open
        rows."""
        for field in ('delivered', 'items', 'first'):
            _check_numbers(field, [state[field]])
        for field in ('used', 'counts', 'refused'):
            _check_numbers(field, state[field])
        first, delivered = state['first'], state['delivered']
        if len(state['counts']) != len(Counts._fields):
            raise ValueError(f'counts must be {len(Counts._fields)} numbers')
        if _end(state) > delivered:
            raise ValueError('rows were open that were not delivered')
        self._packer = RowPacker(self._length, self._window,
                                 self._num_lists, state['used'], first)
        self._counts = Counts(*state['counts'])
        self._refused = list(state['refused'])
        self.kinds = [None if kind is None else _as_kind(*kind)
                      for kind in state['kinds']]
        if len(self.kinds) != len(self._sources):
            raise ValueError('kinds must be one for each source')
        self._pack(delivered, child)
        if self._packer.num_closed < delivered:
            raise ValueError(
                f'{delivered} rows had been delivered when the state was '
                f'saved, but the sequences fill only '
                f'{self._packer.num_closed} now: the data have changed')
        self._packer.take(delivered - first)
        self._delivered = delivered
        self.delivered_items = state['items']
        self._drop_begun()


def _end(rows: State) -> int:
    """Return the number of the row that follows the last open row."""
    return int(rows['first']) + len(rows['used'])


def _check_numbers(field: str, values: Any) -> None:
    if type(values) is not list or any(
            type(value) is not int or value < 0 for value in values):
        raise ValueError(
            f'{field} must be numbers from 0 on, got {values!r:.200}')


def _as_kind(name: str, shape: list[int]) -> Kind:
    dtype = numpy.dtype(str(name))
    _check_numbers('shape', shape)
    if dtype.kind not in 'biufc' or not dtype.isnative:
        raise ValueError(f'items cannot be of the type {name!r:.20}')
    return dtype, tuple(shape)
