"""Generators and schemes from which several parts of a pipeline draw.

Restoring the parts one after another leaves such a generator as the last part
needs it. So the state of a stage has the states of the generators that its
inputs share, and restores them when all parts have drawn again.
"""
from __future__ import annotations

import inspect
import itertools
import types
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from fuel.epochs.stage import Stage, stage_of
from fuel.schemes.iteration_scheme import (
    ShardedScheme, is_scheme, keeps_generator_before, keeps_state,
    parts_of_scheme, scheme_state)
from fuel.typing import State
from fuel.utils import rng_state
from fuel.utils.overrides import is_default
from fuel.utils.rng_state import source_id

# Types that no scheme or generator has.
_PLAIN = {type(None), bool, int, float, str, bytes, list, tuple, dict, set,
          range, types.FunctionType, types.MethodType}


class DrawingPart(NamedTuple):
    """A part of a pipeline that draws.

    `source`: the generator or the scheme from which it draws.
    `name`: name of the part.
    `is_late`: whether it draws while an epoch is read, not only when the epoch
        begins.
    `is_lazy`: whether it is a scheme that draws while its requests are read.
    `ahead`: stages above it that may read their inputs again, from a position
        after which this part has drawn.
    `thread`: a stage above it whose input another thread reads; None if there
        is none.
    `carried`: a mixture above it that goes on in the next epoch; None if there
        is none.
    """

    source: Any
    name: str
    is_late: bool = False
    is_lazy: bool = False
    ahead: tuple[Stage, ...] = ()
    thread: Stage | None = None
    carried: Stage | None = None


class SharedDraws(NamedTuple):
    """Generators and schemes from which several parts draw.

    `sources`: generators and schemes whose states the state of the stage has.
    `ahead`: stages that may read ahead, each with an error for this.
    `carried`: an error for states between two epochs; None if there is none.
    """

    sources: tuple[Any, ...] = ()
    ahead: tuple[tuple[Stage, TypeError], ...] = ()
    carried: TypeError | None = None


def is_lazy(scheme: Any) -> bool:
    """Return whether a scheme draws while its requests are read."""
    return inspect.isgeneratorfunction(
        type(scheme).get_request_iterator) or any(
            map(is_lazy, parts_of_scheme(scheme)))


NOTHING = SharedDraws()


def find_shared(stage: Stage) -> SharedDraws:
    """Return what the inputs and the scheme of a stage share.

    TypeError is raised if no state can restore it.
    """
    inputs = stage.inputs
    if not inputs or stage.is_remote or (len(inputs) == 1 and (
            stage.generator is None and stage.scheme is None)):
        return NOTHING
    found: list[int] = []
    _add_sources(stage, found)
    if len(set(found)) == len(found):
        # Nearly always.
        return NOTHING
    rng = stage.generator
    sources: dict[int, Any] = {}
    ahead: list[tuple[Stage, TypeError]] = []
    carried = None
    for own, others in itertools.combinations(_members(stage), 2):
        for one, other in itertools.product(own, others):
            if source_id(one.source) != source_id(other.source):
                continue
            _check(stage, one, other)
            if one.source is not rng:
                sources[source_id(one.source)] = one.source
            ahead += [(reader, _refusal(
                stage, one, other, f'and {reader.name} reads ahead'))
                for part, another in ((one, other), (other, one))
                if another.is_late for reader in part.ahead]
            mixture = one.carried or other.carried
            if mixture is not None and mixture is not stage:
                carried = _refusal(
                    stage, one, other, f'and {mixture.name} goes on in the '
                    'next epoch where it stands')
    return SharedDraws(tuple(sources.values()), tuple(ahead), carried)


def _check(stage: Stage, one: DrawingPart, other: DrawingPart) -> None:
    """Raise TypeError if two parts draw in turns that are not known."""
    for part in (one, other):
        if part.is_lazy:
            raise _refusal(stage, one, other, (
                'but a scheme that draws while its requests are read must be '
                'the only one that draws from it'))
        if part.thread is not None:
            raise _refusal(stage, one, other, (
                f'in several threads, since {part.thread.name} is between '
                'them'))


def _refusal(stage: Stage, one: DrawingPart, other: DrawingPart, why: str,
             ) -> TypeError:
    """Return the error that what two parts share cannot be restored."""
    what = (f'the generator {type(one.source).__name__}'
            if rng_state.is_generator(one.source)
            else f'the scheme {type(one.source).__name__}')
    return TypeError(
        f'the position of the stage {stage.name} cannot be saved: {one.name} '
        f'and {other.name} draw from one object, {what}, {why}. A restored '
        'pipeline would draw other numbers: give each a generator, a seed or '
        'a scheme of its own')


def _add_sources(stage: Stage, found: list[int]) -> None:
    """Add the identities of what a pipeline draws from, in few calls."""
    rng, scheme = stage.generator, stage.scheme
    if rng is not None:
        found.append(source_id(rng))
    if scheme is not None:
        found += map(source_id, _sources_of(scheme))
    for child in stage.inputs:
        _add_sources(stage_of(child), found)


def _members(stage: Stage) -> Iterator[list[DrawingPart]]:
    """Yield the places of a stage's generator, of its scheme, and of each
    input."""
    rng, scheme = stage.generator, stage.scheme
    if rng is not None:
        yield [DrawingPart(rng, f'the stage {stage.name}',
                     stage.draws == 'in_order')]
    if scheme is not None:
        yield [DrawingPart(
            source, f'the iteration scheme of {stage.name}', False,
            is_lazy(scheme)) for source in _sources_of(scheme)
            if _has_state(source)]
    restarts = not stage.goes_back
    reads_again = not is_default(stage.stream, 'get_child_position')
    # Other processes have generators of their own.
    if stage.is_remote and not stage.stream.__fuel_in_process__:
        return
    for child in map(stage_of, stage.inputs):
        places = []
        for place in itertools.chain.from_iterable(_members(child)):
            is_late = place.is_late or restarts
            places.append(place._replace(
                is_late=is_late,
                ahead=(*place.ahead, stage) if is_late and reads_again
                else place.ahead,
                thread=stage if stage.is_remote else place.thread,
                carried=stage if restarts else place.carried))
        yield places


def _sources_of(scheme: Any) -> list[Any]:
    """Return what a scheme draws from: generators, and the schemes that it
    consists of."""
    found = [scheme]
    for value in vars(scheme).values():
        parts = (value.values() if isinstance(value, dict)
                 else value if isinstance(value, list | tuple) else (value,))
        # Most are numbers and the like, such as millions of indices.
        if {*map(type, parts)} <= _PLAIN:
            continue
        for part in parts:
            if is_scheme(part):
                found += _sources_of(part)
            elif rng_state.is_generator(part):
                found.append(part)
    return found


def _has_state(source: Any) -> bool:
    """Return whether a generator or a scheme has a state of its own, not only
    that of a generator."""
    return rng_state.is_generator(source) or not (
        isinstance(source, ShardedScheme) or keeps_generator_before(source)
        or not keeps_state(source))


def shared_states(stage: Stage, shared: SharedDraws) -> tuple[Any, ...]:
    """Return the present states of what a running epoch of a stage shares.

    TypeError is raised if a stage has read ahead, so that the parts draw in
    turns that are not known.
    """
    for reader, error in shared.ahead:
        if reader.epoch is not None and reader.epoch.is_ahead and (
                not reader.epoch.finished):
            raise error
    return tuple([
        rng_state.get_state(source) if rng_state.is_generator(source)
        else scheme_state(source) for source in shared.sources])


def goes_on(states: Sequence[State]) -> bool:
    """Return whether an input of a stage goes on in the next epoch, given the
    states of the inputs between two epochs."""
    return any(state['epoch'] == 'running' or goes_on(state['children'])
               for state in states if 'children' in state)


def set_shared(stage: Stage, saved: State) -> None:
    """Restore what a state of a stage says of what its inputs share."""
    states = saved['rng'].get('shared')
    if states is None:
        return
    for source, state in zip(
            find_shared(stage).sources, states, strict=True):
        if rng_state.is_generator(source):
            rng_state.set_state(source, state)
        else:
            source.load_state_dict(state)
