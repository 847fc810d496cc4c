"""A batch of which some examples were delivered and others are kept."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy

from fuel.transformers.base import check_count
from fuel.utils.checks import not_negative


class PartialBatch:
    """A batch of the child, and how much of it was delivered.

    `parts`: the data of each source, as arrays or lists.
    `length`, `used`: numbers of examples.
    """

    def __init__(self, batch: Iterable[Any], sources: Sequence[str],
                 position: object) -> None:
        batch = tuple(batch)
        check_count(batch, sources)
        names = (*sources, *range(len(sources), len(batch)))
        self.parts = [_as_rows(part, name) for part, name
                      in zip(batch, names, strict=True)]
        lengths = [len(part) for part in self.parts]
        if len(set(lengths)) > 1:
            raise ValueError(
                'all sources of a batch must have the same number of '
                'examples, got ' + ', '.join(
                    f'{name}: {length}' for name, length
                    in zip(names, lengths, strict=True)))
        self.length = lengths[0] if lengths else 0
        self.used = 0
        self.position = position

    def __iter__(self) -> PartialBatch:
        return self

    def __next__(self) -> tuple[Any, ...]:
        """Return the next example, which does not keep the batch alive."""
        if self.used >= self.length:
            raise StopIteration
        example = [part[self.used] for part in self.parts]
        self.used += 1
        return tuple([part.copy() if isinstance(part, numpy.ndarray)
                      else part for part in example])

    def is_partial(self) -> bool:
        """Return whether examples are left."""
        return self.used < self.length

    def skip(self, used: int) -> None:
        """Skip examples that were delivered before."""
        if not_negative('used', used) > self.length:
            raise ValueError(
                f'{used} examples of a batch were used when the state was '
                f'saved, but now it has only {self.length}: the data have '
                'changed')
        self.used = used


def _as_rows(part: Iterable[Any], source: object) -> Any:
    if isinstance(part, list) or (
            isinstance(part, numpy.ndarray) and part.ndim):
        return part
    try:
        return list(part)
    except TypeError:
        raise ValueError(
            f'source {source!r} of a batch must have one item for each '
            f'example, got {part!r:.80} ({type(part).__name__})') from None
