"""Reader of an epoch that leaves out items."""
from __future__ import annotations

import weakref
from typing import Any

from fuel.epochs.epoch import Epoch
from fuel.epochs.omitted import union
from fuel.epochs.pipeline import is_skippable
from fuel.epochs.stage import LEFT_OUT, Stage, stage_of
from fuel.typing import EpochReader


class OmittingReader:
    """Reader of an epoch that leaves out items.

    `rounds`: ranges of rounds that are left out, in ascending order, with gaps
        between them.
    """

    def __init__(self, stage: Stage, epoch: Epoch,
                 reader: EpochReader) -> None:
        self.reader = reader
        # Held weakly, since the epoch has this reader.
        self._stream = weakref.ref(stage.stream)
        self._epoch = weakref.ref(epoch)
        step = epoch.step
        self.rounds = [(first, stop) for _, first, stop in union((), [
            (0, first // step, -(-stop // step))
            for first, stop in epoch.omitted])]
        # The first range that is not behind the position.
        self._place = 0
        self._skips = is_skippable(stage.stream) and not stage.is_remote

    def __getattr__(self, name: str) -> Any:
        # Other stages look for further members of readers.
        return getattr(vars(self)['reader'], name)

    def read(self) -> Any:
        """Return the next item; `LEFT_OUT` if items are left out."""
        epoch: Any = self._epoch()
        number, rounds = epoch.position // epoch.step, self.rounds
        while self._place < len(rounds) and rounds[self._place][1] <= number:
            self._place += 1
        if self._place == len(rounds) or number < rounds[self._place][0]:
            return self.reader.read()
        if self._skips:
            stage_of(self._stream()).skip(
                epoch, rounds[self._place][1] - number)
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
