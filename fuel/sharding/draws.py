"""The draws of a pipeline: the requests of its schemes and the keys of its
stages, drawn from copies.

Several parts of a pipeline may share a generator. What each part draws then
depends on the order in which the parts draw. If this depends on how far an
epoch is read, the order of the items is not known.
"""
from __future__ import annotations

import copy
import itertools
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from contextlib import nullcontext
from itertools import accumulate, islice
from typing import Any, NamedTuple

import numpy

from fuel.epochs.shared_draws import is_lazy
from fuel.epochs.stage import Stage, stage_of
from fuel.epochs.state import (
    Position, SchemeStart, as_text, position_of, without_frames)
from fuel.exceptions import UnknownOrderError
from fuel.kernels.epoch_iterator import EpochIterator
from fuel.schemes.iteration_scheme import (
    BatchScheme, DrawnOrder, IndexScheme, ShardedScheme, epoch_state,
    generator_of, is_random_access, keeps_generator_before, keeps_state,
    no_state, parts_of_scheme, scheme_state)
from fuel.schemes.iteration_scheme import rng_state as drawn_state
from fuel.schemes.requests import (
    ConcatenatedRequests, RequestIterator, as_requests)
from fuel.schemes.ordered import ConcatenatedScheme
from fuel.sharding.far_epochs import epochs_to_draw
from fuel.sharding.module_generators import ModuleGenerators
from fuel.sharding.order import KINDS, Kind
from fuel.sharding.shard_pipeline import copied_scheme
from fuel.typing import SchemeLike, State, StreamLike
from fuel.utils import rng_state
from fuel.utils.overrides import hook_covers_method, is_original


class ListedRequests(RequestIterator):
    """Requests that can only be made in order; they are kept."""

    def __init__(self, requests: Iterator[Any],
                 generators: ModuleGenerators | None) -> None:
        self._rest: Iterator[Any] | None = requests
        self._generators = generators
        self._made: list[Any] = []

    def count_to(self, stop: int) -> int:
        """Return the number of requests; counting may end at `stop`."""
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
    """Requests of several iterators, one after another, by their numbers."""

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

    def places_of(self, index: object) -> list[tuple[int, int]] | None:
        """Return the places at which the epoch has an index, in order."""
        found: list[tuple[int, int]] = []
        for part, end in zip(self.parts, self._ends, strict=True):
            places = part.places_of(index)
            if places is None:
                return None
            first = end - int(part.num_requests)
            found += [(first + request, number) for request, number in places]
        return found


def by_number(requests: Iterator[Any], generators: ModuleGenerators | None,
              ) -> RequestIterator:
    """Return the requests of a new epoch in a form that returns any of them
    by its number."""
    found = as_requests(requests)
    if found.is_random_access:
        return found
    if type(found) is ConcatenatedRequests:
        parts = [by_number(part, generators) for part in found.parts]
        if all(part.is_random_access for part in parts):
            return JoinedRequests(parts)
    return ListedRequests(found, generators)


class Start:
    """A copy of a scheme, as it is before an epoch.

    `state`: state that the scheme must restore first; None if it is in this
        state already.
    """

    def __init__(self, scheme: SchemeLike, state: State | None,
                 generators: ModuleGenerators | None = None) -> None:
        # Any type, since some hooks exist only in some schemes.
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
        """Begin an epoch of the scheme; return its requests."""
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

    def moved(self, count: int, known: dict[int, Any],
              number: int | None = None) -> Start:
        """Return a copy as it is `count` epochs later.

        `number`: number of that epoch; None if it is not known.
        """
        ours = self.copied(known)
        hook = type(ours.scheme).state_dict
        if ours.state is not None:
            ours.scheme.load_state_dict(ours.state)
            ours.state = None
        if hook is epoch_state:
            ours.scheme.epoch += count
            if ours.scheme.epoch < 0:
                raise IndexError('there is no epoch before the first')
        elif hook is not no_state and not (
                hook in (drawn_state, ConcatenatedScheme.state_dict)
                and number is not None and ours.restart(number, count)):
            raise UnknownOrderError(
                'of an epoch before, the state from which '
                f'{type(self.scheme).__name__} drew is not kept, and the '
                'seed does not lead to the present state: load a state that '
                'was saved in that epoch')
        return ours

    def restart(self, number: int, count: int) -> bool:
        """Draw from the seed again, up to the beginning of epoch `number`;
        return whether the present state is `-count` epochs later."""
        scheme = self.scheme
        end = scheme.state_dict()
        parts: list[Any] = parts_of_scheme(scheme) or [scheme]
        for part in parts:
            hook = type(part).state_dict
            if hook is drawn_state:
                part.rng = generator_of(None, part.seed)
            elif hook is epoch_state:
                part.epoch += count - number
            elif hook is not no_state:
                return False
        for _ in epochs_to_draw(number):
            scheme.get_request_iterator()
        state = scheme.state_dict()
        for _ in epochs_to_draw(-count):
            scheme.get_request_iterator()
        is_same = as_text(scheme.state_dict()) == as_text(end)
        scheme.load_state_dict(state)
        return is_same


class Replay(Start):
    """A scheme as it was before the running epoch."""

    def copied(self, known: dict[int, Any]) -> Start:
        """Return a copy that shares no generators, since these are reset to
        the state before the epoch."""
        return super().copied({})


class Known(NamedTuple):
    """The requests or the key that a running epoch has drawn."""

    drawn: Any

    @property
    def is_computed(self) -> bool:
        """True if no other generator must draw first."""
        return True

    def draw(self) -> Any:
        """Return the requests or the key."""
        return self.drawn

    def copied(self, known: dict[int, Any]) -> Known:
        """Return the same object, which never changes."""
        return self


class Draws:
    """The requests and keys that a pipeline draws for an epoch.

    `starts`: the objects that draw, in the order in which they draw.
    `after`: for each of them, the object that draws in the next epoch; None
        if this is the same object after it has drawn.
    `unknown`: the reason why the draws of later epochs are not known, '' if
        they are known.
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
        """Add an object that draws, and the object that draws in the next
        epoch; return the place of the draw."""
        self.starts.append(start)
        self.after.append(after)
        self._copies = []
        return len(self.starts) - 1

    def __reduce__(self) -> Any:
        return Draws, (self.starts, self.after, self.unknown)

    def at(self, place: int) -> Any:
        """Return what is drawn at a place: requests or a key.

        A place that is independent of the others is drawn alone, at the first
        call for it.  All other places may share a generator, so the first call
        for one of them draws at all of them.
        """
        if not self._copies:
            self._drawn = {}
            known: dict[int, Any] = {}
            self._copies = [start.copied(known) for start in self.starts]
            # They may share generators with the objects that draw here.
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
        """Return whether the draw at a place is independent of those at
        others."""
        start = self._copies[place]
        return start.is_computed and not (isinstance(start, Start) and any(
            isinstance(other, Start) and other.scheme is start.scheme
            for other in self._copies if other is not start))

    def following(self, places: Collection[int] | None = None) -> Draws:
        """Return the draws of the next epoch.

        `places`: the places at which the next epoch draws; at the others, the
            present draws stay. None for all places.
        """
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

    def later(self, count: int) -> Draws | None:
        """Return the draws of the epoch `count` epochs later; None if those
        between must be drawn first."""
        standing = [start if later is None else later for start, later in zip(
            self.starts, self.after, strict=True)]
        if self.unknown or _draw_twice(standing) or not all(
                isinstance(one, Start) and one.is_computed
                and type(one.scheme).state_dict in (epoch_state, no_state)
                for one in standing):
            return None
        return self.earlier(-count, None)

    def earlier(self, count: int, number: int | None) -> Draws:
        """Return the draws of the epoch `count` epochs earlier.

        `number`: number of that epoch; None if it is not known.
        """
        standing = [start if later is None else later for start, later in zip(
            self.starts, self.after, strict=True)]
        if _draw_twice(standing):
            raise UnknownOrderError(
                'of an epoch before, the states are not kept of a scheme '
                'that several streams share: give each a scheme of its own')
        known: dict[int, Any] = {}
        return Draws([
            one.moved(-count - (later is not None), known, number)
            for one, later in zip(standing, self.after, strict=True)],
            [None] * len(self.starts))


def _draw_twice(starts: list[Any]) -> bool:
    """Return whether a scheme draws from a state at each of several
    places."""
    found = [id(one.scheme) for one in starts
             if isinstance(one, Start) and one.state is not None]
    return len(set(found)) < len(found)


def whole_scheme(scheme: Any) -> Any:
    """Return the scheme for all ranks, given it or a rank's scheme."""
    return scheme.scheme if isinstance(scheme, ShardedScheme) else scheme


def is_of_fuel(scheme: Any) -> bool:
    """Return whether Fuel's own classes make the requests of a scheme."""
    return is_original(scheme, 'get_request_iterator') and all(
        map(is_of_fuel, parts_of_scheme(scheme)))


def scheme_kind(scheme: Any) -> Kind:
    """Return the kind of a scheme, which says how its requests are found."""
    scheme = whole_scheme(scheme)
    if not is_original(scheme, 'get_request_iterator'):
        return 'drawn' if is_random_access(scheme) else 'replayed'
    kinds: list[Kind] = [
        'drawn' if isinstance(scheme, DrawnOrder) else 'computed',
        *map(scheme_kind, parts_of_scheme(scheme))]
    return max(kinds, key=KINDS.index)


def why_unknown(scheme: Any) -> str:
    """Return the reason why a copy of a scheme cannot make its requests; '' if
    it can."""
    name = type(scheme).__name__
    if not is_original(scheme, 'get_request_iterator'):
        if all(hook_covers_method(type(scheme), 'get_request_iterator', hook)
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


class Drawing(NamedTuple):
    """A stage or a scheme that draws.

    `name`: name of the stage or the scheme.
    `sources`: the identities of the generators and schemes from which it
        draws.
    `is_late`: whether it draws while an epoch is read.
    `is_order`: whether the order of the items depends on its draws.
    `mixtures`: numbers of the stages above that restart their inputs.
    `elsewhere`: number of the stage above whose input other processes or
        threads read; 0 if there is none.
    """

    name: str
    sources: frozenset[int]
    is_late: bool
    is_order: bool
    mixtures: tuple[int, ...]
    elsewhere: int


class UnknownOrders(NamedTuple):
    """Reasons why an order is not known.

    `now`: why the present order is not known, '' if it is.
    `later`: why the order of further epochs is not known, '' if it is.
    """

    now: str = ''
    later: str = ''


def shared_draws(stream: StreamLike) -> UnknownOrders:
    """Return the reasons why a pipeline's order is not known, because parts
    of it share a generator."""
    going_on = [stage for stage in _walk(stream) if not stage.goes_back]
    if len(set(map(id, going_on))) < len(going_on):
        return UnknownOrders(
            f'{going_on[0].name} goes on in the next epoch where it stands, '
            'and is read twice: read it once, or mix copies of it')
    found = list(_drawings(stream, itertools.count(1)))
    later = ''
    for one, other in itertools.combinations(found, 2):
        if not (one.is_order or other.is_order) or (
                one.sources.isdisjoint(other.sources)):
            continue
        reason = (f'{one.name} and {other.name} draw from one generator, and '
                  'what each of them draws depends on how far the other was '
                  'read: give each a generator of its own')
        if _are_mixed(one, other):
            return UnknownOrders(reason)
        if one.is_late or other.is_late or one.mixtures != other.mixtures:
            later = later or reason
    lazy = [one.name for one in found
            if one.is_late and one.is_order and one.sources]
    return UnknownOrders(later=later or (
        f'{lazy[0]} draws while its requests are read' if lazy else ''))


def _walk(stream: StreamLike) -> Iterator[Stage]:
    """Yield the stages of a pipeline; a stage that is read twice is yielded
    twice."""
    stage = stage_of(stream)
    yield stage
    for child in stage.inputs:
        yield from _walk(child)


def _are_mixed(one: Drawing, other: Drawing) -> bool:
    """Return whether both may draw in turns while one epoch is read."""
    if one.elsewhere != other.elsewhere:
        return True
    if one.mixtures == other.mixtures:
        # A mixture restarts its inputs in a known order.
        return any(part.is_late and (part.is_order or part.mixtures)
                   for part in (one, other))
    return all(part.is_late or part.mixtures for part in (one, other))


def _drawings(stream: StreamLike, numbers: Iterator[int],
              mixtures: tuple[int, ...] = (), elsewhere: int = 0,
              ) -> Iterator[Drawing]:
    """Yield the schemes and generators that draw in a pipeline."""
    stage = stage_of(stream)
    if stage.is_remote:
        elsewhere = next(numbers)
    below = mixtures if stage.goes_back else (*mixtures, next(numbers))
    for child in stage.inputs:
        yield from _drawings(child, numbers, below, elsewhere)
    if stage.draws != 'no':
        yield Drawing(f'the stage {stage.name}',
                      _generators_of(stage),
                      stage.draws == 'in_order', stage.draws == 'by_seed',
                      mixtures, elsewhere)
    scheme = whole_scheme(stage.scheme)
    if scheme is not None:
        yield Drawing(
            f'the iteration scheme {type(scheme).__name__} of {stage.name}',
            frozenset(_sources_of(scheme)), is_lazy(scheme), True, mixtures,
            elsewhere)


def _generators_of(stage: Stage) -> frozenset[int]:
    """Return the identities of a stage's generator and its bit generator."""
    rng = stage.generator
    return frozenset({id(rng), rng_state.source_id(rng)})


def _sources_of(scheme: Any) -> Iterator[int]:
    """Yield the identities of the objects from which a scheme draws."""
    known: dict[int, Any] = {}
    try:
        copied_scheme(scheme, known, True)
    except Exception:  # noqa: BLE001 - its order is not known
        return
    for identity, copied in known.items():
        if rng_state.is_generator(copied) or isinstance(
                copied, numpy.random.BitGenerator):
            yield identity
    if keeps_state(scheme):
        # It counts its epochs.
        yield id(scheme)


class FirstEpochs:
    """The first epochs of a stage's inputs, if the stage restarts inputs.

    `given`: number of items of each input that the stage had taken before its
        own epoch; empty until an input is restarted. For the input that ended
        first, the number of items of its epoch is subtracted.
    `ended`: place of the input that ended first.
    `ends`: positions at which the first epochs were left; None for an input
        that was not restarted.
    `standing`: for each stream that draws, the position from which it drew
        when the first input was restarted: the start of its scheme and its
        generator, if it has them.
    """

    given: Sequence[int] = ()
    ended = 0
    ends: Sequence[Position | State | Exception | None] = ()
    standing: Sequence[Position] = ()

    def record(self, iterators: Sequence[Any], taken: Sequence[int],
               place: int) -> None:
        """Record that an input is restarted.

        `iterators`: the present epoch iterators of all inputs.
        `taken`: number of items of each input that the stage has taken in its
            own epoch.
        `place`: place of the input that is restarted.
        """
        if not self.given:
            if not all(isinstance(one, EpochIterator) for one in iterators):
                # They have no order.
                return
            # Finding the end of the input may have taken one more request.
            self.given = [
                (0 if place == other else one.epoch.requested) - count
                for other, (one, count) in enumerate(zip(
                    iterators, taken, strict=True))]
            self.ended = place
            standing: list[Position] = []
            for iterator in iterators:
                _add_standing(iterator.data_stream, standing)
            self.standing = standing
            self.ends = [None] * len(iterators)
        if self.ends[place] is None:
            self.ends = [
                position_of(iterator) if place == other else end
                for other, (iterator, end) in enumerate(zip(
                    iterators, self.ends, strict=True))]


def _add_standing(stream: StreamLike, found: list[Position]) -> None:
    """Add the positions from which the streams of a pipeline draw."""
    stage = stage_of(stream)
    scheme, rng = whole_scheme(stage.scheme), stage.generator
    if scheme is not None or rng is not None:
        found.append(Position(
            stream, 0, 0, None if scheme is None else _start_of(scheme), None,
            None if rng is None else rng_state.take_snapshot(rng), None, (),
            []))
    for child in stage.inputs:
        _add_standing(child, found)


def _start_of(scheme: Any) -> SchemeStart | Exception:
    """Return the state from which a scheme draws, or the error of saving
    it."""
    if keeps_generator_before(scheme):
        return SchemeStart(rng_state.take_snapshot(scheme.rng))
    try:
        return SchemeStart(scheme_state(scheme))
    except Exception as error:  # noqa: BLE001 - raised if it is wanted
        return without_frames(error)
