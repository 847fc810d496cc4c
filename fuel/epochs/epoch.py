"""One epoch of a stream: its position and the attributes it owns."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from fuel.epochs.read_options import ReadOptions
from fuel.epochs.skipped import Skipped, SkipLimit
from fuel.epochs.state import Position, SchemeStart
from fuel.kernels.epoch_iterator import EpochPosition
from fuel.kernels.epoch_reader import new_object
from fuel.schemes.requests import as_requests
from fuel.schemes.shard import BatchPart, Shard
from fuel.typing import State


# Attributes of an epoch that are fields of its compiled base class.
_COMPILED = 'position', 'step', 'attributes', 'skipped'
#: A stage that only counts (of a class that builds on this module), its epoch
#: and the iterator that it reads.
Counter: TypeAlias = 'tuple[Any, Epoch, Any]'


class Epoch(EpochPosition):
    """One epoch: its position, and the attributes that the stream keeps for
    it.

    `position`: number of batches or examples that were delivered.
    `reader`: reads the data; opened at the first read.
    `request_iterator`: the requests; their `position` counts those made.
    `finished`: whether :class:`StopIteration` was raised.
    `end`: the position at its end, or the error of finding it.
    `start`: state of the iteration scheme when the epoch began, or why there
        is none.
    `options`: wishes of the stages above.
    `shard`: the share of a rank that the pipeline takes, if it does.
    `failed`: numbers of the reads whose exceptions were delivered.
    `limit`: the limit of skipped examples; None if the pipeline must not skip
        any.
    `left_out`: the examples that the stage has skipped, since they failed.
    `short`: by number of the batch, the remaining rows of each batch that
        lacks skipped examples; stages that make one item of one share it.
    `is_inner`: whether a stage that makes one item of one reads it.
    `counters`: the iterator that is read and the stages below, if nothing
        of their states changes but counts; found when a state is saved.
    `counted`: the epochs below, if to skip an item only adds to the counts
        of each; found when one is skipped.
    """

    # True if the requests are not those of the stream's scheme.
    has_own_requests = False
    options = ReadOptions()
    shard: Shard | None = None
    limit: SkipLimit | None = None
    left_out = Skipped()
    is_inner = False

    def __init__(self, request_iterator: Iterator[Any] | None) -> None:
        self.request_iterator = (
            None if request_iterator is None
            else as_requests(request_iterator))
        self.finished = False
        self.end: Position | State | Exception | None = None
        self.start: SchemeStart | Exception | None = None
        self.failed: list[int] = []
        self._num_failed = 0
        self.short: dict[int, BatchPart] = {}
        self.counters: tuple[Any, Sequence[Counter]] | None = None
        self.counted: Sequence[Epoch] | None = None

    def __reduce__(self) -> Any:
        return new_object, (type(self),), {
            **vars(self), **{name: getattr(self, name) for name in _COMPILED},
            'counters': None, 'counted': None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    @property
    def requested(self) -> int:
        """Number of reads, with those that failed (int)."""
        if self.request_iterator is not None:
            return self.request_iterator.position
        return self.position + self._num_failed

    @property
    def converted(self) -> frozenset[str]:
        """The sources that the reader converts, as `options` ask."""
        converted: frozenset[str] = getattr(
            self.reader, 'converted', frozenset())
        return converted

    def go_to(self, position: int, requested: int, failed: list[int]) -> None:
        """Set a saved position; the requests are there already."""
        self.position = position
        self._num_failed = requested - position
        self.skipped = {requested + offset for offset in failed}

    def count_left_out(self) -> None:
        """Count a failed read that raises nothing."""
        if self.request_iterator is None:
            self._num_failed += self.step

    def skip(self, count: int) -> None:
        """Count items as delivered that are left out."""
        self.position += count * self.step
        if self.request_iterator is not None:
            self.request_iterator.skip(count)

    def count_below(self, children: Sequence[Any]) -> None:
        """Record which epochs are counted with this one, if it is known of
        each that is read.

        `children`: the iterators that are read.
        """
        found: list[Epoch] = []
        for child in children:
            if child.epoch.counted is None:
                return
            found += (child.epoch, *child.epoch.counted)
        self.counted = found

    def count_failure(self, number: int) -> bool:
        """Record a read whose exception is delivered; return whether it was
        before."""
        if self.request_iterator is None:
            self._num_failed += self.step
        elif self.request_iterator.position == number:
            # The scheme failed: there was no request.
            return False
        self.failed.append(number)
        was_delivered = number in self.skipped
        self.skipped.discard(number)
        return was_delivered

    def finish(self, end: Position | State | Exception) -> None:
        """Drop the attributes that only a running epoch needs."""
        # Without the stream, which holds this epoch: no cycle.
        self.end = end._replace(stream=None) if isinstance(
            end, Position) else end
        self.finished, self.counters, self.counted = True, None, None
        self.drop_prefetched()
        # The stream goes on showing the last values.  Let go of the child's
        # iterator here, so that its epoch counts as left; the data set's
        # state is wanted by the next epoch.
        self.attributes = {name: value
                           for name, value in self.attributes.items()
                           if name == 'data_state'}
        if self.limit is not None and self.left_out.count and (
                not self.position):
            self.limit.refuse_empty_epoch()

    def drop_prefetched(self) -> None:
        """Close the reader, which may hold a file or prefetched data."""
        reader, self.reader = self.reader, None
        if reader is not None:
            reader.close()

    def failed_after(self, requested: int) -> tuple[int, ...]:
        """Return the failed reads from a number on, counted from that
        number."""
        return tuple([number - requested
                      for number in {*self.failed, *self.skipped}
                      if number >= requested])
