"""The base of the stages that cut sequences into pieces, and Chunk."""
from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, TypeAlias, Unpack

import numpy

from fuel.epochs.stage import stage_of
from fuel.streams.arguments import StreamOptions
from fuel.transformers.base import check_count
from fuel.transformers.expand import Expand
from fuel.transformers.leftovers import LazyPieces
from fuel.transformers.source_names import labels_of
from fuel.typing import Batch, StreamLike
from fuel.utils.checks import positive, saved_count
from fuel.utils.sparse import require_dense


class SequenceStage(Expand):
    """Cuts sequences, and warns if no sequence of an epoch was long enough.

    Subclasses implement the methods that raise NotImplementedError here. A
    state holds the place in the current sequence at which the next piece
    begins.
    """

    epoch_attributes = (*Expand.epoch_attributes, '_sequences', '_longest')
    # The current sequence of each source.
    _sequences: tuple[Any, ...] = ()
    # Length of the longest sequence of the epoch, if one was read.
    _longest: int | None = None

    def __init__(self, data_stream: StreamLike, target_source: str | None,
                 **kwargs: Unpack[StreamOptions]) -> None:
        self._check_stream(data_stream, target_source)
        self.target_source = target_source
        labels = labels_of(data_stream)
        if labels is not None:
            if target_source is not None:
                labels[target_source] = self._target_labels(
                    labels.get(data_stream.sources[0]))
            kwargs.setdefault('axis_labels', labels)
        super().__init__(data_stream, produces_examples=True, **kwargs)

    def _check_stream(self, data_stream: StreamLike,
                      target_source: str | None) -> None:
        name, sources = type(self).__name__, tuple(data_stream.sources)
        if not data_stream.produces_examples:
            raise ValueError(
                f'{name} needs a stream of examples, but its data stream '
                f'({type(data_stream).__name__}) produces batches: put '
                'Unpack between them')
        if target_source is None:
            return
        if len(sources) != 1:
            raise ValueError(
                f'{name} makes a target of one source, but the data stream '
                f'has {sources}: put FilterSources between them')
        if target_source in sources:
            raise ValueError(
                f'the target cannot have the name of the source, '
                f'{target_source!r}: pass another target_source')

    def _target_labels(self, labels: Sequence[str]) -> Any:
        return labels

    def _get_sources(self) -> tuple[str, ...]:
        added = () if self.target_source is None else (self.target_source,)
        return (*self.data_stream.sources, *added)

    def start_epoch(self) -> None:
        """Set the attributes that belong to a new epoch."""
        self._sequences, self._longest = (), None
        resumed = stage_of(self).resumed()
        if resumed is not None and resumed['position']:
            # A sequence before the saved position was long enough.
            self._longest = self._items_needed()
        super().start_epoch()

    def _keep_next(self) -> None:
        """Read a sequence, and begin with its pieces."""
        try:
            super()._keep_next()
        except StopIteration:
            self._warn_if_empty()
            raise

    def expand(self, item: Batch) -> LazyPieces:
        """Return the pieces of an example."""
        sources = self.data_stream.sources
        sequences = tuple(item)
        check_count(sequences, sources)
        for source, sequence in zip(sources, sequences, strict=False):
            require_dense(sequence, source, type(self).__name__)
        lengths = [len(sequence) for sequence in sequences[:len(sources)]]
        if len(set(lengths)) > 1:
            raise ValueError(
                'the sources of an example must be equally long to be cut '
                'together, got ' + ', '.join(
                    f'{source}: {length}' for source, length
                    in zip(sources, lengths, strict=True))
                + ': leave one out with FilterSources')
        self._sequences = sequences[:len(sources)]
        self._longest = max(lengths[0], self._longest or 0)
        return self._cut()

    def _cut(self) -> LazyPieces:
        """Return the pieces of the current sequence."""
        raise NotImplementedError

    def _begin_of(self, number: int) -> int:
        """Return the start of a piece of the current sequence."""
        raise NotImplementedError

    def _number_of(self, begin: int) -> int:
        """Return the number of the piece that begins at a place."""
        raise NotImplementedError

    def _items_needed(self) -> int:
        """Return the least length of a sequence that gives a piece."""
        raise NotImplementedError

    def get_leftover(self) -> Any:
        """Return the start of the next piece in the input's example."""
        leftover = super().get_leftover()
        if self._oldest() is not None:
            leftover['begin'] = self._begin_of(leftover.pop('used'))
        return leftover

    def set_leftover(self, leftover: dict[str, Any]) -> None:
        """Read the child's example again, and continue within it."""
        begin = saved_count(leftover, 'begin')
        number = self._number_of(begin)
        super().set_leftover({**leftover, 'used': number})
        if self._oldest() is None or self._begin_of(number) != begin:
            raise ValueError(
                f'begin is {begin}, but {type(self).__name__} cuts no piece '
                f"that begins there out of the child's example, which has "
                f'{len(self._sequences[0])} items: the data have changed')

    def _warn_if_empty(self) -> None:
        """Warn if an epoch has read sequences, but delivered no piece."""
        # Warn only once, even if the warning is raised as an error.
        longest, self._longest = self._longest, None
        if longest is None or longest >= self._items_needed():
            return
        name = type(self).__name__
        warnings.warn(
            f'an epoch of {name} is empty: {name} as it is set needs '
            f'sequences of at least {self._items_needed()} items, and the '
            f'longest that was read has {longest}. It never goes from one '
            'sequence to the next, and each line of a TextFile is one: '
            'choose a shorter window or length, or make one sequence of the '
            'whole text, as Vocabulary.encode does', stacklevel=2)


def cut(items: Sequence[Any], begin: int, end: int) -> Any:
    """Return a copy of some items, since neighbouring pieces may overlap."""
    part = items[begin:end]
    return part.copy() if isinstance(part, numpy.ndarray) else part


Last: TypeAlias = Literal['short', 'drop', 'shift']


class Chunk(SequenceStage):
    """Cuts long sequences, such as documents, into chunks of one length.

    Parameters
    ----------
    data_stream : AbstractDataStream
        Produces examples. All sources are sequences, lists or arrays, which
        have equal lengths in an example.
    length : int
        Number of items of a chunk.
    stride : int, optional
        Distance from the start of a chunk to the start of the next; at most
        `length`, so that no item lies between two chunks. With a smaller
        stride, chunks overlap. Defaults to `length`.
    target_source : str, optional
        Name of an additional source, the chunk shifted by one item: for each
        item of the chunk it has the item that follows, which a language model
        learns to predict. `data_stream` must then have a single source.
        Defaults to None: no such source.
    last : {'short', 'drop', 'shift'}, optional
        What to do with items at the end of a sequence that do not fill a
        chunk: deliver them as a shorter chunk (the default), leave them out,
        or let the last chunk begin earlier, so that it is full. A sequence
        shorter than `length` cannot fill a chunk: it is delivered unchanged.
    iteration_scheme, axis_labels
        See :class:`~fuel.transformers.Transformer`. The axis labels default
        to those of `data_stream`; the target has those of its source.

    Raises
    ------
    ValueError
        If `data_stream` produces batches; if, with `target_source`, it has
        several sources or a source of that name; if `stride` is larger than
        `length`; if `last` has another value; when data are requested, if
        the sources of an example differ in length.

    See Also
    --------
    Pack : Fills rows with chunks of different lengths.
    Window : Pairs of windows that move by one item at a time.

    Notes
    -----
    Chunks are copies. With a target, the last item of a sequence is only in a
    target. All other items are in chunks, except the items that
    ``last='drop'`` leaves out. An empty sequence gives no chunk. With a
    target, a sequence of one item gives no chunk either. With
    ``last='drop'``, a sequence shorter than a chunk gives no chunk. If no
    sequence of an epoch gives a chunk, a warning is given.

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

    def __init__(self, data_stream: StreamLike, length: int, *,
                 stride: int | None = None, target_source: str | None = None,
                 last: Last = 'short',
                 **kwargs: Unpack[StreamOptions]) -> None:
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
        super().__init__(data_stream, target_source, **kwargs)

    def _cut(self) -> LazyPieces:
        usable, has_target = self._usable(), self.target_source is not None
        if self.last == 'drop':
            count = 1 + (usable - self.length) // self.stride
        else:
            count = (usable > 0) + max(
                0, -((self.length - usable) // self.stride))
        return LazyPieces(
            partial(_chunk_at, self._sequences, self.length, self.stride,
                    usable, self._last_begin(), has_target), max(0, count))

    def _usable(self) -> int:
        """Return the number of items that can be in chunks."""
        return len(self._sequences[0]) - (self.target_source is not None)

    def _last_begin(self) -> int:
        """Return the latest start of a chunk."""
        usable = self._usable()
        return max(0, usable - self.length) if (
            self.last == 'shift') else usable

    def _begin_of(self, number: int) -> int:
        return min(number * self.stride, self._last_begin())

    def _number_of(self, begin: int) -> int:
        return -(-begin // self.stride)

    def _items_needed(self) -> int:
        return (self.length if self.last == 'drop' else 1) + (
            self.target_source is not None)


def _chunk_at(sequences: Sequence[Any], length: int, stride: int,
              usable: int, last_begin: int, has_target: bool,
              number: int) -> tuple[Any, ...]:
    """Return a chunk of some sequences, by its number."""
    begin = min(number * stride, last_begin)
    end = min(begin + length, usable)
    chunk = tuple([cut(sequence, begin, end) for sequence in sequences])
    if not has_target:
        return chunk
    return (*chunk, cut(sequences[0], begin + 1, end + 1))
