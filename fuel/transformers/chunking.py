"""A stage that cuts long sequences into chunks."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy

from fuel.epochs.state import position_of
from fuel.transformers.base import check_count
from fuel.transformers.sequence_lengths import SequenceStage
from fuel.transformers.source_names import labels_of
from fuel.typing import Request, StreamLike
from fuel.utils.checks import positive

Last: TypeAlias = Literal['short', 'drop', 'shift']


class Chunk(SequenceStage):
    """Cuts long sequences, such as documents, into chunks of one length.

    Parameters
    ----------
    data_stream : AbstractDataStream
        Produces examples. All sources are sequences, lists or arrays, which
        in an example have one length.
    length : int
        How many items a chunk has.
    stride : int, optional
        How far the next chunk begins behind the one before; at most
        `length`, so that nothing lies between two chunks. With a smaller one
        chunks overlap. Defaults to `length`.
    target_source : str, optional
        Name of one source more: what follows each item, which a language
        model learns to predict. It is the chunk moved on by one item, of the
        one source that `data_stream` then has. Defaults to None: there is
        none.
    last : {'short', 'drop', 'shift'}, optional
        What to do with items at the end of a sequence that fill no chunk:
        deliver them as a shorter one (the default), leave them out, or let
        the last chunk begin earlier, so that it is full (which a sequence
        shorter than `length` cannot be: it is delivered as it is).
    **kwargs
        See :class:`~fuel.transformers.Transformer`. The axis labels default
        to those of `data_stream`; the target has those of its source.

    Raises
    ------
    ValueError
        If `data_stream` produces batches, or with `target_source` has
        several sources or one of that name; if `stride` is larger than
        `length` or `last` none of the above; when data are asked for, if the
        sources of an example differ in length.

    See Also
    --------
    Pack : Fills rows with chunks of different lengths.
    Window : Pairs of windows that move on by one item.

    Notes
    -----
    Chunks are copies. With a target, the last item of a sequence is in no
    chunk but in a target, and each other one in some chunk if all are kept.
    Sequences without items (with a target, of a single one) make no chunk,
    and with ``last='drop'`` all that are shorter than one: if they are all
    of an epoch, a warning says so.

    Examples
    --------
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IterableDataset(
    ...     {'tokens': [[1, 2, 3, 4, 5], [6, 7, 8]]}))
    >>> chunks = Chunk(stream, 2, target_source='targets')
    >>> for tokens, targets in chunks.get_epoch_iterator():
    ...     print(tokens, targets)
    [1, 2] [2, 3]
    [3, 4] [4, 5]
    [6, 7] [7, 8]

    """

    epoch_attributes = (
        *SequenceStage.epoch_attributes, '_sequences', '_begin', '_position')
    _sequences: tuple[Any, ...] = ()
    # Where the next chunk begins; None behind the last one.
    _begin: int | None = None
    _position: Any = None

    def __init__(self, data_stream: StreamLike, length: int, *,
                 stride: int | None = None, target_source: str | None = None,
                 last: Last = 'short', **kwargs: Any) -> None:
        self.length = positive('length', length)
        self.stride = positive(
            'stride', self.length if stride is None else stride)
        if self.stride > self.length:
            raise ValueError(
                f'stride must be at most length, {self.length}, got '
                f'{self.stride}: items between two chunks would be lost')
        if last not in ('short', 'drop', 'shift'):
            raise ValueError(
                f"last must be 'short', 'drop' or 'shift', got {last!r}")
        self.last = last
        self.target_source = target_source
        _check_stream(data_stream, target_source)
        labels = labels_of(data_stream)
        if labels is not None:
            if target_source is not None:
                labels[target_source] = labels.get(data_stream.sources[0])
            kwargs.setdefault('axis_labels', labels)
        super().__init__(data_stream, produces_examples=True, **kwargs)

    def _get_sources(self) -> tuple[str, ...]:
        added = () if self.target_source is None else (self.target_source,)
        return (*self.data_stream.sources, *added)

    def _start_epoch(self) -> None:
        self._sequences, self._begin, self._position = (), None, None
        super()._start_epoch()

    def get_data(self, request: Request = None) -> tuple[Any, ...]:
        """Return the next chunk.

        See :meth:`~fuel.transformers.Transformer.get_data`.
        """
        self._refuse(request)
        while self._begin is None:
            self._fetch()
        begin, end = self._begin, min(
            self._begin + self.length, self._usable())
        self._begin = self._next(begin + self.stride)
        chunk = tuple([_copy(sequence, begin, end)
                       for sequence in self._sequences])
        if self.target_source is None:
            return chunk
        return (*chunk, _copy(self._sequences[0], begin + 1, end + 1))

    def _usable(self) -> int:
        """Return how many items can be in chunks."""
        return len(self._sequences[0]) - (self.target_source is not None)

    def _next(self, begin: int) -> int | None:
        """Return where the chunk begins that is due at a place, if any."""
        usable = self._usable()
        covered = begin - self.stride + self.length if begin else 0
        if covered >= usable:
            return None
        if begin + self.length <= usable or self.last == 'short':
            return begin
        if self.last == 'drop':
            return None
        return max(0, usable - self.length)

    def _fetch(self) -> None:
        """Read a sequence."""
        position = position_of(self.child_epoch_iterator)
        sources = self.data_stream.sources
        sequences = tuple(self._pull())
        check_count(sequences, sources)
        lengths = [len(sequence) for sequence in sequences[:len(sources)]]
        if len(set(lengths)) > 1:
            raise ValueError(
                'the sources of an example must be equally long to be cut '
                'together, got ' + ', '.join(
                    f'{source}: {length}' for source, length
                    in zip(sources, lengths, strict=True))
                + ': leave one out with FilterSources')
        self._sequences = sequences[:len(sources)]
        self._position = position
        self._note_length(lengths[0])
        self._begin = self._next(0)

    def _items_needed(self) -> int:
        """Return the items of the shortest sequence that makes a chunk."""
        return (self.length if self.last == 'drop' else 1) + (
            self.target_source is not None)

    def _length(self) -> None:
        # How many chunks the sequences make is not known before.
        return None

    def get_leftover(self) -> Any:
        """Return where in the child's example the next chunk begins."""
        return None if self._begin is None else {'begin': self._begin}

    def set_leftover(self, leftover: dict[str, Any]) -> None:
        """Read the child's example again, and go on within it."""
        begin = leftover['begin']
        if type(begin) is not int or begin < 0:
            raise ValueError(f'begin must be from 0 on, got {begin!r}')
        self._fetch()
        if begin >= self._usable():
            raise ValueError(
                f'a chunk began at item {begin} when the state was saved, '
                f'but the sequence has only {len(self._sequences[0])} now: '
                'the data have changed')
        self._begin = begin

    def get_child_position(self) -> Any:
        """Return where the child stood before its last example."""
        return None if self._begin is None else self._position


def _check_stream(data_stream: StreamLike, target_source: str | None) -> None:
    sources: Sequence[str] = data_stream.sources
    if not data_stream.produces_examples:
        raise ValueError(
            'Chunk cuts examples, but its data stream '
            f'({type(data_stream).__name__}) produces batches: put Unpack '
            'between them')
    if target_source is None:
        return
    if len(sources) != 1:
        raise ValueError(
            'Chunk makes a target of one source, but the data stream has '
            f'{tuple(sources)}: put FilterSources between them')
    if target_source in sources:
        raise ValueError(
            f'the target cannot have the name of the source, '
            f'{target_source!r}: pass another target_source')


def _copy(sequence: Sequence[Any], begin: int, end: int) -> Any:
    """Return some items, not as a view: chunks may overlap."""
    part = sequence[begin:end]
    return part.copy() if isinstance(part, numpy.ndarray) else part
