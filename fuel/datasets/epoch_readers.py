"""Read the sources of a data set in an epoch: arrays in memory, and files.

The data of the next requests are prefetched in the background: readers of rows
decode chunks, read pages from the disk, or fetch bytes of a remote file.
"""
from __future__ import annotations

import collections
import functools
import itertools
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy

from fuel.datasets.row_orders import pick
from fuel.datasets.rows import as_rows, is_batch, own
from fuel.datasets.sources import Source
from fuel.epochs.read_options import ReadOptions
from fuel.epochs.readers import (
    PREFETCHED_EXAMPLES, PrefetchedExamples, RequestedData)
from fuel.kernels.batches import Batches, BatchReader
from fuel.kernels.converter import converter_of
from fuel.kernels.epoch_reader import ArrayReader, is_readable
from fuel.kernels.stage_reader import note_request
from fuel.schemes.requests import IndexRequests, RequestIterator
from fuel.storage.chunk_cache import Ahead
from fuel.storage.file_bytes import (
    ReadsFiles, Version, Versioned, other_version, version_of)
from fuel.storage.mapped import MappedReader
from fuel.typing import Batch, EpochReader


def read_collections(dataset: Any, requests: RequestIterator | None,
                     options: ReadOptions, collections: list[Any],
                     attribute: str) -> EpochReader | None:
    """Return a compiled reader of arrays and lists in memory.

    Returns: None if there are no requests or they have no random access, or
        if the reader cannot copy the rows of a collection.
    """
    if requests is None or not requests.is_random_access or not all(
            is_readable(part) or (requests.requests_examples
            and type(part) in (list, tuple)) for part in collections):
        return None
    return ArrayReader(
        requests, RequestedData(dataset, requests, None), collections,
        dataset, (attribute, '_sources'), own, **_conversions(
            requests, options, dataset.sources,
            [getattr(part, 'dtype', None) for part in collections]))


def _conversions(requests: RequestIterator, options: ReadOptions,
                 sources: Sequence[str],
                 dtypes: Sequence[numpy.dtype[Any] | None],
                 ) -> dict[str, Any]:
    """Return the keyword arguments with which a compiled reader converts
    data."""
    converters = [
        None if dtype is None or requests.requests_examples
        else converter_of(dtype, options.conversions.get(source))
        for source, dtype in zip(sources, dtypes, strict=True)]
    converted = frozenset(
        source for source, converter in zip(sources, converters, strict=True)
        if converter is not None)
    return {'converters': converters, 'converted': converted} if (
        converted) else {}


class RequestPrefetcher:
    """Prefetches the data of the next requests of an epoch.

    `upcoming`: takes the number of a request and returns the request; None
        after the last one.
    `prefetch`: takes a list of requests and the number of bytes that may be
        spent on them; returns the number of bytes that it spends, or None if
        it would need more.
    `budget`: number of bytes that prefetched data may take until they are
        read.
    `release`: called when the oldest prefetched request is read; takes the
        number of bytes spent on it, and returns the number of bytes that are
        free again. By default all of them are free.
    """

    # Number of requests after the present one that may be prefetched. Most
    # windows of shuffled blocks have fewer requests, so there is always a
    # chunk to decode.
    DEPTH = 32
    # Number of requests that one call examines, since this takes time.
    STEPS = 8
    # Requests that are prefetched together, as one.
    GROUP = 1
    # Once the budget was used up, further requests are examined only when
    # at most this part of it is spent.
    SPENT = .75
    # Distance from the present request to the first one that is prefetched.
    FIRST = 1
    # The method of readers that prefetches, and the one that returns its
    # budget in bytes.
    METHOD = 'prefetch'
    BUDGET = 'prefetch_budget'

    def __init__(self, upcoming: Callable[[int], Any],
                 prefetch: Callable[[Sequence[Any], int], int | None],
                 budget: int,
                 release: Callable[[int], int] | None = None) -> None:
        self._upcoming = upcoming
        self._prefetch = prefetch
        self._budget = budget
        self._release = release
        # The number of the next request to examine, and the bytes spent on the
        # requests between it and the present one.
        self._next = 0
        self._costs: collections.deque[int] = collections.deque()
        self._cost = 0
        # The spent bytes when the next request exceeded the budget: it is
        # examined again when fewer are spent. -1 if none has exceeded it.
        self._refused_at = -1

    def __call__(self, position: int) -> None:
        """Prefetch data of the requests after number `position`."""
        if self._next <= position:
            self._next = position + self.FIRST
            self._refused_at = -1
        while len(self._costs) > self._next - position - self.FIRST:
            spent = self._costs.popleft()
            self._cost -= spent if self._release is None else self._release(
                spent)
        # Requests are examined several at a time, not one by one.
        if (0 <= self._refused_at <= self._cost
                or self._next > position + self.DEPTH - self.STEPS):
            return
        self._refused_at = -1
        last = min(position + self.DEPTH, self._next + self.STEPS)
        while self._next <= last:
            stop = min(self._next + self.GROUP, last + 1)
            requests = list(itertools.takewhile(
                lambda request: request is not None,
                map(self._upcoming, range(self._next, stop))))
            if not requests:
                return
            cost = self._prefetch(requests, self._budget - self._cost)
            while cost is None and len(requests) > 1:
                del requests[len(requests) // 2:]
                cost = self._prefetch(requests, self._budget - self._cost)
            if cost is None:
                self._refused_at = min(
                    self._cost, int(self.SPENT * self._budget))
                return
            # Requests of a group share bytes, which are spent until the last
            # request is read.
            self._costs.extend([0] * (len(requests) - 1))
            self._costs.append(cost)
            self._cost += cost
            self._next += len(requests)


class ChunkPrefetcher(RequestPrefetcher):
    """Decodes chunks of many rows, such as row groups, in advance.

    It takes longer to decode such a chunk than to serve many requests, and
    neighbouring requests need the same few chunks. So the chunks of as many
    requests as the budget allows are decoded together.
    """

    DEPTH = 1 << 12
    STEPS = 32
    GROUP = STEPS + 1
    # The least number of rows of such a chunk.
    ROWS = 512


class BytePrefetcher(RequestPrefetcher):
    """Prefetches the bytes of the next requests, within a budget.

    A network has a high latency and serves many requests at once. Rows of one
    batch are far from each other, and many small requests take longer than a
    few large ones. So the bytes of many batches are fetched together.
    """

    DEPTH = 1 << 20
    STEPS = GROUP = 64
    SPENT = .5
    FIRST = 0
    METHOD = 'fetch'
    BUDGET = 'fetch_budget'


def prefetcher_of(upcoming: Callable[[int], Any], sources: Sequence[Source],
                  num_examples: int) -> Callable[[int], None] | None:
    """Return a function that prefetches the requests of an epoch; its argument
    is the number of the present request. None if nothing can be prefetched.

    `upcoming`: takes the number of a request in the epoch and returns the
        request; None after the last one.
    """
    fetch = make_prefetcher(BytePrefetcher, upcoming, sources, num_examples)
    decode = make_prefetcher(
        RequestPrefetcher, upcoming, sources, num_examples)
    if fetch is None or decode is None:
        return fetch or decode
    both = fetch, decode

    def fetch_and_decode(position: int) -> None:
        for one in both:
            one(position)

    return fetch_and_decode


def make_prefetcher(kind: type[RequestPrefetcher],
                    upcoming: Callable[[int], Any], sources: Sequence[Source],
                    num_examples: int) -> RequestPrefetcher | None:
    """Return a prefetcher for the readers that have a budget for it; None if
    no reader has one."""
    # Held weakly: a file that is closed during an epoch does not stay open
    # until the epoch ends.
    needed, budgets, have_large_chunks = [], [], True
    for source in sources:
        budget = getattr(source.reader, kind.BUDGET)(source.rows)
        if budget is not None:
            needed.append((weakref.ref(source.reader), source.rows))
            budgets.append(budget)
            have_large_chunks &= (
                source.reader.rows_of_chunk >= ChunkPrefetcher.ROWS)
    if not needed:
        return None

    if kind is RequestPrefetcher and have_large_chunks:
        kind = ChunkPrefetcher
    ahead = Ahead() if kind is ChunkPrefetcher else None
    options = {} if ahead is None else {'ahead': ahead}

    def prefetch(requests: Sequence[Any], budget: int) -> int | None:
        if not all(map(is_batch, requests)):
            return None
        try:
            positions = numpy.concatenate([
                as_rows(request, num_examples) for request in requests])
        except ValueError:
            # The same error is raised when the request is read.
            return None
        total = 0
        for reference, rows in needed:
            reader = reference()
            cost = None if reader is None else getattr(reader, kind.METHOD)(
                pick(rows, positions), budget - total, **options)
            if cost is None:
                if ahead is not None:
                    ahead.undo()
                return None
            total += cost
        if ahead is not None:
            ahead.end_group(len(requests))
        return total

    return kind(upcoming, prefetch, min(budgets),
                None if ahead is None else ahead.release)


class VersionedData(RequestedData):
    """Reads the data of an epoch from one version of the files.

    Another user of the data set may close a file during an epoch. When the
    file is opened again, it may have been replaced.

    `find_files`: returns an object whose attribute `files` has the files that
        the data set reads now; it returns the same object as long as the data
        set reads these files.
    `version`: version of the files that were read last.
    """

    def __init__(self, dataset: Any, requests: RequestIterator,
                 find_files: Callable[[], ReadsFiles]) -> None:
        super().__init__(dataset, requests, None)
        self._find_files = find_files
        self.version: Version = ()
        # Held weakly: a user who closes a data set may want to write to its
        # files.
        self._checked: weakref.ref[ReadsFiles] | None = None
        self._identities: dict[str, tuple[int, ...]] = {}

    def get(self, request: Any) -> Batch:
        """Return the data of a request."""
        if not self._identities:
            self.check_version()
        data = super().get(request)
        self.check_version()
        return data

    def check_version(self) -> None:
        """Raise DamagedFileError if the data set reads another version of a
        file than the epoch has read."""
        self._check_files(self._find_files())

    def _check_files(self, found: ReadsFiles) -> None:
        if self._checked is not None and self._checked() is found:
            # There may be thousands of files: too many to check for each
            # batch.
            return
        for file in found.files:
            if self._identities.setdefault(
                    file.path, file.identity) != file.identity:
                raise other_version(file.path)
        self._checked = weakref.ref(found)
        self.version = version_of(found)


class FileBatches(VersionedData):
    """Reads batches of a file, and prefetches data of the next requests."""

    def __init__(self, dataset: Any, requests: RequestIterator) -> None:
        super().__init__(dataset, requests, dataset.open_sources)
        self._prefetch: Callable[[int], None] | None = None
        self._is_open = False
        # Reads the batches where nothing is prefetched.  Held weakly, since
        # it refers to this reader: both release the file when an epoch is
        # dropped.
        self._compiled: weakref.ref[BatchReader] | None = None

    @property
    def compiled(self) -> BatchReader | None:
        """The compiled reader of whole batches, or None."""
        return None if self._compiled is None else self._compiled()

    def hand_over(self, compiled: BatchReader) -> None:
        """Let a compiled reader read the batches; it falls back to this
        reader."""
        self._compiled = weakref.ref(compiled)

    def read(self) -> Batch:
        """Return the next batch."""
        requests: Any = self.requests
        if not self._is_open:
            try:
                compiled = self._open()
            except Exception as error:
                note_request(error, requests.next_compact())
                raise
            if compiled is not None:
                data: Batch = compiled.read()
                return data
        if self._compiled is None:
            self.prefetch()
        request = requests.next_compact()
        try:
            data = self.get(request)
        except Exception as error:
            note_request(error, request)
            raise
        return data

    def prefetch(self) -> None:
        """Prefetch data of the requests after the next one."""
        if self._prefetch is None:
            return
        requests: Any = self.requests
        try:
            self._prefetch(requests.position // requests.step)
        except Exception as error:
            note_request(error, requests.next_compact())
            raise

    def get(self, request: Any) -> Batch:
        """Return the data of a request."""
        data = super().get(request)
        compiled = self.compiled
        if compiled is not None:
            # The user may have chosen other sources, in other files.
            compiled.version = self.version
        return data

    def _open(self) -> BatchReader | None:
        """Start prefetching, now that the file is needed; return a compiled
        reader of plain batches, or None."""
        requests: Any = self.requests
        # Each rank numbers its own requests.
        step = requests.step
        first = requests.position % step

        def upcoming(number: int) -> Any:
            return requests.compact_at(first + number * step)

        sources = self.dataset.open_sources()
        self._prefetch = prefetcher_of(
            upcoming, sources, self.dataset.num_examples)
        self._is_open = True
        compiled = self.compiled
        if compiled is None:
            return None
        self._check_files(sources)
        compiled.version = self.version
        compiled.is_open = True
        compiled.prefetches = self._prefetch is not None
        return compiled

    def close(self) -> None:
        """Release the prefetched data."""
        self._is_open, self._prefetch = False, None
        compiled = self.compiled
        if compiled is not None:
            compiled.is_open = False


class FileExamples(PrefetchedExamples):
    """Reads single examples of a file, and prefetches the examples of a remote
    file."""

    def __init__(self, dataset: Any, requests: IndexRequests) -> None:
        super().__init__(requests, VersionedData(
            dataset, requests, dataset.open_sources))
        self._dataset = dataset
        self._fetch: RequestPrefetcher | None = None
        self._is_open = False

    def prefetch(self) -> None:
        """Read the next examples, and fetch the bytes of later ones."""
        if not self._is_open:
            self._fetch = make_prefetcher(
                BytePrefetcher, self._group, self._dataset.open_sources(),
                self._dataset.num_examples)
            self._is_open = True
        if self._fetch is not None:
            self._fetch(self.requests.position
                        // (PREFETCHED_EXAMPLES * self.requests.step))
        super().prefetch()

    def _group(self, number: int) -> list[int] | None:
        """Return the indices of a group of consecutive requests."""
        # Each rank numbers its own requests.
        step = self.requests.step
        first = (self.requests.position % step
                 + number * PREFETCHED_EXAMPLES * step)
        indices = [self.requests.compact_at(place) for place in range(
            first, first + PREFETCHED_EXAMPLES * step, step)]
        return [index for index in indices if index is not None] or None

    def close(self) -> None:
        """Release the prefetched data."""
        self._is_open, self._fetch = False, None
        super().close()


def read_file(dataset: Any, requests: RequestIterator | None,
              options: ReadOptions) -> EpochReader | None:
    """Return a reader of the rows of a file. At the beginning of an epoch a
    file that was changed or replaced is opened again.

    `dataset`: a :class:`~fuel.datasets.source_dataset.SourceDataset`.
    """
    if requests is None or not requests.is_random_access:
        return None
    if requests.position - requests.num_skipped < requests.step:
        # Nothing was read: others, such as those of other workers, were
        # skipped.
        dataset.renew()
    if isinstance(requests, IndexRequests):
        return FileExamples(dataset, requests)
    reader = FileBatches(dataset, requests)
    conversions = {} if not options.conversions else _conversions(
        requests, options, dataset.sources,
        [source.reader.dtype for source in dataset.open_sources()])
    compiled = BatchReader(requests, reader, dataset, **conversions)
    reader.hand_over(compiled)
    return compiled


class OpenSources(list[Source]):
    """The sources that a data set uses, while their readers are open.

    `names`: names of the sources.
    `opened`: the object that the sources come from; it keeps the files open.
    """

    def __init__(self, sources: Iterable[Source], names: Sequence[str],
                 opened: Any) -> None:
        super().__init__(sources)
        self.names = names
        self.opened = opened

    @functools.cached_property
    def files(self) -> Sequence[Versioned]:
        """The files that are read."""
        return [file for source in self for file in source.reader.files]

    def __reduce__(self) -> tuple[Any, ...]:
        # A data set is pickled without its open files, and opens them again.
        return type(None), ()


def direct_batches(sources: OpenSources, num_examples: int) -> Batches | None:
    """Return a compiled reader that reads a plain batch in one call; None if
    a source cannot be read in this way."""
    plain = []
    for source in sources:
        part = source.reader.direct()
        if part is None or source.shapes is not None:
            return None
        rows = source.rows
        plain.append((part, rows.start if isinstance(rows, slice) else rows))
    return Batches(plain, num_examples, MappedReader.THREADS_FROM, sources,
                   version_of(sources))
