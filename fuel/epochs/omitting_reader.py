"""Reader of an epoch that leaves out items."""
from __future__ import annotations

import weakref
from bisect import bisect_right
from typing import Any

from fuel.epochs.epoch import Epoch
from fuel.epochs.omitted import union
from fuel.epochs.pipeline import is_skippable
from fuel.epochs.stage import LEFT_OUT, Stage, stage_of
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
        step = epoch.step
        rounds = union((), [(0, first // step, -(-stop // step))
                            for first, stop in epoch.omitted])
        self.starts = [start for _, start, _ in rounds]
        self.stops = [stop for _, _, stop in rounds]
        self._skips = is_skippable(stage.stream) and not stage.is_remote

    def __getattr__(self, name: str) -> Any:
        # Other stages look for further members of readers.
        return getattr(vars(self)['reader'], name)

    def read(self) -> Any:
        """Return the next item; `LEFT_OUT` if items are left out."""
        epoch: Any = self._epoch()
        number = epoch.position // epoch.step
        place = bisect_right(self.starts, number) - 1
        if place < 0 or self.stops[place] <= number:
            return self.reader.read()
        if self._skips:
            stage_of(self._stream()).skip(epoch, self.stops[place] - number)
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
