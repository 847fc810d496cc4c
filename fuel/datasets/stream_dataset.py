"""A data set of the examples that a pipeline makes from another data set."""
from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from typing import Any

import numpy

from fuel.schemes.iteration_scheme import (
    load_no_state, no_state, num_examples_of)
from fuel.datasets.dataset import Dataset
from fuel.datasets.checks import is_sequential
from fuel.datasets.row_orders import IndexArray
from fuel.datasets.sources import (
    FoundSource, RowPlaces, Source, find_places)
from fuel.datasets.rows import as_rows, check_request
from fuel.datasets.run_bounds import runs_in
from fuel.datasets.run_readers import Cuts
from fuel.epochs.pipeline import child_streams
from fuel.epochs.stage import stage_of
from fuel.sharding.planned import seek, source_of
from fuel.sharding.shard_pipeline import check_draws, copied_pipeline
from fuel.schemes import SequentialExampleScheme
from fuel.schemes.iteration_scheme import IterationScheme
from fuel.schemes.requests import IndexRequests, RequestIterator
from fuel.streams import AbstractDataStream
from fuel.transformers.ragged import as_batch
from fuel.transformers.source_names import labels_of_batches
from fuel.transformers.unchanged import unchanged_sources
from fuel.typing import Batch, Request, StreamLike
from fuel.utils.sparse import row_of


class AskedRequests(RequestIterator):
    """Requests set by the caller: the next request is `asked`, and when it
    was made, the last one is."""

    asked: Request = None

    def __init__(self) -> None:
        self.num_requests = math.inf

    def _request(self, position: int) -> Any:
        return self.asked if 0 <= self.position - position <= 1 else None

    def __next__(self) -> Any:
        self.position += 1
        return self.asked

    def next_compact(self) -> Any:
        """Return the next index."""
        return next(self)

    @property
    def is_random_access(self) -> bool:
        """True: a reader may look at the next request (bool)."""
        return True


class AskedIndices(AskedRequests, IndexRequests):
    """Indices set by the caller: the next index is `asked`."""

    requests_examples = True

    def peek(self, count: int) -> list[Any]:
        """Return the next index."""
        return [self.asked]


class AskedScheme(IterationScheme):
    """An endless scheme that requests the indices that the caller sets."""

    def __init__(self, requests_examples: bool) -> None:
        self.requests_examples = requests_examples

    def get_request_iterator(self) -> Iterator[Any]:
        """Return the requests."""
        return AskedIndices() if self.requests_examples else AskedRequests()

    state_dict = no_state
    load_state_dict = load_no_state


class StreamDataset(Dataset):
    """A data set of the examples that a pipeline makes.

    :meth:`fuel.streams.AbstractDataStream.as_dataset` returns it.

    Parameters
    ----------
    stream : AbstractDataStream
        The pipeline. Each of its stages makes one item from one item.

    Attributes
    ----------
    num_examples : int

    Notes
    -----
    The random numbers of a stage with a seed depend on the number of the
    example, or on the number of the first example of a batch. So each read of
    an example gives the same result. An unpickled data set opens the pipeline
    anew. Several threads may use the data set; one of them reads at a time.
    """

    def __init__(self, stream: StreamLike) -> None:
        source = _source(stream)
        self._stream: Any = copied_pipeline(stream)
        bottom = _source(self._stream)
        # A requested example cannot be left out.
        bottom.on_error = 'raise'
        self._makes_examples = bool(stream.produces_examples)
        bottom.iteration_scheme = AskedScheme(self._makes_examples)
        self.provides_sources = tuple(stream.sources)
        self.num_examples: int = source.dataset.num_examples
        self.example_iteration_scheme = SequentialExampleScheme(
            self.num_examples)
        super().__init__(
            axis_labels=labels_of_batches(stream) if self._makes_examples
            else stage_of(stream).labels or None)
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.RLock()
        self._opened: tuple[int, Any] | None = None

    @property
    def runs(self) -> Any:
        """Bounds of the runs of the data set below (array of int), or None if
        it has no runs."""
        return runs_in(self._bottom())

    @property
    def categories(self) -> dict[str, tuple[Any, ...]]:
        """For each source of categories, the names of its codes (dict); only
        for sources that the stages do not change."""
        below = self._bottom()
        known = below.categories if isinstance(below, Dataset) else {}
        return {source: known[name] for source, name
                in unchanged_sources(self._stream).items() if name in known}

    def find_uncut_runs(self) -> tuple[IndexArray, IndexArray] | None:
        """Return the uncut runs of the data set below."""
        below = self._bottom()
        if isinstance(below, Dataset):
            return below.find_uncut_runs()
        return super().find_uncut_runs()

    def find_source(self, source: str) -> FoundSource:
        """Return, for each example, the row of the data set below that it is
        made from."""
        below = self._bottom()
        found = below.find_source(below.sources[0]) if isinstance(
            below, Dataset) else None
        return found.stored if isinstance(found, Source) else found

    def places_of_rows(self, rows: IndexArray) -> RowPlaces | None:
        """Return the places of rows of the data set below."""
        return find_places(self._bottom(), rows)

    def find_cuts(self) -> Cuts | None:
        """Return how runs are cut into the examples of the data set below."""
        below = self._bottom()
        return below.find_cuts() if isinstance(below, Dataset) else None

    def find_stored_rows(self, source: str) -> None:
        """Return None: the results of the pipeline are not stored."""

    def _bottom(self) -> Any:
        return _source(self._stream).dataset

    def get_data(self, state: object = None, request: Any = None) -> Any:
        """Return the examples of a request as the pipeline makes them.

        Parameters
        ----------
        state : None
        request : int, slice or list of int

        Raises
        ------
        ValueError
            If there is a state, or the request is missing, of another kind,
            empty or out of range.
        """
        check_request(self, state, request)
        request = as_rows(request, self.num_examples)
        if isinstance(request, slice):
            request = numpy.arange(self.num_examples)[request]
        is_one = isinstance(request, int)
        request = request if is_one else request.tolist()
        with self._lock:
            if self._makes_examples == is_one:
                return self.filter_sources(self._read(request))
            if is_one:
                return tuple([row_of(part, 0) for part in self.filter_sources(
                    self._read([request]))])
            examples = [self.filter_sources(self._read(index))
                        for index in request]
        return tuple([as_batch(part) for part in zip(*examples, strict=True)])

    def _read(self, request: Any) -> Batch:
        if self._opened is None or self._opened[0] != os.getpid():
            self._opened = os.getpid(), self._stream.get_epoch_iterator()
        iterator = self._opened[1]
        first = request if self._makes_examples else request[0]
        seek(iterator, first)
        requests: Any = source_of(iterator).request_iterator
        requests.asked = request
        item: Batch = next(iterator)
        return item

    def close(self, state: object = None) -> None:
        """Close the files of the pipeline; the next read opens them again."""
        with self._lock:
            self._opened = None
            self._stream.close()

    def __getstate__(self) -> dict[str, Any]:
        state = dict(vars(self))
        del state['_lock'], state['_opened']
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()


def _source(stream: Any) -> Any:
    """Check each stage of a pipeline, and return the data stream it reads."""
    check_draws(stage_of(stream))
    children = child_streams(stream)
    name = type(stream).__name__
    if children:
        if not stage_of(stream).one_to_one:
            raise ValueError(
                f'the stage {name} does not make one item of each, so its '
                'items have no numbers of examples: call as_dataset() of the '
                'stream that it reads')
        return _source(children[0])
    dataset = stage_of(stream).dataset
    if dataset is None or is_sequential(dataset) or not hasattr(
            num_examples_of(dataset), '__index__'):
        raise TypeError(
            f'{type(dataset or stream).__name__} is read in order and takes '
            'no index: put the examples that are needed often into an '
            'IndexableDataset')
    return stream


AbstractDataStream.__fuel_view__ = StreamDataset
