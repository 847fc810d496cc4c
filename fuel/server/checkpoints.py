"""States of a pipeline before chosen batches of an epoch."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fuel.epochs.state_delta import changed
from fuel.typing import State

# Paths and new values: what changed since the base.
Steps = list[tuple[list[object], object]]

# How many states are kept of the batches that everybody has.
_MOST_OLD = 64


@dataclass(frozen=True)
class PipelineCheckpoint:
    """The state of a pipeline before the batch `index`."""

    index: int
    base: State
    steps: Steps

    def state(self) -> State:
        """Return the state itself."""
        state: State = changed(self.base, self.steps)
        return state


class Checkpoints:
    """States from which the pipeline can make batches again.

    All of those are kept that follow the first batch not delivered, and
    fewer and fewer of those before it.

    `lowest`: the lowest index that the pipeline can go back to.
    """

    def __init__(self) -> None:
        # Ascending by index.
        self._old: list[PipelineCheckpoint] = []
        self._new: list[PipelineCheckpoint] = []
        self._base: State | None = None
        self.lowest = 0

    def __iter__(self) -> Iterator[PipelineCheckpoint]:
        return iter([*self._old, *self._new])

    def __bool__(self) -> bool:
        return bool(self._new)

    def begin(self, index: int, state: State) -> None:
        """Add the state that the next steps are relative to."""
        self._base = state
        self._new = [one for one in self._new if one.index < index]
        self._old = [one for one in self._old if one.index < index]
        self._new.append(PipelineCheckpoint(index, state, []))
        self.lowest = (self._old or self._new)[0].index

    def rebase(self, state: State) -> None:
        """Let the next steps be relative to another state."""
        self._base = state

    def add(self, index: int, steps: Steps) -> bool:
        """Add the state before a batch, relative to the last base."""
        if self._base is None or index <= self._new[-1].index:
            return False
        self._new.append(PipelineCheckpoint(index, self._base, steps))
        return True

    def thin_out(self, floor: int) -> None:
        """Keep fewer states of batches below `floor`."""
        while len(self._new) > 1 and self._new[1].index <= floor:
            self._old.append(self._new.pop(0))
        if len(self._old) > 2 * _MOST_OLD:
            # The first is where the epoch began.
            self._old = self._old[::2]

    def before(self, index: int) -> PipelineCheckpoint | None:
        """Return the last state at or below an index."""
        for kept in (self._new, self._old):
            for one in reversed(kept):
                if one.index <= index:
                    return one
        return None

    def events(self) -> Iterator[list[object]]:
        """Yield the events that give these states."""
        base: State | None = None
        for one in self:
            if one.base is not base:
                base = one.base
                yield ['base', one.index, one.state()]
                if one.steps:
                    base = None
            else:
                yield ['checkpoint', one.index, one.steps]
        if self._base is not None and base is not self._base:
            yield ['rebase', self._base]
