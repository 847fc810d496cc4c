"""Checks of the counts, sizes and data that users pass."""
from __future__ import annotations

import operator
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy
from numpy.typing import NDArray

from fuel.utils.signatures import signature_of

Value = TypeVar('Value')

# More batches, bytes or lines than a program can ever read.
MOST = 2 ** 62
# True if NumPy refuses lists of unequal lengths, False if it only warns.
REFUSES_RAGGED = numpy.lib.NumpyVersion(numpy.__version__) >= '1.24.0'


def positive(name: str, value: object) -> int:
    """Return an argument as a positive int; raise an error for any other
    value.

    `name`: name of the argument, for the error.
    """
    number = _integer(name, value, 'a positive integer')
    if number < 1:
        raise ValueError(f'{name} must be a positive integer, got {number}')
    return number


def not_negative(name: str, value: object, kind: str = 'an integer') -> int:
    """Return an argument as an int that is not negative.

    See :func:`positive`.

    `kind`: description of the expected value, for the error.
    """
    number = _integer(name, value, kind)
    if number < 0:
        raise ValueError(f'{name} must not be negative, got {number}')
    return number


def countable(name: str, number: int) -> int:
    """Return a number of examples; raise ValueError if it is larger than the
    length of a sequence can be."""
    if number > sys.maxsize:
        raise ValueError(
            f'{name} must be at most {sys.maxsize}, the largest number of '
            f'64 bits with a sign, got {number}')
    return number


def any_integer(name: str, value: object) -> int:
    """Return an argument as an int, positive or negative.

    See :func:`positive`.
    """
    return _integer(name, value, 'an integer')


def one_of(name: str, value: Value, choices: Sequence[Value]) -> Value:
    """Return an argument; raise ValueError if it is not one of `choices`."""
    if value not in choices:
        raise ValueError(
            f'{name} must be {" or ".join(map(repr, choices))}, got '
            f'{value!r}')
    return value


def refuse_no_dict(name: str, given: object, example: str) -> None:
    """Raise ValueError if an argument is neither None nor a dict.

    `example`: a source, for the error.
    """
    if given is not None and not isinstance(given, Mapping):
        raise ValueError(
            f'{name} must be a dict from sources, as in {name}='
            f'{{{example!r}: ...}}, got {given!r:.80}')


def truth(name: str, value: object) -> bool:
    """Return an argument as a bool; it must be True, False, 0 or 1."""
    if isinstance(value, (bool, numpy.bool_)) or (
            isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise TypeError(f'{name} must be True or False, got {value!r:.80} '
                    f'({type(value).__name__})')


def takes_one(name: str, function: object,
              describe: Callable[[], str]) -> None:
    """Raise TypeError if a function cannot be called with one argument.

    None passes the check, and so does a function without a known signature.

    `describe`: returns a description of the argument, for the error.
    """
    if function is None:
        return
    if not callable(function):
        raise TypeError(f'{name} must be a function, got {function!r:.80} '
                        f'({type(function).__name__})')
    try:
        parameters = signature_of(function).parameters.values()
    except (TypeError, ValueError):
        return
    takes_some, needed = False, []
    for one in parameters:
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD):
            takes_some = True
            if one.default is one.empty:
                needed.append(one.name)
        elif one.kind is one.VAR_POSITIONAL:
            takes_some = True
    if len(needed) > 1 or not takes_some:
        raise TypeError(
            f'{name} takes one argument, {describe()}, but this function '
            f'has {len(needed)}: write it as def function(data), and take '
            f'them apart within: {", ".join(needed) or "part"}, ... = data')


def in_order(name: str, names: object) -> None:
    """Raise ValueError if names whose order matters are given as a set.

    The order of texts in a set differs from process to process.
    """
    if isinstance(names, (set, frozenset)) and len(names) > 1:
        raise ValueError(
            f'{name} must be a tuple of names in the order of the data, got '
            f'a set, {names!r}: its order differs from process to process')


def saved_count(position: Mapping[str, Any], name: str) -> int:
    """Return a field of a saved position, checked to be a count."""
    number = not_negative(name, position[name], 'a count')
    if number > MOST:
        raise ValueError(f'{name} must be at most {MOST}, got {number}')
    return number


def as_regular(data: object) -> NDArray[Any]:
    """Return data as an array; raise ValueError if lists in them have unequal
    lengths."""
    if REFUSES_RAGGED:
        return numpy.asarray(data)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        try:
            return numpy.asarray(data)
        except Warning as error:
            raise ValueError(str(error)) from error


def _integer(name: str, value: object, kind: str) -> int:
    try:
        if isinstance(value, (bool, numpy.bool_)):
            raise TypeError
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f'{name} must be {kind}, got {value!r} '
                        f'({type(value).__name__})') from None
