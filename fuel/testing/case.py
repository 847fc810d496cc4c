"""A stream under examination, and what it gives when nothing interferes."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeAlias

from fuel.testing.data import Frozen, freeze_all
from fuel.testing.promises import expect, expect_made
from fuel.testing.replay import Followed, ReplayProcess, Saved, replay

#: Items that an epoch may have: one that never ends would not be noticed.
MOST_ITEMS = 10_000

Replay: TypeAlias = Callable[
    [Callable[[], Any], Sequence[Saved]], list[Followed]]


class StreamCase:
    """A way to make a stream, and the epochs that such a stream has.

    Parameters
    ----------
    build : callable
        Makes a new stream, equal to all others that it makes.
    draws : bool
        Whether items are drawn at random while an epoch runs.
    replay : callable
        Continues from saved positions, perhaps in another process.
    """

    def __init__(self, build: Callable[[], Any], draws: bool,
                 replay: Replay) -> None:
        self.build = build
        self.draws = draws
        self.replay = replay

    @contextmanager
    def stream(self) -> Iterator[Any]:
        """Make a stream, and close it at the end of the block."""
        stream = self.build()
        expect_made(stream, 'stream', 'get_epoch_iterator')
        try:
            yield stream
        finally:
            stream.close()

    @cached_property
    def epochs(self) -> list[list[Frozen]]:
        """The first two epochs of a stream, each read to its end."""
        with self.stream() as stream:
            return [freeze_all(up_to_end(stream.get_epoch_iterator()))
                    for _ in range(2)]

    def expect_epoch(self, expected: list[Frozen], got: list[Frozen],
                     where: str) -> None:
        """Compare the items of an epoch, and name the first that differs."""
        for place, pair in enumerate(zip(expected, got, strict=False)):
            expect(pair[0] == pair[1],
                   f'{where}, item {place} should be {pair[0]}, but it is '
                   f'{pair[1]}.')
        expect(len(expected) == len(got),
               f'{where}, {len(expected)} items should come, but '
               f'{len(got)} came.')


def up_to_end(epoch: Iterable[Any]) -> Iterator[Any]:
    """Yield the items of an epoch, which has to end."""
    for place, item in enumerate(epoch):
        expect(place < MOST_ITEMS,
               f'An epoch goes on after {MOST_ITEMS} items: get_data() has to '
               'raise StopIteration at its end, or the iteration scheme has '
               'to; of a large data set, check a few examples.')
        yield item


@contextmanager
def replaying(another_process: ReplayProcess | bool) -> Iterator[Replay]:
    """Return what continues from saved positions, for one block."""
    if isinstance(another_process, ReplayProcess):
        yield another_process.replay
    elif another_process:
        with ReplayProcess() as process:
            yield process.replay
    else:
        yield replay
