"""Find the stream's position in what torchdata saves of a whole loader."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fuel.exceptions import StateMismatchError
from fuel.interop.torch.share import ShareState, read_share_state

# Keys of StatefulDataLoader's states.
_SNAPSHOT = '_snapshot'
_WORKERS = '_worker_snapshots'
_STEPS = '_steps_since_snapshot'
_YIELDED = '_num_yielded'
_DATASET = 'dataset_state'


def is_loader_state(state: object) -> bool:
    """Return whether a state is that of a whole StatefulDataLoader."""
    return isinstance(state, Mapping) and (
        _SNAPSHOT in state or _YIELDED in state)


def read_loader_state(state: Mapping[str, Any]) -> tuple[ShareState, int]:
    """Return the state of the worker whose item was delivered last.

    Returns
    -------
    ShareState
        Its stream stands where the loader stood.
    int
        How many more items were delivered since it was taken.
    """
    try:
        if _SNAPSHOT not in state:
            return read_share_state(state[_DATASET]), 0
        workers = [
            read_share_state(worker[_DATASET])
            for worker in state[_SNAPSHOT][_WORKERS].values()]
        steps = state[_STEPS]
        return max(workers, key=lambda worker: worker.last), int(steps)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, StateMismatchError):
            raise
        raise StateMismatchError(
            'the state of a StatefulDataLoader holds no state of '
            f'as_iterable(), where it is expected ({error!r}): save it from '
            'a loader over as_iterable(), with batches delivered') from error
