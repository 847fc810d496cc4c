"""Plain data as JSON text, and copies of them."""
from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from fuel.typing import State

_encoder = json.JSONEncoder(sort_keys=True, separators=(',', ':'))


def as_text(value: object) -> str:
    """Return plain data as JSON: short, with the keys in order."""
    return _encoder.encode(value)


class Encoded:
    """Plain data that stay as they are: encoded once, copied often.

    `source`: what was encoded.
    `text`: the same as JSON.
    `copy`: returns what JSON gives back, in lists and dicts of its own.
    """

    __slots__ = ('copy', 'source', 'text')

    def __init__(self, source: object) -> None:
        self.source = source
        self.text = as_text(source)
        self.copy = copier_of(json.loads(self.text))


def copier_of(value: Any) -> Callable[[], Any]:
    """Return a function that copies some plain data."""
    if not isinstance(value, (dict, list)):
        return lambda: value
    parts = value.values() if isinstance(value, dict) else value
    if {dict, list}.isdisjoint(map(type, parts)):
        return value.copy
    items: Iterable[tuple[Any, Any]] = (
        value.items() if isinstance(value, dict) else enumerate(value))
    nested = [(key, copier_of(part)) for key, part in items
              if isinstance(part, (dict, list))]

    def copy() -> Any:
        copied = value.copy()
        for key, copy_part in nested:
            copied[key] = copy_part()
        return copied

    return copy


class Identified(NamedTuple):
    """A state that says what it is a state of, and its JSON text."""

    state: State
    text: str


def copied_with_text(value: object) -> tuple[Any, str]:
    """Return a copy of what may differ from batch to batch, and its text."""
    if value is None:
        return None, 'null'
    if value == []:
        return [], '[]'
    text = as_text(value)
    return json.loads(text), text
