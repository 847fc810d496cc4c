"""A stage that cuts long sequences into chunks."""
from __future__ import annotations

from typing import Any, Literal, TypeAlias

from fuel.transformers.sequence_stage import SequenceStage, cut
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
