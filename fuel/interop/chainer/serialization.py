"""Write the state of iterators into snapshots, and read it from them.

A serializer of Chainer is called with a name and a value. A serializer that
writes returns the value. A serializer that reads returns the value that the
snapshot has under that name, or raises KeyError. It reads an array into the
array that is passed, which must have the same shape as the saved array.
"""
from __future__ import annotations

import json
from typing import Any, Protocol

import numpy

from fuel.exceptions import StateMismatchError
from fuel.utils import rng_state

# Most bytes of a text; a damaged snapshot may give a larger number.
MOST_BYTES = 2 ** 26


class Serializer(Protocol):
    """Reads or writes values of a snapshot by name."""

    def __call__(self, key: str, value: object, /) -> Any:
        """Write or read a value."""


def serialize_count(serializer: Serializer, key: str, value: int) -> int:
    """Write or read a count; raise StateMismatchError if it is negative."""
    count = int(serializer(key, value))
    if count < 0:
        raise StateMismatchError(
            f'{key!r} of the snapshot must be at least 0, got {count}: the '
            'snapshot is damaged')
    return count


def serialize_text(serializer: Serializer, key: str, text: str) -> str:
    """Write or read a text as an array of bytes.

    All formats of snapshots can store arrays.
    """
    written = numpy.frombuffer(text.encode(), numpy.uint8)
    size = serialize_count(serializer, f'{key}_size', len(written))
    if size > MOST_BYTES:
        raise StateMismatchError(
            f'{key!r} of the snapshot has {size} bytes, more than a state '
            'can have: the snapshot is damaged')
    buffer = numpy.zeros(size, numpy.uint8)
    if size == len(written):
        buffer[:] = written
    return bytes(numpy.asarray(serializer(key, buffer), numpy.uint8)).decode()


def serialize_plain(serializer: Serializer, key: str, value: object) -> Any:
    """Write or read plain data in the form of JSON."""
    try:
        return json.loads(serialize_text(
            serializer, key, json.dumps(value, separators=(',', ':'))))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise StateMismatchError(
            f'{key!r} of the snapshot cannot be read: it is damaged'
            ) from error


def serialize_generators(serializer: Serializer, key: str,
                         owner: object) -> bool:
    """Write or read the states of an object's random generators.

    Return whether reading changed a generator. Snapshots that Chainer wrote
    hold no generators, and reading them changes no generator.
    """
    attributes = getattr(owner, '__dict__', {})
    generators = [attributes[name] for name in sorted(attributes)
                  if rng_state.is_generator(attributes[name])]
    if not generators:
        return False
    present = [rng_state.get_state(rng) for rng in generators]
    try:
        states = serialize_plain(serializer, key, present)
    except KeyError:
        return False
    if states == present:
        return False
    try:
        if len(states) != len(generators):
            raise ValueError(f'{len(states)} generators were saved, but '
                             f'there are {len(generators)}')
        for rng, state in zip(generators, states, strict=True):
            rng_state.check_generator_state(rng, state)
    except (TypeError, ValueError) as error:
        raise StateMismatchError(
            f'{key!r} of the snapshot does not fit {type(owner).__name__}: '
            f'{error}') from error
    for rng, state in zip(generators, states, strict=True):
        rng_state.set_state(rng, state)
    return True
