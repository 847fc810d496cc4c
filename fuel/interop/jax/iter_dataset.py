"""Read a stream of Fuel as an iterable data set of Grain."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import grain

from fuel.sharding.shard_pipeline import copied_pipeline
from fuel.exceptions import StateMismatchError
from fuel.typing import Naming, State, StreamLike
from fuel.utils.checks import positive


def as_iter_dataset(stream: StreamLike, num_epochs: int | None = 1,
                    as_dict: Naming = False) -> StreamIterDataset:
    """Return a stream of Fuel as a `grain.IterDataset`.

    Parameters
    ----------
    stream : AbstractDataStream
        A stream of batches or of examples.
    num_epochs : int, optional
        Number of epochs that an iterator reads, each in its own order.
        Defaults to 1; None: endless.
    as_dict : bool or 'nested', optional
        Whether elements are dicts from source names to data rather than
        tuples; ``'nested'``: dicts of dicts, whose keys are the parts of the
        names between slashes.  Defaults to False.

    Returns
    -------
    StreamIterDataset

    Raises
    ------
    ValueError
        If the number of epochs is not positive.

    Examples
    --------
    This needs the extra ``jax``.

    >>> import numpy
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import ShuffledScheme
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IndexableDataset(numpy.arange(5)),
    ...                     iteration_scheme=ShuffledScheme(5, 2))
    >>> doubled = as_iter_dataset(stream).map(lambda batch: 2 * batch[0])
    >>> iterator = iter(doubled)
    >>> next(iterator)
    array([4, 2])
    >>> state = iterator.get_state()
    >>> [batch.tolist() for batch in iterator]
    [[8, 0], [6]]
    >>> other = iter(doubled)
    >>> other.set_state(state)
    >>> [batch.tolist() for batch in other]
    [[8, 0], [6]]
    """
    return StreamIterDataset(stream, num_epochs, as_dict)


class StreamIterDataset(grain.IterDataset):
    """An iterable data set of Grain over a stream of Fuel.

    :func:`as_iter_dataset` makes it.  As elsewhere in Grain, every iterator
    begins at the same position: the stream's position when this data set was
    made.  A state of an iterator is plain data, ready for JSON: the number of
    the epoch and the position in it.  Each of Grain's workers reads a part of
    the stream.
    """

    def __init__(self, stream: StreamLike, num_epochs: int | None = 1,
                 as_dict: Naming = False) -> None:
        super().__init__()
        self.stream: Any = stream
        self.num_epochs = (None if num_epochs is None
                           else positive('num_epochs', num_epochs))
        self.as_dict = as_dict
        self._begin_here()

    def __repr__(self) -> str:
        return (f'as_iter_dataset({type(self.stream).__name__}, '
                f'num_epochs={self.num_epochs})')

    def __iter__(self) -> StreamIterator:
        """Return an iterator that begins at the start."""
        # Copy the stream: iterators over one stream would share its
        # generators.
        return StreamIterator(
            copied_pipeline(self.stream, may_draw=True), self._start,
            self.num_epochs, self.as_dict)

    def _begin_here(self) -> None:
        self._start: State = self.stream.state_dict()

    def set_slice(self, part: slice, sequential_slice: bool = False) -> None:
        """Read only every n-th element.

        Grain calls this method in each worker.
        """
        self.stream = self.stream.shard(
            part.start, part.step, uneven='uneven')
        self._begin_here()


class StreamIterator(grain.DatasetIterator):
    """An iterator over the elements of `num_epochs` epochs of a stream."""

    def __init__(self, stream: Any, start: State, num_epochs: int | None,
                 as_dict: Naming) -> None:
        super().__init__()
        self._stream = stream
        self._num_epochs = num_epochs
        self._as_dict = as_dict
        self._state = start
        self._epoch = 0
        self._iterator: Any = None
        self._is_over = False

    def __next__(self) -> Any:
        if self._is_over:
            raise ValueError('the iterator was closed: make another one')
        num_empty = 0
        # A state saved at the end of an epoch makes the first epoch empty.
        # Two empty epochs mean that the stream is empty.
        while num_empty < 2 and self._epoch != self._num_epochs:
            if self._iterator is None:
                self._stream.load_state_dict(self._state)
                self._iterator = self._stream.get_epoch_iterator(
                    as_dict=self._as_dict)
            try:
                return next(self._iterator)
            except StopIteration:
                self._state = self._iterator.state_dict()
                self._iterator = None
                self._epoch += 1
                num_empty += 1
        raise StopIteration

    def get_state(self) -> dict[str, Any]:
        """Return the position of the iterator, as plain data."""
        return {'epoch': self._epoch, 'stream': (
            self._state if self._iterator is None
            else self._iterator.state_dict())}

    def set_state(self, state: dict[str, Any]) -> None:
        """Resume from a state.

        Raises StateMismatchError if the state is damaged, or belongs to
        another pipeline.
        """
        if (not isinstance(state, Mapping)
                or state.keys() != {'epoch', 'stream'}
                or type(state['epoch']) is not int or state['epoch'] < 0):
            raise StateMismatchError(
                'the state of an iterator of as_iter_dataset() has the number '
                f"of the epoch and the stream's state, got {state!r:.200}: it "
                'is damaged, or of another data set')
        self._stream.load_state_dict(state['stream'])
        self._epoch, self._state = state['epoch'], state['stream']
        self._iterator = None

    def close(self) -> None:
        """Release the stream's epoch."""
        super().close()
        self._iterator, self._is_over = None, True
