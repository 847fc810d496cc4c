"""A stage that shuffles examples through a bounded buffer."""
from __future__ import annotations

import copy
import heapq
import math
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Unpack

import numpy
from numpy.typing import NDArray

from fuel.transformers.base import ALL
from fuel.epochs.epoch import Epoch, asking
from fuel.epochs.examples import SourceExamples
from fuel.epochs.pipeline import source_examples
from fuel.sharding.asking import StageEpoch
from fuel.sharding.draws import Draws
from fuel.sharding.order import ENDLESS, EpochOrder, ItemPart
from fuel.sharding.places import ItemPlace
from fuel.sharding.planned import ItemPlan, items_of, read_at, seek
from fuel.epochs.state import position_of
from fuel.iterator import DataIterator
from fuel.transformers.options import StreamOptions
from fuel.transformers.seeded import SeededTransformer
from fuel.typing import Batch, Request, StreamLike
from fuel.utils.checks import not_negative, positive, saved_count

__all__ = ['ShuffleBuffer']

# Number of examples for which random numbers are drawn at once.
DRAWN_AT_ONCE = 256
# Number of the child's positions that are recorded while a buffer is read.
POSITIONS = 8


class BufferPlan(ItemPlan):
    """Reads examples in the order of a buffer that holds indices only."""

    def __init__(self, stage: ShuffleBuffer, child: DataIterator,
                 held: _Held) -> None:
        # Held weakly, since its epoch has this plan.
        self.stage = weakref.ref(stage)
        self.child = child
        self.num_items = items_of(child)
        self.held = held

    @classmethod
    def open(cls, stream: Any, epoch: Epoch) -> BufferPlan:
        """Return the plan of an epoch of a stage."""
        kept = epoch.attributes
        return cls(stream, kept['child_epoch_iterator'], kept['_held'])

    @staticmethod
    def resume(stream: Any, leftover: Any) -> None:
        """Restore the left-overs that the plan needs in a stage."""
        stream.resume_plan(leftover)

    def _pop(self, held: _Held) -> int:
        """Return the place of the next example."""
        stage = self.stage()
        assert stage is not None
        return held.pop_place(stage._key, stage.buffer_size,
                              range(self.num_items).__contains__)

    def _held_at(self, item: int) -> _Held:
        """Return the examples that are held before an item is delivered."""
        held = self.held
        if item < held.popped:
            # An example that was passed, such as one for padding.
            held = _Held(0, None)
        while held.popped < item:
            self._pop(held)
        return held

    def read(self, item: int) -> Batch:
        """Return an example."""
        example = read_at(self.child, self._pop(self._held_at(item)))
        if self.is_asked:
            self.examples = source_examples(self.child, 1)
        return example

    def resume_point(self, item: int) -> tuple[object, list[Any]]:
        """Return the left-overs and the input's position at an item."""
        stage, held = self.stage(), self._held_at(item)
        assert stage is not None
        first = min((place for _, place, _ in held.heap), default=held.next)
        seek(self.child, first)
        return ({'key': stage._key, 'item': item, 'last': held.last,
                 'first': first}, [position_of(self.child)])


class ShuffleBuffer(SeededTransformer):
    """Shuffles a stream of examples that can only be read in order.

    Each example is held back by a random number of steps. The buffer holds the
    examples that are held back. If a data set takes indices, use a
    :class:`~fuel.schemes.ShuffledScheme` instead: it shuffles the data set
    completely and needs no buffer.

    Parameters
    ----------
    data_stream : AbstractDataStream
        Produces examples.
    buffer_size : int
        Largest number of examples in the buffer. After the first examples of
        an epoch it holds half of that number on average.
    seed, iteration_scheme, axis_labels
        See :mod:`fuel.transformers`.

    Raises
    ------
    ValueError
        If `data_stream` produces batches, or `buffer_size` is not positive.

    Notes
    -----
    The first example is any of the first `buffer_size`, with equal
    probability. An example comes less than `buffer_size` steps early, and at
    most `buffer_size` steps late (twice as many among the first examples).
    The order depends only on the seed and the epoch. So a state does not hold
    the buffer, but the position in the order and the number of the oldest
    example held. Restoring a state reads the examples from that one on again,
    at most about ``2 * buffer_size``.

    Examples
    --------
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IterableDataset(range(8)))
    >>> shuffled = ShuffleBuffer(stream, 4, seed=1)
    >>> order = [number for number, in shuffled.get_epoch_iterator()]
    >>> sorted(order) == list(range(8)), order == list(range(8))
    (True, False)
    """

    __fuel_plan__ = BufferPlan
    epoch_attributes = (*SeededTransformer.epoch_attributes, '_held')
    _held: _Held
    keeps = ALL

    def __init__(self, data_stream: StreamLike, buffer_size: int, *,
                 seed: int | None = None,
                 **kwargs: Unpack[StreamOptions]) -> None:
        if not data_stream.produces_examples:
            raise ValueError(
                'ShuffleBuffer shuffles examples, but its data stream '
                f'({type(data_stream).__name__}) produces batches: put '
                'Unpack between them')
        self.buffer_size = positive('buffer_size', buffer_size)
        super().__init__(
            data_stream, True, seed=seed, draws='item', **kwargs)

    def start_epoch(self) -> None:
        """Set the attributes that belong to a new epoch."""
        self._held = _Held(0, None)
        super().start_epoch()

    def get_data(self, request: Request = None) -> Any:
        """Return the next example.

        See :meth:`~fuel.transformers.Transformer.get_data`.
        """
        self._refuse(request)
        held = self._held
        while not held.is_first_known(self.buffer_size):
            self._read(held)
        example = held.pop()
        self._item += 1
        return example

    def _read(self, held: _Held) -> None:
        """Read an example, and draw when it will be delivered."""
        if held.next % max(1, self.buffer_size // POSITIONS) == 0:
            held.add_position(position_of(self.child_epoch_iterator))
        try:
            example = next(self.child_epoch_iterator)
        except StopIteration:
            held.is_over = True
        else:
            held.push(
                _when(self._key, self.buffer_size, held, held.next), example,
                None if held.examples is None
                else source_examples(self.child_epoch_iterator, 1))

    def source_examples(self, requests: Sequence[Any]) -> Any:
        """Return the example that left the buffer last."""
        return self._held.found

    def order_items(self, inputs: Sequence[EpochOrder], begun: StageEpoch,
                    ) -> EpochOrder:
        """Return the order of an epoch."""
        leftover = begun.leftover
        key = (begun.epoch.attributes['_key'] if begun.epoch is not None
               else None if leftover is None else leftover['key'])
        return BufferOrder(inputs[0], self.buffer_size, begun.draws,
                           begun.add_key(
                               self.rng, key, self._first_generator()))

    def get_leftover(self) -> dict[str, Any]:
        """Return the position in the order, and the oldest example held."""
        held = self._held
        first = held.get_position()[0] if held.positions else held.next
        return {**super().get_leftover(), 'last': held.last, 'first': first}

    def set_leftover(self, leftover: dict[str, Any]) -> None:
        """Fill the buffer again, without the delivered examples."""
        super().set_leftover(leftover)
        self._held = held = _held_from(leftover)
        held.add_position(position_of(self.child_epoch_iterator))
        while not held.is_last_known(self.buffer_size):
            self._read(held)

    def resume_plan(self, leftover: dict[str, Any]) -> None:
        """Restore left-overs without reading examples."""
        super().set_leftover(leftover)
        self._held = _held_from(leftover)
        self._held.popped = saved_count(leftover, 'item')

    def get_child_position(self) -> Any:
        """Return the input's position before the oldest example held."""
        return self._held.get_position()[1] if self._held.positions else None


class _Held:
    """The examples that are held back.

    `examples`: the example of a data set that each was made of, by its place;
        None unless a stage above asks for them.
    `found`: that of the example that was delivered last.
    """

    found: SourceExamples | None = None

    def __init__(self, next_: int, last: Sequence[Any] | None) -> None:
        self.next = next_
        self.last = None if last is None else list(last)
        self.heap: list[tuple[float, int, Any]] = []
        self.positions: list[tuple[int, Any]] = []
        self.is_over = False
        self.popped = 0
        self.block = -1
        self.draws: list[float] = []
        self.examples: dict[int, SourceExamples | None] | None = (
            {} if asking.examples else None)

    def is_first_known(self, size: int) -> bool:
        """Return whether the first held example comes before all unread ones.

        `size`: size of the buffer.
        """
        return self.is_over or (
            bool(self.heap) and self._is_known(self.heap[0][0], size))

    def is_last_known(self, size: int) -> bool:
        """Return whether the input is where the last delivery left it.

        Then all examples were read that had to be read before the example
        that was delivered last.
        """
        return (self.is_over or self.last is None
                or self._is_known(self.last[0], size))

    def _is_known(self, when: float, size: int) -> bool:
        # At equal moments the earlier example comes first.
        return self.next >= size and when <= self.next - size + 1

    def push(self, when: float, example: object,
             found: SourceExamples | None = None) -> None:
        """Hold the next example, unless it was delivered before.

        `found`: the example of a data set that it was made of.
        """
        if self.last is None or [when, self.next] > self.last:
            heapq.heappush(self.heap, (when, self.next, example))
            if self.examples is not None:
                self.examples[self.next] = found
        self.next += 1

    def pop(self) -> Any:
        """Return the first example."""
        if not self.heap:
            raise StopIteration
        when, place, example = heapq.heappop(self.heap)
        self.last = [when, place]
        self.popped += 1
        if self.examples is not None:
            self.found = self.examples.pop(place, None)
        return example

    def pop_place(self, key: int, size: int,
                  is_there: Callable[[int], bool]) -> int:
        """Return the place of the first example; only places are held.

        `key`: key of the epoch.
        `size`: size of the buffer.
        `is_there`: function that returns whether a place has an example.
        """
        while not self.is_first_known(size):
            if is_there(self.next):
                self.push(_when(key, size, self, self.next), None)
            else:
                self.is_over = True
        self.pop()
        assert self.last is not None
        return int(self.last[1])

    def add_position(self, position: object) -> None:
        """Record a position of the child, and drop those not needed."""
        self.positions = [
            *self.positions[self._needed():], (self.next, position)]

    def _needed(self) -> int:
        """Return which position is the last before the oldest example."""
        oldest = min((place for _, place, _ in self.heap), default=self.next)
        older = [i for i, (place, _) in enumerate(self.positions)
                 if place <= oldest]
        return older[-1] if older else 0

    def get_position(self) -> tuple[int, Any]:
        """Return the example to read again from, and the child's position."""
        return self.positions[self._needed()]


def _held_from(leftover: dict[str, Any]) -> _Held:
    """Return the held examples' order, from checked left-overs."""
    last = leftover['last']
    if last is not None:
        when, place = last
        if not isinstance(when, (int, float)) or not math.isfinite(when):
            raise ValueError(f'last begins with a number, got {when!r}')
        last = [when, not_negative('last', place)]
    return _Held(saved_count(leftover, 'first'), last)


def _when(key: int, size: int, held: _Held, place: int) -> float:
    """Return the sort key of the moment at which an example is delivered.

    The examples of the first buffer come in a random order, one for each
    example that is read after them. Each later example is held back by a
    uniformly random time, from an earliest moment that grows with its place.
    So examples that are not yet read come later than a known moment.
    """
    if place < size:
        draws = _draws(key, held, 0, lambda generator: (
            generator.permutation(size)))
        return draws[place]
    block, within = divmod(place - size, DRAWN_AT_ONCE)
    draws = _draws(key, held, 1 + block, lambda generator: (
        generator.random(DRAWN_AT_ONCE)))
    return place - size + 1 + (size - 1) * draws[within]


def _draws(key: int, held: _Held, block: int,
           draw: Callable[[numpy.random.Generator], NDArray[Any]],
           ) -> list[float]:
    """Return the random numbers of a block of examples."""
    if held.block != block:
        held.block = block
        held.draws = draw(numpy.random.default_rng(
            [key, block])).tolist()
    return held.draws


class BufferOrder(EpochOrder):
    """Examples in the order in which they leave a buffer.

    `size`: size of the buffer.
    `place`: place of the key among the draws of the pipeline.
    """

    own_kind = 'replayed'
    is_single = True

    def __init__(self, below: EpochOrder, size: int, draws: Draws, place: int,
                 ) -> None:
        self.inputs = below,
        self.size_of_buffer = size
        self.draws = draws
        self.place = place
        self._forget()

    def _forget(self) -> None:
        # The held examples at every `_every`-th item; the places of one part.
        self._every = max(DRAWN_AT_ONCE, 4 * self.size_of_buffer)
        self._marks = [_Held(0, None)]
        self._part = -1, [0]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items()
                if name not in ('_marks', '_part')}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget()

    @property
    def num_items(self) -> Any:
        """The number of examples."""
        return self.inputs[0].num_items

    def pop(self, held: _Held) -> int:
        """Return the place of the next example in the input."""
        below = self.inputs[0]
        return held.pop_place(
            self.draws.at(self.place), self.size_of_buffer,
            lambda place: below.count_to(place + 1) > place)

    def find(self, item: int) -> int:
        """Return the place of an example in the input."""
        part, within = divmod(item, self._every)
        if part != self._part[0]:
            while len(self._marks) <= part:
                self._replay(len(self._marks) - 1)
            self._replay(part)
        return self._part[1][within]

    def _replay(self, part: int) -> None:
        """Find the places of the examples that follow a mark."""
        held = copy.deepcopy(self._marks[part])
        start = part * self._every
        self._part = part, [self.pop(held) for _ in range(
            start, min(start + self._every, self.inputs[0].count_to(
                start + self._every)))]
        if part == len(self._marks) - 1:
            self._marks.append(held)

    def places_of(self, dataset: int, row: object, stop: int = ENDLESS,
                  ) -> Iterator[ItemPlace]:
        """Yield the places at which an example comes, in order."""
        # No example comes earlier by the size of the buffer.
        size = self.size_of_buffer
        waiting: list[ItemPlace] = []
        for place in self.inputs[0].places_of(dataset, row, stop + size):
            while waiting and waiting[0].item <= place.item - size:
                yield heapq.heappop(waiting)
            heapq.heappush(waiting, place._replace(
                item=self._number(place.item)))
        yield from sorted(waiting)

    def _number(self, place: int) -> int:
        """Return the number of the item that is a given example of the input.

        It is computed from the moments of the examples nearby: each is at
        most the example's place, and greater than that place less the size of
        the buffer.
        """
        size, held = self.size_of_buffer, _Held(0, None)
        when = _when(key := self.draws.at(self.place), size, held, place)
        first = min(place, int(when) + 1) if when >= size else 0
        stop = int(when) + size
        stop = min(stop, self.inputs[0].count_to(stop))
        return first + sum(
            (_when(key, size, held, other), other) < (when, place)
            for other in range(first, stop))

    def parts(self, item: int) -> Iterable[ItemPart]:
        """Return the example of the input."""
        return ItemPart(0, (self.find(item),)),

    def before(self, item: int) -> tuple[Any, list[int]]:
        """Raise an error, since only the plan knows the held examples."""
        raise NotImplementedError
