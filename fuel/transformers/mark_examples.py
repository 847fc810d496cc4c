"""A stage that adds the examples of data sets that each row was made of."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import numpy
from numpy.typing import NDArray

from fuel.describe.source_types import SourceType, SourceTypes
from fuel.epochs.epoch import asking_examples
from fuel.epochs.pipeline import child_streams
from fuel.streams.arguments import StreamOptions
from fuel.transformers.balanced.stage import BalancedBatches
from fuel.transformers.base import ALL, Transformer
from fuel.transformers.example_ids import ExampleIds, Wanted, refuse_server
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
    tokens : str, optional
        Name of another new source, for :class:`BalancedBatches`: the number
        of tokens of the step that a row belongs to, of all ranks and rounds,
        as its `step_tokens` has it. It is int64 of the shape (batch,), or ()
        for an example. Defaults to None: no such source.
    iteration_scheme, axis_labels
        See :class:`~fuel.transformers.Transformer`. The axis labels default
        to those of `data_stream`.

    Raises
    ------
    ValueError
        If there is a source of that name, `data_stream` has no source `of`,
        a server makes the items, or `tokens` is given and `data_stream` has
        rows that do not come from :class:`BalancedBatches`, or packs them.
    fuel.exceptions.UnknownOrderError
        When data are requested, if a stage below changes the rows of a batch
        or does not say from which examples it makes an item, if workers or
        threads make items whose order depends on the data, or if a row is
        not an integer.

    Notes
    -----
    An item that was made of no example of a data set has -1 in all marks.

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
    epoch_attributes = (*Transformer.epoch_attributes, '_ids')
    _ids: ExampleIds

    def __init__(self, data_stream: StreamLike, source: str = 'example',
                 of: str | None = None, partner: str | None = None,
                 tokens: str | None = None,
                 **kwargs: Unpack[StreamOptions]) -> None:
        sources = tuple(data_stream.sources)
        self.source = source
        self.partner = partner
        self.tokens = tokens
        taken = list(sources)
        for argument, name in (('source', source), ('partner', partner),
                               ('tokens', tokens)):
            if name is None:
                continue
            if name in taken:
                raise ValueError(f'{argument} must be a new name, but '
                                 f'{name!r} is one of {tuple(taken)}')
            taken.append(name)
        if of is not None and of not in sources:
            raise ValueError(
                f'of must be one of the sources {sources}, got {of!r}')
        refuse_server('MarkExamples', data_stream)
        self._is_packed = _packs(data_stream)
        self.of = of
        self._path = () if of is None else _path_to(data_stream, of)
        if tokens is not None:
            if self._is_packed:
                raise ValueError(
                    'a row that Pack makes may have examples of several '
                    'steps, so it has no number of tokens of its step: put '
                    'MarkExamples between BalancedBatches and Pack')
            _require_balanced(data_stream, self._path)
        labels: Mapping[str, Any] | None = labels_of(data_stream)
        if labels is not None:
            axes = (*('batch',) * (not data_stream.produces_examples),
                    *('segment',) * self._is_packed, 'id')
            kwargs.setdefault('axis_labels', {
                **labels, **{name: axes[:-1] if column == 'tokens' else axes
                             for column, name in self._added().items()}})
        super().__init__(data_stream, data_stream.produces_examples,
                         **kwargs)

    def _get_sources(self) -> tuple[str, ...]:
        return (*self.data_stream.sources, *self._added().values())

    def _added(self) -> dict[Wanted, str]:
        """Return the names of the new sources, by what they have."""
        names: dict[Wanted, str] = {'own': self.source}
        if self.partner is not None:
            names['partner'] = self.partner
        if self.tokens is not None:
            names['tokens'] = self.tokens
        return names

    def known_types(self) -> SourceTypes:
        """Return the types of the sources and of the examples."""
        shape = (*(None,) * (not self.produces_examples),
                 *(None,) * self._is_packed, 2)
        return {**super().known_types(), **{
            name: SourceType(numpy.dtype('int64'), shape[:-1] if (
                column == 'tokens') else shape)
            for column, name in self._added().items()}}

    def start_epoch(self) -> None:
        """Ask the stages below for the examples of each item."""
        self._ids = ExampleIds('MarkExamples', self.data_stream, self._path,
                               self._is_packed)
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
        return self._ids.of_last(
            self.child_epoch_iterator, count, tuple(self._added()))


def _packs(stream: StreamLike) -> bool:
    """Return whether a stage below may make a row of several examples."""
    return (isinstance(stream, Transformer) and stream.packs_examples) or any(
        map(_packs, child_streams(stream)))


def _require_balanced(stream: StreamLike, path: tuple[int, ...]) -> None:
    """Raise ValueError unless all rows of a stream come from BalancedBatches.

    `path`: for each of several merges, the place of the stream that counts.
    """
    below = child_streams(stream)
    if isinstance(stream, BalancedBatches):
        return
    if not below:
        raise ValueError(
            'tokens is the name of a source with the tokens of each step of '
            f'BalancedBatches, but there is none above {type(stream).__name__}'
            ': put MarkExamples over BalancedBatches, or leave out tokens')
    if isinstance(stream, Merge):
        below, path = [below[path[0] if path else 0]], path[1:]
    for child in below:
        _require_balanced(child, path)


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
