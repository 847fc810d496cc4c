"""Stages that cut sequences into pieces: their base, and chunks."""
from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, Unpack

import numpy

from fuel.epochs.state import position_of
from fuel.streams.arguments import StreamOptions
from fuel.transformers.base import Transformer, check_count
from fuel.transformers.source_names import labels_of
from fuel.typing import Request, StreamLike
from fuel.utils.checks import positive, saved_count
from fuel.utils.sparse import require_dense


class SequenceStage(Transformer):
    """Cuts sequences, and warns if none of an epoch was long enough.

    Subclasses implement :meth:`_next_begin` and :meth:`_items_needed`. A
    state says where in the present sequence the next piece begins.
    """

    epoch_attributes = (*Transformer.epoch_attributes, '_sequences', 'index',
                        '_position', '_longest')
    # The present sequence of each source.
    _sequences: tuple[Any, ...] = ()
    # From here on the next piece is looked for.
    index = 0
    # Of the child, before it gave the present sequence.
    _position: Any = None
    # How many items the longest sequence of the epoch has, if any was read.
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
        self._sequences, self.index = (), 0
        self._position = self._longest = None
        super().start_epoch()

    def _find(self) -> int:
        """Return where the next piece begins, of the next sequence if the
        present one has none left."""
        while True:
            begin = self._next_begin()
            if begin is not None:
                return begin
            self._fetch()

    def _next_begin(self) -> int | None:
        """Return where in the present sequence the next piece begins, None
        if no more does."""
        raise NotImplementedError

    def _items_needed(self) -> int:
        """Return how many items a sequence must have to be delivered."""
        raise NotImplementedError

    def _first_index(self) -> int:
        """Return from where on the first piece is looked for."""
        return 0

    def _fetch(self) -> None:
        """Read a sequence."""
        position = position_of(self.child_epoch_iterator)
        sources = self.data_stream.sources
        sequences = tuple(self._pull())
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
        self._position = position
        self._longest = max(lengths[0], self._longest or 0)
        self.index = self._first_index()

    def get_leftover(self) -> Any:
        """Return where in the child's example the next piece begins."""
        begin = self._next_begin()
        return None if begin is None else {'begin': begin}

    def set_leftover(self, leftover: dict[str, Any]) -> None:
        """Read the child's example again, and go on within it."""
        self._fetch()
        self.index = saved_count(leftover, 'begin')
        if self._next_begin() != self.index:
            raise ValueError(
                f'begin is {self.index}, where nothing begins that '
                f"{type(self).__name__} cuts out of the child's example of "
                f'{len(self._sequences[0])} items: the data have changed')

    def get_child_position(self) -> Any:
        """Return where the child stood before its last example."""
        return None if self._next_begin() is None else self._position

    def warn_of_empty_epoch(self, attributes: Mapping[str, Any]) -> None:
        """Warn that an epoch which read sequences delivered nothing."""
        longest = attributes.get('_longest')
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
    """Return some items, not as a view: neighbouring pieces may overlap."""
    part = items[begin:end]
    return part.copy() if isinstance(part, numpy.ndarray) else part


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
    iteration_scheme, axis_labels
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

    def get_data(self, request: Request = None) -> tuple[Any, ...]:
        """Return the next chunk.

        See :meth:`~fuel.transformers.Transformer.get_data`.
        """
        self._refuse(request)
        begin = self._find()
        end = min(begin + self.length, self._usable())
        self.index = begin + self.stride
        chunk = tuple([cut(sequence, begin, end)
                       for sequence in self._sequences])
        if self.target_source is None:
            return chunk
        return (*chunk, cut(self._sequences[0], begin + 1, end + 1))

    def _usable(self) -> int:
        """Return how many items can be in chunks."""
        if not self._sequences:
            return 0
        return len(self._sequences[0]) - (self.target_source is not None)

    def _next_begin(self) -> int | None:
        begin, usable = self.index, self._usable()
        covered = begin - self.stride + self.length if begin else 0
        if covered >= usable:
            return None
        if begin + self.length <= usable or self.last == 'short':
            return begin
        if self.last == 'drop':
            return None
        return max(0, usable - self.length)

    def _items_needed(self) -> int:
        return (self.length if self.last == 'drop' else 1) + (
            self.target_source is not None)
