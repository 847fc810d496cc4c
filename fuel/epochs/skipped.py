"""Examples that an epoch leaves out, since making them failed."""
from __future__ import annotations

import errno
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

from fuel.exceptions import (
    BadRecordsError, FuelError, UndecodableAudioError, UndecodableImageError,
    UnknownTokenError)
from fuel.typing import State

logger = logging.getLogger(__name__)

# Limit of the skipped examples that are listed; the others are counted.
MOST_LISTED = 100
# Number of examples that the error names if too many are skipped.
_NAMED = 5
# Number of skipped examples that are logged, whatever their causes.
_LOGGED = 20
# Characters of the text of an error that are kept.
_MOST_ERROR_CHARACTERS = 200
# Default limit of skipped examples: a number, or a share of a large data set.
_FEW, _SHARE = 10, 0.01

# Errors that no example has caused: the program, the machine, the network or a
# whole file is at fault.
_NOT_OF_DATA = (FuelError, MemoryError, RecursionError, NotImplementedError,
                ImportError, NameError, SyntaxError)
_OF_DATA = UndecodableAudioError, UndecodableImageError, UnknownTokenError
# The machine has no more memory, open files or room, or no network.
_OF_MACHINE = {errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC,
               errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN,
               errno.EHOSTUNREACH}
# Errors of the network, by their names, since most programs do not import the
# modules.
_OF_NETWORK = {
    'builtins.ConnectionError', 'builtins.TimeoutError',
    'http.client.BadStatusLine', 'http.client.IncompleteRead',
    'socket.gaierror', 'ssl.SSLError', 'urllib.error.URLError',
    'aiohttp.client_exceptions.ClientConnectionError',
    'httpx.TransportError', 'requests.exceptions.ConnectionError',
    'requests.exceptions.Timeout', 'urllib3.exceptions.PoolError',
    'urllib3.exceptions.ProtocolError', 'urllib3.exceptions.TimeoutError'}
# Status codes of a server that concern only one address: not found, gone.
_OF_ADDRESS = {404, 410}


class SkippedExample(NamedTuple):
    """An example that was left out, since making it failed.

    Attributes
    ----------
    item : int
        Number of the item, such as a batch, that lacks the example. The items
        that the stage makes in an epoch are counted over all ranks.
    example : int or None
        Number of the example in the data set; None if not known.
    stage : str
        Class of the stage that failed, or class of the data stream if reading
        failed.
    error : str
        Class and text of the exception.
    """

    item: int
    example: int | None
    stage: str
    error: str

    def __str__(self) -> str:
        which = ('an example' if self.example is None
                 else f'example {self.example}')
        return f'{which} in stage {self.stage}: {self.error}'


@dataclass(frozen=True)
class Skipped:
    """Examples that were left out of an epoch.

    Attributes
    ----------
    count : int
        Number of the skipped examples.
    examples : tuple of SkippedExample
        The first hundred of them, sorted by the numbers of their items.
    """

    count: int = 0
    examples: tuple[SkippedExample, ...] = ()

    def with_more(self, other: Skipped) -> Skipped:
        """Return the skipped examples of both objects."""
        return Skipped(self.count + other.count, tuple(sorted(
            [*self.examples, *other.examples],
            key=attrgetter('item'))[:MOST_LISTED]))

    def as_field(self) -> State:
        """Return a dict with the field of a state that records these examples;
        {} if there are none."""
        return {'skipped': {
            'count': self.count,
            'examples': [list(each) for each in self.examples],
        }} if self.count else {}

    @classmethod
    def of_plain(cls, saved: Any) -> Skipped:
        """Check a field that :meth:`as_field` made; return the skipped
        examples in it."""
        count, listed = saved['count'], saved['examples']
        examples = tuple([SkippedExample(*each) for each in listed])
        if type(count) is not int or len(examples) != min(
                count, MOST_LISTED) or len(saved) != 2 or not all(
                    type(each.item) is int and type(each.stage) is str
                    and type(each.error) is str
                    and type(each.example) in (int, type(None))
                    for each in examples):
            raise ValueError('these are not examples that were left out')
        return cls(count, examples)

    @classmethod
    def in_state(cls, state: State, *, below: bool = True) -> Skipped:
        """Return the examples that a stage had left out when its state was
        saved.

        `below`: whether to add the examples that streams below it left out.
        """
        found = (cls.of_plain(state['skipped']) if 'skipped' in state
                 else cls())
        for child in state.get('children', ()) if below else ():
            found = found.with_more(cls.in_state(child))
        return found


def merged(state: State, others: Sequence[State], before: State) -> State:
    """Return a worker's state, with the examples that other workers have left
    out.

    `others`: the states of the other workers.
    `before`: the state with which all workers began.
    """
    known = Skipped.in_state(before, below=False)
    found = Skipped.in_state(state, below=False)
    for other in others:
        more = Skipped.in_state(other, below=False)
        found = found.with_more(Skipped(more.count - known.count, tuple(
            [each for each in more.examples if each not in known.examples])))
    children = [
        merged(child, [other['children'][place] for other in others],
               before['children'][place])
        for place, child in enumerate(state.get('children', ()))]
    return {**state, **({'children': children} if children else {}),
            **found.as_field()}


class LeftOut(Exception):  # noqa: N818 - a stage below has counted it
    """Raised instead of an example that a stage below has left out."""


class SkipLimit:
    """The limit of the examples that a pipeline may skip in an epoch.

    `most`: the largest number of examples that may be skipped.
    `count`: number of examples skipped so far; the stages add to it.
    `requests`: the requests to the data set; None if the data set is read in
        order.
    """

    def __init__(self, most: int, requests: Any = None) -> None:
        self.most = most
        self.requests = requests
        self.count = 0
        self._first: list[SkippedExample] = []
        self._causes: set[tuple[str, str]] = set()

    def restore(self, skipped: Skipped) -> None:
        """Count the examples that a stage had left out in a saved state."""
        self.count += skipped.count
        self._first = [*self._first, *skipped.examples][:_NAMED]

    def add(self, examples: Sequence[SkippedExample]) -> None:
        """Count skipped examples; raise BadRecordsError if they are too many.

        The first examples are logged; later, only the first of each cause.
        """
        self.count += len(examples)
        self._first = [*self._first, *examples][:_NAMED]
        for each in examples:
            cause = each.stage, each.error.partition(':')[0]
            if self.count <= _LOGGED or cause not in self._causes:
                self._causes.add(cause)
                logger.warning("on_error='skip' leaves out %s", each)
        self.check()

    def check(self) -> None:
        """Raise BadRecordsError if more examples were left out than the
        limit allows."""
        if self.count > self.most:
            raise BadRecordsError(
                f'{self.count} examples of the epoch could not be made, and '
                f'max_skipped is {self.most}{self._causes_text()}')

    def refuse_empty_epoch(self) -> None:
        """Raise BadRecordsError: every example of an epoch was skipped."""
        raise BadRecordsError(
            f'nothing is left of the epoch: {self.count} of its examples '
            f'could not be made{self._causes_text()}')

    def _causes_text(self) -> str:
        named = '; '.join(map(str, self._first))
        more = '; ...' if self.count > len(self._first) else ''
        return f': {named}{more}. Correct the data or the stage'


def skip_limit(max_skipped: float | None, examples: object) -> int:
    """Return the number of examples that an epoch may leave out.

    `max_skipped`: this number (int), or a fraction of the data set (float);
        None for the default.
    `examples`: number of examples of the data set, if known.
    """
    if isinstance(max_skipped, int):
        return max_skipped
    count = examples if isinstance(examples, int) else 0
    if max_skipped is None:
        return max(_FEW, int(_SHARE * count))
    return max(1, round(max_skipped * count))


def check_skipping(on_error: object, max_skipped: object,
                   examples: int | None) -> None:
    """Raise ValueError if the arguments for skipping examples are invalid.

    `examples`: number of examples of the data set, if known.
    """
    if on_error not in ('raise', 'skip'):
        raise ValueError(
            f"on_error must be 'raise' or 'skip', got {on_error!r}")
    if max_skipped is None:
        return
    if on_error == 'raise':
        raise ValueError("max_skipped limits what on_error='skip' leaves "
                         'out: pass both, or none of them')
    if isinstance(max_skipped, bool) or not (
            (isinstance(max_skipped, int) and max_skipped > 0)
            or (isinstance(max_skipped, float) and 0 < max_skipped < 1)):
        raise ValueError(
            'max_skipped must be a positive number of examples, or a part '
            f'of the data set between 0 and 1, got {max_skipped!r}')
    if isinstance(max_skipped, float) and examples is None:
        raise ValueError(
            f'max_skipped={max_skipped!r} is a part of the data set, but how '
            'many examples that has is not known: pass a number of examples')


def is_of_data(error: Exception) -> bool:
    """Return whether an example may have caused an exception."""
    if any(_is_of_network(one) or (
            isinstance(one, OSError) and one.errno in _OF_MACHINE)
           for one in (error, error.__cause__)):
        return False
    return isinstance(error, _OF_DATA) or not isinstance(error, _NOT_OF_DATA)


def _is_of_network(error: BaseException | None) -> bool:
    """Return whether the network or a server has caused an exception.

    For the status codes 404 and 410, which concern one address, the result is
    False.
    """
    names = {f'{base.__module__}.{base.__qualname__}'
             for base in type(error).__mro__}
    return not names.isdisjoint(_OF_NETWORK) and not (
        'urllib.error.HTTPError' in names
        and vars(error).get('code') in _OF_ADDRESS)


def error_text(error: Exception) -> str:
    """Return the class and text of an exception in one line, shortened."""
    text = ' '.join(str(error).split())
    name = type(error).__name__
    whole = f'{name}: {text}' if text else name
    return (whole if len(whole) <= _MOST_ERROR_CHARACTERS
            else f'{whole[:_MOST_ERROR_CHARACTERS - 4].rstrip()} ...')
