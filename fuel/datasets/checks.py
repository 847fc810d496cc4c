"""Examples of a data set by number, and all of them in order."""
from __future__ import annotations

import operator
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeGuard

import numpy

from fuel.utils.arguments import is_dataset
from fuel.describe import SourceTypes
from fuel.describe.text import dataset_text
from fuel.exceptions import NotAStreamError
from fuel.schemes import SequentialExampleScheme
from fuel.epochs.datasets import takes_requests

if TYPE_CHECKING:
    from fuel.datasets.dataset import Dataset


def length_of(dataset: object) -> int | None:
    """Return the number of examples of a data set; None if not known."""
    count = getattr(dataset, 'num_examples', None)
    try:
        # Not NaN, which stands for a number that is not known.
        return None if count is None else operator.index(count)
    except TypeError:
        return None


def is_sequential(dataset: object) -> bool | None:
    """Return whether a data set is read in order; None if not known."""
    known = takes_requests(dataset)
    if known is not None:
        return not known
    missing = object()
    scheme = getattr(dataset, 'example_iteration_scheme', missing)
    return None if scheme is missing else scheme is None


def _has_own_length(dataset: object) -> bool:
    return getattr(type(dataset), '__len__', None) is not Readable.__len__


def all_examples(dataset: Dataset) -> Iterator[tuple[Any, ...]]:
    """Yield the examples of a data set in order."""
    requests = None
    in_order = is_sequential(dataset)
    if in_order is None:
        in_order = length_of(dataset) is None and not _has_own_length(dataset)
    if not in_order:
        if not hasattr(dataset, 'example_iteration_scheme'):
            yield from (_read(dataset, row) for row in range(len(dataset)))
            return
        requests = SequentialExampleScheme(
            len(dataset)).get_request_iterator()
    state = dataset.open()
    reader = dataset.open_epoch(requests, state=state)
    try:
        while True:
            try:
                example = tuple(reader.read())
            except StopIteration:
                return
            yield example
    finally:
        reader.close()
        if state is not None:
            dataset.close(state)


def examples_at(dataset: Dataset, index: object) -> tuple[Any, ...]:
    """Return the example, or the batch of examples, at an index."""
    name = type(dataset).__name__
    if is_sequential(dataset):
        raise TypeError(
            f'{name} is read in order and takes no index, got {index!r:.80}: '
            'iterate over it, or put the examples that are needed often into '
            'an IndexableDataset')
    if isinstance(index, slice):
        rows: int | list[int] = list(range(*index.indices(len(dataset))))
    elif _is_number(index):
        rows = _checked(dataset, index)
    elif isinstance(index, (Sequence, numpy.ndarray)) and not isinstance(
            index, (str, bytes)):
        rows = [_checked(dataset, row) for row in _as_rows(name, index)]
    else:
        raise TypeError(
            f'an index of {name} is an integer, a slice or a list of '
            f'integers, got {index!r:.80} ({type(index).__name__})')
    if rows == []:
        return tuple([part[:0] for part in _read(dataset, [0])])
    return _read(dataset, rows)


def _read(dataset: Dataset, request: int | list[int]) -> tuple[Any, ...]:
    # All take batches; those that name a scheme for examples take these.
    is_alone = isinstance(request, int) and not hasattr(
        dataset, 'example_iteration_scheme')
    state = dataset.open()
    try:
        data = dataset.get_data(state, [request] if is_alone else request)
        return tuple([part[0] for part in data] if is_alone else data)
    finally:
        if state is not None:
            dataset.close(state)


def _is_number(index: object) -> TypeGuard[SupportsIndex]:
    return hasattr(index, '__index__') and not isinstance(
        index, (bool, numpy.bool_, numpy.ndarray))


def _as_rows(name: str, index: Iterable[Any]) -> list[Any]:
    """Return the numbers in a list or an array; masks are refused."""
    rows = index.tolist() if isinstance(index, numpy.ndarray) else list(index)
    if not isinstance(rows, list):
        rows = [rows]
    for row in rows:
        if isinstance(row, (bool, numpy.bool_)):
            raise TypeError(
                f'{name} takes numbers of examples, not a mask of booleans: '
                'write dataset[numpy.flatnonzero(mask)]')
        if not _is_number(row):
            raise TypeError(
                f'{name} takes a flat list of integers, and {row!r:.80} '
                f'({type(row).__name__}) is none')
    return rows


def _checked(dataset: Dataset, index: SupportsIndex) -> int:
    """Return the number of an example, counted from the end if negative."""
    number = operator.index(index)
    count = length_of(dataset)
    if count is None:
        if number >= 0:
            return number
        # Raises a TypeError that says why.
        count = len(dataset)
    if not -count <= number < count:
        raise IndexError(
            f'{type(dataset).__name__} has the examples 0 to {count - 1}, '
            f'and {number} is none of them')
    return number % count


def refuse_dataset(stream: object, reader: str) -> None:
    """Raise NotAStreamError if a function was given a data set to read."""
    if is_dataset(stream):
        raise _not_a_stream(stream, reader)


def not_a_stream(dataset: object) -> NotAStreamError:
    """Return the error that a stage was given a data set to read."""
    frame = sys._getframe(1)
    stage: Any = None
    while frame.f_back is not None and not hasattr(
            type(stage), 'epoch_attributes'):
        frame = frame.f_back
        stage = frame.f_locals.get('self')
    return _not_a_stream(dataset, type(stage).__name__ if hasattr(
        type(stage), 'epoch_attributes') else 'a stage')


def _not_a_stream(dataset: object, reader: str) -> NotAStreamError:
    name = type(dataset).__name__
    return NotAStreamError(
        f'{reader} reads a stream, and {name} is a data set: put a stream '
        f'between them, DataStream({name}(...), batch_size=128), or '
        'iteration_scheme=...')


class Readable:
    """The base of data sets: lengths, indices, loops and contexts."""

    #: Whether `get_data` needs a request; None where it is not known.
    takes_requests: bool | None = None
    num_examples: Any = None
    class_names: Any = None

    def __repr__(self) -> str:
        return dataset_text(self)

    def _repr_html_(self) -> str:
        from fuel.describe.html import dataset_html
        return dataset_html(self)

    def known_types(self) -> SourceTypes:
        """Return what is known of an example of each source.

        A hook for descriptions. It reads no data.

        Returns
        -------
        dict of str to fuel.describe.SourceType
        """
        return {}

    def known_length(self) -> int | None:
        """Return the number of examples, if nothing is read for it.

        A hook for descriptions.
        """
        count = vars(self).get('num_examples')
        return count if isinstance(count, int) else None

    def details(self) -> Sequence[str]:
        """Return where the data are, and how, in a few words.

        A hook for descriptions. It reads no data.
        """
        return ()

    def has_rows_at_hand(self) -> bool:
        """Return whether an example is read without opening a file."""
        return False

    if not TYPE_CHECKING:
        def __getattr__(self, name: str) -> object:
            if name in ('produces_examples', 'get_epoch_iterator'):
                raise not_a_stream(self)
            # Raises what was raised before, with its own text.
            return object.__getattribute__(self, name)

    def __len__(self: Any) -> int:
        """Return the number of examples."""
        count = length_of(self)
        if count is None:
            raise TypeError(
                f'{type(self).__name__} does not know how many examples it '
                'has before it was read')
        return count

    def __bool__(self) -> bool:
        # A data set without examples is a data set all the same.
        return True

    def __getitem__(self: Any, index: object) -> tuple[Any, ...]:
        """Return one example, or several as a batch.

        Parameters
        ----------
        index : int, slice, list of int or integer numpy.ndarray
            Negative numbers count from the end.

        Returns
        -------
        tuple
            A copy of the data of each of `sources`, in that order.

        Raises
        ------
        IndexError
            If there is no such example.
        TypeError
            For anything else, such as a mask of booleans, and for data sets
            that are read in order.

        """
        return examples_at(self, index)

    def __iter__(self: Any) -> Iterator[tuple[Any, ...]]:
        """Return an iterator over the examples in order."""
        return all_examples(self)

    def __enter__(self) -> Any:
        return self

    def __exit__(self: Any, *_: object) -> None:
        self.close(None)
