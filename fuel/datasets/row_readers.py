"""Readers of epochs over rows: of arrays in memory, and of files."""
from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy

from fuel.datasets.prefetch import (
    BytePrefetcher, Parts, RequestPrefetcher, make_prefetcher, prefetcher_of)
from fuel.datasets.row_orders import Order
from fuel.datasets.rows import own
from fuel.epochs.read_options import ReadOptions
from fuel.epochs.readers import (
    PREFETCHED_EXAMPLES, PrefetchedExamples, RequestedData)
from fuel.kernels.batches import Batches, BatchReader
from fuel.kernels.converter import converter_of
from fuel.kernels.epoch_reader import ArrayReader, is_readable
from fuel.kernels.stage_reader import note_request
from fuel.schemes.requests import IndexRequests, RequestIterator
from fuel.storage import Reader
from fuel.storage.errors import other_version
from fuel.storage.file_bytes import ReadsFiles, Version, version_of
from fuel.storage.mapped import MappedReader
from fuel.typing import Batch, EpochReader


def read_collections(dataset: Any, requests: RequestIterator | None,
                     options: ReadOptions, collections: list[Any],
                     attribute: str) -> EpochReader | None:
    """Return a reader of arrays and lists in memory, as they are.

    Returns: None if what the data set's `get_data` returns is more than copies
        of rows.
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
    """Return what a compiled reader converts, as its keywords."""
    converters = [
        None if dtype is None or requests.requests_examples
        else converter_of(dtype, options.conversions.get(source))
        for source, dtype in zip(sources, dtypes, strict=True)]
    converted = frozenset(
        source for source, converter in zip(sources, converters, strict=True)
        if converter is not None)
    return {'converters': converters, 'converted': converted} if (
        converted) else {}


class VersionedData(RequestedData):
    """Reads the data of an epoch from one version of the files.

    A file that an epoch has begun to read may be closed, and be another one
    when it is opened again: by somebody else who uses the data set.

    `find_readers`: returns what the data set reads its files with now.
    `version`: of the files that it read last.
    """

    def __init__(self, dataset: Any, requests: RequestIterator,
                 find_readers: Callable[[], Sequence[ReadsFiles]]) -> None:
        super().__init__(dataset, requests, None)
        self._find_readers = find_readers
        self.version: Version = ()
        # Held weakly: who closes a data set may want to write to its files.
        self._readers: list[weakref.ref[ReadsFiles]] = []
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
        self._check_versions(self._find_readers())

    def _check_versions(self, found: Sequence[ReadsFiles]) -> None:
        if len(found) == len(self._readers) and all(
                known() is reader for known, reader in zip(
                    self._readers, found, strict=True)):
            # There may be thousands of files, which each batch would look at.
            return
        for reader in found:
            for file in reader.files:
                if self._identities.setdefault(
                        file.path, file.identity) != file.identity:
                    raise other_version(file.path)
        self._readers = list(map(weakref.ref, found))
        self.version = version_of(found)


def readers_of(parts: Parts) -> list[Reader]:
    """Return the readers of some sources."""
    return list(map(itemgetter(0), parts))


class FileBatches(VersionedData):
    """Reads batches of a file, and prefetches what the next requests need.

    `find_parts`: returns a reader and the order of rows for each source.
    """

    def __init__(self, dataset: Any, requests: RequestIterator,
                 find_parts: Callable[[], Parts]) -> None:
        super().__init__(dataset, requests, lambda: readers_of(find_parts()))
        self._find_parts = find_parts
        self._prefetch: Callable[[int], None] | None = None
        self._is_open = False
        # Reads on where nothing is to be prefetched.  Held weakly, since it
        # has this reader: both let go of the file when an epoch is dropped.
        self._compiled: weakref.ref[BatchReader] | None = None

    @property
    def compiled(self) -> BatchReader | None:
        """What reads whole batches in C, if anything does."""
        return None if self._compiled is None else self._compiled()

    def hand_over(self, compiled: BatchReader) -> None:
        """Let a compiled reader read on, which falls back to this one."""
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
        """Prefetch what the requests after the next one need."""
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
            # Other sources may have been chosen, in other files.
            compiled.version = self.version
        return data

    def _open(self) -> BatchReader | None:
        """Look at what should be prefetched, now that the file is needed;
        return what reads plain batches, if anything does."""
        requests: Any = self.requests
        # A rank counts its own requests.
        step = requests.step
        first = requests.position % step

        def upcoming(number: int) -> Any:
            return requests.compact_at(first + number * step)

        parts = self._find_parts()
        self._prefetch = prefetcher_of(
            upcoming, parts, self.dataset.num_examples)
        self._is_open = True
        compiled = self.compiled
        if compiled is None:
            return None
        self._check_versions(readers_of(parts))
        compiled.version = self.version
        compiled.is_open = True
        compiled.prefetches = self._prefetch is not None
        return compiled

    def close(self) -> None:
        """Release what was prefetched."""
        self._is_open, self._prefetch = False, None
        compiled = self.compiled
        if compiled is not None:
            compiled.is_open = False


class FileExamples(PrefetchedExamples):
    """Reads single examples of a file; of a remote one, what the next
    examples need is fetched."""

    def __init__(self, dataset: Any, requests: IndexRequests,
                 find_parts: Callable[[], Parts]) -> None:
        super().__init__(requests, VersionedData(
            dataset, requests, lambda: readers_of(find_parts())))
        self._dataset = dataset
        self._find_parts = find_parts
        self._fetch: RequestPrefetcher | None = None
        self._is_open = False

    def prefetch(self) -> None:
        """Read the next examples, and have others fetched."""
        if not self._is_open:
            self._fetch = make_prefetcher(
                BytePrefetcher, self._group, self._find_parts(),
                self._dataset.num_examples)
            self._is_open = True
        if self._fetch is not None:
            self._fetch(self.requests.position
                        // (PREFETCHED_EXAMPLES * self.requests.step))
        super().prefetch()

    def _group(self, number: int) -> list[int] | None:
        """Return a number of examples that follow each other."""
        # A rank counts its own requests.
        step = self.requests.step
        first = (self.requests.position % step
                 + number * PREFETCHED_EXAMPLES * step)
        indices = [self.requests.compact_at(place) for place in range(
            first, first + PREFETCHED_EXAMPLES * step, step)]
        return [index for index in indices if index is not None] or None

    def close(self) -> None:
        """Release what was prefetched."""
        self._is_open, self._fetch = False, None
        super().close()


def read_file(dataset: Any, requests: RequestIterator | None,
              options: ReadOptions, find_parts: Callable[[], Parts],
              ) -> EpochReader | None:
    """Return a reader of the rows of a file, the one of now if the epoch
    begins.

    `dataset`: its `_direct` reads plain batches; it may lack the attribute.
    `find_parts`: opens the file; returns a reader and the order of rows for
        each source.
    """
    if requests is None or not requests.is_random_access:
        return None
    if requests.position < requests.step:
        # Nothing was read.
        dataset.renew()
    if isinstance(requests, IndexRequests):
        return FileExamples(dataset, requests, find_parts)
    reader = FileBatches(dataset, requests, find_parts)
    if not hasattr(dataset, '_direct'):
        return reader
    conversions = {} if not options.conversions else _conversions(
        requests, options, dataset.sources,
        [part.dtype for part, _ in find_parts()])
    compiled = BatchReader(requests, reader, dataset, **conversions)
    reader.hand_over(compiled)
    return compiled


def direct_batches(parts: Sequence[tuple[Reader, Reader | None, Order]],
                   num_examples: int, held: Any) -> Batches | None:
    """Return what reads plain batches in one call."""
    plain = []
    for reader, shape_reader, order in parts:
        part = reader.direct()
        if part is None or shape_reader is not None:
            return None
        plain.append((part, order.start if isinstance(order, slice) else (
            order)))
    return Batches(
        plain, num_examples, MappedReader.THREADS_FROM, (held, parts),
        version_of([reader for reader, _, _ in parts]))
