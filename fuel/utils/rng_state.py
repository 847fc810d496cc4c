"""The state of random generators as plain data.

A generator is what schemes and stages call ``rng``: a
:class:`numpy.random.RandomState`, a :class:`numpy.random.Generator` or a
:class:`random.Random`.
"""
from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy


def is_generator(candidate: object) -> bool:
    """Tell whether the state of `candidate` can be saved as plain data."""
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


def get_state(rng: Any) -> dict[str, Any]:
    """Return the state of a generator, ready for JSON.

    Returns
    -------
    dict
        ``kind`` names the generator; the rest is its state.

    """
    kind = kind_of(rng)
    if kind is None:
        raise TypeError(
            'the state of a generator can be saved for '
            'numpy.random.RandomState, numpy.random.Generator and '
            f'random.Random, got {type(rng).__name__}: pass one of these as '
            'rng')
    if isinstance(rng, random.Random):
        version, internal, gauss = rng.getstate()
        return {'kind': kind, 'state': [version, list(internal), gauss]}
    if isinstance(rng, numpy.random.RandomState):
        return {'kind': kind, 'state': _plain(rng.get_state(legacy=False))}
    return {'kind': kind, 'state': _plain(rng.bit_generator.state)}


def _as_arrays(state: dict[str, Any]) -> dict[str, Any]:
    """Undo what :func:`_plain` did to the lists inside NumPy's states."""
    return {key: _as_arrays(part) if isinstance(part, dict)
            else numpy.array(part, dtype=numpy.uint64)
            if isinstance(part, list) else part
            for key, part in state.items()}


def set_state(rng: Any, state: Mapping[str, Any]) -> None:
    """Put a generator into a state that :func:`get_state` returned.

    Raises
    ------
    ValueError
        If the state is that of another kind of generator.

    """
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
