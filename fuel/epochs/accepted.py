"""Differences between a state and a pipeline that a program has accepted."""
from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeAlias

from fuel.epochs.past import num_epochs

#: For each difference: what differed, 'data' or 'order'; the number of the
#: epoch in which the state was loaded, and the id in the state. None stands
#: for what the state does not have.
Accepted: TypeAlias = 'tuple[tuple[str, int | None, str | None], ...]'

KINDS = 'data', 'order'
_ID = re.compile(r'[A-Za-z0-9_.-]{20}')
# Older differences are dropped.
_MOST = 100


class Acceptance:
    """The differences that a program accepts while it loads a state.

    `kinds`: what may differ.
    `found`: what differs.
    """

    def __init__(self, accept: Iterable[str] = ()) -> None:
        kinds = [*accept] if isinstance(accept, Iterable) and not (
            isinstance(accept, str)) else [accept]
        for kind in kinds:
            if kind not in KINDS:
                raise ValueError(
                    f"accept must name what may differ, 'data', 'order' or "
                    f"both, such as accept=('data',), got {accept!r:.80}")
        self.kinds = frozenset(kinds)
        self.found: set[str] = set()

    def accepts(self, kind: str) -> bool:
        """Return whether a difference is accepted; record it if so."""
        if kind not in self.kinds:
            return False
        self.found.add(kind)
        return True

    def record(self, state: dict[str, Any]) -> None:
        """Add the differences to a checked state."""
        past = state.get('past')
        number = None if past is None else num_epochs(past)
        state['accepted'] = [*state.get('accepted', ()), *(
            [kind, number, state.get(f'{kind}_id')]
            for kind in sorted(self.found))][-_MOST:]
        if 'order' in self.found:
            state.pop('order_id', None)


def of_plain(state: dict[str, Any]) -> Accepted:
    """Return the accepted differences that the state of a stream names."""
    return tuple(map(tuple, state.get('accepted', ())))


def how_to_accept(kind: str) -> str:
    """Return the part of an error that names the argument `accept`."""
    other = {'data': 'other data', 'order': 'another order'}[kind]
    return (f'or, to go on with {other}, pass accept=({kind!r},) to '
            'load_state_dict')


def is_id(value: object) -> bool:
    """Return whether a value of a state is an id."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def are_accepted(value: object) -> bool:
    """Return whether a value of a state lists accepted differences."""
    return isinstance(value, list) and 0 < len(value) <= _MOST and all(
        isinstance(one, list) and len(one) == 3 and one[0] in KINDS
        and (one[1] is None or (type(one[1]) is int and 0 <= one[1] < 2 ** 63))
        and (one[2] is None or is_id(one[2])) for one in value)
