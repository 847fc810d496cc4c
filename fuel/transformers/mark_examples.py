"""A stage that adds the examples of data sets that each row was made of."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, Unpack

import numpy
from numpy.typing import NDArray

from fuel.describe.source_types import SourceType, SourceTypes
from fuel.epochs.epoch import asking_examples
from fuel.epochs.pipeline import child_streams, datasets_of, source_examples
from fuel.epochs.stage import Stage, children_of, stage_of
from fuel.exceptions import UnknownOrderError
from fuel.kernels.epoch_iterator import EpochIterator
from fuel.schemes.sharded_requests import as_splittable
from fuel.sharding.made import (
    SEVERAL, DatasetRows, Joined, Made, Merged, Packed)
from fuel.streams.arguments import StreamOptions
from fuel.transformers.base import ALL, Transformer
from fuel.transformers.rename import Rename
from fuel.transformers.several import Merge
from fuel.transformers.source_names import labels_of
from fuel.typing import Batch, StreamLike
from fuel.utils.sparse import count_rows


class MarkExamples(Transformer):
    """Adds a source with the example of a data set that each row is made of.

    The example is named by two integers: the number of the data set, among
    those that this stage reads, and the row as the `get_data` of the data set
    takes it. The data sets are counted from 0 on, in the order in which the
    streams are listed that read them. If a data set is read in order, the row
    is its count in the epoch.

    Parameters
    ----------
    data_stream : AbstractDataStream
    source : str, optional
        Name of the new source, which comes last: int64 of the shape
        (batch, 2), or (2,) for an example. Defaults to ``'example'``.
        :class:`~sequences.Pack` makes a row of several examples, so the shape
        is (batch, most segments of a row, 2): ``example[row, segment - 1]``
        is that of a segment, and -1, -1 follow the last one.
    partner : str, optional
        Name of a second new source, for :class:`~image.MixUp` and
        :class:`~image.CutMix`: the example that each row was mixed with; -1,
        -1 if it was mixed with none. Defaults to None: no such source.
    of : str, optional
        A source of `data_stream`. If :class:`Merge` joins several streams,
        the examples are those of the stream that has this source. Defaults to
        None: the first stream.
    iteration_scheme, axis_labels
        See :class:`~fuel.transformers.Transformer`. The axis labels default
        to those of `data_stream`.

    Raises
    ------
    ValueError
        If there is a source of that name, `data_stream` has no source `of`,
        or a server makes the items.
    fuel.exceptions.UnknownOrderError
        When data are requested, if a stage below changes the rows of a batch
        or does not say from which examples it makes an item, if workers or
        threads make items whose order depends on the data, or if a row is
        not an integer.

    Notes
    -----
    Stages that keep, move or leave out rows, such as :class:`Batch`,
    :class:`ShuffleBuffer` and :class:`Filter`, may come before or after this
    one. If a function changes the rows of a batch, put this stage before it.

    Examples
    --------
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IndexableDataset(['a', 'b', 'c']), batch_size=2,
    ...                     shuffle=True, seed=1)
    >>> for batch, example in MarkExamples(stream):
    ...     print(batch, example.tolist())
    ['a', 'c'] [[0, 0], [0, 2]]
    ['b'] [[0, 1]]
    """

    one_to_one = True
    keeps_rows = True
    keeps = ALL
    epoch_attributes = (*Transformer.epoch_attributes, '_datasets')
    # The data sets that are read, in the order of their numbers.
    _datasets: tuple[Any, ...] = ()

    def __init__(self, data_stream: StreamLike, source: str = 'example',
                 of: str | None = None, partner: str | None = None,
                 **kwargs: Unpack[StreamOptions]) -> None:
        sources = tuple(data_stream.sources)
        added = (source,) if partner is None else (source, partner)
        for name in added:
            if name in sources or added.count(name) > 1:
                raise ValueError(
                    f'{"source" if name == source else "partner"} must be a '
                    f'new name, but {name!r} is one of '
                    f'{sources if name in sources else added}')
        if of is not None and of not in sources:
            raise ValueError(
                f'of must be one of the sources {sources}, got {of!r}')
        _check_process(data_stream)
        self._is_packed = _packs(data_stream)
        labels: Mapping[str, Any] | None = labels_of(data_stream)
        if labels is not None:
            axes = (*('batch',) * (not data_stream.produces_examples),
                    *('segment',) * self._is_packed, 'id')
            kwargs.setdefault('axis_labels', {
                **labels, **dict.fromkeys(added, axes)})
        super().__init__(data_stream, data_stream.produces_examples,
                         **kwargs)
        self.source = source
        self.of = of
        self.partner = partner
        self._path = () if of is None else _path_to(data_stream, of)

    def _get_sources(self) -> tuple[str, ...]:
        return (*self.data_stream.sources, *self._added())

    def _added(self) -> tuple[str, ...]:
        """Return the names of the new sources."""
        return (self.source,) if self.partner is None else (
            self.source, self.partner)

    def known_types(self) -> SourceTypes:
        """Return the types of the sources and of the examples."""
        shape = (*(None,) * (not self.produces_examples),
                 *(None,) * self._is_packed, 2)
        return {**super().known_types(), **dict.fromkeys(
            self._added(), SourceType(numpy.dtype('int64'), shape))}

    def start_epoch(self) -> None:
        """Ask the stages below for the examples of each item."""
        self._datasets = tuple(datasets_of(self.data_stream))
        with asking_examples():
            super().start_epoch()

    def transform_example(self, example: Batch) -> Batch:
        """Return an example with the example of the data set."""
        return (*example, *[table[0] for table in self._tables(1)])

    def transform_batch(self, batch: Batch) -> Batch:
        """Return a batch with the examples of its rows."""
        place = 0 if self.of is None else (
            tuple(self.data_stream.sources).index(self.of))
        return (*batch, *self._tables(count_rows(batch[place])))

    def _tables(self, count: int) -> list[NDArray[numpy.int64]]:
        """Return the examples of the item that was read last, for each of the
        new sources.

        `count`: number of rows of the item.
        """
        found = source_examples(self.child_epoch_iterator, 1)
        if found is None:
            unknown = _stage_without(self.child_epoch_iterator)
            if unknown.is_remote:
                raise UnknownOrderError(_ELSEWHERE.format(unknown.name))
            _refuse(unknown.name)
        if not found.in_order:
            _refuse(found.stage or stage_of(self.data_stream).name)
        tables = [self._table(found.made, is_partner)
                  for is_partner in (False, True)[:len(self._added())]]
        if len(tables[0]) != count:
            raise UnknownOrderError(
                f'MarkExamples reads a batch of {count} rows, but '
                f'{len(tables[0])} examples of data sets were read for it: '
                'let the stage, or the data set, that changes the number of '
                'rows come after MarkExamples')
        return tables

    def _table(self, made: Made, is_partner: bool) -> NDArray[numpy.int64]:
        """Return the examples of an item.

        `is_partner`: whether to return those that are mixed into it.
        """
        parts = list(self._parts(made, self._path, is_partner)) or [
            numpy.zeros((0, 2), numpy.int64)]
        if self._is_packed:
            most = max([part.shape[-2] if part.ndim > 2 else 1
                        for part in parts])
            padded = []
            for part in parts:
                rows = part if part.ndim > 2 else part[:, numpy.newaxis]
                padded.append(numpy.full(
                    (len(rows), most, 2), -1, numpy.int64))
                padded[-1][:, :rows.shape[1]] = rows
            parts = padded
        return parts[0] if len(parts) == 1 else numpy.concatenate(parts)

    def _parts(self, made: Made, path: tuple[int, ...], is_partner: bool,
               ) -> Iterator[NDArray[numpy.int64]]:
        """Yield the examples of the parts of an item.

        `path`: for each of several merges, the place of the stream that
            counts.
        """
        if isinstance(made, Merged):
            if made.is_mixed:
                # Of examples that were mixed before, their own count.
                yield from self._parts(
                    made.parts[int(is_partner)], path, False)
            else:
                yield from self._parts(made.parts[
                    path[0] if path else 0], path[1:], is_partner)
        elif isinstance(made, Packed):
            yield numpy.concatenate([
                table for part in made.parts
                for table in self._parts(part, path, is_partner)])[
                    numpy.newaxis]
        elif isinstance(made, Joined):
            for part in made.parts:
                yield from self._parts(part, path, is_partner)
        else:
            rows = self._rows_of(made)
            if is_partner:
                rows[:] = -1
            yield rows

    def _rows_of(self, made: DatasetRows) -> NDArray[numpy.int64]:
        """Return examples of one data set."""
        try:
            rows = numpy.asarray(
                as_splittable(made.rows) if isinstance(made.rows, SEVERAL)
                else [made.rows])
        except (TypeError, ValueError):
            rows = numpy.array([made.rows], object)
        numbers = [place for place, dataset in enumerate(self._datasets)
                   if dataset is made.dataset]
        if made.dataset is None and len(self._datasets) == 1:
            # A user's stage has named only rows.
            numbers = [0]
        if not numbers:
            raise UnknownOrderError(
                'MarkExamples cannot tell which data set has the rows '
                f'{made.rows!r:.80}: let source_examples of the stage '
                'return what it gets from source_examples of its input')
        number = numbers[0]
        if len(rows) and (rows.dtype.kind not in 'iu' or rows.ndim > 1):
            raise UnknownOrderError(
                'MarkExamples names an example by an integer, but the data '
                f'set {type(self._datasets[number]).__name__} is asked for '
                f'{made.rows!r:.80}: read it by a scheme that gives the '
                'numbers of examples')
        table = numpy.empty((len(rows), 2), numpy.int64)
        table[:, 0], table[:, 1] = number, rows
        return table


_ELSEWHERE = (
    'MarkExamples cannot see the examples that {} makes items of, since they '
    'are made elsewhere or prefetched: put MarkExamples before that stage')


def _refuse(name: str) -> NoReturn:
    raise UnknownOrderError(
        f'MarkExamples cannot tell which rows of an item of {name} come from '
        f'which examples, since {name} may change the rows or their number: '
        'put MarkExamples before that stage; a class of your own whose '
        'transform_batch keeps them says so by keeps_rows = True')


def _stage_without(iterator: Any) -> Stage:
    """Return the lowest stage that does not know the examples of its last
    item."""
    for child in children_of(iterator.epoch):
        if isinstance(child, EpochIterator) and (
                source_examples(child, 1) is None):
            return _stage_without(child)
    return stage_of(iterator.data_stream)


def _packs(stream: StreamLike) -> bool:
    """Return whether a stage below may make a row of several examples."""
    return (isinstance(stream, Transformer) and stream.packs_examples) or any(
        map(_packs, child_streams(stream)))


def _check_process(stream: StreamLike) -> None:
    """Raise ValueError if a server makes items."""
    stage = stage_of(stream)
    if stage.is_remote and not stage.inputs:
        raise ValueError(
            f'{_ELSEWHERE.format(stage.name)}, in the server')
    for child in child_streams(stream):
        _check_process(child)


def _path_to(stream: StreamLike, source: str) -> tuple[int, ...]:
    """Return the place of the stream that has a source, for each of the
    merges on the way to it, from the last to the first."""
    path: list[int] = []
    while True:
        below = child_streams(stream)
        if not below:
            return tuple(path)
        place = 0
        number = tuple(stream.sources).index(source)
        if isinstance(stream, Merge):
            while number >= len(below[place].sources):
                number -= len(below[place].sources)
                place += 1
            path.append(place)
            source = below[place].sources[number]
        elif isinstance(stream, Rename):
            source = below[0].sources[number]
        elif source not in below[0].sources:
            # A stage has made it; of several streams, the first counts.
            return tuple(path)
        stream = below[place]
