"""Warning of an epoch whose sequences were all too short for a stage."""
from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from fuel.transformers.base import Transformer


class SequenceStage(Transformer):
    """Cuts sequences, and warns if none of an epoch was long enough."""

    epoch_attributes = (*Transformer.epoch_attributes, '_longest')
    # How many items the longest sequence of the epoch has, if any was read.
    _longest: int | None = None

    def _items_needed(self) -> int:
        """Return how many items a sequence must have to be delivered."""
        raise NotImplementedError

    def _start_epoch(self) -> None:
        self._longest = None
        super()._start_epoch()

    def _note_length(self, length: int) -> None:
        """Record that a sequence was read."""
        self._longest = max(length, self._longest or 0)

    def warn_of_empty_epoch(self, attributes: Mapping[str, Any]) -> None:
        """Warn that an epoch which read sequences delivered nothing."""
        longest = attributes.get('_longest')
        if longest is None or longest >= self._items_needed():
            return
        name = type(self).__name__
        warnings.warn(
            f'an epoch of {name} is empty: {name} as it is set needs '
            f'sequences of at least {self._items_needed()} items, and the '
            f'longest that was read has {longest}. It never goes from one '
            'sequence to the next, and each line of a TextFile is one: '
            'choose a shorter window or length, or make one sequence of the '
            'whole text, as Vocabulary.encode does', stacklevel=2)
