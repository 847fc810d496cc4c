"""Ways to read the data of an epoch from a data set."""
from __future__ import annotations

from typing import Any

from fuel.schemes.requests import IndexRequests, RequestIterator
from fuel.utils.overrides import defines_together, is_own


def rows_are_examples(dataset: Any) -> bool:
    """Tell whether the rows of a batch are what single requests give."""
    return (getattr(dataset, 'rows_are_examples', False)
            and 'get_data' not in vars(dataset)
            and defines_together(
                type(dataset), 'get_data', 'rows_are_examples'))


def takes_arrays(dataset: Any) -> bool:
    """Tell whether no user's code sees the requests for a data set.

    Users expect lists of integers; Fuel's own readers want arrays.
    """
    return (getattr(dataset, 'takes_arrays', False)
            and 'get_data' not in vars(dataset)
            and defines_together(type(dataset), 'get_data', 'takes_arrays'))


def request_source(dataset: Any, requests: Any) -> Any:
    """Return what gives the next request of an epoch at each call."""
    if requests is None:
        return _no_request
    if (isinstance(requests, RequestIterator)
            and type(requests).__next__ is RequestIterator.__next__
            and takes_arrays(dataset)):
        return requests.next_compact
    return requests.__next__


def batches_in_order(dataset: Any, requests: Any) -> Any:
    """Return what makes an iterator over the data of the next requests.

    None if a data set cannot read on by itself, or what it would read is not
    what the requests say. Single examples are read ahead in another way.
    """
    if (isinstance(requests, RequestIterator) and is_own(type(requests))
            and not isinstance(requests, IndexRequests)
            and takes_arrays(dataset)
            and defines_together(
                type(dataset), 'get_data', 'batches_in_order')):
        return dataset.batches_in_order
    return None


def _no_request() -> None:
    """Return no request, which reads what comes next."""


def requests_ahead(dataset: Any, requests: Any) -> Any:
    """Return what tells a data set of the next requests of an epoch.

    That is what its hook ``read_ahead`` makes of a function from a number
    to the request of that number. It is not asked if requests are not known
    beforehand, or a subclass reads in its own way.
    """
    if (isinstance(requests, RequestIterator)
            and type(requests)._request is not RequestIterator._request
            and hasattr(dataset, 'read_ahead')
            and 'get_data' not in vars(dataset)
            and defines_together(type(dataset), 'get_data', 'read_ahead')):
        # A user's own hook sees lists too.
        upcoming = (
            requests.compact_at
            if takes_arrays(dataset)
            and defines_together(type(dataset), 'read_ahead', 'takes_arrays')
            else requests.request_at)
        return dataset.read_ahead(upcoming) or look_at_nothing
    return look_at_nothing


def look_at_nothing(number: int) -> None:
    """Do nothing ahead of a request."""
