"""The facts about a stream that its orders need."""
from __future__ import annotations

from itertools import takewhile
from typing import Any

from fuel.epochs.past import num_epochs
from fuel.epochs.pipeline import datasets_of
from fuel.epochs.stage import stage_of
from fuel.exceptions import UnknownOrderError
from fuel.orders.rounds import unit_of
from fuel.schemes.shard import Shard
from fuel.sharding.order import EpochOrder
from fuel.sharding.places import ItemPlace
from fuel.typing import StreamLike
from fuel.utils.checks import not_negative


class StreamFacts:
    """The facts about a stream that its orders need.

    `shard`: the share of any rank; if None is given, that of the stream, of
        one rank if it has none.
    `past`: the epochs that were begun before.
    `omitted`: the items that are left out.
    `unit`: what an epoch counts as requested; see `unit_of`.
    `begun`: of a loaded state of a running epoch, the value of 'requested',
        and what it counts; otherwise None.
    `datasets`: the data sets, by their numbers; none after unpickling.
    `names`: the names of the data sets, by their numbers.
    """

    def __init__(self, stream: StreamLike, past: str | None,
                 shard: Shard | None = None) -> None:
        stage = stage_of(stream)
        own = stage.shard or Shard(0, 1)
        self.shard = shard or own
        self.past = past
        self.omitted = stage.omitted
        pending = stage.resumed()
        unit = unit_of(stage)
        if unit == 'round' and own.num_shards == 1:
            # Other ranks have other rounds.
            unit = 'item'
        self.unit = unit
        self.begun = None if pending is None else (
            pending['requested'], unit)
        self._present = None if past is None else num_epochs(past)
        running = None if stage.pending is not None or stage.is_left() else (
            stage.epoch)
        self._begin: int = 0 if unit == 'round' else (
            self.begun[0] if self.begun is not None
            else 0 if running is None or running.finished
            else running.requested)
        self.datasets: list[Any] = datasets_of(stream)
        self.names = [type(one).__name__ for one in self.datasets]

    def begin_of(self, epoch: int | None) -> int:
        """Return the number of an item with which a round of an epoch
        begins."""
        return self._begin if epoch == self._present else 0

    def __getstate__(self) -> dict[str, Any]:
        # A data set in memory would be as large as its data.
        return {**vars(self), 'datasets': []}

    def of_rank(self, shard: Shard) -> StreamFacts:
        """Return the facts about the stream with the share of a rank."""
        ours = object.__new__(type(self))
        vars(ours).update(vars(self), shard=shard)
        return ours

    def checked_dataset(self, dataset: object) -> int:
        """Return the number of a data set; None means the only one."""
        names = self.names
        if dataset is None and len(names) == 1:
            return 0
        listed = ', '.join([f'{number} ({name})' for number, name
                            in enumerate(names)])
        if dataset is None:
            raise ValueError(
                f'the pipeline reads {len(names)} data sets: pass dataset, '
                f'one of {listed}')
        number = not_negative('dataset', dataset)
        if number >= len(names):
            raise ValueError(
                f'dataset must be from 0 to {len(names) - 1}, got {number}: '
                f'one of {listed}')
        return number


def places_of(order: EpochOrder, dataset: int, row: object, stop: int,
              ) -> list[tuple[int, int | None]]:
    """Return the items before number `stop` that have an example, and its row
    in each; None if a stage may have changed the rows."""
    def find(one: EpochOrder) -> list[ItemPlace]:
        return [*takewhile(lambda place: place.item < stop,
                           one.places_of(dataset, row, stop))]
    try:
        return [*find(order)]
    except UnknownOrderError:
        if not order.unsized:
            raise
    return [(item, None) for item in dict.fromkeys(
        place.item for place in find(order.with_kept_rows()))]
