"""Streams that read several streams, at once or one after another."""
from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Unpack

from fuel.describe.source_types import SourceType, SourceTypes, types_of
from fuel.epochs.examples import SourceExamples, merged
from fuel.epochs.pipeline import length_of, source_examples
from fuel.epochs.stage import stage_of
from fuel.epochs.state import RUNNING
from fuel.kernels.epoch_iterator import EpochIterator
from fuel.sharding.asking import StageEpoch
from fuel.sharding.order import EpochOrder
from fuel.sharding.planned import seek
from fuel.sharding.stage_orders import ChainedOrder, MergedOrder, OrderPlan
from fuel.streams import AbstractDataStream
from fuel.streams.arguments import KeptLabels, StreamOptions
from fuel.transformers.base import (
    check_count, common_types, refuse_no_stream)
from fuel.transformers.source_names import as_names, labels_of
from fuel.typing import AxisLabels, Request, SchemeLike, StreamLike
from fuel.utils.arguments import is_stream
from fuel.utils.checks import in_order


def as_streams(reader: str,
               streams: Iterable[StreamLike]) -> tuple[StreamLike, ...]:
    """Return streams as a tuple.

    An error is raised if there are none, if a single stream is passed by
    itself, or if an object is neither a stream nor a data set.
    """
    if is_stream(streams):
        raise TypeError(f'{reader} takes its streams as one argument: write '
                        f'{reader}((one, other), ...)')
    found = tuple(streams)
    if not found:
        raise ValueError('data_streams must hold at least one stream')
    for stream in found:
        refuse_no_stream(reader, stream)
    return found


class SeveralStreams(AbstractDataStream):
    """Base of the streams that read several streams, with an epoch of each."""

    epoch_attributes: tuple[str, ...] = ('child_epoch_iterators',)
    data_streams: Any
    child_epoch_iterators: Any

    def __init__(self, data_streams: Iterable[StreamLike],
                 axis_labels: AxisLabels | KeptLabels | None = None,
                 iteration_scheme: SchemeLike | None = None) -> None:
        name = type(self).__name__
        streams = as_streams(name, data_streams)
        _refuse_to_skip(self, streams)
        kinds = [stream.produces_examples for stream in streams]
        if len(set(map(bool, kinds))) > 1:
            described = ', '.join('examples' if kind else 'batches'
                                  for kind in kinds)
            raise ValueError(
                f'the streams that {name} reads must all '
                'produce examples or all produce batches, but they produce '
                f'{described}: put Batch after the streams of examples, or '
                'Unpack after the streams of batches')
        super().__init__(iteration_scheme, axis_labels)
        if iteration_scheme is None:
            self.produces_examples = kinds[0]
        self.data_streams = streams

    def start_epoch(self) -> None:
        """Set the attributes that belong to a new epoch."""
        self._release_children()
        self.child_epoch_iterators = self._open_children()
        super().start_epoch()

    def _open_children(self) -> list[Any]:
        """Return the epoch iterators of the streams that are read."""
        pending = stage_of(self).pending
        iterators = []
        for place, stream in enumerate(self.data_streams):
            part = pending and pending['children'][place]
            if part and part['epoch'] == RUNNING:
                # Loaded only now, since one stream may be read twice.
                stage_of(stream).load(part)
            child = stream.get_epoch_iterator()
            if isinstance(child, EpochIterator) and child.epoch.step_count:
                child.epoch.step_count.is_passed = True
            iterators.append(child)
        return iterators

    def _examples_of(self, place: int) -> SourceExamples | None:
        """Return the examples of the item that was read last from a stream.

        They are None unless a downstream stage requests them.
        """
        child = self.child_epoch_iterators[place]
        return source_examples(child, 1) if isinstance(
            child, EpochIterator) and child.epoch.is_asked else None

    def _refuse(self, request: Request) -> None:
        if request is not None:
            raise ValueError(
                f'{type(self).__name__} reads its data streams in order and '
                f'takes no requests, got {request!r}')

    def known_types(self) -> SourceTypes:
        """Return the types of the sources for which all streams agree."""
        return common_types(self.data_streams)

    def _lengths(self) -> list[int] | None:
        """Return the lengths of all streams, None if one is not known."""
        found = [length_of(stream) for stream in self.data_streams]
        known = [length for length in found if length is not None]
        return known if len(known) == len(found) else None

    def close(self) -> None:
        """Close all streams."""
        for stream in self.data_streams:
            stream.close()

    def reset(self) -> None:
        """Reset all streams."""
        for stream in self.data_streams:
            stream.reset()

    def next_epoch(self) -> None:
        """Switch all streams to the next epoch."""
        for stream in self.data_streams:
            stream.next_epoch()


def _refuse_to_skip(reader: SeveralStreams,
                    streams: Iterable[StreamLike]) -> None:
    """Raise ValueError for streams that may leave out examples."""
    for stream in streams:
        if stage_of(stream).most_skipped:
            raise ValueError(
                f"{type(reader).__name__} reads a stream with on_error='skip' "
                'together with other streams. If that stream leaves out an '
                'example, the examples of the streams would not fit together '
                "any more: use on_error='raise', or one DataStream over all "
                'sources')


class Chain(SeveralStreams):
    """Reads several streams one after another, in each epoch.

    Parameters
    ----------
    data_streams : iterable of AbstractDataStream
        They have the same sources, in the same order, and all produce
        examples, or all batches.
    axis_labels, iteration_scheme
        See :class:`~fuel.streams.AbstractDataStream`. The axis labels
        default to those of the first stream.

    Raises
    ------
    ValueError
        If the sources differ, or some streams produce examples and others
        batches.

    Examples
    --------
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> easy = DataStream(IterableDataset([1, 2]))
    >>> hard = DataStream(IterableDataset([30]))
    >>> list(Chain([easy, hard]).get_epoch_iterator())
    [(1,), (2,), (30,)]
    """

    __fuel_plan__ = OrderPlan
    epoch_attributes = (*SeveralStreams.epoch_attributes, '_place')
    _place = 0

    def __init__(self, data_streams: Iterable[StreamLike],
                 **kwargs: Unpack[StreamOptions]) -> None:
        streams = as_streams(type(self).__name__, data_streams)
        kwargs.setdefault('axis_labels', labels_of(streams[0]))
        super().__init__(streams, **kwargs)
        found = [tuple(stream.sources) for stream in streams]
        if len(set(found)) > 1:
            raise ValueError(
                'the streams that Chain reads must have the same sources, '
                f'got {", ".join(map(str, found))}: use Rename or '
                'FilterSources')
        self.sources = found[0]

    def start_epoch(self) -> None:
        """Set the attributes that belong to a new epoch."""
        self._place = 0
        super().start_epoch()

    def get_data(self, request: Request = None) -> Any:
        """Return the next data of the stream that is read now.

        Parameters
        ----------
        request : None
            There are no requests.

        Returns
        -------
        tuple
        """
        self._refuse(request)
        while self._place < len(self.child_epoch_iterators):
            for data in self.child_epoch_iterators[self._place]:
                return data
            self._place += 1
        raise StopIteration

    def source_examples(self, requests: Sequence[Any]) -> Any:
        """Return the examples of the last item of the stream that is read
        now."""
        return self._examples_of(self._place)

    def order_items(self, inputs: Sequence[EpochOrder], begun: StageEpoch,
                    ) -> EpochOrder:
        """Return the order of an epoch."""
        return ChainedOrder(inputs)

    def get_leftover(self) -> int:
        """Return the number of the stream that is read now."""
        return self._place

    def set_leftover(self, leftover: int) -> None:
        """Continue with the stream of the saved number."""
        if not 0 <= leftover <= len(self.data_streams):
            raise ValueError(f'there is no stream number {leftover}')
        self._place = leftover

    def num_items(self) -> int | None:
        """Return the number of items of an epoch, None if it is not known."""
        lengths = self._lengths()
        return None if lengths is None else sum(lengths)


class MergedPlan(OrderPlan):
    """Makes an item by its number, from one item of each stream."""

    def read(self, item: int) -> Any:
        """Return an item."""
        for child in self.children:
            seek(child, item)
        data = self.stream.get_data()
        if self.is_asked:
            self.examples = self.stream.source_examples([item])
        return data

    def end(self, item: int) -> None:
        """Read past the end: the stage reports streams of unequal length."""
        if item >= self.num_items:
            self.read(self.num_items)


class Merge(SeveralStreams):
    """Joins the data of several streams to one item.

    Parameters
    ----------
    data_streams : iterable of AbstractDataStream
        All produce examples, or all batches.
    sources : iterable of str
        Names of the merged data: of the sources of the first stream, then of
        the second stream, and so on.
    axis_labels : dict, optional
        See :class:`~fuel.streams.AbstractDataStream`.
    strict : bool, optional
        What to do if one stream ends before another: end the epoch there
        with a UserWarning, the first time it happens (False, the default),
        or raise ValueError (True).

    Raises
    ------
    ValueError
        If there are more or fewer names than data, or if some streams
        produce examples and others batches.

    Notes
    -----
    When a stream has ended, one more item of the other streams is read, to
    check whether the streams end together. If reading an item of one stream
    fails, the other streams skip the same item, so that the items stay
    aligned.

    Examples
    --------
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> english = DataStream(IterableDataset(['Hello world!']))
    >>> french = DataStream(IterableDataset(['Bonjour le monde!']))
    >>> merged = Merge((english, french), ('english', 'french'))
    >>> merged.sources
    ('english', 'french')
    >>> next(merged.get_epoch_iterator())
    ('Hello world!', 'Bonjour le monde!')
    """

    __fuel_plan__ = MergedPlan
    _has_warned = False

    def __init__(self, data_streams: Iterable[StreamLike],
                 sources: Iterable[str], axis_labels: AxisLabels | None = None,
                 strict: bool = False) -> None:
        super().__init__(data_streams, axis_labels)
        in_order('sources', sources)
        names = as_names('sources', sources)
        given = [name for stream in self.data_streams
                 for name in stream.sources]
        if len(given) != len(names):
            raise ValueError(
                f'sources must name the {len(given)} sources of the streams, '
                f'{tuple(given)}, got {len(names)} names: {names}')
        self.sources = names
        self.strict = strict

    def known_types(self) -> SourceTypes:
        """Return a mapping from the merged names to the known types."""
        found: dict[str, SourceType] = {}
        names = iter(self.sources)
        for stream in self.data_streams:
            types = types_of(stream)
            for source in stream.sources:
                name = next(names)
                if source in types:
                    found[name] = types[source]
        return found

    def get_data(self, request: Request = None) -> tuple[Any, ...]:
        """Return the next data of all streams.

        Parameters
        ----------
        request : None
            There are no requests.

        Raises
        ------
        ValueError
            If there is a request, or if `strict` is True and the streams do
            not end together.
        StopIteration
            If one of the streams has ended.
        """
        self._refuse(request)
        data: list[Any] = []
        for place, iterator in enumerate(self.child_epoch_iterators):
            sources = self.data_streams[place].sources
            try:
                parts = tuple(next(iterator))
                check_count(parts, sources)
                data.extend(parts[:len(sources)])
            except StopIteration:
                self._check_end(place)
                raise
            except Exception:
                for other in self.child_epoch_iterators[place + 1:]:
                    with suppress(Exception):
                        next(other)
                raise
        return tuple(data)

    def order_items(self, inputs: Sequence[EpochOrder], begun: StageEpoch,
                    ) -> EpochOrder:
        """Return the order of an epoch."""
        return MergedOrder(inputs)

    def source_examples(self, requests: Sequence[Any]) -> Any:
        """Return the examples of the last item, for each stream."""
        return merged(list(map(
            self._examples_of, range(len(self.child_epoch_iterators)))))

    def _check_end(self, ended: int) -> None:
        """Warn, or raise, if the stream `ended` ended before another did."""
        # Read on in each epoch: what streams draw must not depend on whether
        # this process has warned.
        longer = next((
            place for place, iterator in enumerate(self.child_epoch_iterators)
            if place < ended or (place > ended and _has_more(iterator))), None)
        if longer is None or (self._has_warned and not self.strict):
            return
        text = (f'the streams merged to {self.sources} have epochs of '
                f'different lengths: number {ended} (counted from 0) ended '
                f'before number {longer}')
        if self.strict:
            raise ValueError(
                text + '; with strict=False the merged epoch ends there')
        self._has_warned = True
        warnings.warn(
            text + ', and the rest of that one is left out; strict=True '
            'makes this an error', stacklevel=2)

    def num_items(self) -> int | None:
        """Return the number of items of an epoch, None if it is not known."""
        lengths = self._lengths()
        return None if lengths is None else min(lengths)


def _has_more(iterator: Iterator[object]) -> bool:
    for _ in iterator:
        return True
    return False
