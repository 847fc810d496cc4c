"""Fuel's streams and data sets under Chainer's interfaces."""
from __future__ import annotations

from collections.abc import Iterator as Iterates
from collections.abc import Sequence
from typing import Any

from fuel.epochs.pipeline import child_streams, length_of
from fuel.epochs.readers import known_length
from fuel.epochs.stage import stage_of
from fuel.epochs.state import as_state
from fuel.epochs.sealing import sealed
from fuel.interop.chainer.conversion import ExampleList
from fuel.interop.chainer.examples import DatasetMixin, Example, as_place
from fuel.interop.chainer.iterator import Iterator
from fuel.interop.chainer.serialization import (
    Serializer,
    serialize_count,
    serialize_plain,
)
from fuel.schemes import ConstantScheme
from fuel.schemes.iteration_scheme import batch_size_of
from fuel.transformers import Batch
from fuel.typing import DatasetLike, State, StreamLike
from fuel.utils.sparse import iterate_rows


def as_dataset(dataset: DatasetLike, as_dict: bool = False) -> FuelExamples:
    """Return a data set of Fuel under the interface of Chainer.

    Parameters
    ----------
    dataset : Dataset
        A data set that takes indices as requests, such as a
        :class:`~fuel.datasets.H5PYDataset`.
    as_dict : bool, optional
        Whether an example is a dict from sources to data. Defaults to
        False: it is a tuple.

    Returns
    -------
    DatasetMixin
        A data set for the iterators of Chainer and of this package. The
        iterators of this package read a batch in one request.

    Raises
    ------
    TypeError
        If the data set can only be read in order.

    Examples
    --------
    >>> from fuel.datasets import IndexableDataset
    >>> digits = as_dataset(IndexableDataset({'x': [7, 8, 9], 'y': 'abc'}))
    >>> len(digits), digits[0], digits[1:]
    (3, (7, 'a'), [(8, 'b'), (9, 'c')])
    """
    return FuelExamples(dataset, as_dict)


class FuelExamples(DatasetMixin):
    """The examples of a data set of Fuel; see :func:`as_dataset`."""

    def __init__(self, dataset: DatasetLike, as_dict: bool) -> None:
        self.dataset: Any = dataset
        self.as_dict = as_dict
        if dataset.open() is not None or known_length(dataset) is None:
            raise TypeError(
                f'{type(dataset).__name__} is read in order, so its examples '
                'have no indices: make a stream of it and use as_iterator')

    def __len__(self) -> int:
        count: int = self.dataset.num_examples
        return count

    def get_example(self, i: int) -> Example:
        """Return an example: the data of all sources in a tuple or dict."""
        return self._named(self.dataset.get_data(
            None, as_place(i, len(self))))

    def get_examples(self, indices: Sequence[int]) -> list[Example]:
        """Return several examples, read in one request."""
        if not len(indices):
            return []
        batch = self.dataset.get_data(
            None, [as_place(i, len(self)) for i in indices])
        return examples_of_batch(batch, self.dataset.sources, self.as_dict)

    def _named(self, data: Sequence[Any]) -> Example:
        if self.as_dict:
            return dict(zip(self.dataset.sources, data, strict=True))
        return tuple(data)


def examples_of_batch(batch: Sequence[Any], sources: Sequence[str],
                      as_dict: bool) -> ExampleList:
    """Return a batch as a list of examples, which are rows of its arrays."""
    rows = zip(*map(iterate_rows, batch), strict=True)
    if not as_dict:
        return ExampleList(rows, tuple(batch))
    names = tuple(sources)
    return ExampleList([dict(zip(names, row, strict=True)) for row in rows],
                       dict(zip(names, batch, strict=True)))


def as_iterator(stream: StreamLike, batch_size: int | None = None,
                repeat: bool = True, as_dict: bool = False,
                ) -> StreamIterator:
    """Return a stream under the interface of Chainer's iterators.

    Parameters
    ----------
    stream : AbstractDataStream
    batch_size : int, optional
        Number of examples of a batch, for a stream that produces examples.
        A stream of batches has its own.
    repeat : bool, optional
        Whether the next epoch of the stream follows. Defaults to True.
        A batch never holds examples of two epochs.
    as_dict : bool, optional
        Whether an example is a dict from sources to data. Defaults to
        False: it is a tuple.

    Returns
    -------
    Iterator
        An iterator whose batches are lists of examples. For such a list
        :func:`concat_examples` returns the arrays of the stream without a
        copy.

    Raises
    ------
    ValueError
        If `batch_size` is missing for a stream of examples, or given for a
        stream of batches.

    Examples
    --------
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import SequentialScheme
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IndexableDataset({'x': [1, 2, 3]}),
    ...                     iteration_scheme=SequentialScheme(3, 2))
    >>> iterator = as_iterator(stream)
    >>> iterator.next(), iterator.epoch_detail, iterator.is_new_epoch
    ([(1,), (2,)], 0.5, False)
    >>> iterator.next(), iterator.epoch_detail, iterator.is_new_epoch
    ([(3,)], 1.0, True)
    """
    if stream.produces_examples:
        if batch_size is None:
            raise ValueError(
                'batch_size must be given, since the stream '
                f'{type(stream).__name__} produces single examples')
        stream = Batch(stream, ConstantScheme(batch_size))
    elif batch_size is not None:
        raise ValueError(
            f'the stream {type(stream).__name__} produces batches already: '
            f'leave out batch_size={batch_size!r}')
    return StreamIterator(stream, repeat, as_dict)


class StreamIterator(Iterator):
    """The batches of a stream; see :func:`as_iterator`.

    If a stream does not know the number of batches in an epoch, the iterator
    reads one batch ahead, to find out whether a batch is the last. Then
    `epoch_detail` is a whole number until the first epoch is over.
    """

    def __init__(self, stream: StreamLike, repeat: bool,
                 as_dict: bool) -> None:
        self.stream: Any = stream
        self.repeat = repeat
        self.as_dict = as_dict
        self._sources = tuple(stream.sources)
        self._begin(0, 0, None)

    def _begin(self, epoch: int, count: int, length: int | None) -> None:
        """Set the counters to the position of the stream.

        `length`: number of batches of the previous epoch; None if unknown.
        """
        self.epoch = epoch
        self.is_new_epoch = False
        self.previous_epoch_detail: float | None = None
        # Number of batches delivered in this epoch, and in the previous one.
        self._count = count
        self._last_count = length
        self._last_size = 0
        self._batches: Iterates[Any] | None = None
        # The batch that was read ahead, or the error that came in its place,
        # and the position of the stream before it.
        self._ahead: Any = None
        self._position: Any = None

    @property
    def batch_size(self) -> int:  # type: ignore[override]
        """Number of examples of a batch (int).

        If the stream has no batch size, it is the size of the last batch.
        """
        stage = self.stream
        while stage is not None:
            size = batch_size_of(stage_of(stage).scheme)
            if size is not None:
                return size
            stage = next(iter(child_streams(stage)), None)
        return self._last_size

    @property
    def epoch_detail(self) -> float:  # type: ignore[override]
        """Number of epochs read, with the fraction of this epoch (float)."""
        length = length_of(self.stream) or self._last_count
        if not length:
            return float(self.epoch)
        # An epoch may have more batches than its length: stay below 1.
        return self.epoch + self._count / max(length, self._count + 1)

    def __next__(self) -> ExampleList:
        if not self.repeat and self.epoch > 0:
            raise StopIteration
        before = self.epoch_detail
        batch = self._read()
        examples = examples_of_batch(batch, self._sources, self.as_dict)
        self.previous_epoch_detail = before
        self._last_size = len(examples)
        self._count += 1
        self.is_new_epoch = self._is_last()
        if self.is_new_epoch:
            self._end_epoch()
        return examples

    def _end_epoch(self) -> None:
        self.epoch += 1
        self._last_count, self._count = self._count, 0

    def _read(self) -> Any:
        """Return the next batch; begin the next epoch if necessary."""
        ahead, self._ahead, self._position = self._ahead, None, None
        if isinstance(ahead, Exception):
            raise ahead
        if ahead is not None:
            return ahead
        if self._batches is not None:
            for batch in self._batches:
                return batch
            if self._count:
                # The epoch had fewer batches than its length.
                self._end_epoch()
                if not self.repeat:
                    raise StopIteration
        # If the loaded state was saved between the last batch and the end of
        # an epoch, the first of these epochs is empty.
        for _ in range(2):
            self._batches = self.stream.get_epoch_iterator()
            for batch in self._batches:
                return batch
        if not self.repeat:
            raise StopIteration
        raise ValueError('an epoch of the stream has no batch, so it cannot '
                         'be repeated: pass repeat=False')

    def _is_last(self) -> bool:
        """Return whether the epoch is over; may read one batch ahead."""
        length = length_of(self.stream)
        if length is not None:
            return self._count >= length
        batches: Any = self._batches
        position = batches.get_position()
        try:
            self._ahead = next(batches)
        except StopIteration:
            self._batches = None
            return True
        except Exception as error:  # noqa: BLE001 (raised by the next call)
            self._ahead = error
        self._position = position
        return False

    def _state(self) -> State:
        if self._position is not None:
            return sealed(self.stream, as_state(self._position))
        state: State = self.stream.state_dict()
        return state

    def reset(self) -> None:
        """Begin the next epoch of the stream, and count epochs from 0."""
        self._begin(0, 0, self._last_count)

    def finalize(self) -> None:
        """Close the stream."""
        if 'stream' in vars(self):
            self.stream.close()

    def serialize(self, serializer: Serializer) -> None:
        """Save the position in a snapshot, or restore it from one.

        Parameters
        ----------
        serializer : chainer.AbstractSerializer

        Raises
        ------
        TypeError
            If a part of the stream cannot return its position.
        fuel.exceptions.StateMismatchError
            If the snapshot is damaged, or belongs to another stream.
        """
        state = self._state()
        saved = serialize_plain(serializer, 'stream', state)
        counts = [serialize_count(serializer, key, value) for key, value in (
            ('epoch', self.epoch), ('current_position', self._count),
            ('last_count', self._last_count or 0))]
        is_new_epoch = bool(serializer('is_new_epoch', self.is_new_epoch))
        previous = float(serializer('previous_epoch_detail', (
            -1. if self.previous_epoch_detail is None
            else self.previous_epoch_detail)))
        if saved != state:
            self.stream.load_state_dict(saved)
            self._begin(counts[0], counts[1], counts[2] or None)
        self.is_new_epoch = is_new_epoch
        self.previous_epoch_detail = previous if previous >= 0 else None

    def __repr__(self) -> str:
        return (f'<{type(self).__name__} over {type(self.stream).__name__}, '
                f'epoch_detail={self.epoch_detail:.4g}>')
