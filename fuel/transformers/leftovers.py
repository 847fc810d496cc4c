"""Stages that keep what they have read until it is used up."""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

from fuel.epochs.epoch import asking
from fuel.epochs.examples import Asked
from fuel.epochs.pipeline import source_examples
from fuel.transformers.base import Transformer
from fuel.utils.checks import saved_count

# Marks the end of an item's pieces. A user's function may return None.
_END = object()


class Leftover:
    """An input that a stage has read, and how much of it was used.

    `position`: position of the stream that is read, before the input was
        read.
    `parts`: the parts of the input, in the order in which they are used.
    `size`: number of parts, if known.
    `used`: number of parts that were used.
    `examples`: for each item that was read for it, the examples of data sets
        from which the item was made; None unless a downstream stage requests
        them.
    """

    examples: Any = None

    def __init__(self, position: object, parts: Any,
                 size: int = sys.maxsize) -> None:
        self.position = position
        self.parts = parts
        self.size = size
        self.used = 0

    def note(self, child: Any) -> None:
        """Add the examples of the item that was read last to `examples`.

        `child`: the epoch iterator from which the item was read.
        """
        if self.examples is None:
            self.examples = []
        self.examples.append(source_examples(child, 1))

    def is_left(self) -> bool:
        """Return whether parts may be left."""
        return self.used < self.size

    def skip(self, used: int) -> None:
        """Skip the pieces that were used when a state was saved."""
        if used > self.size or not self.size:
            raise ValueError(
                f'{used} parts of an item had been used when the state was '
                'saved, but ' + (
                    f'now it has only {self.size}' if self.size
                    else 'it is empty now') + ': the data have changed')
        self.used = used


class LazyPieces(Sequence[Any]):
    """Pieces that are made when they are requested.

    `make`: function that returns a piece by its number.
    `size`: number of pieces.
    """

    def __init__(self, make: Callable[[int], Any], size: int) -> None:
        self.make = make
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, number: Any) -> Any:
        return self.make(range(self.size)[number])

    def __iter__(self) -> Iterator[Any]:
        return map(self.make, range(self.size))


class Pieces(Leftover):
    """The pieces of an item, including the delivered ones.

    It is an iterator of the pieces that are left.

    `made`: iterator that makes the pieces that are left.
    `before`: the inherited left-overs, before the item was read.
    `item`: the item, which errors name.
    `error`: the error to raise after the pieces that are left.
    """

    error: Exception | None = None
    # Number of the first piece in `parts`.
    _first = 0

    def __init__(self, position: object, found: Any,
                 size: int | None = None, before: Any = None,
                 item: Any = None) -> None:
        if type(found) is LazyPieces:
            size = found.size
        elif isinstance(found, Sequence):
            size = len(found)
        super().__init__(
            position, found, sys.maxsize if size is None else size)
        self.before = before
        self.item = item
        self.made: Iterator[Any] = self._from(0)

    def _from(self, used: int) -> Iterator[Any]:
        """Return an iterator of the pieces after the first `used`."""
        found = self.parts
        if type(found) is LazyPieces:
            return map(found.make, range(used, found.size))
        if isinstance(found, Sequence):
            return map(found.__getitem__, range(
                used - self._first, len(found)))
        return iter(found)

    def __iter__(self) -> Pieces:
        return self

    def __next__(self) -> Any:
        piece = next(self.made)
        self.used += 1
        return piece

    def skip(self, used: int) -> None:
        """Leave out the pieces that were delivered."""
        super().skip(used)
        self.made = self._from(used)
        if not isinstance(self.parts, Sequence):
            for number in range(used):
                if next(self.made, _END) is _END:
                    self.size = number
                    super().skip(used)

    def __getstate__(self) -> dict[str, Any]:
        if not isinstance(self.parts, Sequence):
            # Generators cannot be pickled, but what they make can.
            left: list[Any] = []
            try:
                for piece in self.made:
                    left.append(piece)  # noqa: PERF402 - kept after an error
            except Exception as error:  # noqa: BLE001 - raised in its turn
                self.error = error
            self.parts, self._first = left, self.used
            self.made = self._from(self.used)
        return {**vars(self), 'made': None, 'item': None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.made = self._from(self.used)


def refused_position(stage: Transformer, what: str) -> Exception:
    """Return the error for saving a position after a user's assignment."""
    return TypeError(
        f'the position of a stage {type(stage).__name__} whose {what} was '
        'assigned cannot be saved as plain data: pickle the epoch iterator '
        'instead')


class LeftoverStage(Transformer):
    """A stage that keeps its input until it is used up.

    A state holds how much of the oldest input was used, and the position that
    the input stream had before it delivered that input. Restoring the state
    reads the input again. Inherited left-overs, such as the count of a seeded
    stage, are also saved as they were before the input.

    Subclasses implement :meth:`_keep_next`. Among the base classes of a
    subclass, classes that have left-overs of their own follow this class.
    """

    epoch_attributes = (*Transformer.epoch_attributes, '_kept', '_asked')
    # Items that were read, the oldest first.
    _kept: tuple[Any, ...] = ()
    # The examples of the last item, if a downstream stage requests them.
    _asked: Asked | None = None
    # True if a class after this one in the MRO has left-overs too.
    _inherits_leftover = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # A class has the names of all its bases, not of the first alone.
        cls.epoch_attributes = tuple(dict.fromkeys(chain.from_iterable(
            vars(base).get('epoch_attributes', ())
            for base in cls.__mro__[::-1])))
        place = cls.__mro__.index(LeftoverStage)
        cls._inherits_leftover = cls.__mro__[place + 1] is not Transformer

    def _keep_next(self) -> object:
        """Read the next input, and keep it."""
        raise NotImplementedError

    def start_epoch(self) -> None:
        """Set the attributes that belong to a new epoch."""
        self._kept = ()
        self._asked = Asked() if asking.examples else None
        super().start_epoch()

    def source_examples(self, requests: Sequence[Any]) -> Any:
        """Return the examples that the last item was made of."""
        return self._asked and self._asked.last

    def _oldest(self) -> Leftover | None:
        """Return the first input item that is not used up."""
        for each in self._kept:
            if each.is_left():
                kept: Leftover = each
                return kept
        return None

    def get_leftover(self) -> Any:
        """Return the number of pieces used of the first input item."""
        oldest = self._oldest()
        return None if oldest is None else {'used': oldest.used}

    def set_leftover(self, leftover: dict[str, Any]) -> None:
        """Read the kept input again, and skip its used part."""
        self.resume_plan(leftover)
        if 'used' in leftover:
            self._keep_next()
            self._kept[0].skip(saved_count(leftover, 'used'))

    def resume_plan(self, leftover: dict[str, Any]) -> None:
        """Restore the left-overs of the next classes in the MRO."""
        if self.inherited_leftover() is not None:
            super().set_leftover(leftover)

    def inherited_leftover(self) -> Any:
        """Return the left-overs of the next classes in the MRO, or None."""
        return super().get_leftover() if self._inherits_leftover else None

    def get_child_position(self) -> Any:
        """Return the position of the input before its first item in use."""
        oldest = self._oldest()
        return None if oldest is None else oldest.position
