"""Differences between a state and a pipeline that a program has accepted."""
from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeAlias

from fuel.epochs.past import num_epochs
from fuel.exceptions import StateMismatchError
from fuel.utils.warn import warn_user

#: For each difference: what differed, 'data' or 'order'; the number of the
#: epoch in which the state was loaded, and the id in the state. None stands
#: for what the state does not have.
Accepted: TypeAlias = 'tuple[tuple[str, int | None, str | None], ...]'

KINDS = 'data', 'order'
_ID = re.compile(r'[A-Za-z0-9_.-]{20}')
# Older differences are dropped.
_MOST = 100
# Number of differences that an error names.
_MOST_SHOWN = 5


class Acceptance:
    """The differences that a program accepts while it loads a state.

    `kinds`: what may differ.
    `found`: what differs and is accepted.
    `refused`: what differs besides, each with a text; `needed`: its kinds.
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
        self.needed: set[str] = set()
        self.refused: list[str] = []

    def add(self, kind: str, text: str) -> None:
        """Record a difference.

        `text`: says what differs, unless it is accepted.
        """
        if kind in self.kinds:
            self.found.add(kind)
        else:
            self.needed.add(kind)
            self.refused.append(text)

    def check(self) -> None:
        """Raise StateMismatchError if there are differences that are not
        accepted; it names all."""
        if not self.refused:
            return
        shown = '; and '.join(self.refused[:_MOST_SHOWN])
        more = len(self.refused) - _MOST_SHOWN
        raise StateMismatchError(
            'the state was saved by another pipeline, or with other data: '
            + shown + f'; and {more} more differences' * (more > 0)
            + '. Build the stream as it was when the state was saved, and '
            'read the data that were read then; ' + self._how_to_accept())

    def _how_to_accept(self) -> str:
        """Return the part of an error that names the argument `accept`."""
        others = {'data': 'other data', 'order': 'another order'}
        needed = sorted(self.needed)
        accept = tuple(sorted(self.needed | self.found))
        where = ("to load_state_dict of the stream, or load_options={'accept'"
                 f': {accept}}} to the loader if a framework loads the state')
        if len(needed) == 1 and not self.found:
            return (f'or, to go on with {others[needed[0]]}, pass '
                    f'accept={accept} {where}')
        which = ' and '.join([f'{others[kind]}, accept=({kind!r},),'
                              for kind in needed])
        return f'or, to go on with {which} pass accept={accept} {where}'

    def warn(self) -> None:
        """Warn of what follows from the accepted differences."""
        found = sorted(self.found)
        warn_user(
            f'the state was saved with other {" and ".join(found)}, which '
            f'accept={tuple(found)} allows: examples of the running epoch may '
            'come twice or not at all, and the order of earlier steps, as '
            'order.step() shows it, is that of the present data and schemes, '
            'not the one that the model has seen')

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


def is_id(value: object) -> bool:
    """Return whether a value of a state is an id."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def are_accepted(value: object) -> bool:
    """Return whether a value of a state lists accepted differences."""
    return isinstance(value, list) and 0 < len(value) <= _MOST and all(
        isinstance(one, list) and len(one) == 3 and one[0] in KINDS
        and (one[1] is None or (type(one[1]) is int and 0 <= one[1] < 2 ** 63))
        and (one[2] is None or is_id(one[2])) for one in value)
