"""Generators, schemes and stages that several parts of a pipeline share.

A generator gives them numbers in the order in which they ask. An order is not
known where that depends on how far an epoch is read.
"""
from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy

from fuel.epochs.stage import Stage, stage_of
from fuel.schemes.base import no_state
from fuel.schemes.iteration_scheme import parts_of_scheme
from fuel.sharding.draws import whole_scheme
from fuel.sharding.shard_pipeline import copied_scheme
from fuel.typing import StreamLike
from fuel.utils import rng_state


class Drawing(NamedTuple):
    """A stage, or its scheme, that draws.

    `name`: of the stage or the scheme.
    `sources`: the identities of the generators and schemes that it draws
        from.
    `is_late`: whether it draws while an epoch is read.
    `is_order`: whether an order depends on what it draws.
    `mixtures`: the numbers of those that it is in which begin it anew.
    `elsewhere`: the number of the stage whose input is read elsewhere, that
        it is below; 0 if there is none.
    """

    name: str
    sources: frozenset[int]
    is_late: bool
    is_order: bool
    mixtures: tuple[int, ...]
    elsewhere: int


class UnknownOrders(NamedTuple):
    """Reasons for which an order is not known.

    `now`: why the present order is not known, '' if it is.
    `later`: why the order of further epochs is not known, '' if it is.
    """

    now: str = ''
    later: str = ''


def shared_draws(stream: StreamLike) -> UnknownOrders:
    """Return what is not known of the order of a pipeline, since generators
    are shared."""
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
    """Yield the stages of a pipeline, one that is read twice, twice."""
    stage = stage_of(stream)
    yield stage
    for child in stage.inputs:
        yield from _walk(child)


def _are_mixed(one: Drawing, other: Drawing) -> bool:
    """Return whether both draw while the same epoch is read."""
    if one.elsewhere != other.elsewhere:
        return True
    if one.mixtures == other.mixtures:
        # A mixture begins what it reads anew in a known order.
        return any(part.is_late and (part.is_order or part.mixtures)
                   for part in (one, other))
    return all(part.is_late or part.mixtures for part in (one, other))


def _drawings(stream: StreamLike, numbers: Iterator[int],
              mixtures: tuple[int, ...] = (), elsewhere: int = 0,
              ) -> Iterator[Drawing]:
    """Yield what draws in a pipeline."""
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
    """Return the identities of the generator of a stage, and of its bits."""
    rng = stage.generator
    bits = rng.bit_generator if isinstance(
        rng, numpy.random.Generator) else rng
    return frozenset({id(rng), id(bits)})


def _sources_of(scheme: Any) -> Iterator[int]:
    """Yield the identities of what a scheme draws from."""
    known: dict[int, Any] = {}
    try:
        copied_scheme(scheme, known, True)
    except Exception:  # noqa: BLE001 - its order is not known
        return
    for identity, copied in known.items():
        if rng_state.is_generator(copied) or isinstance(
                copied, numpy.random.BitGenerator):
            yield identity
    if getattr(type(scheme), 'state_dict', no_state) is not no_state:
        # It counts its epochs.
        yield id(scheme)


def is_lazy(scheme: Any) -> bool:
    """Return whether a scheme draws while its requests are read."""
    return inspect.isgeneratorfunction(
        type(scheme).get_request_iterator) or any(
            map(is_lazy, parts_of_scheme(scheme)))
