"""Traits of stages: how the items of one come of those that it reads."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from fuel.utils.overrides import covers, declares
from fuel.utils.rng_state import generator_in

Draws: TypeAlias = Literal['no', 'by_seed', 'in_order']


@dataclass(frozen=True)
class Traits:
    """How the items of a stage come of those of the streams that it reads.

    `one_to_one`: item n is made of item n below, or of one request.
    `keeps_rows`: no example is added, left out or moved within a batch.
    `reads_epoch`: its methods may ask for the attributes of the epoch.
    `pure`: the same item gives the same result, in any order and at the same
        time; only ever declared.
    `draws`: whether it draws from a generator, and what a draw depends on:
        the seed, the epoch and the number of the item, or the draws before.
    `goes_back`: an epoch can go back to items that it had before.
    `keeps`: what data keep of what they had: ``'dtype'``, ``'shape'`` and
        ``'axes'``.
    """

    one_to_one: bool = False
    keeps_rows: bool = False
    reads_epoch: bool = True
    pure: bool = False
    draws: Draws = 'no'
    goes_back: bool = True
    keeps: frozenset[str] = frozenset()


def traits_of(stream: Any) -> Traits:
    """Return the traits of a stream, as its class declares them."""
    one_to_one = covers(stream, 'one_to_one', ('get_data',)) and bool(
        stream.one_to_one)
    draws = draws_of(stream)
    pure = declares(stream, 'pure') and draws == 'no'
    return Traits(
        one_to_one, one_to_one and declares(stream, 'keeps_rows'), not pure,
        pure, draws, bool(getattr(stream, 'can_go_back', True)),
        keeps_of(stream))


def draws_of(stream: Any) -> Draws:
    """Return whether a stream draws from a generator, and how."""
    if generator_in(stream) is None:
        return 'no'
    return 'by_seed' if getattr(
        stream, 'draws_by_seed', False) else 'in_order'


def keeps_of(stream: object) -> frozenset[str]:
    """Return what a stage keeps of its data, before it is complete, too."""
    keeps = getattr(type(stream), 'keeps', None)
    return keeps if isinstance(keeps, frozenset) else frozenset()
