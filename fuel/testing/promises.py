"""Run the checks of promises, and name the promise that is broken."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias, TypeVar

from fuel.testing.scripts import checking

Case = TypeVar('Case')
Promises: TypeAlias = Mapping[str, Callable[[Case], None]]


class BrokenPromiseError(AssertionError):
    """An object does not behave as Fuel promises its users.

    The text names the promise, states it, and says what was expected, what
    came, and where.
    """


def expect(condition: object, text: str) -> None:
    """Raise a :class:`BrokenPromiseError` unless a condition holds.

    Parameters
    ----------
    condition : object
        Anything that is true or false.
    text : str
        Text about the failure: expected, got, where.
    """
    if not condition:
        raise BrokenPromiseError(text)


def expect_builder(build: object, kind: str) -> None:
    """Raise TypeError unless `build` can be called."""
    if not callable(build):
        raise TypeError(
            f'build must be a function that makes a new {kind} each time, got '
            f'{type(build).__name__}: write it as lambda: {kind}, with all '
            'that makes one inside')


def expect_made(made: object, kind: str, method: str) -> None:
    """Raise TypeError unless the object that was built has a method."""
    if not hasattr(made, method):
        raise TypeError(
            f'build must return a {kind}, but it returned {made!r:.80} '
            f'({type(made).__name__}), which has no {method}()')


def keep(promises: Promises[Case], names: Iterable[str] | None,
         case: Case) -> None:
    """Check promises of one object.

    Parameters
    ----------
    promises : dict
        A dict from the name of each promise to the function that checks it.
        The first paragraph of the function's docstring states the promise.
    names : iterable of str or None
        Names of the promises to check; None means all.
    case : object
        The argument of the functions.

    Raises
    ------
    BrokenPromiseError
        If a promise is broken, or an error stops its check.
    ValueError
        If `names` has a name that no promise has.
    """
    with checking() as is_wanted:
        for name in (promises if names is None else names) if (
                is_wanted) else ():
            _keep_one(promises, name, case)


def _keep_one(promises: Promises[Case], name: str, case: Case) -> None:
    if name not in promises:
        raise ValueError(
            f'there is no promise {name!r}: choose among '
            f'{tuple(promises)}')
    promise = (inspect.getdoc(promises[name]) or '').partition('\n\n')[0]
    try:
        promises[name](case)
    except BrokenPromiseError as error:
        raise BrokenPromiseError(
            f'{name}: {promise} {error}') from error.__cause__
    except Exception as error:
        raise BrokenPromiseError(
            f'{name}: {promise} Its check ended with '
            f'{type(error).__name__}: {error}') from error
