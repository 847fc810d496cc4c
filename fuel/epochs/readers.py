"""Readers of the data of an epoch: one for each kind of data set.

Only this module uses the optional members of a data set. For the required
members, see :class:`~fuel.typing.DatasetLike`.
"""
from __future__ import annotations

from operator import methodcaller
from typing import Any

from fuel.epochs.read_options import ReadOptions
from fuel.kernels.epoch_reader import PrefetchReader
from fuel.kernels.stage_reader import note_request
from fuel.schemes.iteration_scheme import num_examples_of
from fuel.schemes.requests import IndexRequests, RequestIterator
from fuel.typing import Batch, DatasetLike, EpochReader, Request
from fuel.utils.arguments import try_call
from fuel.utils.overrides import (
    covers, hook_covers_method, is_default)
from fuel.utils.sparse import count_bytes, iterate_rows


def known_length(dataset: object) -> int | None:
    """Return the number of examples of a data set, None if not known."""
    count = num_examples_of(dataset)
    return count if isinstance(count, int) else None


def known_types(dataset: Any) -> Any:
    """Return the known types of the sources of a data set; {} for a data set
    that has no such method, or cannot tell."""
    return try_call({}, methodcaller('known_types'), dataset)


def kept_checksums(dataset: Any) -> Any:
    """Return the checksums of the data that the files have; () for a data set
    that has no such method, or cannot tell."""
    return try_call((), methodcaller('kept_checksums'), dataset)


def takes_requests(dataset: Any) -> bool | None:
    """Return whether a data set needs requests; None if it is not known.

    The class that overrides `get_data` declares it in `takes_requests`.
    """
    if covers(dataset, 'takes_requests', ('get_data',)):
        known: bool | None = dataset.takes_requests
        return known
    return None


def takes_positions(dataset: DatasetLike) -> bool:
    """Return whether a data set can be opened at a saved position."""
    return hasattr(dataset, 'open_at')


def position_in(dataset: Any, state: object) -> object:
    """Return the position of a data set's state as plain data; a TypeError if
    the data set cannot save it, None if there is no state."""
    if state is None:
        return None
    if not hook_covers_method(type(dataset), 'open', 'get_position'):
        return TypeError(
            f'the position within the data set {type(dataset).__name__} '
            'cannot be saved as plain data: give the class the hooks '
            'get_position(state) and open_at(position), or pickle the '
            'epoch iterator instead')
    return dataset.get_position(state)


def state_beside(dataset: Any, state: object) -> object:
    """Return a data set's state for an epoch that begins while another epoch
    is being read.

    It is the state of the next epoch, if the epochs of the data set differ
    and its positions can be saved. Otherwise it is a newly opened state.
    """
    if takes_positions(dataset) and not is_default(dataset, 'next_epoch'):
        position = position_in(dataset, state)
        if position is not None and not isinstance(position, Exception):
            return dataset.next_epoch(dataset.open_at(position))
    return dataset.open()


def close_state(dataset: object, state: object) -> None:
    """Close a state of a data set, if the data set has a method `close`."""
    close = getattr(dataset, 'close', None)
    if close is not None:
        close(state)


def open_reader(dataset: DatasetLike, requests: RequestIterator | None,
                options: ReadOptions, state: object) -> EpochReader:
    """Return the reader of an epoch of a data set of any class."""
    open_epoch = getattr(dataset, 'open_epoch', None)
    reader: EpochReader = (
        RequestedData(dataset, requests, state) if open_epoch is None
        else open_epoch(requests, options, state))
    return reader


# Limits of the number of examples, and of their bytes, that are prefetched at
# once. The prefetched examples are views of one array: a user who keeps one
# example keeps all of them in memory.
PREFETCHED_EXAMPLES = 128
PREFETCHED_BYTES = 2 ** 19


class RequestedData:
    """Reader that passes each request to the data set's `get_data`."""

    def __init__(self, dataset: DatasetLike,
                 requests: RequestIterator | None, state: object) -> None:
        self.dataset: Any = dataset
        self.requests = requests
        self.state = state

    def read(self) -> Batch:
        """Return the data of the next request."""
        if self.requests is None:
            data: Batch = self.dataset.get_data(self.state, None)
            return data
        request = next(self.requests)
        try:
            return self.get(request)
        except Exception as error:
            note_request(error, request)
            raise

    def get(self, request: Request) -> Batch:
        """Return the data of a request."""
        data: Batch = self.dataset.get_data(self.state, request)
        return data

    def skip(self, count: int) -> None:
        """Skip requests; without requests, read the data and drop them."""
        if self.requests is not None:
            self.requests.advance(count)
            return
        for _ in range(count):
            self.read()

    def close(self) -> None:
        """Release nothing: the stream closes the state."""


class PrefetchedExamples(PrefetchReader):
    """Reader of single examples, which prefetches them as batches.

    `single`: reads single examples, and the prefetched batches.
    """

    def __init__(self, requests: IndexRequests,
                 single: RequestedData) -> None:
        super().__init__(requests, single)
        self._single = single
        # Number of examples at a time; 0 until their size is known.
        self._count = 0
        # Before this position, examples are read one at a time.
        self._single_until = 0

    def prefetch(self) -> None:
        """Prefetch the next examples, unless reading one of them fails."""
        position = self.requests.position
        if self._count < 2 or position < self._single_until:
            return
        indices = self.requests.peek(self._count)
        try:
            batch = indices and self._single.get(indices)
        except Exception:  # noqa: BLE001 (a second request raises it)
            # When the examples are read one at a time, those before the bad
            # example are delivered, and the bad example raises its error.
            self._single_until = (
                position + self._count * self.requests.step)
            return
        if batch:
            self.fill(zip(*map(iterate_rows, batch), strict=True))

    def read(self) -> Batch:
        """Return the next example."""
        example = super().read()
        if not self._count:
            self._count = count_to_prefetch(example)
        return example


def count_to_prefetch(example: Batch) -> int:
    """Return how many examples as large as this one to read at a time."""
    size = sum(count_bytes(part) for part in example)
    return max(1, min(PREFETCHED_EXAMPLES,
                      PREFETCHED_BYTES // max(1, size)))


class ExamplesInOrder(PrefetchReader):
    """Reader of examples in order, from a state of a data set that can
    prefetch examples."""

    def __init__(self, dataset: DatasetLike, state: Any) -> None:
        super().__init__(state, RequestedData(dataset, None, state))
        # Number of next examples that are read one at a time.
        self._single = 0

    def prefetch(self) -> None:
        """Prefetch the next examples of the state, unless reading one of
        them fails."""
        if self._single:
            self._single -= 1
            return
        try:
            self.fill(self.requests.peek(PREFETCHED_EXAMPLES))
        except Exception:  # noqa: BLE001 (a second request raises it)
            self._single = PREFETCHED_EXAMPLES
