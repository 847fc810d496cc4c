"""Reader of an epoch that leaves out items."""
from __future__ import annotations

import weakref
from typing import Any

from fuel.epochs.epoch import Epoch
from fuel.epochs.pipeline import is_skippable
from fuel.epochs.stage import Stage, stage_of
from fuel.typing import Batch, EpochReader


class OmittingReader:
    """Reader of an epoch that leaves out items.

    `rounds`: ranges of rounds that are left out, in ascending order.
    """

    def __init__(self, stage: Stage, epoch: Epoch,
                 reader: EpochReader) -> None:
        self.reader = reader
        # Held weakly, since the epoch has this reader.
        self._stream = weakref.ref(stage.stream)
        self._epoch = weakref.ref(epoch)
        step = epoch.step
        self.rounds = [(first // step, -(-stop // step))
                       for first, stop in epoch.omitted]
        self._skips = is_skippable(stage.stream) and not stage.is_remote

    def __getattr__(self, name: str) -> Any:
        # Other stages look for further members of readers.
        return getattr(vars(self)['reader'], name)

    def read(self) -> Batch:
        """Return the next item that is not left out."""
        epoch: Any = self._epoch()
        number = epoch.position // epoch.step
        for first, stop in self.rounds:
            if first <= number < stop:
                self._leave_out(epoch, stop - number)
                number = stop
        return self.reader.read()

    def _leave_out(self, epoch: Epoch, count: int) -> None:
        """Count items as delivered."""
        if self._skips:
            stage_of(self._stream()).skip(epoch, count)
            return
        for _ in range(count):
            self.reader.read()
            if epoch.pending_item is not None:
                epoch.pending_item.claim()
            epoch.position += epoch.step

    def skip(self, count: int) -> None:
        """Skip items."""
        self.reader.skip(count)

    def close(self) -> None:
        """Close the reader."""
        self.reader.close()
