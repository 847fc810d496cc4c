"""Measures of the stages that a worker or a server runs, on demand."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fuel.profiling.meter import Meter
from fuel.profiling.report import StageProfile
from fuel.typing import StreamLike
from fuel.workers.batch_maker import BatchMaker


class Measures:
    """Measures what the stages of a stream take, while somebody asks.

    An error of a stage that runs elsewhere is left to the epoch to raise.
    """

    def __init__(self, stream: StreamLike) -> None:
        self._stream = stream
        self._meter: Meter | None = None

    def attach(self, maker: BatchMaker[Any]) -> None:
        """Measure an epoch that begins, if somebody asks."""
        if self._meter is not None:
            maker.attach(self._meter)

    def switch(self, makers: Iterable[BatchMaker[Any]], *,
               go_on: bool) -> list[StageProfile]:
        """Return what the stages took so far, and measure on, or no more.

        `makers`: of the running epochs.
        """
        try:
            if go_on and self._meter is None:
                self._meter = Meter(self._stream)
                for maker in makers:
                    maker.attach(self._meter)
            elif not go_on and self._meter is not None:
                for maker in makers:
                    maker.detach()
                meter, self._meter = self._meter, None
                meter.stop()
            return [] if self._meter is None else self._meter.stages()
        except Exception:  # noqa: BLE001 - the epoch will raise it again
            return []
