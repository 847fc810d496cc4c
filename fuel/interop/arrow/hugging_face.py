"""Read an ``IterableDataset`` of Hugging Face, and save its position."""
from __future__ import annotations

import importlib.metadata
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeGuard, Unpack, cast

import numpy
import pyarrow

from fuel.datasets.dataset import Dataset
from fuel.datasets.options import DatasetOptions
from fuel.datasets.rows import only_in_order, own
from fuel.datasets.source_dataset import masks_of, with_masks
from fuel.exceptions import StateMismatchError
from fuel.interop.arrow.columns import (
    as_tensor_type, as_tensors, is_there, rows_of, without_nulls)
from fuel.interop.arrow.files import class_names_of, classes_of
from fuel.interop.indexed_dataset import own_value
from fuel.typing import State
from fuel.utils.checks import saved_count
from fuel.utils.other_libraries import class_for, is_named_class, short_repr

# Number of examples that are read at once.
BLOCK = 16
# The first release whose states hold the exact position of reading, and the
# parts of a pipeline for which this is true.
FIRST_EXACT = 5, 2
EXACT = frozenset({
    'ArrowExamplesIterable', 'CyclingMultiSourcesExamplesIterable',
    'ExamplesIterable', 'FilteredExamplesIterable',
    'FormattedExamplesIterable',
    'HorizontallyConcatenatedMultiSourcesExamplesIterable',
    'InterleavedShardsExamplesIterable', 'IterableDataset',
    'MappedExamplesIterable', 'RandomlyCyclingMultiSourcesExamplesIterable',
    'RebatchedArrowExamplesIterable', 'RepeatExamplesIterable',
    'SelectColumnsIterable', 'SkipExamplesIterable', 'StepExamplesIterable',
    'TakeExamplesIterable',
    'VerticallyConcatenatedMultiSourcesExamplesIterable'})


class HuggingFaceStream(Protocol):
    """The members of an ``IterableDataset`` of Hugging Face that are used."""

    epoch: int

    def iter(self, batch_size: int) -> Iterator[Mapping[str, Any]]:
        """Iterate over dicts of columns."""

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of the next iteration."""

    def state_dict(self) -> State:
        """Return the position of the last iteration."""

    def load_state_dict(self, state_dict: State) -> None:
        """Let the next iteration begin at a position."""


def _is_part(value: object) -> TypeGuard[Any]:
    """Return whether an object is a part of a pipeline of Hugging Face."""
    return type(value).__module__ == 'datasets.iterable_dataset' and (
        'iterable' in type(value).__name__.lower())


def _below(part: object) -> Iterator[tuple[str, Any]]:
    """Yield name and value of each attribute that holds upstream parts.

    The value is a part or a list of parts.
    """
    for name, value in vars(part).items():
        if _is_part(value) or (
                isinstance(value, list) and value
                and all(map(_is_part, value))):
            yield name, value


def parts_of_pipeline(part: object) -> Iterator[object]:
    """Yield a part of a pipeline and all parts upstream of it."""
    yield part
    for _, found in _below(part):
        for each in found if isinstance(found, list) else [found]:
            yield from parts_of_pipeline(each)


def own_pipeline(part: Any) -> Any:
    """Return a copy of a pipeline with a position of its own.

    Hugging Face keeps the position of reading in the parts of the pipeline.
    Several data sets and epochs share the parts, and so do Hugging Face's own
    copies.
    """
    copied = object.__new__(type(part))
    vars(copied).update(vars(part))
    for name, found in _below(part):
        vars(copied)[name] = (
            [own_pipeline(each) for each in found] if isinstance(found, list)
            else own_pipeline(found))
    if '_epoch' in vars(copied):
        # With PyTorch, the number of the epoch is a tensor in shared memory.
        vars(copied)['_epoch'] = int(copied.epoch)
    return copied


def has_exact_states(parts: Iterable[object]) -> bool:
    """Return whether the state of a pipeline holds the exact position.

    In releases before `FIRST_EXACT`, pipelines hold back examples that are
    missing from the states.
    """
    release = importlib.metadata.version('datasets').split('.')
    return tuple(map(int, release[:2])) >= FIRST_EXACT and all(
        map(_is_exact, parts))


def _is_exact(part: object) -> bool:
    members = vars(part)
    if type(part).__name__ == 'BufferShuffledExamplesIterable':
        # With one example in the buffer, no examples are held back.
        return bool(members['buffer_size'] == 1)
    return type(part).__name__ in EXACT and not (
        # The states may lack examples that a function made of a batch.
        members.get('batched') and members.get('formatting'))


def part_order(part: object) -> list[Any]:
    """Return the attributes that decide the order of a part's examples.

    They are the attributes that hold integers, random generators or the rank.
    """
    return [type(part).__name__, *(
        (name, value.bit_generator.state if isinstance(
            value, numpy.random.Generator) else value)
        for name, value in sorted(vars(part).items())
        if (name != '_epoch' and isinstance(
            value, (int, numpy.random.Generator)))
        or type(value).__name__ == 'DistributedConfig')]


def is_plain(value: object) -> bool:
    """Return whether a value is plain data without negative numbers."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and is_plain(each)
                   for key, each in value.items())
    if isinstance(value, list):
        return all(map(is_plain, value))
    return isinstance(value, (str, type(None))) or (
        isinstance(value, int) and 0 <= value < 2 ** 128)


def fits_state(saved: object, fresh: object) -> bool:
    """Return whether a saved state has the structure of a fresh state."""
    if isinstance(fresh, dict):
        return isinstance(saved, dict) and saved.keys() == fresh.keys() and (
            all(fits_state(saved[key], (
                fresh['examples_iterable'] if key == 'previous_state'
                and saved[key] is not None else value))
                for key, value in fresh.items()))
    if isinstance(fresh, list):
        # In later epochs, the shards of concatenated data sets are in another
        # order.
        return isinstance(saved, list) and all(
            any(fits_state(each, other) for other in fresh) for each in saved)
    if fresh is None:
        # The state of several data sets is None before they are read.
        return saved is None or isinstance(saved, dict)
    return type(saved) is type(fresh) and (
        saved == fresh or not isinstance(saved, str))


class HuggingFaceReading:
    """An iterator over the examples of an epoch; its pickle is a position.

    Examples are read in blocks, which is much faster than one by one.

    `epoch`: number of the epoch.
    `read`: number of the epoch's examples that were read.
    `start`: the state of Hugging Face at the beginning of the present block;
        None for the beginning of the epoch.
    `offset`: number of examples that were read since `start`.
    """

    def __init__(self, dataset: HuggingFaceIterable, epoch: int,
                 read: int = 0, start: State | None = None,
                 offset: int = 0) -> None:
        self._dataset = dataset
        self.epoch, self._read = epoch, read
        self._start, self._offset = start, offset
        self._size = dataset.block_size
        self._opened: HuggingFaceStream | None = None
        self._blocks: Iterator[Mapping[str, Any]] | None = None
        self._block: Mapping[str, Any] = {}
        # A dict from source names to the converted data of the block.
        self._found: dict[str, Any] = {}
        self._left = 0

    def read(self, sources: Sequence[str]) -> tuple[Any, ...]:
        """Return the next example; raise StopIteration if there is none."""
        self._find_block()
        try:
            parts = [own(self._column(source)[self._offset])
                     for source in sources]
        except Exception:
            if self._size > 1:
                return self._singly().read(sources)
            self._go_on()
            raise
        self._go_on()
        return tuple(parts)

    def _go_on(self) -> None:
        self._left -= 1
        self._offset += 1
        self._read += 1

    def _column(self, source: str) -> Any:
        """Return the data of a source in the present block."""
        if source not in self._found:
            self._found[source] = self._dataset.column_of(source, self._block)
        return self._found[source]

    def _singly(self) -> HuggingFaceReading:
        """Read examples one by one from now on.

        After an error in a block, the examples before the one that failed can
        then be returned.
        """
        self.close()
        self._size = 1
        return self

    def _find_block(self) -> None:
        """Read the next block if the present block has no examples left."""
        if self._left:
            return None
        try:
            if self._blocks is None:
                self._open()
            else:
                self._next_block()
        except StopIteration:
            raise
        except Exception:
            if self._size > 1:
                return self._singly()._find_block()
            # An iterator that failed has ended: open a new one at this place
            # when reading continues.
            self.close()
            raise

    def _next_block(self) -> None:
        state = self._opened.state_dict() if self._opened else None
        block = next(cast(Iterator[Mapping[str, Any]], self._blocks))
        self._take(block, 0)
        self._start = state if self._dataset.is_exact and is_plain(
            state) else None

    def _take(self, block: Mapping[str, Any], offset: int) -> None:
        """Continue in a block, after its first `offset` examples."""
        self._block, self._found, self._offset = block, {}, offset
        self._left = len(next(iter(block.values()), ())) - offset

    def _open(self) -> None:
        """Open the pipeline at the present position."""
        opened = own_pipeline(self._dataset.dataset)
        opened.set_epoch(self.epoch)
        missing = self._read
        if self._start is not None:
            opened.load_state_dict(self._start)
            missing = self._offset
        # Unlike a loop over the data set, iter() does not leave out the
        # examples of PyTorch's other worker processes.
        blocks = opened.iter(batch_size=self._size)
        for block in blocks:
            count = len(next(iter(block.values()), ()))
            if missing < count:
                self._take(block, missing)
                self._opened, self._blocks = opened, blocks
                return
            missing -= count
        if missing:
            raise StateMismatchError(
                f'the state was saved after {self._read} examples of epoch '
                f'{self.epoch}, which has {self._read - missing} now: the '
                f'data of {type(self._dataset).__name__} have changed')
        self._opened, self._blocks = opened, blocks
        raise StopIteration

    @property
    def position(self) -> dict[str, Any]:
        """The position, as plain data."""
        return {'epoch': self.epoch, 'read': self._read,
                'order': self._dataset.order, 'theirs': self._start,
                'offset': self._offset}

    def close(self) -> None:
        """Close the open files."""
        self._opened = self._blocks = None
        self._block, self._found, self._left = {}, {}, 0

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), '_opened': None, '_blocks': None, '_block': {},
                '_found': {}, '_left': 0}


class HuggingFaceIterable(Dataset):
    """A data set that reads an ``IterableDataset`` of Hugging Face.

    Parameters
    ----------
    dataset : datasets.IterableDataset
        The result of ``load_dataset(..., streaming=True)``, or of one of its
        methods, such as ``map``, ``filter`` or ``shuffle``.
    masks : str or sequence of str, optional
        As for :class:`ArrowDataset`; the columns must be known before they
        are read.
    sources, axis_labels
        Arguments of :class:`~fuel.datasets.Dataset`.

    Attributes
    ----------
    dataset : datasets.IterableDataset
    categories : dict of str to tuple
        The names of the classes of each source that is a ``ClassLabel``.
    is_exact : bool
        Whether resuming uses Hugging Face's own state, which a saved state
        holds; see the notes. This needs release 5.2 of `datasets` or later.

    Raises
    ------
    TypeError
        If `dataset` is not an ``IterableDataset`` of Hugging Face.
    ValueError
        If `dataset` has no examples, and its columns are not known. The
        epoch iterator raises it if an example lacks columns, or if a column
        has nulls that its NumPy type cannot hold.
    fuel.exceptions.StateMismatchError
        When a state is loaded that belongs to another order of the examples.
        Without a seed, ``shuffle`` makes an order that no other process
        repeats.

    Notes
    -----
    Each column is a source, whose type is as in :class:`ArrowDataset`. Images
    are not decoded; :class:`~fuel.transformers.image.ImagesFromBytes` decodes
    them. If the columns are not known before they are read, such as after a
    ``map`` without `features`, the first example is read to find them. In
    this case numbers and arrays become arrays, and other objects stay as they
    are. The format that ``with_format`` has set last is not applied.

    The epochs of a stream are those of ``set_epoch(0)``, ``set_epoch(1)`` and
    so on, so each epoch has another order of shuffling. The first one is the
    epoch that is set in `dataset`, by default 0.

    Sixteen examples are read at once if the columns are known.

    A state holds Hugging Face's own state, and reading resumes from there.
    Hugging Face's state does not hold the examples in the buffer of a
    ``shuffle``. With such a buffer, and with functions that take tables,
    resuming reads the epoch again up to the position: nothing is lost, but
    it takes time. To avoid that, use ``buffer_size=1``, which shuffles only
    the shards, and a :class:`~fuel.transformers.shuffling.ShuffleBuffer`.

    Examples
    --------
    This needs the extra ``arrow`` and ``pip install datasets``.

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
        if isinstance(dataset, Mapping) and is_named_class(
                dataset, ('IterableDatasetDict',), 'datasets'):
            raise TypeError(
                f'dataset must be one data set, got those of '
                f'{list(dataset)}: pass one of them, such as '
                f'data[{next(iter(dataset), "train")!r}]')
        if not is_named_class(dataset, ('IterableDataset',), 'datasets'):
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
        # A checksum of the facts that decide the order.
        self.order = zlib.crc32(repr(list(map(part_order, parts))).encode())
        # If the columns are not known, an example may lack some columns.
        self.block_size = 1 if features is None else BLOCK
        columns = tuple(self._first() if features is None else features)
        self._masks = masks_of(masks, () if features is None else columns)
        self.provides_sources = with_masks(columns, self._masks)
        super().__init__(**kwargs)

    def _first(self) -> Mapping[str, Any]:
        """Return the first example, to find the columns."""
        try:
            return next(own_pipeline(self.dataset).iter(batch_size=1))
        except StopIteration:
            raise ValueError(
                'the IterableDataset of Hugging Face has no examples, and '
                'does not say which columns it has') from None

    @property
    def categories(self) -> dict[str, tuple[Any, ...]]:
        """The class names of each source that has class names (dict)."""
        return self._categories

    @property
    def class_names(self) -> Any:
        """The names of the classes (tuple of str); None if there are none.

        They are those of 'targets', 'labels' or 'fine_labels', or of the only
        source with class names.
        """
        return class_names_of(self.categories, self.sources)

    def open(self) -> HuggingFaceReading:
        """Return a state whose position is before the first example."""
        return HuggingFaceReading(self, self.dataset.epoch)

    def next_epoch(self, state: HuggingFaceReading) -> HuggingFaceReading:
        """Return the state for the next epoch, in another order."""
        self.close(state)
        return HuggingFaceReading(self, state.epoch + 1)

    def close(self, state: HuggingFaceReading | None) -> None:
        """Close the open files of a state."""
        if state is not None:
            state.close()

    def get_position(self, state: HuggingFaceReading) -> dict[str, Any]:
        """Return the position of a state, as plain data."""
        return state.position

    def open_at(self, position: Any) -> HuggingFaceReading:
        """Return a state that resumes at a position.

        Raises
        ------
        StateMismatchError
            If the position belongs to another order.
        """
        if position['order'] != self.order:
            raise StateMismatchError(
                f'the state belongs to another order than that of the '
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
        read, offset = (saved_count(position, name)
                        for name in ('read', 'offset'))
        if offset > read:
            raise StateMismatchError(
                f"the field 'offset' must be at most {read}, got {offset}")
        return HuggingFaceReading(self, epoch, read, state, offset)

    def get_data(self, state: Any = None, request: Any = None) -> Any:
        """Return the next example.

        Parameters
        ----------
        state : object
            The state that :meth:`open` returned.
        request : None

        Returns
        -------
        tuple
            An item for each of `sources`.

        Raises
        ------
        ValueError
            If `state` is None or `request` is given, an example lacks
            columns, or a column has nulls that its NumPy type cannot hold.
        StopIteration
            If there are no more examples.
        """
        if state is None or request is not None:
            raise only_in_order(self, 'examples', state, request)
        found: tuple[Any, ...] = state.read(self.sources)
        return found

    def column_of(self, source: str, block: Mapping[str, Any]) -> Any:
        """Return the data of a source in a block of examples."""
        name = self._masks.get(source, source)
        if name not in block:
            raise ValueError(
                f'an example of Hugging Face lacks the column {name!r}, it '
                f'has {list(block)}')
        if self._schema is None:
            return [own_value(part) for part in block[name]]
        field = self._schema.field(name)
        column = pyarrow.array(block[name], field.type)
        tensors = as_tensor_type(field).type
        if tensors != field.type:
            column = as_tensors(column, tensors)
        if source in self._masks:
            column = is_there(column)
        elif f'{source}_mask' in self._masks:
            column = without_nulls(column)
        return rows_of(column, name)
