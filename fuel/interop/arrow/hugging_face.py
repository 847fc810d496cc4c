"""A data set over what Hugging Face streams."""
from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Unpack

import pyarrow

from fuel.datasets.dataset import Dataset
from fuel.datasets.options import DatasetOptions
from fuel.datasets.rows import only_in_order
from fuel.datasets.rows_dataset import masks_of, with_masks
from fuel.exceptions import StateMismatchError
from fuel.interop.arrow.columns import (
    as_tensor_type, as_tensors, is_there, rows_of, without_nulls)
from fuel.interop.arrow.files import classes_of
from fuel.interop.arrow.hugging_face_parts import (
    HuggingFaceStream, fits_state, has_exact_states, is_plain, part_order,
    own_pipeline, parts_of_pipeline)
from fuel.interop.indexed_dataset import own_value
from fuel.typing import State
from fuel.utils.checks import saved_count
from fuel.utils.other_libraries import class_for, comes_from, short_repr


class HuggingFaceReading(Iterator[Any]):
    """Where reading stands; pickled, it is a position.

    `epoch`: which epoch is read.
    `read`: how many examples of it were read.
    `start`: the state of Hugging Face to go on from; None to read `read`
        examples once more.
    """

    def __init__(self, dataset: HuggingFaceIterable, epoch: int,
                 read: int = 0, start: State | None = None) -> None:
        self._dataset = dataset
        self.epoch, self._read, self._start = epoch, read, start
        self._opened: HuggingFaceStream | None = None
        self._rows: Iterator[Mapping[str, Any]] | None = None

    def __next__(self) -> dict[str, Any]:
        if self._rows is None:
            # Unlike a loop over it, this does not leave out what the other
            # worker processes of PyTorch would read.
            rows = self._open().iter(batch_size=1)
            if self._start is None and self._read:
                self._read_again(rows)
            self._rows = rows
        try:
            columns = next(self._rows)
        except StopIteration:
            raise
        except Exception:
            # What has failed has ended: it is opened anew here.
            self.close()
            raise
        self._read += 1
        return {name: column[0] for name, column in columns.items()}

    def _open(self) -> HuggingFaceStream:
        if self._opened is None:
            self._opened = own_pipeline(self._dataset.dataset)
            self._opened.set_epoch(self.epoch)
            if self._start is not None:
                self._opened.load_state_dict(self._start)
        return self._opened

    def _read_again(self, rows: Iterator[Mapping[str, Any]]) -> None:
        found = sum(1 for _ in islice(rows, self._read))
        if found < self._read:
            raise StateMismatchError(
                f'the state was saved after {self._read} examples of epoch '
                f'{self.epoch}, which has {found} now: the data of '
                f'{type(self._dataset).__name__} have changed')

    @property
    def position(self) -> dict[str, Any]:
        """The position, as plain data."""
        state = self._start
        if self._rows is not None:
            state = self._open().state_dict()
            if not (self._dataset.is_exact and is_plain(state)):
                state = None
        return {'epoch': self.epoch, 'read': self._read,
                'order': self._dataset.order, 'theirs': state}

    def close(self) -> None:
        """Let go of what is open."""
        self._start = self.position['theirs']
        self._opened = self._rows = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), '_start': self.position['theirs'],
                '_opened': None, '_rows': None}


class HuggingFaceIterable(Dataset):
    """A data set that reads an ``IterableDataset`` of Hugging Face.

    Parameters
    ----------
    dataset : datasets.IterableDataset
        What ``load_dataset(..., streaming=True)`` returns, and what ``map``,
        ``filter``, ``shuffle`` and the like make of it.
    masks : str or sequence of str, optional
        As for :class:`ArrowDataset`, of columns that are known.
    sources, axis_labels
        Arguments of :class:`~fuel.datasets.Dataset`.

    Attributes
    ----------
    dataset : datasets.IterableDataset
    categories : dict of str to tuple
        The names of the classes of each source that is a ``ClassLabel``.
    is_exact : bool
        Whether reading goes on from Hugging Face's state; see below. It does
        from release 5.2 on.

    Raises
    ------
    TypeError
        If it is no ``IterableDataset`` of Hugging Face.
    ValueError
        If it has no examples, and does not say which columns it has; by the
        epoch iterator, if an example lacks columns, or a column has nulls
        its type has not in NumPy.
    fuel.exceptions.StateMismatchError
        When a state is loaded that was saved of another order: without a
        seed, ``shuffle`` makes one that no other process repeats.

    Notes
    -----
    Each column is a source, of the types of :class:`ArrowDataset`: images
    are not decoded, which :class:`~fuel.transformers.image.ImagesFromBytes`
    does. Where the columns are not known before they are read, such as after
    a ``map`` without `features`, numbers and arrays are arrays, and others
    stay as they are; the first example is read to know them. What
    ``with_format`` says last is not applied.

    The epochs of a stream are those of ``set_epoch(0)``, ``set_epoch(1)`` and
    so on, so each is shuffled anew. They begin with that of `dataset`, which
    is 0.

    A state holds Hugging Face's, and reading goes on from there. Theirs does
    not hold what is in the buffer of a ``shuffle``. With such a buffer, and
    with functions that take tables, what was read of the epoch is read once
    more, and nothing is lost: it takes time. Use ``buffer_size=1``, which
    shuffles shards alone, and a
    :class:`~fuel.transformers.shuffling.ShuffleBuffer`.

    Examples
    --------
    >>> import datasets
    >>> from fuel.streams import DataStream
    >>> def open_stream():
    ...     numbers = datasets.Dataset.from_dict({'x': [5, 6, 7, 8]})
    ...     return DataStream(HuggingFaceIterable(
    ...         numbers.to_iterable_dataset(num_shards=2)))
    >>> stream = open_stream()
    >>> epoch = stream.get_epoch_iterator()
    >>> [int(number) for number, in (next(epoch), next(epoch))]
    [5, 6]
    >>> resumed = open_stream()
    >>> resumed.load_state_dict(stream.state_dict())
    >>> [int(number) for number, in resumed.get_epoch_iterator()]
    [7, 8]
    """

    example_iteration_scheme = None
    takes_requests = False
    unsaved_arguments = ('dataset',)

    def __init__(self, dataset: Any, masks: Sequence[str] | str = (),
                 **kwargs: Unpack[DatasetOptions]) -> None:
        if isinstance(dataset, Mapping) and comes_from(
                dataset, 'datasets', ('IterableDatasetDict',)):
            raise TypeError(
                f'dataset must be one data set, got those of '
                f'{list(dataset)}: pass one of them, such as '
                f'data[{next(iter(dataset), "train")!r}]')
        if not comes_from(dataset, 'datasets', ('IterableDataset',)):
            raise TypeError(
                'dataset must be an IterableDataset of Hugging Face, got '
                f'{short_repr(dataset)}: {class_for(dataset)}')
        features, epoch = dataset.features, dataset.epoch
        self._schema: pyarrow.Schema | None = None
        self._categories: dict[str, tuple[str, ...]] = {}
        if features is not None:
            dataset = dataset.decode(False)
            self._schema = features.arrow_schema
            self._categories = classes_of(self._schema)
        self.dataset: HuggingFaceStream = dataset.with_format(None)
        self.dataset.set_epoch(epoch)
        parts = list(parts_of_pipeline(self.dataset))
        self.is_exact = has_exact_states(parts)
        # Another number for another order.
        self.order = zlib.crc32(repr(list(map(part_order, parts))).encode())
        columns = tuple(self._first() if features is None else features)
        self._masks = masks_of(masks, () if features is None else columns)
        self.provides_sources = with_masks(columns, self._masks)
        super().__init__(**kwargs)

    def _first(self) -> Mapping[str, Any]:
        """Return the first example."""
        try:
            return next(self.open())
        except StopIteration:
            raise ValueError(
                'the IterableDataset of Hugging Face has no examples, and '
                'does not say which columns it has') from None

    @property
    def categories(self) -> dict[str, tuple[Any, ...]]:
        """For each source of categories, the name of each code (dict)."""
        return self._categories

    def open(self) -> HuggingFaceReading:
        """Return where reading stands: before the first example."""
        return HuggingFaceReading(self, self.dataset.epoch)

    def next_epoch(self, state: HuggingFaceReading) -> HuggingFaceReading:
        """Return the state for the next epoch, in another order."""
        self.close(state)
        return HuggingFaceReading(self, state.epoch + 1)

    def close(self, state: HuggingFaceReading | None) -> None:
        """Let go of what a state has open."""
        if state is not None:
            state.close()

    def get_position(self, state: HuggingFaceReading) -> dict[str, Any]:
        """Return where reading stands."""
        return state.position

    def open_at(self, position: Any) -> HuggingFaceReading:
        """Return a state that goes on from where another one stood.

        Raises
        ------
        StateMismatchError
            If it was saved of another order.
        """
        if position['order'] != self.order:
            raise StateMismatchError(
                f'the state was saved of another order than that of the '
                f'{type(self).__name__}: open the same data with the same '
                f'seed, as in shuffle(seed=3), and the same rank; without a '
                f'seed, each process has an order of its own')
        state = position['theirs']
        epoch = saved_count(position, 'epoch')
        if state is not None and not (
                self.is_exact and isinstance(state, dict) and is_plain(state)
                and state.get('epoch') == epoch
                and fits_state(state, {**self.dataset.state_dict(),
                                  'epoch': epoch})):
            raise StateMismatchError(
                f'the state of Hugging Face within it does not fit: '
                f'{state!r:.200}')
        return HuggingFaceReading(
            self, epoch, saved_count(position, 'read'), state)

    def get_data(self, state: Any = None, request: Any = None) -> Any:
        """Return the next example.

        Parameters
        ----------
        state : object
            What :meth:`open` returned.
        request : None

        Returns
        -------
        tuple
            An item for each of `sources`.

        Raises
        ------
        ValueError
            If there is no state, or a request, an example lacks columns, or
            a column has nulls its type has not in NumPy.
        StopIteration
            If there are no more examples.
        """
        if state is None or request is not None:
            raise only_in_order(self, 'examples', state, request)
        parts = next(state)
        try:
            return tuple([self._part(source, parts)
                          for source in self.sources])
        except KeyError as error:
            raise ValueError(
                f'an example of Hugging Face lacks the column {error}, it '
                f'has {list(parts)}') from error

    def _part(self, source: str, parts: Mapping[str, Any]) -> Any:
        """Return the part of an example that a source is."""
        name = self._masks.get(source, source)
        if self._schema is None:
            return own_value(parts[name])
        field = self._schema.field(name)
        column = pyarrow.array([parts[name]], field.type)
        tensors = as_tensor_type(field).type
        if tensors != field.type:
            column = as_tensors(column, tensors)
        if source in self._masks:
            column = is_there(column)
        elif f'{source}_mask' in self._masks:
            column = without_nulls(column)
        return rows_of(column, name)[0]
