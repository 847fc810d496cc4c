"""Stages that slide windows over sequences."""
from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy

from fuel.epochs.state import position_of
from fuel.transformers.sequence_lengths import SequenceStage
from fuel.transformers.source_names import labels_of
from fuel.typing import Request, StreamLike
from fuel.utils.checks import positive, saved_count


class Window(SequenceStage):
    """Pairs of windows, source and target, that slide over sequences.

    To train an n-gram model, set `source_window` to n and `target_window`
    to 1, with no offset and not overlapping: this gives items 1 to n, and
    item n + 1. For a recurrent network set both windows to one size,
    overlapping, with an offset of 1: items 1 to n, and 2 to n + 1.

    Parameters
    ----------
    offset : int
        How far the target is from the source; may be negative.
    source_window : int
        Number of items in the source.
    target_window : int
        Number of items in the target.
    overlapping : bool
        Whether `offset` is measured from the beginning of the source, as
        opposed to its end.
    data_stream : AbstractDataStream
        Produces examples of one source. They are lists, arrays or whatever
        else can be sliced.
    target_source : str, optional
        What to call the target. Defaults to ``'targets'``.
    **kwargs
        See :class:`~fuel.transformers.Transformer`. The axis labels of both
        default to those of the source.

    Attributes
    ----------
    sentence : sequence
        The present sequence; empty before the first.
    index : int
        Where in it the next source window begins.

    Raises
    ------
    ValueError
        If `data_stream` has several sources or produces batches, if the
        target has the name of the source, or if a window is not positive.

    Notes
    -----
    Windows are made as long as both of them lie inside a sequence. Each is
    a copy. No window goes from one sequence to the next, and what is left of
    a sequence never comes in another epoch. So sequences that are shorter
    than the windows give nothing; if all of an epoch are, a warning says so.

    Examples
    --------
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IterableDataset([[1, 2, 3, 4], [5, 6]]))
    >>> list(Window(1, 2, 2, True, stream).get_epoch_iterator())
    [([1, 2], [2, 3]), ([2, 3], [3, 4])]
    """

    epoch_attributes = (
        *SequenceStage.epoch_attributes, 'sentence', 'index', '_position')
    sentence: Any = ()
    index = 0
    _position: Any = None

    def __init__(self, offset: int, source_window: int, target_window: int,
                 overlapping: bool, data_stream: StreamLike,
                 target_source: str = 'targets', **kwargs: Any) -> None:
        if hasattr(offset, 'get_epoch_iterator'):
            raise TypeError(
                'the stream comes last among the arguments of Window: '
                'Window(offset, source_window, target_window, overlapping, '
                'stream), or stream.apply(Window, offset=..., '
                'source_window=..., target_window=..., overlapping=...)')
        self.offset = operator.index(offset)
        self.source_window = positive('source_window', source_window)
        self.target_window = positive('target_window', target_window)
        self.overlapping = overlapping
        self.target_source = target_source
        _check_stream(type(self).__name__, data_stream, target_source)
        source, = data_stream.sources
        labels = labels_of(data_stream)
        if labels is not None:
            kwargs.setdefault('axis_labels', {
                **labels, target_source: self._target_labels(
                    labels.get(source))})
        super().__init__(data_stream, produces_examples=True, **kwargs)

    def _target_labels(self, labels: Sequence[str]) -> Any:
        return labels

    def _get_sources(self) -> tuple[str, ...]:
        return (*self.data_stream.sources, self.target_source)

    def _start_epoch(self) -> None:
        self.sentence, self.index, self._position = (), 0, None
        super()._start_epoch()

    def get_data(self, request: Request = None) -> tuple[Any, ...]:
        """Return the next source and target.

        See :meth:`~fuel.transformers.Transformer.get_data`.
        """
        self._refuse(request)
        while self._is_used_up():
            self._fetch()
        begin = self.index
        self.index += 1
        target = begin + self._distance()
        return (
            _slice(self.sentence, begin, begin + self.source_window),
            _slice(self.sentence, target, target + self.target_window))

    def _distance(self) -> int:
        """Return how far the target begins behind the source."""
        if self.overlapping:
            return self.offset
        return self.offset + self.source_window

    def _fetch(self) -> None:
        """Read a sequence."""
        position = position_of(self.child_epoch_iterator)
        self.sentence = self._pull()[0]
        self._note_length(len(self.sentence))
        self.index, self._position = max(0, -self._distance()), position

    def _is_used_up(self) -> bool:
        """Return whether no more pair of windows lies inside the sequence."""
        return self.index + self._reach() > len(self.sentence)

    def _reach(self) -> int:
        """Return how far a pair of windows goes from the source's begin."""
        return max(self.source_window, self._distance() + self.target_window)

    def _items_needed(self) -> int:
        """Return the items of a pair, from the first to the last."""
        return self._reach() + max(0, -self._distance())

    def _length(self) -> None:
        # How many windows the sequences have is not known before.
        return None

    def get_leftover(self) -> Any:
        """Return where in the child's example the next window begins."""
        return None if self._is_used_up() else {'begin': self.index}

    def set_leftover(self, leftover: dict[str, Any]) -> None:
        """Read the child's example again, and go on within it."""
        self._fetch()
        self.index = saved_count(leftover, 'begin')
        if self._is_used_up():
            raise ValueError(
                f"begin is {self.index}, where no window of the child's "
                f'example of {len(self.sentence)} items begins')

    def get_child_position(self) -> Any:
        """Return where the child stood before its last example."""
        return None if self._is_used_up() else self._position


class NGrams(Window):
    """N-grams of sequences, each with the item that follows it.

    Parameters
    ----------
    ngram_order : int
        How many items an n-gram has; 3 for trigrams.
    data_stream : AbstractDataStream
        Produces examples of one source, such as lists of integers.
    target_source : str, optional
        What to call the item that follows. Defaults to ``'targets'``.
    **kwargs
        See :mod:`fuel.transformers`.

    Raises
    ------
    ValueError
        As :class:`Window` does.

    Notes
    -----
    Unlike that of :class:`Window`, the target is an item, not a window.

    Examples
    --------
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IterableDataset([[1, 2, 3, 4], [5, 6]]))
    >>> list(NGrams(2, stream).get_epoch_iterator())
    [([1, 2], 3), ([2, 3], 4)]
    """

    def __init__(self, ngram_order: int, *args: Any, **kwargs: Any) -> None:
        if hasattr(ngram_order, 'get_epoch_iterator'):
            raise TypeError(
                'the stream comes last among the arguments of NGrams: '
                'NGrams(ngram_order, stream), or stream.apply(NGrams, '
                'ngram_order=...)')
        super().__init__(0, ngram_order, 1, False, *args, **kwargs)
        self.ngram_order = self.source_window

    def _target_labels(self, labels: Sequence[str]) -> Any:
        return None if labels is None else tuple(labels)[1:]

    def get_data(self, request: Request = None) -> tuple[Any, ...]:
        """Return the next n-gram and the item that follows it."""
        source, target = super().get_data(request)
        return source, target[0]


def _check_stream(stage: str, data_stream: StreamLike,
                  target_source: str) -> None:
    if not data_stream.produces_examples:
        raise ValueError(
            f'{stage} needs a stream of examples, but '
            f'{type(data_stream).__name__} produces batches: put Unpack '
            'between them')
    if len(data_stream.sources) != 1:
        raise ValueError(
            f'{stage} needs a stream with one source, got '
            f'{tuple(data_stream.sources)}: put FilterSources between them')
    if target_source in data_stream.sources:
        raise ValueError(
            f'the target cannot have the name of the source, '
            f'{target_source!r}: pass another target_source')


def _slice(items: Sequence[Any], begin: int, end: int) -> Any:
    """Return some items, not as a view: neighbouring windows overlap."""
    part = items[begin:end]
    return part.copy() if isinstance(part, numpy.ndarray) else part
