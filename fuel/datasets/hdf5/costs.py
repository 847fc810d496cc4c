"""What an epoch of a remote data set costs, before anything is fetched."""
from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import numpy

from fuel.datasets.row_orders import pick
from fuel.datasets.rows import as_rows, is_batch
from fuel.remote.pages import LARGEST_REQUEST, PageTable


class EpochCost(NamedTuple):
    """Requests and bytes of an epoch.

    Attributes
    ----------
    requests : int
        To the server.
    nbytes : int
        That it sends.
    unknown : tuple of str
        Sources that only HDF5 can find, or whose rows have variable length:
        they cost more than what is counted here.
    """

    requests: int
    nbytes: int
    unknown: tuple[str, ...]


def epoch_cost(dataset: Any, iteration_scheme: Any,
               cache_bytes: int | None = None) -> EpochCost:
    """Compute what a first epoch of a remote data set costs.

    The index of the file is read for it, no data. Requests are merged as the
    reader does; it may merge more of them, since it looks ahead.

    Parameters
    ----------
    dataset : H5PYDataset
    iteration_scheme : IterationScheme
        An epoch of it is begun, and gone through.
    cache_bytes : int, optional
        Bytes that stay here once they were fetched. Defaults to None: all.

    Returns
    -------
    EpochCost

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
    parts = list(zip(dataset.sources, dataset._readers(), strict=True))
    table = PageTable(max(1, dataset._access.open().identity[2]))
    seen: OrderedDict[tuple[int, int], int] = OrderedDict()
    kept = requests = total = 0
    unknown = set()
    for request in iteration_scheme.get_request_iterator():
        rows = as_rows(request if is_batch(request) else [request],
                        dataset.num_examples)
        missing = []
        for name, (reader, order) in parts:
            ranges = reader.byte_ranges(pick(order, rows))
            if ranges is None:
                unknown.add(name)
                continue
            for one in zip(*(ends.tolist() for ends in ranges),
                           strict=True):
                if one in seen:
                    seen.move_to_end(one)
                    continue
                seen[one] = one[1] - one[0]
                kept += seen[one]
                missing.append(one)
        while cache_bytes is not None and kept > cache_bytes and seen:
            kept -= seen.popitem(last=False)[1]
        if missing:
            starts, stops = numpy.array(missing, numpy.int64).T
            for first, last in zip(
                    *table.pages_of(starts, stops), strict=True):
                nbytes = min(last * table.page, table.size) - (
                    first * table.page)
                requests += -(-nbytes // LARGEST_REQUEST)
                total += nbytes
    return EpochCost(requests, total, tuple(sorted(unknown)))
