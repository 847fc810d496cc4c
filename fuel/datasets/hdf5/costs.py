"""Compute the cost of an epoch of a remote data set before data are
fetched."""
from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

import numpy

from fuel.datasets.base import Dataset
from fuel.datasets.row_orders import pick
from fuel.datasets.sources import Source
from fuel.datasets.rows import as_rows, is_batch
from fuel.remote.pages import LARGEST_REQUEST, PageTable
from fuel.storage.file_bytes import FileBytes, join_files, split_ranges


class EpochCost(NamedTuple):
    """Requests and bytes of an epoch.

    Attributes
    ----------
    requests : int
        Number of requests to the server.
    nbytes : int
        Number of bytes that the server sends.
    unknown : tuple of str
        Sources with rows that only HDF5 or another library can find, or with
        rows of variable length. Their costs are not counted, or only in part.
    """

    requests: int
    nbytes: int
    unknown: tuple[str, ...]


def epoch_cost(dataset: Any, iteration_scheme: Any,
               cache_bytes: int | None = None) -> EpochCost:
    """Compute the cost of a first epoch of a remote data set.

    Only the index of the file is read; no data are read. Requests are merged
    as the reader merges them; the reader may merge more, since it prefetches.

    Parameters
    ----------
    dataset : Dataset
        An `H5PYDataset` or an `HDF5Dataset` at one or several URLs, or a data
        set over one of these, such as `Windows`.
    iteration_scheme : IterationScheme
        The scheme. The requests of one of its epochs are counted.
    cache_bytes : int, optional
        Number of fetched bytes that are kept. Defaults to None: all fetched
        bytes are kept.

    Returns
    -------
    EpochCost

    Raises
    ------
    TypeError
        If the data set does not say how its rows are stored.

    Examples
    --------
    This needs the extra ``remote``.

    >>> import fsspec, h5py, numpy
    >>> from fuel.datasets.hdf5 import H5PYDataset, epoch_cost
    >>> from fuel.schemes import SequentialScheme
    >>> with fsspec.open('memory://costs/a.hdf5', 'wb') as stream:
    ...     with h5py.File(stream, 'w') as file:
    ...         file['x'] = numpy.zeros((3000, 1000))
    ...         file.attrs['split'] = H5PYDataset.create_split_array(
    ...             {'train': {'x': (0, 3000)}})
    >>> dataset = H5PYDataset('memory://costs/a.hdf5', ('train',))
    >>> cost = epoch_cost(dataset, SequentialScheme(3000, 500))
    >>> cost.requests, round(cost.nbytes / 1e6)
    (6, 24)
    """
    known = {} if not isinstance(dataset, Dataset) else {
        name: dataset.find_stored_rows(name) for name in dataset.sources}
    if all(rows is None for rows in known.values()):
        raise TypeError(
            f'{type(dataset).__name__} does not say how its rows are stored, '
            f'so that the cost of an epoch is not known')
    # Only HDF5 or another library finds the rows of a source without ranges.
    parts = {name: _Ranges(source) if isinstance(source, Source) else None
             for name, source in known.items()}
    seen: OrderedDict[tuple[FileBytes, int, int], int] = OrderedDict()
    kept = requests = total = 0
    unknown = set()
    for request in iteration_scheme.get_request_iterator():
        rows = as_rows(request if is_batch(request) else [request],
                        dataset.num_examples)
        missing: dict[FileBytes, list[tuple[int, int]]] = {}
        for name, part in parts.items():
            ranges = None if part is None else part.find(rows)
            if ranges is None:
                unknown.add(name)
                continue
            for file, start, stop in ranges:
                one = file, start, stop
                if one in seen:
                    seen.move_to_end(one)
                    continue
                seen[one] = stop - start
                kept += stop - start
                missing.setdefault(file, []).append((start, stop))
        while cache_bytes is not None and kept > cache_bytes and seen:
            kept -= seen.popitem(last=False)[1]
        for file, found in missing.items():
            for nbytes in _fetched(file, found):
                requests += -(-nbytes // LARGEST_REQUEST)
                total += nbytes
    return EpochCost(requests, total, tuple(sorted(unknown)))


class _Ranges:
    """Finds the ranges of bytes that examples of a source need.

    `source`: the source; its `held` keeps the files open.
    """

    def __init__(self, source: Source) -> None:
        self._source = source

    @functools.cached_property
    def _file(self) -> FileBytes:
        """The joined files, in which the reader counts its addresses."""
        # The files of a reader that knows byte ranges are `FileBytes`.
        return join_files(cast('Sequence[FileBytes]',
                               self._source.reader.files))

    def find(self, examples: Any) -> list[tuple[FileBytes, int, int]] | None:
        """Return file, start and end of each range; None if only HDF5 knows
        them."""
        source = self._source
        ranges = source.reader.byte_ranges(pick(source.rows, examples))
        if ranges is None:
            return None
        if not len(ranges[0]):
            return []
        return [(file, start, stop)
                for file, starts, stops in split_ranges(self._file, *ranges)
                for start, stop in zip(starts.tolist(), stops.tolist(),
                                       strict=True)]


def _fetched(file: FileBytes, ranges: Sequence[tuple[int, int]],
             ) -> Iterator[int]:
    """Yield the size in bytes of each run of pages that ranges need."""
    table = PageTable(max(1, file.size))
    starts, stops = numpy.array(ranges, numpy.int64).T
    for first, last in zip(*table.pages_of(starts, stops), strict=True):
        yield min(last * table.page, table.size) - first * table.page


# Shown under the name that users import.
EpochCost.__module__ = epoch_cost.__module__ = __package__
