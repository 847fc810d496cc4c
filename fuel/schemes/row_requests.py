"""Requests for some rows of batches whose other rows nobody needs here."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy

from fuel.schemes.requests import RequestIterator
from fuel.typing import Request


class Rows(NamedTuple):
    """Rows of a whole batch: which, and how many it has.

    Those from number `real` on repeat examples of the start.
    """

    rows: slice
    total: int
    real: int


class RowRequests(RequestIterator):
    """Requests of which the next one is cut to the rows that are wanted.

    Attributes
    ----------
    rows : slice or None
        Rows of the next request; None for all of them.
    """

    def __init__(self, requests: RequestIterator) -> None:
        self.requests = requests
        self.num_requests = requests.num_requests
        self.position = requests.position
        self.rows: slice | None = None

    @property
    def batch_size(self) -> Any:
        """Number of indices of a whole request."""
        return getattr(self.requests, 'batch_size', None)

    @property
    def is_random_access(self) -> bool:
        """Whether any request is known by its number (bool)."""
        return self.requests.is_random_access

    def _cut(self, position: int, request: Request) -> Any:
        if self.rows is None or position != self.position or request is None:
            return request
        rows = as_rows(request)[self.rows]
        return (numpy.ascontiguousarray(rows)
                if isinstance(rows, numpy.ndarray) else rows)

    def __next__(self) -> Any:
        return self._taken(self.request_at(self.position))

    def next_compact(self) -> Any:
        """Return the next request, as an array where there is one."""
        return self._taken(self.compact_at(self.position))

    def _taken(self, request: Request) -> Any:
        if request is None:
            raise StopIteration
        self.position += 1
        return request

    def request_at(self, position: int) -> Any:
        """Return a request by its number, None after the last."""
        return self._cut(position, self.requests.request_at(position))

    def compact_at(self, position: int) -> Any:
        """Return what :meth:`request_at` does, as an array if possible."""
        return self._cut(position, self.requests.compact_at(position))

    def rows_at(self, position: int) -> Rows:
        """Return which rows of a request were wanted last."""
        total = len(as_rows(self.requests.compact_at(position)))
        return Rows(slice(None) if self.rows is None else self.rows, total,
                    total)


def as_rows(request: Request) -> Any:
    """Return a request as something whose parts are requests."""
    if isinstance(request, slice) and request.stop is not None:
        return range(*request.indices(request.stop))
    if isinstance(request, (list, tuple, range, numpy.ndarray)):
        return request
    raise TypeError(
        'only lists of indices can be split over ranks, but the scheme '
        f"requested {request!r:.80} ({type(request).__name__}): use "
        "by='batch'")


def marks(count: int | None, repeats: bool, rows: Rows | None) -> Any:
    """Return which rows of an item repeat some, True for each.

    Of an example, `count` is None and one boolean is returned.
    """
    if count is None:
        return repeats
    found = numpy.full(count, repeats)
    if rows is not None:
        found |= numpy.arange(rows.total)[rows.rows] >= rows.real
    return found
