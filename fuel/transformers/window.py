"""Stages that slide windows over sequences."""
from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import partial
from typing import Any, Unpack

from fuel.streams.arguments import StreamOptions
from fuel.transformers.leftovers import LazyPieces, Pieces, refused_position
from fuel.transformers.sequence_stage import SequenceStage, cut
from fuel.typing import StreamLike
from fuel.utils.arguments import is_stream
from fuel.utils.checks import positive
from fuel.utils.sparse import row_of


class Window(SequenceStage):
    """Pairs of windows, source and target, that slide over sequences.

    To train an n-gram model, set `source_window` to n and `target_window`
    to 1, `offset` to 0 and `overlapping` to False: the source is items 1 to
    n, the target is item n + 1. For a recurrent network set both windows to
    one size, `offset` to 1 and `overlapping` to True: the source is items 1
    to n, the target is items 2 to n + 1.

    Parameters
    ----------
    offset : int
        Distance of the target from the source; may be negative.
    source_window : int
        Number of items in the source.
    target_window : int
        Number of items in the target.
    overlapping : bool
        Whether `offset` is measured from the beginning of the source, as
        opposed to its end.
    data_stream : AbstractDataStream
        Produces examples of one source: lists, arrays or other objects that
        can be sliced.
    target_source : str, optional
        Name of the target. Defaults to ``'targets'``.
    iteration_scheme, axis_labels
        See :class:`~fuel.transformers.Transformer`. The axis labels of source
        and target default to those of the source.

    Attributes
    ----------
    sentence : sequence
        The current sequence; empty before the first.
    index : int
        The place in the sequence at which the next source window begins.

    Raises
    ------
    ValueError
        If `data_stream` has several sources or produces batches, if the
        target has the name of the source, or if a window is not positive.

    Notes
    -----
    A pair of windows is made if both lie inside a sequence. Windows are
    copies. No window extends from one sequence to the next, and the rest of a
    sequence is not delivered in another epoch. So sequences that are too short
    for a pair of windows give none. If all sequences of an epoch are too
    short, a warning is given.

    Examples
    --------
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IterableDataset([[1, 2, 3, 4], [5, 6]]))
    >>> list(Window(1, 2, 2, True, stream).get_epoch_iterator())
    [([1, 2], [2, 3]), ([2, 3], [3, 4])]
    """

    epoch_attributes = (*SequenceStage.epoch_attributes, '_assigned')
    # The index that a user assigned, and the number of windows made before.
    _assigned: tuple[int, int] | None = None

    def __init__(self, offset: int, source_window: int, target_window: int,
                 overlapping: bool, data_stream: StreamLike,
                 target_source: str = 'targets',
                 **kwargs: Unpack[StreamOptions]) -> None:
        if is_stream(offset):
            raise TypeError(
                'the stream comes last among the arguments of Window: '
                'Window(offset, source_window, target_window, overlapping, '
                'stream), or stream.apply(Window, offset=..., '
                'source_window=..., target_window=..., overlapping=...)')
        self.offset = operator.index(offset)
        self.source_window = positive('source_window', source_window)
        self.target_window = positive('target_window', target_window)
        self.overlapping = overlapping
        super().__init__(data_stream, target_source, **kwargs)

    def start_epoch(self) -> None:
        """Set the attributes that belong to a new epoch."""
        self._assigned = None
        super().start_epoch()

    def _keep_next(self) -> None:
        """Read a sequence, and begin with its windows."""
        super()._keep_next()
        self._assigned = None

    @property
    def sentence(self) -> Any:
        """The current sequence; empty before the first."""
        return self._sequences[0] if self._sequences else ()

    @sentence.setter
    def sentence(self, sentence: Any) -> None:
        self._assign(sentence, 0)

    @property
    def index(self) -> int:
        """The place at which the next source window begins (int)."""
        if not self._sequences:
            return 0
        used = self._num_used()
        # An assigned index is valid until a window is made.
        if self._assigned is not None and self._assigned[1] == used:
            return self._assigned[0]
        return self._begin_of(used)

    @index.setter
    def index(self, index: int) -> None:
        self._assign(self.sentence, index)

    def _num_used(self) -> int:
        """Return the number of windows made of the sequence."""
        return self._kept[0].used if self._kept else len(self._cut())

    def _assign(self, sentence: Any, index: int) -> None:
        self._sequences = (sentence,)
        pieces = Pieces(refused_position(self, 'sentence'), self._cut())
        used = max(0, self._number_of(index))
        self._kept = ()
        if used < pieces.size:
            pieces.skip(used)
            self._kept = (pieces,)
        self._assigned = index, self._num_used()

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if 'sentence' in state:
            # A pickle of Fuel 0.2.0, perhaps in the middle of an epoch.
            shown = vars(self)
            self._assign(shown.pop('sentence'), shown.pop('index', 0))

    def _cut(self) -> LazyPieces:
        sentence, distance = self._sequences[0], self._distance()
        first = max(0, -distance)
        return LazyPieces(
            partial(self._piece_at, sentence, first, distance,
                    self.source_window, self.target_window),
            max(0, len(sentence) - first - self._reach(distance) + 1))

    def _distance(self) -> int:
        """Return the distance of the target's start from the source's."""
        if self.overlapping:
            return self.offset
        return self.offset + self.source_window

    def _reach(self, distance: int) -> int:
        """Return the length of a pair of windows, from the source's start."""
        return max(self.source_window, distance + self.target_window)

    def _begin_of(self, number: int) -> int:
        return max(0, -self._distance()) + number

    def _number_of(self, begin: int) -> int:
        return begin - self._begin_of(0)

    def _items_needed(self) -> int:
        return self._begin_of(0) + self._reach(self._distance())

    @staticmethod
    def _piece_at(sentence: Any, first: int, distance: int, source: int,
                  target: int, number: int) -> tuple[Any, ...]:
        """Return a pair of windows, by its number."""
        begin = first + number
        return (cut(sentence, begin, begin + source),
                cut(sentence, begin + distance, begin + distance + target))


class NGrams(Window):
    """N-grams of sequences, each with the item that follows it.

    Parameters
    ----------
    ngram_order : int
        Number of items of an n-gram; 3 for trigrams.
    data_stream : AbstractDataStream
        Produces examples of one source, such as lists of integers.
    target_source : str, optional
        Name of the item that follows. Defaults to ``'targets'``.
    iteration_scheme, axis_labels
        See :mod:`fuel.transformers`.

    Raises
    ------
    ValueError
        In the same cases as :class:`Window`.

    Notes
    -----
    The target is an item, not a window as in :class:`Window`.

    Examples
    --------
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IterableDataset([[1, 2, 3, 4], [5, 6]]))
    >>> list(NGrams(2, stream).get_epoch_iterator())
    [([1, 2], 3), ([2, 3], 4)]
    """

    def __init__(self, ngram_order: int, data_stream: StreamLike,
                 target_source: str = 'targets',
                 **kwargs: Unpack[StreamOptions]) -> None:
        if is_stream(ngram_order):
            raise TypeError(
                'the stream comes last among the arguments of NGrams: '
                'NGrams(ngram_order, stream), or stream.apply(NGrams, '
                'ngram_order=...)')
        super().__init__(0, ngram_order, 1, False, data_stream,
                         target_source, **kwargs)
        self.ngram_order = self.source_window

    def _target_labels(self, labels: Sequence[str]) -> Any:
        return None if labels is None else tuple(labels)[1:]

    @staticmethod
    def _piece_at(sentence: Any, first: int, distance: int, source: int,
                  target: int, number: int) -> tuple[Any, ...]:
        """Return an n-gram and the item that follows it, by their number."""
        source, target = Window._piece_at(
            sentence, first, distance, source, target, number)
        return source, row_of(target, 0)
