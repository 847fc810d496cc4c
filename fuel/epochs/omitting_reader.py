"""Reader of an epoch that leaves out items."""
from __future__ import annotations

import weakref
from bisect import bisect_right
from typing import Any

from fuel.epochs.epoch import Epoch
from fuel.epochs.omitted import union
from fuel.epochs.pipeline import is_skippable, marks_repeats
from fuel.epochs.stage import LEFT_OUT, Stage, stage_of
from fuel.schemes.shard import Shard
from fuel.typing import EpochReader


class OmittingReader:
    """Reader of an epoch that leaves out items.

    Ranges of rounds are left out, in ascending order, with gaps between them.

    `starts`, `stops`: the first round of each range, and the round after it.
    """

    def __init__(self, stage: Stage, epoch: Epoch,
                 reader: EpochReader) -> None:
        self.reader = reader
        # Held weakly, since the epoch has this reader.
        self._stream = weakref.ref(stage.stream)
        self._epoch = weakref.ref(epoch)
        # Built on this module.
        from fuel.orders.rounds import Rounds, unit_of
        from fuel.sharding.asking import OrderQuery
        from fuel.sharding.order import Unordered
        shard = epoch.shard or Shard(0, 1)
        self._unit = unit_of(stage)
        # Only parts of batches may come from several items in a round, and
        # only padding repeats items.
        self._rounds = Rounds(
            OrderQuery().running(stage.stream, epoch)
            if shard.splits or shard.uneven == 'pad' else Unordered(''),
            shard,
            0 if self._unit == 'round' else epoch.requested)
        touched = self._rounds.touched(epoch.omitted)
        if not marks_repeats(stage.stream):
            self._rounds.refuse_repeats(touched)
        rounds = union((), [(0, part.start, part.stop) for part in touched])
        self.starts = [start for _, start, _ in rounds]
        self.stops = [stop for _, _, stop in rounds]
        # Requests of the last round, which may be short, end before it does.
        self._passed = 0
        self._skips = is_skippable(stage.stream) and not stage.is_remote

    def __getattr__(self, name: str) -> Any:
        # Other stages look for further members of readers.
        return getattr(vars(self)['reader'], name)

    @property
    def _next(self) -> int:
        """The number of the round that comes next."""
        epoch: Any = self._epoch()
        return max(self._passed, self._rounds.passed(
            epoch.requested, self._unit))

    def count_omitted(self, count: int) -> int:
        """Return how many of the next rounds are left out.

        `count`: number of rounds to look at.
        """
        first = self._next
        return sum(max(0, min(stop, first + count) - max(start, first))
                   for start, stop in zip(
                       self.starts, self.stops, strict=True))

    def rounds_of(self, count: int) -> int:
        """Return the number of the next rounds that have some rounds that are
        not left out.

        `count`: number of rounds that are not left out.
        """
        first = self._next
        end = first + count
        for start, stop in zip(self.starts, self.stops, strict=True):
            if first < stop and start < end:
                end += stop - max(start, first)
        return end - first

    def read(self) -> Any:
        """Return the next item; `LEFT_OUT` if items are left out."""
        epoch: Any = self._epoch()
        number = self._next
        place = bisect_right(self.starts, number) - 1
        if place < 0 or self.stops[place] <= number:
            return self.reader.read()
        if self._skips:
            self._passed = self.stops[place]
            stage_of(self._stream()).skip(epoch, self._passed - number)
            return LEFT_OUT
        self.reader.read()
        if epoch.pending_item is not None:
            epoch.pending_item.claim()
        epoch.position += epoch.step
        return LEFT_OUT

    def skip(self, count: int) -> None:
        """Skip items."""
        self.reader.skip(count)

    def close(self) -> None:
        """Close the reader."""
        self.reader.close()
