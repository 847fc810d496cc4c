"""The stage of a mixture, and the readers of its items."""
from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy

from fuel.epochs.epoch import Epoch, asking_examples
from fuel.epochs.examples import SourceExamples
from fuel.epochs.pipeline import (
    batch_size_below, can_seek, is_skippable, length_of, skip,
    source_examples)
from fuel.epochs.shared_draws import find_shared, shared_states
from fuel.epochs.state import as_state, position_of
from fuel.kernels.epoch_iterator import EpochIterator
from fuel.schemes.requests import BatchSizeRequests
from fuel.schemes.shard import Shard
from fuel.sharding.shard_pipeline import copied_pipeline
from fuel.sharding.dealer import Dealt
from fuel.sharding.order import ENDLESS
from fuel.sharding.planned import (
    ItemPlan, ItemsInOrder, has_numbered_items, items_of, seek)
from fuel.sharding.stage_orders import BatchesBelow, RowOrder, RowPlan
from fuel.streams.stage import StreamStage
from fuel.transformers.cache import join_batches
from fuel.transformers.mixture.order import Counts, Mixture
from fuel.typing import Batch, State, StreamLike
from fuel.utils.overrides import covers

#: Function of an item and the number of its stream; returns the item to give.
Finish: TypeAlias = 'Callable[[Batch, int], Batch]'

# Why a mixture is read in order although its streams can seek.
BY_METHOD = 'its streams by a method of its own'


class MixtureItems:
    """Reads the items of one epoch of a mixture.

    `iterators`: the current epoch of each stream; a stream that restarts
        replaces its epoch there.
    `is_sought`: whether items are read in any order; all streams can seek.
    """

    def __init__(self, mixture: Mixture, streams: tuple[Any, ...],
                 iterators: list[Any], names: tuple[str, ...],
                 finish: Finish | None, is_sought: bool = False) -> None:
        self.mixture = mixture
        self._streams = streams
        self.iterators = iterators
        self._names = names
        self.finish = finish
        self._is_sought = is_sought
        self._places = range(len(streams))

    @functools.cached_property
    def _lengths(self) -> list[int | None]:
        """Number of items in each epoch of each stream; None if it varies."""
        return [length_of(stream) for stream in self._streams]

    @functools.cached_property
    def _is_known(self) -> bool:
        """Whether items can be skipped without reading them (bool)."""
        return self._is_sought or (
            all(map(is_skippable, self._streams)) and all(
                length is not None or can_seek(stream, forward=True)
                for length, stream in zip(
                    self._lengths, self._streams, strict=True)))

    def read(self) -> Batch:
        """Return the item of the next request."""
        try:
            request = next(self.mixture.points)
        except StopIteration:
            if self.mixture.stop == 'forever':
                # The next epoch continues there, on all ranks.
                self.skip_to(int(self.mixture.points.num_requests))
            raise
        return self.read_request(request)

    def read_request(self, request: tuple[int, int]) -> Batch:
        """Return the item of a request; skip the items before it."""
        position, point = request
        self.skip_to(position)
        return self._take(point)

    def last_examples(self, request: tuple[int, int]) -> SourceExamples | None:
        """Return the examples of the item that was read last."""
        return source_examples(
            self.iterators[self.mixture.choose(request[1])], 1)

    def read_at(self, position: int) -> Batch:
        """Return an item by its position; all streams can seek."""
        self.skip_to(position)
        return self._take(self.mixture.points.request_at(position)[1])

    def find(self, position: int) -> int:
        """Return the stream of an item; all streams can seek.

        Afterwards the item is the next one of that stream.
        """
        self.skip_to(position)
        return self._choose(self.mixture.points.request_at(position)[1])

    def _choose(self, point: int) -> int:
        """Return the stream with items left that a point chooses.

        No stream is read to its end, since it could not go back from there.
        """
        restarted = -1
        while True:
            place = self.mixture.choose(point)
            if self._left(place):
                return place
            restarted = self._end(place, restarted)

    def _end(self, place: int, restarted: int) -> int:
        """Restart a stream that has ended, or leave it out.

        `restarted`: the stream that was restarted last for this item, or -1.
        Returns: the value of `restarted` for the next call.
        """
        if place == restarted:
            raise self._empty(place)
        if not self.mixture.end(place):
            return restarted
        self._restart(place)
        return place

    def _left(self, place: int) -> int:
        """Return the number of items left in a stream's epoch."""
        iterator, lengths = self.iterators[place], self.mixture.lengths
        if lengths[place] is None:
            known = None if self._is_sought else self._lengths[place]
            lengths[place] = items_of(iterator) if known is None else known
        return int(lengths[place] - iterator.epoch.requested)

    def skip(self, count: int) -> None:
        """Skip requests; the next read skips their items."""
        self.mixture.points.advance(count)

    def close(self) -> None:
        """Release nothing: the stage has the iterators."""

    def _take(self, point: int) -> Batch:
        """Return the next item of the stream that a point chooses."""
        mixture, restarted = self.mixture, -1
        while True:
            place = (self._choose(point) if self._is_sought
                     else mixture.choose(point))
            try:
                data: Batch = next(self.iterators[place])
            except StopIteration:
                restarted = self._end(place, restarted)
                continue
            except Exception:
                mixture.taken[place] += 1
                raise
            mixture.taken[place] += 1
            return data if self.finish is None else self.finish(data, place)

    def _restart(self, place: int) -> None:
        """Begin the next epoch of a stream."""
        self.mixture.restart(place, self.iterators)
        # Released first, so that the stream has one epoch at a time.
        left = self.iterators[place]
        is_asked = isinstance(left, EpochIterator) and left.epoch.is_asked
        left = self.iterators[place] = None
        with asking_examples(is_asked):
            child = self._streams[place].get_epoch_iterator()
        if isinstance(child, EpochIterator) and child.epoch.step_count:
            child.epoch.step_count.is_passed = True
        self.iterators[place] = child

    def _empty(self, place: int) -> ValueError:
        return ValueError(
            f'an epoch of the stream {self._names[place]!r} is empty, so it '
            "cannot be mixed for ever: leave it out, or use stop='last'")

    def skip_to(self, position: int) -> bool:
        """Skip the items before a position, in the mixture and its streams.

        Returns False if the mixture ends before the position.

        The items are those of other ranks, or were skipped by the user. If
        an item must be read to be skipped, its error is not raised here.
        Streams that can seek may also go back to an earlier position.
        """
        start = self.mixture.position()
        if position < start and all(map(can_seek, self._streams)):
            for place, count in enumerate(
                    self.mixture.go_back(position).tolist()):
                skip(self.iterators[place], -count)
            start = self.mixture.position()
        if position <= start:
            return True
        if self._is_known:
            return self._skip_unread(start, position)
        for number in range(start, position):
            try:
                self._take(self.mixture.points.request_at(number)[1])
            except StopIteration:
                return False
            except Exception:  # noqa: BLE001, S112 (the rank's that has it)
                continue
        return True

    def _skip_unread(self, start: int, stop: int) -> bool:
        """Skip items without reading them; epochs have known lengths.

        Returns False if the mixture ends before the last of them.
        """
        mixture = self.mixture
        while start < stop and not mixture.is_over():
            left = numpy.array(list(map(self._left, self._places)))
            counts = mixture.counts(start, stop)
            if not (counts > left).any():
                self._skip_counts(counts)
                return True
            # Streams may share a generator, so they restart one by one.
            end = mixture.first_beyond(start, stop, left)
            self._skip_counts(mixture.counts(start, end))
            place = int(mixture.counts(end, end + 1).argmax())
            if mixture.end(place):
                self._restart(place)
                if not self._left(place):
                    raise self._empty(place)
            start = end
        return start >= stop

    def _skip_counts(self, counts: Counts) -> None:
        for place, count in enumerate(counts.tolist()):
            skip(self.iterators[place], count)
            self.mixture.taken[place] += count


class MixStage(StreamStage):
    """The stage of a mixture, whose order several ranks may share.

    The mixed streams may continue from their positions in the next epoch.
    """

    __slots__ = ()

    @property
    def has_plan(self) -> bool:
        """Whether the stream has a plan, for ranks that share items (bool)."""
        return bool(self.stream.is_sought)

    def state_between(self, epoch: str) -> State:
        """Return the state while no epoch is running."""
        state = super().state_between(epoch)
        carried = self.stream._carried
        if carried is not None:
            state['children'] = [
                as_state(position_of(iterator)) for iterator in carried]
            shared = shared_states(self, find_shared(self))
            if shared:
                state['rng'] = {**(state['rng'] or {}),
                                'shared': list(shared)}
        return state

    def copy(self, is_sought: bool | None = False) -> Any:
        """Return a copy, without the iterators for the next epoch."""
        ours = super().copy()
        vars(ours).pop('_carried', None)
        ours.is_sought = (has_numbered_items(self) if is_sought is None
                          else is_sought)
        return ours

    def share_in_order(self, shard: Shard) -> None:
        """Shard items that are read in order."""
        stream = self.stream
        if shard.splits or shard.uneven == 'pad':
            raise ValueError(
                f'{self.name} mixes {stream.read_in_order() or BY_METHOD}, '
                'whose items can only be read in order: ranks can '
                "take every n-th item, by='batch' with uneven='uneven' or "
                f"'drop', not by={shard.by!r} with uneven={shard.uneven!r}; "
                'or mix data sets that take indices, and put the stages that '
                'depend on the data behind the mixture')
        copies: dict[int, StreamLike] = {}
        # One stream may be mixed with itself.
        self.replace_inputs([
            copied_pipeline(child, copies) for child in self.inputs])
        self.shard_own_items(shard)

    def open_in_order(self, epoch: Epoch) -> MixtureInOrder:
        """Return all items of an epoch, one after another."""
        stream, attributes = self.stream, epoch.attributes
        reader = stream.mixture_reader(
            attributes['_mixture'], attributes['child_epoch_iterators'])
        if covers(stream, 'open_reader', ('get_data',)):
            return MixtureInOrder(reader, reader.read_request)
        # Held weakly, since the stream has the epoch that has the reader.
        owner: Any = weakref.ref(stream)
        items = MixtureInOrder(
            reader, lambda request: owner().get_data(request))
        items.is_shown = False
        return items


class MixtureInOrder(ItemsInOrder):
    """The items of a mixture whose streams cannot seek.

    An item that cannot be read counts as an item; its rank gets the error.

    `get`: function that returns the item of a request.
    """

    reader: MixtureItems

    def __init__(self, reader: MixtureItems,
                 get: Callable[[tuple[int, int]], Batch]) -> None:
        super().__init__(reader, reader.mixture.position())
        self._get = get

    def read_item(self) -> tuple[Any, Exception | None]:
        """Return the next item, or the error of reading it."""
        request = self.reader.mixture.points.request_at(self.position)
        if request is None:
            raise StopIteration
        try:
            return self._get(request), None
        except StopIteration:
            raise
        except Exception as error:  # noqa: BLE001 (the rank's that has it)
            return None, error

    def skip(self, count: int) -> None:
        """Leave out items, if possible without reading them."""
        mixture = self.reader.mixture
        stop = int(min(self.position + count, mixture.points.num_requests))
        if self.reader.skip_to(stop):
            # An item that could not be read may not be counted by a stream.
            self.position = stop
        else:
            self.position = max(self.position, mixture.position())

    def take(self, dealt: Dealt) -> Batch:
        """Return an item that was read, or raise its error."""
        item: Batch
        item, error = self.take_kept(dealt.item)
        if error is not None:
            raise error
        return item


class MixturePlan(ItemPlan):
    """Makes an item by its number, of a mixture whose streams can seek."""

    def __init__(self, reader: MixtureItems, num_items: int) -> None:
        self.reader = reader
        self.mixture = reader.mixture
        self.num_items = num_items
        self._rows: dict[int, RowPlan] = {}
        # The batch found last, its stream and its number there.
        self._found = -1, -1, -1

    @classmethod
    def open(cls, stream: Any, epoch: Epoch) -> MixturePlan:
        """Return the plan of an epoch of a mixture."""
        kept = epoch.attributes
        return cls(stream.mixture_reader(
            kept['_mixture'], kept['child_epoch_iterators']),
            cls.count_items(stream, epoch))

    @staticmethod
    def count_items(stream: Any, epoch: Epoch) -> int:
        """Return the number of items of an epoch."""
        most = int(stream.epoch_size or ENDLESS)
        if stream.stop == 'forever':
            return most
        mixture: Mixture = epoch.attributes['_mixture']
        return min(most, mixture.count_all(lambda: list(
            map(items_of, epoch.attributes['child_epoch_iterators']))))

    @staticmethod
    def fits(stream: Any) -> bool:
        """Return whether each item can be made without earlier ones."""
        return not stream.read_in_order()

    @staticmethod
    def goes_back(stream: Any) -> bool:
        """Return whether an epoch can go back to items it had before."""
        return bool(stream.stop != 'forever')

    @staticmethod
    def split_size(stream: Any) -> int | None:
        """Return the size of the smallest batches of the streams.

        None if ranks cannot split the batches of each stream.
        """
        sizes = [batch_size_below(child) for child in stream.data_streams]
        return None if None in sizes else min(filter(None, sizes))

    @staticmethod
    def resume(stream: Any, leftover: Any) -> None:
        """Restore the left-overs that a rank has saved."""
        stream.set_leftover(leftover)

    def _find(self, item: int) -> tuple[int, int, RowPlan]:
        """Return a batch's stream, its number there, and a plan of rows.

        The plan makes rows of the batches of that stream.
        """
        if self._found[0] != item:
            place = self.reader.find(item)
            child = self.reader.iterators[place]
            self._found = item, place, child.epoch.requested
            if place not in self._rows or (
                    self._rows[place].children[0] is not child):
                self._rows[place] = _RowsOfBatches(child)
        _, place, number = self._found
        return place, number, self._rows[place]

    def sizes(self, item: int) -> tuple[int, int]:
        """Return the number of examples of an item, and of a full batch of its
        stream."""
        _, number, plan = self._find(item)
        return plan.sizes(number)

    def read(self, item: int) -> Batch:
        """Return an item."""
        data = self.reader.read_at(item)
        if self.is_asked:
            self.examples = self.reader.last_examples(
                self.mixture.points.request_at(item))
        return data

    def read_rows(self, item: int, rows: slice, padding: int) -> Batch:
        """Return rows of a batch, padded from the start of its stream."""
        place, number, plan = self._find(item)
        plan.is_asked = self.is_asked
        self.mixture.taken[place] += 1
        try:
            batch = plan.read_rows(number, rows, padding)
        finally:
            # Padding has moved the stream to its start.
            seek(plan.children[0], number + 1)
        self.examples = plan.examples
        finish = self.reader.finish
        return batch if finish is None else finish(batch, place)

    def end(self, item: int) -> None:
        """Go to the end of the epoch, from where the next one may continue."""
        self.reader.skip_to(self.num_items)

    def resume_point(self, item: int) -> tuple[object, list[Any]]:
        """Return the left-overs and the inputs' positions at an item."""
        self.reader.skip_to(item)
        return (self.mixture.state(),
                list(map(position_of, self.reader.iterators)))


class _RowsOfBatches(RowPlan):
    """The rows of the batches of one stream of a mixture."""

    def __init__(self, child: Any) -> None:
        below = BatchesBelow(child)
        super().__init__(
            RowOrder(below, BatchSizeRequests(below.batch_size)), [child],
            child.data_stream)

    def make(self, parts: list[Any]) -> Batch:
        """Return the rows of a batch, joined with the rows that pad it."""
        return parts[0] if len(parts) == 1 else join_batches(
            parts, self.sources)
