"""The facts about a stream that its orders need."""
from __future__ import annotations

from fuel.epochs.pipeline import datasets_of
from fuel.epochs.stage import stage_of
from fuel.orders.rounds import unit_of
from fuel.schemes.shard import Shard
from fuel.typing import StreamLike


class StreamFacts:
    """The facts about a stream that its orders need.

    `shard`: the share of the stream; of one rank if it has none.
    `past`: the epochs that were begun before.
    `omitted`: the items that are left out.
    `begun`: of a loaded state of a running epoch, the value of 'requested',
        and what it counts; otherwise None.
    `names`: the names of the data sets, by their numbers.
    """

    def __init__(self, stream: StreamLike, past: str | None) -> None:
        stage = stage_of(stream)
        self.shard = stage.shard or Shard(0, 1)
        self.past = past
        self.omitted = stage.omitted
        pending = stage.resumed()
        self.begun = None if pending is None else (
            pending['requested'], unit_of(stage))
        self.names = [type(one).__name__ for one in datasets_of(stream)]
