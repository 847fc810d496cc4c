"""Check what an iteration scheme promises to the streams that use it."""
from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, product
from typing import Any

from fuel.datasets import Dataset
from fuel.schemes.iteration_scheme import scheme_state
from fuel.streams import DataStream
from fuel.testing.data import Frozen, freeze, overwrite
from fuel.testing.promises import (
    BrokenPromiseError,
    Promises,
    expect,
    expect_builder,
    expect_made,
    keep,
)
from fuel.typing import SchemeLike

#: Most requests that are read of an epoch, since an epoch may be endless.
MOST_REQUESTS = 100

Builder = Callable[[], Any]


def check_scheme(build: Callable[[], SchemeLike], *,
                 promises: Iterable[str] | None = None) -> None:
    """Check that an iteration scheme keeps what Fuel promises of every scheme.

    Parameters
    ----------
    build : callable
        Makes a new scheme.  All schemes that it makes are equal: same
        examples, same seed.  An epoch has two requests or more.  The checks
        read the first hundred requests of an endless epoch.
    promises : iterable of str, optional
        Keys of :data:`SCHEME_PROMISES`.  Defaults to all.

    Raises
    ------
    BrokenPromiseError
        If a promise is broken; the text names it.

    Examples
    --------
    >>> from fuel.schemes import IterationScheme, ShuffledScheme
    >>> check_scheme(lambda: ShuffledScheme(10, 3))
    >>> class Evens(IterationScheme):
    ...     requests_examples = True
    ...     def get_request_iterator(self):
    ...         return (number for number in range(0, 10, 2))
    >>> check_scheme(Evens, promises=['epochs', 'pickled requests'])
    Traceback (most recent call last):
    fuel.testing.promises.BrokenPromiseError: pickled requests: A request
    iterator pickles in mid-epoch, and goes on there. Its check ended with
    TypeError: cannot pickle 'generator' object
    """
    expect_builder(build, 'iteration scheme')
    expect_made(build(), 'iteration scheme', 'get_request_iterator')
    keep(SCHEME_PROMISES, promises, build)


def read(requests: Iterator[object]) -> list[Frozen]:
    """Return records of the first requests of an epoch."""
    return [freeze(request) for request in islice(requests, MOST_REQUESTS)]


def check_kind(build: Builder) -> None:
    """A scheme says whether its requests are for examples or for batches."""
    kind = getattr(build(), 'requests_examples', None)
    expect(isinstance(kind, bool), f'requests_examples is {kind!r}: set True '
           'or False in the class.')


def check_iterator(build: Builder) -> None:
    """A scheme returns an iterator, which stays at its end."""
    requests = build().get_request_iterator()
    expect(hasattr(requests, '__next__'),
           f'get_request_iterator() returned a {type(requests).__name__}: '
           'return iter(...) of it.')
    if len(read(requests)) < MOST_REQUESTS:
        expect(next(requests, None) is None, 'It went on after its end.')


def check_epochs(build: Builder) -> None:
    """Each request iterator visits a whole epoch."""
    scheme = build()
    first, second = (len(read(scheme.get_request_iterator()))
                     for _ in range(2))
    expect(first == second,
           f'The second has {second} requests, and the first {first}.')


def check_equal(build: Builder) -> None:
    """Schemes built alike make the same requests in each epoch."""
    one, other = build(), build()
    for epoch in range(2):
        expected, got = (read(scheme.get_request_iterator())
                         for scheme in (one, other))
        expect(expected == got,
               f'In epoch {epoch} one made {expected}, the other {got}.')


def check_side_by_side(build: Builder) -> None:
    """Two request iterators do not disturb each other."""
    scheme, other = build(), build()
    expected = [read(scheme.get_request_iterator()) for _ in range(2)]
    iterators = [other.get_request_iterator() for _ in range(2)]
    seen: list[list[Frozen]] = [[], []]
    for _ in range(max(map(len, expected))):
        for requests, items in zip(iterators, seen, strict=True):
            items += [freeze(request) for request in islice(requests, 1)]
    expect(expected == seen, f'Read in turns, {seen} came for {expected}.')


def check_ownership(build: Builder) -> None:
    """A request can be overwritten: it changes no other and no later one."""
    scheme, other = build(), build()
    for epoch in range(2):
        expected = read(scheme.get_request_iterator())
        seen = []
        for request in islice(other.get_request_iterator(), MOST_REQUESTS):
            seen.append(freeze(request))
            overwrite(request)
        expect(expected == seen,
               f'In epoch {epoch}, {seen} came for {expected}: return copies '
               'of what the scheme keeps.')


def check_length(build: Builder) -> None:
    """A number of requests, where it is known, is that of an epoch."""
    scheme = build()
    known = getattr(scheme, 'num_requests', None)
    count = len(read(scheme.get_request_iterator()))
    expect(known is None or known == count or count == MOST_REQUESTS,
           f'num_requests is {known}, but there were {count}.')


def check_pickle(build: Builder) -> None:
    """A scheme pickles, and its copy makes the same requests."""
    scheme = build()
    read(scheme.get_request_iterator())
    copy = pickle.loads(pickle.dumps(scheme))
    expected, got = (read(one.get_request_iterator())
                     for one in (scheme, copy))
    expect(expected == got, f'The copy made {got} for {expected}.')


def check_pickled_requests(build: Builder) -> None:
    """A request iterator pickles in mid-epoch, and goes on there."""
    for step in (0, 1):
        requests = build().get_request_iterator()
        for _ in range(step):
            next(requests)
        copy = pickle.loads(pickle.dumps(requests))
        expected, got = read(requests), read(copy)
        expect(expected == got,
               f'After {step} requests the copy made {got} for {expected}.')


class GivenRequests(Dataset):
    """A data set that returns each request as its data."""

    provides_sources = ('requests',)
    example_iteration_scheme = None

    def get_data(self, state: object = None, request: Any = None) -> Any:
        """Return the request itself, as the only source."""
        return (request,)


def requests_stream(build: Builder) -> DataStream:
    """Return a new stream whose items are the requests of a new scheme."""
    return DataStream(GivenRequests(), iteration_scheme=build())


def check_state(build: Builder) -> None:
    """A stream saves where it stands, and another one goes on there."""
    scheme = build()
    try:
        scheme_state(scheme)
    except TypeError as error:
        raise BrokenPromiseError(
            f'But {error}. Where that is enough, leave this promise out of '
            'promises.') from error
    for epoch in range(2):
        text = json.dumps(scheme.state_dict())
        expected = read(scheme.get_request_iterator())
        other = build()
        other.load_state_dict(json.loads(text))
        got = read(other.get_request_iterator())
        expect(expected == got,
               f'Before epoch {epoch} it was {text}, from which {got} came '
               f'for {expected}.')
    for epoch, step in product(range(2), range(3)):
        stream, other = requests_stream(build), requests_stream(build)
        for _ in range(epoch):
            read(stream.get_epoch_iterator())
        requests = stream.get_epoch_iterator()
        for _ in range(step):
            next(requests, None)
        text = json.dumps(stream.state_dict())
        both = read(requests), read(stream.get_epoch_iterator())
        other.load_state_dict(json.loads(text))
        found = tuple(read(other.get_epoch_iterator()) for _ in range(2))
        expect(both == found,
               f'After request {step} of epoch {epoch} a stream saved {text}, '
               f'from which {found} came for {both}.')


#: A dict from names to the checks of a scheme.
SCHEME_PROMISES: Promises[Builder] = {
    'kind': check_kind,
    'iterator': check_iterator,
    'epochs': check_epochs,
    'equal': check_equal,
    'side by side': check_side_by_side,
    'ownership': check_ownership,
    'length': check_length,
    'pickle': check_pickle,
    'pickled requests': check_pickled_requests,
    'state': check_state,
}
