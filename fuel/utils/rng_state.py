"""The state of random generators as plain data.

A generator is what schemes and stages call ``rng``: a
:class:`numpy.random.RandomState`, a :class:`numpy.random.Generator` or a
:class:`random.Random`.
"""
from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy


def is_generator(candidate: object) -> bool:
    """Return whether the state of `candidate` can be saved as plain data."""
    # The system's source of randomness has none.
    return isinstance(candidate, (
        numpy.random.RandomState, numpy.random.Generator, random.Random)
        ) and not isinstance(candidate, random.SystemRandom)


def kind_of(rng: Any) -> str | None:
    """Return the name of the class whose states a generator takes."""
    if not is_generator(rng):
        return None
    if isinstance(rng, random.Random):
        return 'random.Random'
    if isinstance(rng, numpy.random.RandomState):
        return 'numpy.random.RandomState'
    return f'numpy.random.Generator({type(rng.bit_generator).__name__})'


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, numpy.ndarray):
        return value.tolist()
    if isinstance(value, numpy.integer):
        return int(value)
    return value


class Snapshot(NamedTuple):
    """The state of a generator, taken cheaply; see :func:`as_plain`."""

    kind: str
    state: Any


def take_snapshot(rng: Any) -> Snapshot:
    """Return the state of a generator as it is now."""
    kind = kind_of(rng)
    if kind is None:
        raise TypeError(
            'the state of a generator can be saved for '
            'numpy.random.RandomState, numpy.random.Generator and '
            f'random.Random, got {type(rng).__name__}: pass one of these as '
            'rng')
    if isinstance(rng, random.Random):
        return Snapshot(kind, rng.getstate())
    if isinstance(rng, numpy.random.RandomState):
        return Snapshot(kind, rng.get_state(legacy=False))
    return Snapshot(kind, rng.bit_generator.state)


def as_plain(snapshot: Snapshot) -> dict[str, Any]:
    """Return the state of a generator, ready for JSON."""
    kind, state = snapshot
    if isinstance(state, tuple):
        version, internal, gauss = state
        return {'kind': kind, 'state': [version, list(internal), gauss]}
    return {'kind': kind, 'state': _plain(state)}


def get_state(rng: Any) -> dict[str, Any]:
    """Return the present state of a generator, ready for JSON."""
    return as_plain(take_snapshot(rng))


# The largest numbers in NumPy's states: places in a buffer, switches, words.
_LARGEST = {'pos': 624, 'buffer_pos': 4, 'has_gauss': 1, 'has_uint32': 1,
            'uinteger': 2 ** 32 - 1, 'counter': 2 ** 64 - 1,
            'buffer': 2 ** 64 - 1}


def check_state(rng: Any, state: Any) -> None:
    """Refuse what is no state of a generator.

    NumPy does not check it, and would read outside of the generator.
    """
    present = get_state(rng)
    kind = state.get('kind') if isinstance(state, dict) else None
    if kind != present['kind']:
        raise ValueError(
            f'the saved generator is a {kind!r:.100}, but this one is a '
            f'{present["kind"]}: build the stream with the same kind of rng')
    if isinstance(rng, random.Random):
        _check_python_state(state)
        return
    _check_like(state, present, 'state', 'MT19937' in repr(
        present['state'].get('bit_generator')))


def _check_python_state(state: Any) -> None:
    """Refuse what is no state of a :class:`random.Random`."""
    try:
        version, internal, gauss = state['state']
        is_sound = (
            state.keys() == {'kind', 'state'} and version == 3
            and type(version) is int and len(internal) == 625
            and all(type(word) is int and 0 <= word < 2 ** 32
                    for word in internal)
            and internal[-1] <= 624
            and (gauss is None or _is_finite(gauss)))
    except (TypeError, ValueError, KeyError):
        is_sound = False
    if not is_sound:
        raise ValueError('the state of the generator is damaged')


def _is_finite(value: object) -> bool:
    return type(value) is float and math.isfinite(value)


def _check_like(saved: Any, present: Any, name: str, is_short: bool) -> None:
    """Refuse a part that has not the form of the present one."""
    if isinstance(present, dict):
        is_sound = isinstance(saved, dict) and saved.keys() == present.keys()
    elif isinstance(present, list):
        is_sound = isinstance(saved, list) and len(saved) == len(present)
    elif type(present) is int:
        largest = _LARGEST.get(name, 2 ** (
            32 if is_short else 64 if name == 'key' else 128) - 1)
        is_sound = type(saved) is int and 0 <= saved <= largest
    elif type(present) is float:
        is_sound = _is_finite(saved)
    else:
        is_sound = type(saved) is type(present) and saved == present
    if not is_sound:
        raise ValueError(
            f'{name!r} of the generator is damaged: {saved!r:.100}')
    if isinstance(present, dict):
        for key, part in present.items():
            _check_like(saved[key], part, key, is_short)
    elif isinstance(present, list):
        for value, part in zip(saved, present, strict=True):
            _check_like(value, part, name, is_short)


def _as_arrays(state: dict[str, Any]) -> dict[str, Any]:
    """Undo what :func:`_plain` did to the lists inside NumPy's states."""
    return {key: _as_arrays(part) if isinstance(part, dict)
            else numpy.array(part, dtype=numpy.uint64)
            if isinstance(part, list) else part
            for key, part in state.items()}


def set_state(rng: Any, state: Mapping[str, Any]) -> None:
    """Put a generator into a state that :func:`get_state` returned."""
    kind = kind_of(rng)
    if state.get('kind') != kind:
        raise ValueError(
            f'the saved generator is a {state.get("kind")}, but this one is '
            f'a {kind}: build the stream with the same kind of rng')
    if kind == 'random.Random':
        version, internal, gauss = state['state']
        rng.setstate((version, tuple(internal), gauss))
    elif kind == 'numpy.random.RandomState':
        rng.set_state(_as_arrays(state['state']))
    else:
        rng.bit_generator.state = _as_arrays(state['state'])
