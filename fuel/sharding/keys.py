"""The keys that stages draw from their generators, one for each epoch."""
from __future__ import annotations

import copy
from typing import Any, NamedTuple

from fuel.epochs.state import as_text
from fuel.exceptions import UnknownOrderError
from fuel.sharding.far_epochs import epochs_to_draw
from fuel.utils import rng_state


class KeyStart(NamedTuple):
    """The generator from which a stage draws the key of an epoch.

    `first`: the generator as it is before the first epoch.
    """

    rng: Any
    first: Any

    @property
    def is_computed(self) -> bool:
        """True if no other generator must draw first."""
        return False

    def draw(self) -> int:
        """Return the key."""
        return int(self.rng.integers(2 ** 63))

    def copied(self, known: dict[int, Any]) -> KeyStart:
        """Return a copy with a generator of its own."""
        return KeyStart(copy.deepcopy(self.rng, known), self.first)

    def moved(self, count: int, known: dict[int, Any],
              number: int | None = None) -> KeyStart:
        """Return a copy as it is `count` epochs later, drawn from the seed
        again.

        `number`: number of that epoch; None if it is not known.
        """
        if number is not None:
            then = KeyStart(copy.deepcopy(self.first), self.first)
            for _ in epochs_to_draw(number):
                then.draw()
            now = then.copied({})
            for _ in epochs_to_draw(-count):
                now.draw()
            if as_text(rng_state.get_state(now.rng)) == as_text(
                    rng_state.get_state(self.rng)):
                return then
        raise UnknownOrderError(
            'of an epoch before, the state from which a stage drew its key '
            'is not kept, and the seed does not lead to the present state: '
            'load a state that was saved in that epoch')
