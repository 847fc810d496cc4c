"""The facts about a stream that its orders need."""
from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat

from fuel.epochs.pipeline import datasets_of
from fuel.epochs.stage import stage_of
from fuel.exceptions import UnknownOrderError
from fuel.orders.rounds import unit_of
from fuel.schemes.shard import Shard
from fuel.typing import StreamLike
from fuel.utils.checks import not_negative

# Each epoch of another length is drawn, to count its steps.
_MOST_EPOCHS = 100_000


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


def alike_epochs(times: int, *, is_fixed: bool) -> Iterable[int]:
    """Return the numbers of epochs, one after another, that have the same
    number of rounds.

    `is_fixed`: whether all `times` epochs have the same number.
    """
    if is_fixed:
        return (times,)
    if times > _MOST_EPOCHS:
        raise UnknownOrderError(
            f'steps are not counted over {times} epochs that differ in '
            f'length, at most over {_MOST_EPOCHS}: name the epoch, as in '
            'order.epoch(k)[n]')
    return repeat(1, times)
