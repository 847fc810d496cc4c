"""A stream that reads several streams side by side."""
from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from fuel.describe.source_types import SourceType, SourceTypes, types_of
from fuel.epochs.epoch import Epoch
from fuel.transformers.base import check_count
from fuel.transformers.plans import MergedPlan
from fuel.transformers.several import SeveralStreams
from fuel.transformers.source_names import as_names
from fuel.typing import AxisLabels, Request, StreamLike
from fuel.utils.checks import in_order


class Merge(SeveralStreams):
    """Puts the data of several streams together.

    Parameters
    ----------
    data_streams : iterable of AbstractDataStream
        All produce examples, or all batches.
    sources : iterable of str
        Names of the merged data: those of the first stream, those of the
        second, and so on.
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
    To see whether the streams end together, one item more is read of the
    others when the first has ended. If reading one stream fails, the others
    leave out the same item, so that what belongs together stays together.

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
        """Return what the streams know, by the names of this one."""
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
            If there is a request; if `strict`, if the streams do not end
            together.
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

    def open_plan(self, epoch: Epoch) -> MergedPlan:
        """Return what makes any item of an epoch."""
        return MergedPlan(epoch.attributes['child_epoch_iterators'], self)

    def _check_end(self, ended: int) -> None:
        """Warn, or raise, if the stream `ended` ended before another did."""
        if self._has_warned and not self.strict:
            return
        longer = next((
            place for place, iterator in enumerate(self.child_epoch_iterators)
            if place < ended or (place > ended and _has_more(iterator))), None)
        if longer is None:
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
        """Return how many items an epoch has, None if it is not known."""
        lengths = self._lengths()
        return None if lengths is None else min(lengths)


def _has_more(iterator: Iterator[object]) -> bool:
    for _ in iterator:
        return True
    return False
