"""Readers of epochs over rows: of arrays in memory, and of files."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from fuel.datasets.rows import own
from fuel.epochs.read_options import Conversion, ReadOptions
from fuel.epochs.readers import (
    ExampleReader,
    RequestReader,
    note_request,
)
from fuel.kernels.convert import take_converted
from fuel.kernels.epoch_reader import (
    ArrayReader,
    PrefetchReader,
    is_readable,
)
from fuel.kernels.rows import as_indices, take
from fuel.schemes.requests import IndexRequests, RequestIterator
from fuel.typing import Batch, EpochReader


def read_collections(dataset: Any, requests: RequestIterator | None,
                     options: ReadOptions, collections: list[Any],
                     attribute: str) -> EpochReader | None:
    """Return a reader of arrays and lists in memory, as they are.

    Parameters
    ----------
    dataset : Dataset
    requests : RequestIterator or None
    options : ReadOptions
    collections : list
        One for each of the data set's sources.
    attribute : str
        Under which the data set has the collections.

    Returns
    -------
    EpochReader or None
        None if what the data set's `get_data` returns is more than copies
        of rows.

    """
    if requests is None or not requests.is_random_access or not all(
            is_readable(part) or (requests.requests_examples
            and type(part) in (list, tuple)) for part in collections):
        return None
    reader = ArrayReader(
        requests, RequestReader(dataset, requests, None), collections,
        dataset, (attribute, '_sources'), own)
    conversions = {
        source: options.conversions[source]
        for source, part in zip(dataset.sources, collections, strict=True)
        if source in options.conversions and is_convertible(
            part, options.conversions[source])}
    if not conversions or requests.requests_examples:
        return reader
    return ConvertingReader(reader, collections, [
        conversions.get(source) for source in dataset.sources],
        frozenset(conversions))


def is_convertible(array: Any, conversion: Conversion) -> bool:
    """Return whether converting while reading is faster, and safe."""
    scale, shift = conversion.scale, conversion.shift
    most = 255 * abs(1. if scale is None else scale) + abs(shift or 0.)
    return type(array) is numpy.ndarray and bool(
        array.dtype == numpy.uint8 and conversion.dtype == numpy.float32
        and most < numpy.finfo(numpy.float32).max)


class ConvertingReader:
    """Reads batches of arrays in memory, some of them converted.

    Parameters
    ----------
    plain : ArrayReader
        Reads what is out of the ordinary.
    collections : list of numpy.ndarray
    conversions : list of Conversion or None
        One for each array.
    converted : frozenset of str
        Names of the sources that are converted.

    """

    def __init__(self, plain: ArrayReader, collections: list[Any],
                 conversions: Sequence[Conversion | None],
                 converted: frozenset[str]) -> None:
        self.plain = plain
        self.collections = collections
        self.conversions = conversions
        self._wanted = converted
        self.converted = converted

    def read(self) -> Batch:
        """Return the next batch."""
        requests = self.plain.requests
        request = requests.compact_at(requests.position)
        self.converted = frozenset()
        if request is None or not self.plain.is_current():
            return self.plain.read()
        arrays = self.collections
        try:
            indices = as_indices(request, min(map(len, arrays)))
        except ValueError:
            return self.plain.read()
        data = tuple([
            take(array, indices) if conversion is None
            else take_converted(array, indices, *conversion)
            for array, conversion in zip(
                arrays, self.conversions, strict=True)])
        requests.position += 1
        self.converted = self._wanted
        return data

    def skip(self, count: int) -> None:
        """Skip requests without reading their data."""
        self.plain.skip(count)

    def close(self) -> None:
        """Release nothing."""


class FileReader(RequestReader):
    """Reads batches of a file, and lets it prefetch the next requests.

    Attributes
    ----------
    is_open : bool
        Whether something was read.
    expect : callable or None
        Called with the number of each request.

    """

    def __init__(self, dataset: Any, requests: RequestIterator) -> None:
        super().__init__(dataset, requests, None)
        self.is_open = False
        self.expect: Callable[[int], None] | None = None

    def read(self) -> Batch:
        """Return the next batch."""
        requests: Any = self.requests
        number = requests.position
        request = requests.next_compact()
        try:
            if not self.is_open:
                # Not before, since it may open the file.
                self.expect = self.dataset.read_ahead(requests.compact_at)
                self.is_open = True
            if self.expect is not None:
                self.expect(number)
            data: Batch = self.dataset.get_data(None, request)
        except Exception as error:
            note_request(error, request)
            raise
        return data

    def close(self) -> None:
        """Release what was prefetched."""
        self.is_open, self.expect = False, None


class FileBatchReader(PrefetchReader):
    """Reads batches of a file in C, as long as copying rows is enough.

    Parameters
    ----------
    dataset : Dataset
    requests : RequestIterator
    read_in_order : callable
        Takes the requests and returns an iterator over the next batches,
        which ends where one needs more than copying, or None.

    """

    def __init__(self, dataset: Any, requests: RequestIterator,
                 read_in_order: Callable[[Any], Any]) -> None:
        super().__init__(requests, FileReader(dataset, requests))
        self._read_in_order = read_in_order

    def prefetch(self) -> None:
        """Take the batches that can be read in order."""
        reader: Any = self.fallback
        if reader.is_open and reader.expect is None:
            items = self._read_in_order(self.requests)
            if items is not None:
                self.fill(items)


def read_file(dataset: Any, requests: RequestIterator | None,
              read_in_order: Callable[[Any], Any] | None = None,
              ) -> EpochReader | None:
    """Return a reader of the rows of a file."""
    if requests is None or not requests.is_random_access:
        return None
    if isinstance(requests, IndexRequests):
        return ExampleReader(dataset, requests, None)
    if read_in_order is None:
        return FileReader(dataset, requests)
    return FileBatchReader(dataset, requests, read_in_order)
