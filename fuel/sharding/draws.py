"""Draw the requests of an epoch from copies of its schemes."""
from __future__ import annotations

import copy
import random
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import accumulate, islice
from typing import Any, NamedTuple

import numpy

from fuel.schemes.base import (
    BatchScheme, DrawnOrder, IndexScheme, epoch_state, no_state)
from fuel.schemes.iteration_scheme import (
    ShardedScheme, is_random_access, parts_of_scheme)
from fuel.schemes.iterator_requests import ConcatenatedRequests, as_requests
from fuel.schemes.requests import RequestIterator
from fuel.sharding.order import KINDS, Kind, UnknownOrderError
from fuel.sharding.shard_pipeline import copied_scheme
from fuel.typing import SchemeLike, State
from fuel.utils import rng_state
from fuel.utils.overrides import defines_together, is_original


class ModuleGenerators:
    """The generators of `random` and `numpy.random`, from which a user's
    scheme may draw: their states as they are when this is made."""

    def __init__(self) -> None:
        self._states = random.getstate(), numpy.random.get_state()

    @contextmanager
    def drawn_from(self) -> Iterator[None]:
        """Let the modules draw from these states, and go on from their own
        later."""
        before = random.getstate(), numpy.random.get_state()
        self._set(self._states)
        try:
            yield
        finally:
            self._states = random.getstate(), numpy.random.get_state()
            self._set(before)

    def _set(self, states: tuple[Any, Any]) -> None:
        random.setstate(states[0])
        numpy.random.set_state(states[1])


class ListedRequests(RequestIterator):
    """Requests that are known one after another; those made are kept."""

    def __init__(self, requests: Iterator[Any],
                 generators: ModuleGenerators | None) -> None:
        self._rest: Iterator[Any] | None = requests
        self._generators = generators
        self._made: list[Any] = []

    def count_to(self, stop: int) -> int:
        """Return how many requests there are, or at least `stop`."""
        missing = stop - len(self._made)
        if missing > 0 and self._rest is not None:
            with (nullcontext() if self._generators is None
                  else self._generators.drawn_from()):
                self._made += islice(self._rest, missing)
            if len(self._made) < stop:
                self._rest = None
        return len(self._made)

    def request_at(self, position: int) -> Any:
        """Return a request by its number, None after the last."""
        return (self._made[position]
                if self.count_to(position + 1) > position else None)


class JoinedRequests(RequestIterator):
    """Requests that are known by their numbers, of several iterators."""

    def __init__(self, parts: Sequence[RequestIterator]) -> None:
        self.parts = parts
        self._ends = list(accumulate(int(one.num_requests) for one in parts))
        self.num_requests = self._ends[-1]

    def request_at(self, position: int) -> Any:
        """Return a request by its number, None after the last."""
        place = bisect_right(self._ends, position)
        if place == len(self.parts):
            return None
        return self.parts[place].request_at(
            position - (self._ends[place - 1] if place else 0))


def by_number(requests: Iterator[Any], generators: ModuleGenerators | None,
              ) -> RequestIterator:
    """Return requests of a new epoch that can be asked for in any order."""
    found = as_requests(requests)
    if found.is_random_access:
        return found
    if type(found) is ConcatenatedRequests:
        parts = [by_number(part, generators) for part in found.parts]
        if all(part.is_random_access for part in parts):
            return JoinedRequests(parts)
    return ListedRequests(found, generators)


class Start:
    """A scheme as it is before an epoch, a copy.

    `state`: what it takes up before; None if it stands there.
    """

    def __init__(self, scheme: SchemeLike, state: State | None,
                 generators: ModuleGenerators | None = None) -> None:
        # Asked for hooks that not every scheme has.
        self.scheme: Any = scheme
        self.state = state
        self.generators = generators or (
            None if is_of_fuel(scheme) else ModuleGenerators())

    @property
    def is_computed(self) -> bool:
        """True if the requests follow from the number of the epoch."""
        return self.generators is None and (
            scheme_kind(self.scheme) == 'computed')

    def draw(self) -> Any:
        """Return the requests, as an epoch that begins does."""
        with (nullcontext() if self.generators is None
              else self.generators.drawn_from()):
            if self.state is not None:
                self.scheme.load_state_dict(self.state)
                self.state = None
            return by_number(
                self.scheme.get_request_iterator(), self.generators)

    def copied(self, known: dict[int, Any]) -> Start:
        """Return a copy with generators of its own."""
        return type(self)(copied_scheme(self.scheme, known, True),
                          self.state, copy.copy(self.generators))

    def moved(self, count: int, known: dict[int, Any]) -> Start:
        """Return a copy of a number of epochs later."""
        ours = self.copied(known)
        hook = type(ours.scheme).state_dict
        if hook is epoch_state and ours.state is None:
            ours.scheme.epoch += count
            if ours.scheme.epoch < 0:
                raise IndexError('there is no epoch before the first')
        elif hook is not no_state:
            raise UnknownOrderError(
                'of an epoch before, the state from which '
                f'{type(self.scheme).__name__} drew is not kept')
        return ours


class Replay(Start):
    """A scheme as it was before the epoch that is running."""

    def copied(self, known: dict[int, Any]) -> Start:
        """Return a copy whose generators nobody shares, since they are put
        back."""
        return super().copied({})


class KeyStart(NamedTuple):
    """The generator from which a stage draws the key of an epoch."""

    rng: Any

    @property
    def is_computed(self) -> bool:
        """True if no other generator has to be drawn from before."""
        return False

    def draw(self) -> int:
        """Return the key."""
        return int(self.rng.integers(2 ** 63))

    def copied(self, known: dict[int, Any]) -> KeyStart:
        """Return a copy with a generator of its own."""
        return KeyStart(copy.deepcopy(self.rng, known))

    def moved(self, count: int, known: dict[int, Any]) -> KeyStart:
        """Raise an error."""
        raise UnknownOrderError(
            'of an epoch before, the state from which a stage drew its key '
            'is not kept')


class Known(NamedTuple):
    """Requests, or a key, that a running epoch has drawn."""

    drawn: Any

    @property
    def is_computed(self) -> bool:
        """True if no other generator has to be drawn from before."""
        return True

    def draw(self) -> Any:
        """Return it."""
        return self.drawn

    def copied(self, known: dict[int, Any]) -> Known:
        """Return the same, which does not change."""
        return self


class Draws:
    """The requests and keys that a pipeline draws for an epoch.

    `starts`: what is drawn from, in the order in which an epoch begins.
    `after`: what the next epoch draws from; None for what is left of a start
        when it was drawn from.
    `unknown`: why it is not known what further epochs draw, '' if it is.
    """

    def __init__(self, starts: list[Any], after: list[Any],
                 unknown: str = '') -> None:
        self.starts = starts
        self.after = after
        self.unknown = unknown
        self._drawn: dict[int, Any] = {}
        self._copies: list[Any] = []
        self._left: list[Any] = []

    def add(self, start: Any, after: Any = None) -> int:
        """Add what is drawn from; return its place."""
        self.starts.append(start)
        self.after.append(after)
        self._copies = []
        return len(self.starts) - 1

    def __reduce__(self) -> Any:
        return Draws, (self.starts, self.after, self.unknown)

    def at(self, place: int) -> Any:
        """Return what is drawn at a place: a permutation when it is asked
        for, with all others, since they may share a generator."""
        if not self._copies:
            self._drawn = {}
            known: dict[int, Any] = {}
            self._copies = [start.copied(known) for start in self.starts]
            # They may share generators with what is drawn from here.
            self._left = [
                ours if later is None else later.copied(known)
                for ours, later in zip(
                    self._copies, self.after, strict=True)]
        if place not in self._drawn:
            places = [place] if self._is_alone(place) else [
                other for other in range(len(self._copies))
                if not self._is_alone(other)]
            for other in places:
                if other not in self._drawn:
                    self._drawn[other] = self._copies[other].draw()
        return self._drawn[place]

    def _is_alone(self, place: int) -> bool:
        """Return whether what is drawn at a place does not depend on what
        was drawn at others."""
        start = self._copies[place]
        return start.is_computed and not (isinstance(start, Start) and any(
            isinstance(other, Start) and other.scheme is start.scheme
            for other in self._copies if other is not start))

    def following(self, places: Collection[int] | None = None) -> Draws:
        """Return what is drawn for the next epoch: of all of the pipeline,
        or of what draws at some places."""
        if places is None and self.unknown:
            raise UnknownOrderError(self.unknown)
        kept = list(map(self.at, range(len(self.starts))))
        known: dict[int, Any] = {}
        left = [start.copied(known) for start in self._left]
        if places is None:
            return Draws(left, [None] * len(left), self.unknown)
        return Draws(
            [start if place in places else Known(kept[place])
             for place, start in enumerate(left)],
            [None if place in places else start
             for place, start in enumerate(left)])

    def earlier(self, count: int) -> Draws:
        """Return what was drawn for an epoch before."""
        known: dict[int, Any] = {}
        return Draws([
            (start if later is None else later).moved(
                -count - (later is not None), known)
            for start, later in zip(self.starts, self.after, strict=True)],
            [None] * len(self.starts))


def whole_scheme(scheme: Any) -> Any:
    """Return the scheme that a scheme of a rank takes its share of."""
    return scheme.scheme if isinstance(scheme, ShardedScheme) else scheme


def is_of_fuel(scheme: Any) -> bool:
    """Return whether the requests of a scheme are those of Fuel's classes."""
    return is_original(scheme, 'get_request_iterator') and all(
        map(is_of_fuel, parts_of_scheme(scheme)))


def scheme_kind(scheme: Any) -> Kind:
    """Return how a request of a scheme is found."""
    scheme = whole_scheme(scheme)
    if not is_original(scheme, 'get_request_iterator'):
        return 'drawn' if is_random_access(scheme) else 'replayed'
    kinds: list[Kind] = [
        'drawn' if isinstance(scheme, DrawnOrder) else 'computed',
        *map(scheme_kind, parts_of_scheme(scheme))]
    return max(kinds, key=KINDS.index)


def why_unknown(scheme: Any) -> str:
    """Return why the requests of a scheme are not known, '' if they are."""
    name = type(scheme).__name__
    if not is_original(scheme, 'get_request_iterator'):
        if all(defines_together(type(scheme), 'get_request_iterator', hook)
               for hook in ('state_dict', 'load_state_dict')):
            return ''
        return (f'the iteration scheme {name} lacks the hooks state_dict() '
                'and load_state_dict(state), by which a copy makes the '
                'requests again')
    if isinstance(scheme, DrawnOrder) and not (
            rng_state.is_generator(scheme.rng)):
        return (f'the iteration scheme {name} draws from a '
                f'{type(scheme.rng).__name__}, which cannot be copied')
    if isinstance(scheme, (BatchScheme, IndexScheme)) and isinstance(
            scheme.indices, Iterator):
        return (f'the examples of the iteration scheme {name} are an '
                'iterator, which can be read once')
    return next(filter(None, map(why_unknown, parts_of_scheme(scheme))), '')
