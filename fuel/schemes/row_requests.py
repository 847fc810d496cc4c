"""Requests for some rows of batches whose other rows nobody needs here."""
from __future__ import annotations

from typing import Any

import numpy

from fuel.schemes.requests import RequestIterator
from fuel.schemes.shard import BatchPart
from fuel.typing import Request


class ChosenRequests(RequestIterator):
    """Base of the iterators over requests, or parts, of another.

    Subclasses implement :meth:`_next` and :meth:`_at`, whose argument
    `compact` says whether an array is returned where there is one.
    """

    requests: RequestIterator

    def _next(self, compact: bool) -> Any:
        """Return the next request."""
        raise NotImplementedError

    def _at(self, position: int, compact: bool) -> Any:
        """Return the request at a position, None after the last."""
        raise NotImplementedError

    @property
    def is_random_access(self) -> bool:
        """Whether any request is known by its number (bool)."""
        return self.requests.is_random_access

    @property
    def batch_size(self) -> Any:
        """Number of indices of a whole request, None if it is not known."""
        return self.requests.batch_size

    def __next__(self) -> Any:
        return self._next(False)

    def next_compact(self) -> Any:
        """Return the next request, as an array where there is one."""
        return self._next(True)

    def request_at(self, position: int) -> Any:
        """Return the request at a position, None after the last."""
        return self._at(position, False)

    def compact_at(self, position: int) -> Any:
        """Return what :meth:`request_at` does, as an array if possible."""
        return self._at(position, True)


class RowRequests(ChosenRequests):
    """Requests of which the next one is cut to the rows that are wanted.

    `rows`: rows of the next request; None for all of them.
    """

    def __init__(self, requests: RequestIterator) -> None:
        self.requests = requests
        self.num_requests = requests.num_requests
        self.position = requests.position
        self.rows: slice | None = None

    def _at(self, position: int, compact: bool) -> Any:
        request = (self.requests.compact_at(position) if compact
                   else self.requests.request_at(position))
        if self.rows is None or position != self.position or request is None:
            return request
        rows = as_splittable(request)[self.rows]
        return (numpy.ascontiguousarray(rows)
                if isinstance(rows, numpy.ndarray) else rows)

    def _next(self, compact: bool) -> Any:
        request = self._at(self.position, compact)
        if request is None:
            raise StopIteration
        self.position += 1
        return request

    def rows_at(self, position: int) -> BatchPart:
        """Return which rows of a request were wanted last."""
        total = len(as_splittable(self.requests.compact_at(position)))
        rows = slice(None) if self.rows is None else self.rows
        return BatchPart(rows, total, total)


def as_splittable(request: Request) -> Any:
    """Return a request as something whose parts are requests."""
    if isinstance(request, slice) and request.stop is not None:
        return range(*request.indices(request.stop))
    if isinstance(request, (list, tuple, range, numpy.ndarray)):
        return request
    raise TypeError(
        'only lists of indices can be split over ranks, but the scheme '
        f"requested {request!r:.80} ({type(request).__name__}): use "
        "by='batch'")


def marks(count: int | None, repeats: bool, rows: BatchPart | None) -> Any:
    """Return which rows of an item repeat some, True for each.

    Of an example, `count` is None and one boolean is returned.
    """
    if count is None:
        return repeats
    found = numpy.full(count, repeats)
    if rows is not None:
        found |= numpy.arange(rows.total)[rows.rows] >= rows.real
    return found
