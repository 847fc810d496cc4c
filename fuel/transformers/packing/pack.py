"""A stage that packs sequences into rows of one length."""
from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Unpack

from numpy.typing import DTypeLike

from fuel.epochs.examples import joined, packed_examples
from fuel.kernels.memory import empty
from fuel.kernels.packing import fill_rows, number_rows
from fuel.streams.arguments import StreamOptions
from fuel.transformers.dtypes import as_dtype
from fuel.transformers.leftovers import LeftoverStage
from fuel.transformers.packing.epoch import (
    PackedEpoch,
    PackingReport,
    Rows,
    TooLong,
)
from fuel.transformers.source_names import as_labels, labels_of
from fuel.typing import Request, StreamLike
from fuel.utils.checks import positive

log = logging.getLogger(__name__)


class Pack(LeftoverStage):
    """Packs sequences of different lengths into rows of one length.

    Several sequences follow each other in a row, so that rows need little
    padding. Two additional sources have the number of the sequence that an
    item is from, and the position of the item in the sequence. A model needs
    them so that sequences do not attend to each other.

    Parameters
    ----------
    data_stream : AbstractDataStream
        All its sources are sequences: lists or arrays of numbers, of shape
        (length, ...), which have equal lengths in an example. It produces
        examples or batches; batches take less time.
    length : int
        Number of items of a row.
    batch_size : int, optional
        Number of rows of a batch; the last may have fewer. Defaults to
        None: the stage produces single rows, as examples.
    window : int, optional
        Number of rows that are open at a time. A sequence goes into the first
        open row with room for it; if there is none, the oldest row is closed
        and delivered. A larger window needs less padding, but moves sequences
        further, keeps more of them in memory, and reads more of them again
        when a state is restored. Defaults to 16.
    too_long : {'error', 'cut', 'split'}, optional
        What to do with a sequence that is longer than a row: raise
        ValueError (the default), cut it off, or split it into several
        sequences. Positions start at 0 in each of these.
    padding_value : number, optional
        The value after the last sequence of a row, in all sources of
        `data_stream`. Defaults to 0.
    dtype : dtype, optional
        Type of the rows. Defaults to None: for each source, the type of its
        first sequence. Sequences of types that cannot be converted to it
        without loss are an error.
    segments_source, positions_source : str or None, optional
        Names of the sources that are added; None leaves one out. Default to
        ``'segments'`` and ``'positions'``.
    iteration_scheme, axis_labels
        See :class:`~fuel.transformers.Transformer`. The axis labels default
        to those of `data_stream`.

    Attributes
    ----------
    report : PackingReport
        Counts of the current epoch, and its share of padding. It is logged
        at the level INFO at the end of an epoch.

    Raises
    ------
    ValueError
        If an argument is invalid; when data are requested, if a sequence is
        too long, or if the sequences of an example differ in length.
    TypeError
        When data are requested, if a sequence cannot be converted to the type
        of the rows.

    Notes
    -----
    Segments are counted from 1 on in each row and positions from 0 on, as
    int32; after the last sequence both are 0. Rows come in the order of
    their first sequences. A sequence is left out only if it raised an error,
    and split only if `too_long` is ``'split'``. Sequences without items take
    no place in a row, and are counted.

    A state holds the position in `data_stream` where the open rows begin, and
    the used length of each row there, but no data. Restoring it reads the
    sequences of the open rows again.

    Ranks that share the sequences have different numbers of batches, and each
    rank has a state of its own; see :ref:`packing-over-ranks`.

    Examples
    --------
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IterableDataset(
    ...     {'tokens': [[1, 2, 3], [4, 5, 6, 7], [8], [9, 10]]}))
    >>> packed = Pack(stream, length=5, batch_size=2)
    >>> packed.sources
    ('tokens', 'segments', 'positions')
    >>> for part in next(packed.get_epoch_iterator()):
    ...     print(part)
    [[1 2 3 8 0]
     [4 5 6 7 0]]
    [[1 1 1 2 0]
     [1 1 1 1 0]]
    [[0 1 2 0 0]
     [0 1 2 3 0]]

    """

    takes_masked = False
    packs_examples = True
    _kept: tuple[PackedEpoch, ...] = ()

    def __init__(self, data_stream: StreamLike, length: int, *,
                 batch_size: int | None = None, window: int = 16,
                 too_long: TooLong = 'error', padding_value: float = 0,
                 dtype: DTypeLike | None = None,
                 segments_source: str | None = 'segments',
                 positions_source: str | None = 'positions',
                 **kwargs: Unpack[StreamOptions]) -> None:
        self.length = positive('length', length)
        self.batch_size = None if batch_size is None else positive(
            'batch_size', batch_size)
        self.window = positive('window', window)
        if too_long not in ('error', 'cut', 'split'):
            raise ValueError("too_long must be 'error', 'cut' or 'split', "
                             f'got {too_long!r}')
        self.too_long = too_long
        self.padding_value = padding_value
        self.dtype = None if dtype is None else as_dtype(dtype)
        if self.dtype is not None and self.dtype.kind not in 'biufc':
            raise ValueError(
                f'dtype must be a type of number or bool, got {self.dtype}')
        self.segments_source = segments_source
        self.positions_source = positions_source
        _check_names(data_stream.sources, self._added())
        labels = self._labels(data_stream)
        if labels is not None:
            kwargs.setdefault('axis_labels', labels)
        super().__init__(data_stream, batch_size is None, **kwargs)

    def _added(self) -> tuple[str, ...]:
        """Return the names of the sources that are added."""
        return tuple([name for name in (
            self.segments_source, self.positions_source) if name is not None])

    def _get_sources(self) -> tuple[str, ...]:
        return (*self.data_stream.sources, *self._added())

    def _labels(self, data_stream: StreamLike) -> Any:
        """Return the axis labels of the rows, where they are known."""
        labels = labels_of(data_stream)
        if labels is None:
            return None
        examples = {
            source: (as_labels(part) or ())[
                0 if data_stream.produces_examples else 1:]
            for source, part in labels.items() if part is not None}
        first = examples.get(data_stream.sources[0], ())[:1]
        if first:
            examples.update(dict.fromkeys(self._added(), first))
        batch = () if self.batch_size is None else ('batch',)
        return {source: (*batch, *part)
                for source, part in examples.items() if part}

    @property
    def report(self) -> PackingReport:
        """Counts of the present epoch (PackingReport)."""
        return (self._kept[0].report() if self._kept
                else PackingReport(self.length))

    def start_epoch(self) -> None:
        """Set the attributes that belong to a new epoch."""
        super().start_epoch()
        self._kept = PackedEpoch(
            self.length, self.window, self.too_long, self.dtype,
            tuple(self.data_stream.sources),
            bool(self.data_stream.produces_examples)),

    def get_data(self, request: Request = None) -> tuple[Any, ...]:
        """Return the next row, or batch of rows.

        See :meth:`~fuel.transformers.Transformer.get_data`.
        """
        self._refuse(request)
        packed, = self._kept
        rows: Any = packed.take(
            self.batch_size or 1, self.child_epoch_iterator)
        if not rows:
            log.info('%s', packed.report())
            raise StopIteration
        if self._asked is not None:
            self._asked.last = joined([
                packed_examples(row[-1]) for row in rows])
        batch = self._fill(packed, rows)
        return batch if self.batch_size else tuple(
            [part[0] for part in batch])

    def _fill(self, packed: PackedEpoch, rows: Rows) -> tuple[Any, ...]:
        """Return the arrays of some rows."""
        shape = len(rows), self.length
        segments, positions = [
            None if name is None else empty(shape, 'int32')
            for name in (self.segments_source, self.positions_source)]
        packed.delivered_items += number_rows(rows, segments, positions)
        data = []
        for place, kind in enumerate(packed.kinds):
            # Each row has items, so the kind of its items is known.
            dtype, rest = kind or (self.dtype, ())
            part = empty((*shape, *rest), dtype)
            fill_rows(rows, place, part)
            if self.padding_value:
                for number, row in enumerate(rows):
                    part[number, sum(map(len, row[place])):] = (
                        self.padding_value)
            data.append(part)
        return (*data, *[part for part in (segments, positions)
                         if part is not None])

    def get_leftover(self) -> Any:
        """Return the position at which the open rows began, and their used
        length."""
        return self._kept[0].state() if self._kept else None

    def set_leftover(self, leftover: dict[str, Any]) -> None:
        """Read again the examples of the rows that are not full yet."""
        self._kept[0].load(leftover, self.child_epoch_iterator)


def _check_names(sources: Sequence[str], added: tuple[str, ...]) -> None:
    for name in added:
        if name in sources or added.count(name) > 1:
            raise ValueError(
                f'segments_source and positions_source must be names of '
                f'their own, got {added} beside the sources '
                f'{tuple(sources)}: choose others')
