"""The position of a client, as it comes from a saved state or a peer."""
from __future__ import annotations

from dataclasses import dataclass

from fuel.exceptions import StateMismatchError
from fuel.typing import State
from fuel.wire.header import Fields, WireError, get_field
from fuel.wire.index_sets import IndexSet, from_ranges


@dataclass(frozen=True)
class ClientPosition:
    """Where a client stands, or the client whose state it restored.

    `run`: names the epochs of the server that it read from.
    `epoch`: number of the epoch.
    `client`: the client that saved the position.
    `is_over`: whether the epoch was finished or left: the next one is wanted.
    `index`: batch before which the pipeline's state is known.
    `state`: that state.
    `done`: batches that the client delivered to its user.
    `num_ranks`: how many clients shared the epoch by rank; 0 if they shared
        it otherwise, None if that is not known.
    """

    run: str
    epoch: int
    client: str
    is_over: bool
    index: int
    state: State | None
    done: IndexSet
    num_ranks: int | None = None


def check_position(fields: Fields | None) -> ClientPosition | None:
    """Return a position that anybody may have sent, checked field by field."""
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
            get_field(fields, 'num_ranks', int, None))
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


def check_ranks(former: int | None, present: int) -> None:
    """Refuse to go on in an epoch that other ranks shared.

    `former`, `present`: how many ranks shared it, and share epochs now; 0 if
        it was not shared by rank, None if that is not known.
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
