"""The arguments that a class takes, its bases' included."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping

from fuel.suggestions import did_you_mean

_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _parameters_of(cls: type) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a class and its bases by name."""
    found: dict[str, inspect.Parameter] = {}
    for base in cls.__mro__:
        if '__init__' in vars(base) and base is not object:
            try:
                signature = inspect.signature(vars(base)['__init__'])
            except (TypeError, ValueError):
                continue
            for name, parameter in signature.parameters.items():
                found.setdefault(name, parameter)
    found.pop('self', None)
    return found


parameters_of: Callable[[type], Mapping[str, inspect.Parameter]] = (
    functools.lru_cache(512)(_parameters_of))


def check_arguments(cls: type, given: Iterable[str]) -> None:
    """Refuse a keyword that neither a class of Fuel nor its bases take."""
    unknown = [name for name in given if name not in parameters_of(cls)]
    if unknown:
        raise unknown_argument(cls, unknown)


def unknown_argument(cls: type, unknown: Iterable[str]) -> TypeError:
    """Return the error that a class was built with a keyword it lacks."""
    name = next(iter(unknown))
    known = [other for other, parameter in parameters_of(cls).items()
             if parameter.kind not in _VARIABLE]
    hint = did_you_mean(name, known, '{} ')
    return TypeError(
        f'{cls.__name__} takes no argument {name!r}: {hint}it takes '
        + ', '.join(known))
