"""The state of random generators as plain data.

A generator is what schemes and stages call ``rng``: a
:class:`numpy.random.RandomState`, a :class:`numpy.random.Generator` or a
:class:`random.Random`.
"""
from __future__ import annotations

import base64
import copy
import math
import random
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias, TypeGuard

import numpy
from numpy.typing import NDArray

# Generators whose state can be saved. The names are quoted, since NumPy
# imports its generators at their first use.
SavedGenerator: TypeAlias = (
    'numpy.random.RandomState | numpy.random.Generator | random.Random')


def is_generator(candidate: object) -> TypeGuard[SavedGenerator]:
    """Return whether an object is a generator whose state can be saved."""
    # The system's source of randomness does not have a state.
    return isinstance(candidate, (
        numpy.random.RandomState, numpy.random.Generator, random.Random)
        ) and not isinstance(candidate, random.SystemRandom)


def source_id(rng: object) -> int:
    """Return the identity of that from which a generator draws: its bit
    generator, which several generators of NumPy may share, or else itself."""
    return id(getattr(rng, '_bit_generator', rng))


def copy_generators(owner: object, known: dict[int, Any]) -> None:
    """Replace the attributes of an object that are generators by copies.

    `known`: copies that were made, by the identities of the originals.
    """
    attributes = vars(owner)
    for name, value in attributes.items():
        if isinstance(value, (numpy.random.RandomState, numpy.random.Generator,
                              random.Random)) and is_generator(value):
            attributes[name] = copy.deepcopy(value, known)


def generator_in(owner: object) -> SavedGenerator | None:
    """Return the generator from which a stream or a scheme draws; None if it
    has no generator whose state can be saved."""
    rng = getattr(owner, 'rng', None)
    return rng if rng is not None and is_generator(rng) else None


def kind_of(rng: object) -> str | None:
    """Return the name of the kind of generator whose states `rng` can
    restore; None if it is not such a generator."""
    return _kind(rng) if is_generator(rng) else None


def _kind(rng: SavedGenerator) -> str:
    if isinstance(rng, random.Random):
        return 'random.Random'
    if isinstance(rng, numpy.random.RandomState):
        return 'numpy.random.RandomState'
    return f'numpy.random.Generator({type(rng.bit_generator).__name__})'


# Types that are plain data already.
_PLAIN = frozenset({str, int, float})


def _plain(value: object) -> Any:
    if isinstance(value, dict):
        plain = value.copy()
        for key, part in value.items():
            if type(part) not in _PLAIN:
                plain[key] = _plain(part)
        return plain
    if isinstance(value, numpy.ndarray):
        return _as_text(value)
    if isinstance(value, numpy.integer):
        return int(value)
    return value


def _as_text(words: NDArray[numpy.unsignedinteger]) -> str:
    """Return words as Base64, least significant byte first.

    Decimal numbers would take twice the space and ten times as long.
    """
    little = words.astype(words.dtype.newbyteorder('<'), copy=False)
    return base64.b64encode(little.tobytes()).decode()


def _as_words(text: object, like: NDArray[numpy.unsignedinteger]
              ) -> NDArray[numpy.unsignedinteger]:
    """Undo :func:`_as_text`; return as many words as `like` has, with the type
    of `like`."""
    # Check the length first, so that no more is decoded than fits.
    if type(text) is not str or len(text) != -(-like.nbytes // 3) * 4:
        raise ValueError('not so many words')
    data = base64.b64decode(text, validate=True)
    if len(data) != like.nbytes:
        raise ValueError('not so many words')
    return numpy.frombuffer(data, like.dtype.newbyteorder('<')).astype(
        like.dtype)


class Snapshot(NamedTuple):
    """State of a generator, in a form that is quick to get.

    :func:`as_plain` returns it as plain data.
    """

    kind: str
    state: Any


def take_snapshot(rng: object) -> Snapshot:
    """Return the present state of a generator, as a snapshot."""
    if not is_generator(rng):
        raise TypeError(
            'the state of a generator can be saved for '
            'numpy.random.RandomState, numpy.random.Generator and '
            f'random.Random, got {type(rng).__name__}: pass one of these as '
            'rng')
    kind = _kind(rng)
    if isinstance(rng, random.Random):
        return Snapshot(kind, rng.getstate())
    if isinstance(rng, numpy.random.RandomState):
        return Snapshot(kind, rng.get_state(legacy=False))
    return Snapshot(kind, rng.bit_generator.state)


def as_plain(snapshot: Snapshot) -> dict[str, Any]:
    """Return a snapshot as plain data that JSON can encode."""
    kind, state = snapshot
    if isinstance(state, tuple):
        version, internal, gauss = state
        words = numpy.array(internal, numpy.uint32)
        return {'kind': kind, 'state': [version, _as_text(words), gauss]}
    return {'kind': kind, 'state': _plain(state)}


def get_state(rng: object) -> dict[str, Any]:
    """Return the present state of a generator as plain data."""
    return as_plain(take_snapshot(rng))


# The largest values of fields in NumPy's states: indices in a buffer, flags
# and words.
_LARGEST = {'pos': 624, 'buffer_pos': 4, 'has_gauss': 1, 'has_uint32': 1,
            'uinteger': 2 ** 32 - 1}


def set_state(rng: SavedGenerator, state: Mapping[str, Any]) -> None:
    """Restore the state of a generator that :func:`get_state` returned."""
    _put(rng, check_generator_state(rng, state))


def _put(rng: SavedGenerator, state: Any) -> None:
    """Restore the state of a generator, in the generator's own form."""
    if isinstance(rng, random.Random):
        rng.setstate(state)
    elif isinstance(rng, numpy.random.RandomState):
        rng.set_state(state)
    else:
        rng.bit_generator.state = state


def saved_again(rng: SavedGenerator, state: Mapping[str, Any],
                ) -> dict[str, Any]:
    """Restore a saved state in a copy of a generator; return the state of the
    copy."""
    found, ours = check_generator_state(rng, state), copy.deepcopy(rng)
    _put(ours, found)
    return get_state(ours)


def check_generator_state(rng: object, state: object) -> Any:
    """Return a saved state in the generator's own form; raise ValueError if it
    is damaged or does not fit.

    NumPy does not check a state. A damaged state would make it read outside of
    the generator's memory.
    """
    present = take_snapshot(rng)
    kind = state.get('kind') if isinstance(state, dict) else None
    if not isinstance(state, dict) or kind != present.kind:
        raise ValueError(
            f'the saved generator is a {kind!r:.100}, but this one is a '
            f'{present.kind}: build the stream with the same kind of rng')
    if state.keys() - {'shared'} != {'kind', 'state'}:
        raise ValueError(
            f'the state of the generator is damaged: it has {list(state)}')
    if isinstance(rng, random.Random):
        return _read_python_state(state['state'])
    return _read_like(state['state'], present.state, 'state')


def _read_python_state(state: Any) -> tuple[int, tuple[int, ...], Any]:
    """Return the arguments of :meth:`random.Random.setstate`."""
    try:
        version, text, gauss = state
        words = _as_words(text, numpy.empty(625, numpy.uint32))
        is_sound = (
            type(version) is int and version == 3 and words[-1] <= 624
            and (gauss is None or _is_finite(gauss)))
    except (TypeError, ValueError):
        is_sound = False
    if not is_sound:
        raise ValueError('the state of the generator is damaged')
    return version, tuple(words.tolist()), gauss


def _is_finite(value: object) -> bool:
    return type(value) is float and math.isfinite(value)


def _read_like(saved: object, present: object, name: str) -> Any:
    """Return a part of a saved state, checked to have the form of the present
    part."""
    if isinstance(present, Mapping):
        is_sound = False
        if isinstance(saved, dict) and saved.keys() == present.keys():
            return {key: _read_like(saved[key], part, key)
                    for key, part in present.items()}
    elif isinstance(present, numpy.ndarray):
        try:
            return _as_words(saved, present)
        except ValueError:
            is_sound = False
    elif isinstance(present, (int, numpy.integer)):
        is_sound = type(saved) is int and (
            0 <= saved <= _LARGEST.get(name, 2 ** 128 - 1))
    elif isinstance(present, float):
        is_sound = _is_finite(saved)
    else:
        is_sound = type(saved) is type(present) and saved == present
    if not is_sound:
        raise ValueError(
            f'{name!r} of the generator is damaged: {saved!r:.100}')
    return saved
