"""Read the part of an epoch that belongs to one worker of a data loader.

States of torchdata's loaders hold the position of each worker.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fuel.epochs.pipeline import skip_delivered
from fuel.epochs.state import read_share_state, share_state
from fuel.exceptions import StateMismatchError
from fuel.typing import Batch, EpochIterator, State

# Keys of StatefulDataLoader's states.
_SNAPSHOT = '_snapshot'
_WORKERS = '_worker_snapshots'
_STEPS = '_steps_since_snapshot'
_YIELDED = '_num_yielded'
_DATASET = 'dataset_state'


def is_loader_state(state: object) -> bool:
    """Return whether a state is the state of a whole StatefulDataLoader."""
    return isinstance(state, Mapping) and (
        _SNAPSHOT in state or _YIELDED in state)


def read_loader_state(state: Mapping[str, Any]) -> tuple[State, int]:
    """Return the state of the worker that read the last item of a snapshot.

    The second value is the number of items delivered since the snapshot.
    """
    try:
        if _SNAPSHOT not in state:
            return read_share_state(state[_DATASET]), 0
        workers = [
            read_share_state(worker[_DATASET])
            for worker in state[_SNAPSHOT][_WORKERS].values()]
        steps = state[_STEPS]
        return max(workers, key=_last_read), int(steps)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, StateMismatchError):
            raise
        raise StateMismatchError(
            'the state of a StatefulDataLoader does not contain the state of '
            f'as_iterable() in the expected place ({error!r}): save the state '
            'of a loader that reads as_iterable(), after the loader has '
            'delivered at least one batch') from error


def _last_read(state: State) -> int:
    """Return the place in the epoch of the item that a worker read last."""
    worker, taken = int(state['worker']), int(state['taken'])
    return worker + (taken - 1) * max(1, int(state['num_workers']))


@dataclass(eq=False, repr=False)
class Share(Iterator[Any]):
    """An iterator over one worker's part of an epoch: every n-th item.

    `open_epoch`: function that returns the epoch iterator; called when the
        first item is read.
    `read`: function that reads the next item from the epoch iterator.
    `worker`: number of the worker.
    `num_workers`: number of workers; 0 without workers.
    `taken`: number of items that were read.
    `ended`: the saved state, if the worker's epoch was over when it was
        saved; None otherwise.
    """

    open_epoch: Callable[[], EpochIterator[Any]]
    read: Callable[[EpochIterator[Batch]], Any]
    worker: int = 0
    num_workers: int = 0
    taken: int = 0
    ended: State | None = None
    _iterator: Any = None

    def __next__(self) -> Any:
        iterator = self._iterator
        if iterator is None:
            if self.ended is not None:
                raise StopIteration
            iterator = self.iterator
        if self.num_workers > 1:
            skip_delivered(iterator, self.num_workers - 1 if self.taken
                           else self.worker)
        try:
            item = self.read(iterator)
        except StopIteration:
            raise
        except BaseException:
            # Count the item: after an error, or Ctrl-C, it is not read again.
            self.taken += 1
            raise
        self.taken += 1
        return item

    @property
    def has_begun(self) -> bool:
        """Whether the epoch was opened (bool)."""
        return self._iterator is not None

    @property
    def iterator(self) -> Any:
        """The epoch iterator, opened when it is first read."""
        if self._iterator is None:
            self._iterator = self.open_epoch()
        return self._iterator

    def state(self) -> State:
        """Return the position of the worker, as plain data."""
        return share_state(
            self.worker, self.num_workers, self.taken,
            self.iterator.state_dict() if self.ended is None
            else self.ended)
