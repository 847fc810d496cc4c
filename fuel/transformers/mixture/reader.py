"""Reads the items of a mixture, and skips those that are left out."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy

from fuel.epochs.pipeline import is_skippable, skip
from fuel.sharding.planned import items_of
from fuel.sharding.pipeline import can_seek
from fuel.schemes.shard import place_of_rank
from fuel.epochs.pipeline import length_of
from fuel.transformers.mixture.position import Counts, Mixture
from fuel.typing import Batch

#: Takes an item and the number of the stream that it is from.
Finish: TypeAlias = 'Callable[[Batch, int], Batch]'


class MixtureReader:
    """Reads the items of one epoch of a mixture.

    `iterators`: the present epoch of each stream; those that begin anew are
        put there.
    `is_sought`: whether items come in any order, of streams that can be
        sought.
    """

    def __init__(self, mixture: Mixture, streams: tuple[Any, ...],
                 iterators: list[Any], names: tuple[str, ...],
                 finish: Finish | None, is_sought: bool = False) -> None:
        self._mixture = mixture
        self._streams = streams
        self._iterators = iterators
        self._names = names
        self._finish = finish
        self._is_sought = is_sought
        self._places = range(len(streams))

    @functools.cached_property
    def _lengths(self) -> list[int | None]:
        """How long all epochs of each stream are; None if they differ."""
        return [length_of(stream) for stream in self._streams]

    @functools.cached_property
    def _is_known(self) -> bool:
        """Whether items can be skipped without reading them."""
        return all(map(is_skippable, self._streams)) and all(
            length is not None or can_seek(stream, forward=True)
            for length, stream in zip(
                self._lengths, self._streams, strict=True))

    def read(self) -> Batch:
        """Return the item of the next request."""
        try:
            request = next(self._mixture.requests)
        except StopIteration:
            if self._mixture.stop == 'forever':
                # The next epoch goes on there, on all ranks.
                self.skip_to(int(self._mixture.points.num_requests))
            raise
        return self.read_request(request)

    def read_request(self, request: tuple[int, int]) -> Batch:
        """Return the item of a request, and skip those before it."""
        position, point = request
        self.skip_to(position)
        data = self._take(point)
        shard = getattr(self._mixture.requests, 'shard', None)
        if shard is not None and shard.uneven == 'drop':
            first = position - shard.rank
            self.skip_to(first + shard.num_shards)
            if place_of_rank(first, self._mixture.position(), shard) is None:
                raise StopIteration
        return data

    def read_at(self, position: int) -> Batch:
        """Return an item of streams that can be sought."""
        self.skip_to(position)
        return self._take(self._mixture.points.request_at(position)[1])

    def find(self, position: int) -> int:
        """Return the stream of an item, of streams that can be sought.

        That one stands before the item then.
        """
        self.skip_to(position)
        return self._choose(self._mixture.points.request_at(position)[1])

    def _choose(self, point: int) -> int:
        """Return the stream that a point chooses of those with items left.

        None is read to its end, after which it could not go back.
        """
        restarted = -1
        while True:
            place = self._mixture.choose(point)
            if self._left(place):
                return place
            restarted = self._end(place, restarted)

    def _end(self, place: int, restarted: int) -> int:
        """Begin a stream that has ended anew, or leave it out.

        Returns: which stream began anew, to be passed the next time.
        """
        if place == restarted:
            raise self._empty(place)
        if not self._mixture.end(place):
            return restarted
        self._restart(place)
        return place

    def _left(self, place: int) -> int:
        """Return how many items a stream has left in its epoch."""
        iterator, length = self._iterators[place], self._lengths[place]
        return (items_of(iterator) if length is None else length
                ) - int(iterator.epoch.requested)

    def skip(self, count: int) -> None:
        """Skip requests: the next read skips what they are."""
        self._mixture.requests.advance(count)

    def close(self) -> None:
        """Release nothing: the stage has the iterators."""

    def _take(self, point: int) -> Batch:
        """Return the next item of the stream that a point chooses."""
        mixture, restarted = self._mixture, -1
        while True:
            place = (self._choose(point) if self._is_sought
                     else mixture.choose(point))
            try:
                data: Batch = next(self._iterators[place])
            except StopIteration:
                restarted = self._end(place, restarted)
                continue
            except Exception:
                mixture.taken[place] += 1
                raise
            mixture.taken[place] += 1
            return data if self._finish is None else self._finish(data, place)

    def _restart(self, place: int) -> None:
        """Begin the next epoch of a stream."""
        self._mixture.restart(place)
        # Released first, so that the stream has one epoch at a time.
        self._iterators[place] = None
        self._iterators[place] = self._streams[place].get_epoch_iterator()

    def _empty(self, place: int) -> ValueError:
        return ValueError(
            f'an epoch of the stream {self._names[place]!r} is empty, so it '
            "cannot be mixed for ever: leave it out, or use stop='last'")

    def skip_to(self, position: int) -> None:
        """Skip items up to a position, and those of the streams.

        They are other ranks', or were left out by hand. Where an item of a
        stream has to be read to be skipped, an error is not raised here.
        Streams that can be sought are put back to an earlier position.
        """
        start = self._mixture.position()
        if position < start and all(map(can_seek, self._streams)):
            for place, count in enumerate(
                    self._mixture.go_back(position).tolist()):
                skip(self._iterators[place], -count)
            start = self._mixture.position()
        if position <= start:
            return
        if self._is_known:
            self._skip_unread(start, position)
            return
        for number in range(start, position):
            try:
                self._take(self._mixture.points.request_at(number)[1])
            except StopIteration:
                return
            except Exception:  # noqa: BLE001, S112 (the rank's that has it)
                continue

    def _skip_unread(self, start: int, stop: int) -> None:
        """Skip items without reading them; epochs have known lengths."""
        mixture = self._mixture
        while start < stop and not mixture.is_over():
            left = numpy.array(list(map(self._left, self._places)))
            counts = mixture.counts(start, stop)
            longer = numpy.flatnonzero(counts > left)
            if mixture.stop == 'forever' or not longer.size:
                for place in longer.tolist():
                    self._skip_epochs(place, counts, left)
                self._skip_counts(counts)
                return
            end = mixture.first_beyond(start, stop, left)
            self._skip_counts(mixture.counts(start, end))
            mixture.end(int(mixture.counts(end, end + 1).argmax()))
            start = end

    def _skip_epochs(self, place: int, counts: Counts, left: Counts) -> None:
        """Skip a stream to the epoch that the last of some items is in."""
        while counts[place] > left[place]:
            self._mixture.taken[place] += left[place]
            counts[place] -= left[place]
            self._restart(place)
            left[place] = self._left(place)
            if not left[place]:
                raise self._empty(place)

    def _skip_counts(self, counts: Counts) -> None:
        for place, count in enumerate(counts.tolist()):
            skip(self._iterators[place], count)
            self._mixture.taken[place] += count
