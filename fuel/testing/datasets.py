"""Check what a data set promises to the streams that read it."""
from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from fuel.epochs.readers import known_length
from fuel.schemes import SequentialScheme, ShuffledScheme
from fuel.streams import DataStream
from fuel.testing.data import Frozen, freeze
from fuel.testing.promises import (
    Promises,
    expect,
    expect_builder,
    expect_made,
    keep,
)
from fuel.testing.replay import ReplayProcess
from fuel.testing.streams import check_stream
from fuel.typing import DatasetLike, SchemeLike
from fuel.utils.arguments import labels_in
from fuel.utils.sparse import iterate_rows

Schemes = Sequence[SchemeLike | None]


def check_dataset(build: Callable[[], DatasetLike], *,
                  schemes: Schemes | None = None,
                  promises: Iterable[str] | None = None,
                  another_process: ReplayProcess | bool = True) -> None:
    """Check that a data set keeps what Fuel promises of every data set.

    Streams that read the data set are checked too, see
    :func:`~fuel.testing.check_stream`.

    Parameters
    ----------
    build : callable
        A function that makes a new data set.  All data sets that it makes are
        equal.  Ten examples are a good number.
    schemes : list of IterationScheme, optional
        The iteration schemes with which streams read the data set.  None in
        the list means a stream that reads without requests.  If the data set
        has an example iteration scheme and `num_examples`, the default is
        batches in order, shuffled batches, and examples by the data set's own
        scheme.  Otherwise the default is one stream without requests.
    promises : iterable of str, optional
        Keys of :data:`DATASET_PROMISES`.  Defaults to all.
    another_process : bool or ReplayProcess, optional
        See :func:`~fuel.testing.check_stream`.

    Raises
    ------
    BrokenPromiseError
        If a promise is broken; the text names it.

    Examples
    --------
    >>> from fuel.datasets import IndexableDataset
    >>> check_dataset(lambda: IndexableDataset(list(range(9))),
    ...               another_process=False)
    >>> class Sorting(IndexableDataset):
    ...     def get_data(self, state=None, request=None):
    ...         if isinstance(request, list):
    ...             request.sort()
    ...         return super().get_data(state, request)
    >>> check_dataset(lambda: Sorting(list(range(9))), another_process=False)
    Traceback (most recent call last):
    fuel.testing.promises.BrokenPromiseError: requests: Data come in the
    order of the request, which stays as it was. Source 'data' has
    [0, 1, 2] for [0, 1, 2], but [0, 1, 2] for [2, 1, 0].
    """
    expect_builder(build, 'data set')
    expect_made(build(), 'data set', 'get_data')
    case = DatasetCase(build, schemes, another_process)
    keep(DATASET_PROMISES, promises, case)


class DatasetCase:
    """A function that makes the data set to check, and schemes to read it."""

    def __init__(self, build: Callable[[], DatasetLike],
                 schemes: Schemes | None,
                 another_process: ReplayProcess | bool) -> None:
        self.build = build
        self.schemes = default_schemes(build) if schemes is None else schemes
        self.another_process = another_process

    @contextmanager
    def opened(self) -> Iterator[tuple[Any, Any]]:
        """Yield a new data set and its state, which is open in the block."""
        dataset: Any = self.build()
        state = dataset.open()
        try:
            yield dataset, state
        finally:
            dataset.close(state)

    def requests(self) -> list[list[object]]:
        """Return the first two requests of each scheme."""
        found: list[list[object]] = []
        for scheme in pickle.loads(pickle.dumps(self.schemes)):
            requests = scheme and scheme.get_request_iterator()
            found.append([None] * 2 if requests is None else list(
                itertools.islice(requests, 2)))
        return found

    def read(self, dataset: Any, state: object) -> list[list[Frozen]]:
        """Return the data of each scheme's requests.

        The requests are the first two of each scheme, or only the first one if
        the data set has a state.
        """
        return [[freeze(dataset.get_data(state, request))
                 for request in requests[:2 if state is None else 1]]
                for requests in self.requests()]


def stream_over(build: Callable[[], DatasetLike],
                scheme: bytes) -> DataStream:
    """Return a new stream over a new data set, with a pickled scheme."""
    return DataStream(build(), iteration_scheme=pickle.loads(scheme))


def default_schemes(build: Callable[[], DatasetLike]) -> Schemes:
    """Return the schemes that a data set is read with by default."""
    dataset: Any = build()
    scheme = getattr(dataset, 'example_iteration_scheme', None)
    count = known_length(dataset)
    if scheme is None or count is None:
        return [None]
    return [SequentialScheme(count, 3), ShuffledScheme(count, 4), scheme]


def check_sources(case: DatasetCase) -> None:
    """A data set has names for its sources, and gives one part for each."""
    with case.opened() as (dataset, state):
        sources = dataset.sources
        expect(isinstance(sources, (tuple, list)) and all(
            isinstance(name, str) for name in sources) and sources,
            f'sources is {sources!r}.')
        provided = getattr(dataset, 'provides_sources', sources)
        expect(set(sources) <= set(provided),
               f'sources is {sources!r}, but it provides {provided!r}.')
        for requests in case.requests():
            data = dataset.get_data(state, requests[0])
            expect(len(data) == len(sources),
                   f'get_data() gave {len(data)} parts for {sources!r}.')


def check_labels(case: DatasetCase) -> None:
    """Axis labels are None, or names of axes for each source."""
    for source, named in (labels_in(case.build()) or {}).items():
        expect(named is None or isinstance(named, str)
               or all(isinstance(name, str) for name in named),
               f'The labels of {source!r} are {named!r}.')


def check_requests(case: DatasetCase) -> None:
    """Data come in the order of the request, which stays as it was."""
    with case.opened() as (dataset, state):
        for requests in case.requests():
            for request in requests:
                if not isinstance(request, list) or state is not None:
                    continue
                before = list(request)
                data = dataset.get_data(state, request)
                expect(before == request,
                       f'The request {before} was changed to {request}.')
                back = dataset.get_data(state, before[::-1])
                for source, part, reverse in zip(
                        dataset.sources, data, back, strict=True):
                    forth, back_again = (list(iterate_rows(found))
                                         for found in (part, reverse))
                    expect(freeze(forth) == freeze(back_again[::-1]),
                        f'Source {source!r} has {part} for {before}, but '
                        f'{reverse} for {before[::-1]}.')


def check_states(case: DatasetCase) -> None:
    """Data that are read with one state do not depend on other states."""
    with case.opened() as (dataset, state):
        expected = case.read(dataset, state)
    with case.opened() as (dataset, first):
        second = dataset.open()
        for each in (first, second):
            got = case.read(dataset, each)
            expect(expected == got,
                   f'With one state {expected} came, and with two {got}: keep '
                   'what changes in what open() returns.')
        for _ in range(2):
            dataset.close(second)


def check_pickle(case: DatasetCase) -> None:
    """A data set pickles, and its copy gives the same data."""
    for requests in case.requests():
        with case.opened() as (dataset, state):
            copy = pickle.loads(pickle.dumps(dataset))
            expect(tuple(copy.sources) == tuple(dataset.sources),
                   f'The copy has the sources {copy.sources}.')
            expected = freeze(dataset.get_data(state, requests[0]))
            other = copy.open()
            got = freeze(copy.get_data(other, requests[0]))
            copy.close(other)
            expect(expected == got, f'The copy gave {got} for {expected}.')


def check_streams(case: DatasetCase) -> None:
    """Streams that read the data set keep their own promises."""
    for scheme in case.schemes:
        check_stream(partial(stream_over, case.build, pickle.dumps(scheme)),
                     another_process=case.another_process)


#: A dict from names to the checks of a data set.
DATASET_PROMISES: Promises[DatasetCase] = {
    'sources': check_sources,
    'labels': check_labels,
    'requests': check_requests,
    'states': check_states,
    'pickle': check_pickle,
    'streams': check_streams,
}
