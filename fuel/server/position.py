"""The position of a client, from a saved state or from a peer's message."""
from __future__ import annotations

from dataclasses import dataclass

from fuel.exceptions import StateMismatchError
from fuel.typing import State
from fuel.wire.header import Fields, WireError, get_field
from fuel.wire.index_sets import IndexSet, from_ranges


@dataclass(frozen=True)
class ClientPosition:
    """Position of a client, or of the client whose state it restored.

    `run`: identifier of the run of the server that the client read from.
    `epoch`: number of the epoch in that run.
    `client`: name of the client that saved the position.
    `is_over`: whether the epoch was finished or left, so that the next epoch
        follows.
    `index`: index of the batch that follows `state`.
    `state`: state of the pipeline.
    `done`: batches that the client delivered to its user.
    `num_ranks`: number of clients that shared the epoch by rank; 0 if they
        shared it otherwise, None if unknown.
    `is_loaded`: whether the position is the end of an epoch, and the program
        loaded it from a saved state; False if the client has read the epoch
        itself.
    """

    run: str
    epoch: int
    client: str
    is_over: bool
    index: int
    state: State | None
    done: IndexSet
    num_ranks: int | None = None
    is_loaded: bool = False

    def goes_back(self, number: int) -> bool:
        """Return whether a program loaded this position, and it is the end of
        an epoch before the server's present epoch.

        `number`: number of the server's present epoch.
        """
        if not self.is_loaded or self.epoch >= number:
            return False
        if self.state is None:
            raise StateMismatchError(
                f'the state is of the end of epoch {self.epoch}, the server '
                f'is at epoch {number}, and its pipeline does not know where '
                'an epoch ends, so that it cannot go back: restart the '
                'server')
        return True


def check_position(fields: Fields | None) -> ClientPosition | None:
    """Check each field of a position that may come from any peer, and return
    the position."""
    if fields is None:
        return None
    try:
        position = ClientPosition(
            get_field(fields, 'run', str), get_field(fields, 'epoch', int),
            get_field(fields, 'client', str, ''),
            get_field(fields, 'over', bool, False),
            get_field(fields, 'index', int, 0),
            get_field(fields, 'state', dict, None),
            _indices(fields.get('done', [])),
            get_field(fields, 'num_ranks', int, None),
            get_field(fields, 'loaded', bool, False))
        if len(position.run) > 64 or len(position.client) > 64:
            raise WireError("the fields 'run' and 'client' have at most 64 "
                            'characters')
    except WireError as error:
        raise StateMismatchError(
            f'the saved position in the epoch of a server: {error}'
        ) from None
    return position


def _indices(ranges: object) -> IndexSet:
    try:
        return from_ranges(ranges)
    except WireError as error:
        raise WireError(f"the field 'done': {error}") from None


def check_not_left(position: ClientPosition, run: str, number: int) -> None:
    """Raise an error for a position in a later epoch than the present one, or
    in another run.

    `run`, `number`: run and number of the present epoch, in which other
        clients are.
    """
    if position.run == run and position.epoch > number:
        raise StateMismatchError(
            f'the state is of epoch {position.epoch}, but the clients '
            f'that came back first went on from epoch {number}: load '
            'states that were saved together, or start another server for '
            'the client that loads this state')
    if position.run != run:
        raise StateMismatchError(
            f'the state is of epoch {position.epoch} of run '
            f'{position.run!r}, but this server serves run {run!r} '
            'to other clients: start another server for the client that '
            'loads this state')


def check_ranks(former: int | None, present: int) -> None:
    """Raise an error unless the saved epoch was shared by as many ranks as
    share epochs now.

    `former`, `present`: number of ranks that shared the saved epoch, and
        number of ranks that share epochs now; 0 for another sharing, None if
        unknown.
    """
    if former is not None and former != present:
        raise StateMismatchError(
            f'the state is of an epoch {_describe_sharing(former)}, but the '
            f'server serves epochs {_describe_sharing(present)}: batches '
            'would be lost, or come twice. Start the server as it was until '
            'the epoch is over, or all clients without their states')


def _describe_sharing(num_ranks: int) -> str:
    return (f"for {num_ranks} ranks (sharing='rank', num_clients={num_ranks})"
            if num_ranks
            else "that is not shared by rank (sharing='split' or 'all')")
