"""Position and attributes of one epoch of a stream."""
from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from fuel.epochs.examples import SourceExamples
from fuel.epochs.past import Past
from fuel.epochs.read_options import ReadOptions
from fuel.epochs.skipped import Skipped, SkipLimit
from fuel.epochs.state import Position, SchemeStart
from fuel.kernels.epoch_iterator import EpochPosition
from fuel.kernels.epoch_reader import new_object
from fuel.schemes.requests import as_requests
from fuel.schemes.shard import BatchPart, Shard
from fuel.typing import State

if TYPE_CHECKING:
    from fuel.epochs.step_count import StepCount
    from fuel.orders.steps import PassedSteps


# Attributes of an epoch that are fields of its compiled base class.
_COMPILED = 'position', 'step', 'attributes', 'skipped'
#: A stage whose state changes only in counts within an epoch, the epoch, and
#: the iterator that the stage reads.  The class of stages builds on this
#: module.
Counter: TypeAlias = 'tuple[Any, Epoch, Any]'


class _Asking(threading.local):
    """Flags of a thread.

    `examples`: whether the epochs that begin in it are asked for the examples
        of their items.
    `is_replay`: whether it reads items again, or ahead of those that are
        delivered, only to find a position: then a log has no line of them.
    """

    examples = False
    is_replay = False


asking = _Asking()


@contextmanager
def asking_examples(is_asked: bool = True) -> Iterator[None]:
    """Return a context in which new epochs are asked for the examples of
    their items."""
    before, asking.examples = asking.examples, is_asked
    try:
        yield
    finally:
        asking.examples = before


@contextmanager
def reading_again() -> Iterator[None]:
    """Return a context in which items are read only to find a position."""
    before, asking.is_replay = asking.is_replay, True
    try:
        yield
    finally:
        asking.is_replay = before


class Epoch(EpochPosition):
    """One epoch: its position, and the attributes that the stream keeps for
    it.

    `position`: number of batches or examples that were delivered.
    `reader`: reads the data; opened at the first read.
    `request_iterator`: the requests; its `position` is the number of requests
        that were made.
    `finished`: whether :class:`StopIteration` was raised.
    `end`: the position at the end of the epoch, or the error of finding that
        position.
    `start`: state of the iteration scheme when the epoch began, or an error
        that says why there is none.
    `options`: options that stages above request of the reader.
    `shard`: the share of a rank that the pipeline takes; None if it takes all
        items.
    `failed`: numbers of the reads whose exceptions were delivered.
    `limit`: the limit of skipped examples; None if the pipeline must not skip
        any.
    `left_out`: the examples that the stage has skipped because they failed.
    `short`: the remaining rows of each batch that lacks skipped examples, by
        the number of the batch.  One-to-one stages of a pipeline share this
        dict.
    `past`: the epochs that the stream has begun before.
    `order_id`: the id of the order, if a loaded state has it.
    `ids`: the ids of the order and of the data, from the first state on.
    `omitted`: ranges of items of all ranks that are left out: the first item
        and the item after the last one.
    `is_inner`: whether a one-to-one stage reads this epoch.
    `is_asked`: whether a stage above asks for the examples of each item.
        Stages that keep items keep their examples beside them then.
    `dealt`: the examples of the last item, if it was dealt to a rank and a
        stage above asks for them.
    `step_count`: the tokens of the step of the last item, if BalancedBatches
        and one-to-one stages make the items.
    `passed_steps`: counts the steps that have passed, once it was asked for.
    `shared`: what the inputs of the stage share; found when a state is saved.
    `is_ahead`: whether the position that was saved last is several items of
        the input before what the stage has read.
    `counters`: the iterator that is read and the stages below, if their
        states change only in counts; found when a state is saved.
    `counted`: the epochs below, if skipping an item only adds to the counts
        of each; found when an item is skipped.
    """

    # True if the requests are not those of the stream's scheme.
    has_own_requests = False
    options = ReadOptions()
    shard: Shard | None = None
    limit: SkipLimit | None = None
    left_out = Skipped()
    past: Past = ''
    ids: tuple[str, str] | None = None
    order_id: str | None = None
    omitted: Sequence[tuple[int, int]] = ()
    is_inner = False
    is_asked = False
    dealt: SourceExamples | None = None
    step_count: StepCount | None = None
    passed_steps: PassedSteps | None = None
    shared: Any = None
    is_ahead = False

    def __init__(self, request_iterator: Iterator[Any] | None) -> None:
        self.request_iterator = (
            None if request_iterator is None
            else as_requests(request_iterator))
        self.finished = False
        self.end: Position | State | Exception | None = None
        self.start: SchemeStart | Exception | None = None
        self.failed: list[int] = []
        self._num_failed = 0
        self.short: dict[int, BatchPart] = {}
        self.counters: tuple[Any, Sequence[Counter]] | None = None
        self.counted: Sequence[Epoch] | None = None
        if asking.examples:
            self.is_asked = True

    def __reduce__(self) -> Any:
        return new_object, (type(self),), {
            **vars(self), **{name: getattr(self, name) for name in _COMPILED},
            'counters': None, 'counted': None, 'passed_steps': None,
            'shared': None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    @property
    def requested(self) -> int:
        """Number of reads, including failed reads (int)."""
        if self.request_iterator is not None:
            return self.request_iterator.position
        return self.position + self._num_failed

    @property
    def converted(self) -> frozenset[str]:
        """The sources that the reader converts as `options` request
        (frozenset)."""
        converted: frozenset[str] = getattr(
            self.reader, 'converted', frozenset())
        return converted

    def go_to(self, position: int, requested: int, failed: list[int]) -> None:
        """Restore a saved position.

        The requests must have been restored already.

        `requested`: number of reads.
        `failed`: later reads whose exceptions were delivered, counted from
            `requested`.
        """
        self.position = position
        self._num_failed = requested - position
        self.skipped = {requested + offset for offset in failed}

    def count_left_out(self) -> None:
        """Count a failed read whose item is left out without an error."""
        if self.request_iterator is None:
            self._num_failed += self.step

    def skip(self, count: int) -> None:
        """Count skipped items as delivered."""
        self.move(count)
        if self.request_iterator is not None:
            self.request_iterator.skip(count)

    def move(self, count: int) -> None:
        """Count items as delivered; if `count` is negative, count the last
        ones as not read."""
        if count < 0 and self.failed:
            stop = self.requested
            again = self.step * sum(
                stop + count * self.step <= number < stop
                for number in self.failed)
            self.position += again
            if self.request_iterator is None:
                self._num_failed -= again
        self.position += count * self.step

    def count_below(self, children: Sequence[Any]) -> None:
        """Record which epochs below count skipped items with this one.

        Nothing is recorded if this is unknown for one of the iterators.

        `children`: the iterators that are read.
        """
        found: list[Epoch] = []
        for child in children:
            if child.epoch.counted is None:
                return
            found += (child.epoch, *child.epoch.counted)
        self.counted = found

    def count_failure(self, number: int) -> bool:
        """Record a read whose exception is delivered; return whether the
        exception was delivered before, as a restored state says."""
        if self.request_iterator is None:
            self._num_failed += self.step
        elif self.request_iterator.position == number:
            # The scheme failed: there was no request.
            return False
        self.failed.append(number)
        was_delivered = number in self.skipped
        self.skipped.discard(number)
        return was_delivered

    def finish(self, end: Position | State | Exception) -> None:
        """Drop the attributes that only a running epoch needs."""
        # Without the stream, which holds this epoch: no cycle.
        self.end = end._replace(stream=None) if isinstance(
            end, Position) else end
        self.finished, self.counters, self.counted = True, None, None
        self.passed_steps = None
        self.drop_prefetched()
        # The stream keeps showing the last values.  Release the child's
        # iterator here, so that its epoch counts as abandoned; the next epoch
        # needs the data set's state.
        self.attributes = {name: value
                           for name, value in self.attributes.items()
                           if name == 'data_state'}
        if self.limit is not None and self.left_out.count and (
                not self.position):
            self.limit.refuse_empty_epoch()

    def drop_prefetched(self) -> None:
        """Close the reader, which may hold an open file or prefetched data."""
        reader, self.reader = self.reader, None
        if reader is not None:
            reader.close()

    def failed_after(self, requested: int) -> tuple[int, ...]:
        """Return the numbers of failed reads from `requested` on, minus
        `requested`."""
        return tuple([number - requested
                      for number in {*self.failed, *self.skipped}
                      if number >= requested])
