"""Read examples for the requests of a scheme, or in threads."""
from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.datasets import Dataset
from fuel.kernels.stage_reader import note_request
from fuel.interop.chainer.examples import Example, ExampleSet, read_examples
from fuel.interop.chainer.sweeps import Sweeps
from fuel.utils.threads import start


class ExampleBatches(Dataset):
    """A data set of Fuel that reads lists of examples of Chainer's data set.

    The sources are the examples and their indices.
    """

    provides_sources = ('examples', 'indices')
    unsaved_arguments = ('dataset',)

    def __init__(self, dataset: ExampleSet) -> None:
        super().__init__()
        self.dataset = dataset

    def get_data(self, state: object = None, request: Any = None,
                 ) -> tuple[list[Example], NDArray[Any]]:
        """Return the examples of a request unchanged, and their indices."""
        return read_examples(self.dataset, request), numpy.array(request)


class ThreadedBatches(Iterator[Any]):
    """An iterator over batches that threads read, one batch ahead.

    `sweeps`: the position, which the iterator advances.
    """

    def __init__(self, dataset: ExampleSet, sweeps: Sweeps,
                 num_threads: int) -> None:
        self._dataset = dataset
        self._sweeps = sweeps
        self._num_threads = num_threads
        self._pending: PendingBatch | None = None

    def __next__(self) -> tuple[list[Example], NDArray[Any]]:
        pending = self._begin() if self._pending is None else self._pending
        self._pending = None
        with suppress(StopIteration):
            self._pending = self._begin()
        return pending.wait(), pending.indices

    def _begin(self) -> PendingBatch:
        return PendingBatch(
            self._dataset, self._sweeps.advance(), self._num_threads)


class PendingBatch:
    """A batch whose examples are being read by Fuel's threads."""

    def __init__(self, dataset: ExampleSet, indices: NDArray[Any],
                 num_threads: int) -> None:
        self.indices = indices
        self._places: list[int] = indices.tolist()
        self._dataset = dataset
        self._examples: list[Example] = [None] * len(indices)
        self._errors: dict[int, Exception] = {}
        # Threads may share the counter, since its steps are atomic.
        self._next = itertools.count()
        self._running = threading.Semaphore(0)
        self._num_threads = min(num_threads, len(indices))
        for _ in range(self._num_threads):
            start(self._work)

    def _work(self) -> None:
        """Read examples in a thread until none are left."""
        try:
            for place in self._next:
                if place >= len(self._places) or self._errors:
                    return
                try:
                    self._examples[place], = read_examples(
                        self._dataset, [self._places[place]])
                except Exception as error:  # noqa: BLE001 (raised later)
                    self._errors[place] = error
        finally:
            self._running.release()

    def wait(self) -> list[Example]:
        """Wait until all examples are read, and return them."""
        for _ in range(self._num_threads):
            self._running.acquire()
        if not self._errors:
            return self._examples
        error = self._errors[min(self._errors)]
        note_request(error, self.indices)
        raise error
