"""The position of a stream as loaders carry it, and of one worker of several.

The stream's part is text: the keys are the same wherever the stream stands.
"""
from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeGuard

from fuel.exceptions import StateMismatchError
from fuel.typing import State

# Format of a share's state.
FORMAT = 1
_FIELDS = {'fuel', 'worker', 'num_workers', 'taken', 'stream'}


class ShareState(NamedTuple):
    """Where one worker stands.

    `worker`, `num_workers`: which worker of how many; 0 of 0 in the process
        of the loader.
    `taken`: how many items it has read.
    `stream`: state of the stream after these.
    """

    worker: int
    num_workers: int
    taken: int
    stream: State

    def as_dict(self) -> State:
        """Return the state as plain data.

        The stream's part is a string, since torchdata looks for differences
        in each number of a state after each batch.
        """
        return {'fuel': FORMAT, 'worker': self.worker,
                'num_workers': self.num_workers, 'taken': self.taken,
                'stream': json.dumps(self.stream)}

    @property
    def last(self) -> int:
        """The number of the item read last, over all workers (int)."""
        return self.worker + (self.taken - 1) * max(1, self.num_workers)


def of_stream(state: State) -> State:
    """Return the state of a whole stream as loaders carry it."""
    return ShareState(0, 0, 0, state).as_dict()


def is_share_state(state: object) -> TypeGuard[Mapping[str, Any]]:
    """Return whether a state is one that loaders carry."""
    return isinstance(state, Mapping) and 'fuel' in state


def read_share_state(state: Mapping[str, Any]) -> ShareState:
    """Return the state of one worker, checked but for the stream's part."""
    counts = [state.get(name) for name in ('worker', 'num_workers', 'taken')]
    if (set(state) != _FIELDS or state['fuel'] != FORMAT
            or not isinstance(state['stream'], str)
            or not all(type(count) is int and count >= 0
                       for count in counts)):
        raise StateMismatchError(
            'the state of a worker has not the fields that as_iterable() '
            f'saves, {sorted(_FIELDS)} in format {FORMAT}, but '
            f'{sorted(map(str, state))}: it is damaged, or of another '
            'version of Fuel')
    try:
        stream = json.loads(state['stream'])
    except (ValueError, RecursionError) as error:
        raise StateMismatchError(
            "the field 'stream' of the state of a worker is no JSON "
            f'({error}): the state is damaged') from None
    return ShareState(state['worker'], state['num_workers'], state['taken'],
                      stream)
