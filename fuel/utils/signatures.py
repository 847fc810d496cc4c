"""Signatures of callables, and of classes including their bases'
arguments."""
from __future__ import annotations

import functools
import inspect
from collections.abc import (
    Callable, Iterator, Mapping, Sequence)
from contextlib import suppress
from types import (
    BuiltinFunctionType, SimpleNamespace, WrapperDescriptorType)
from typing import (
    Any, NamedTuple, Never, Unpack, get_args, get_origin, get_type_hints)

from fuel.utils.overrides import cached, is_own

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY,
               inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD,
            inspect.Parameter.KEYWORD_ONLY)
_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def signature_of(function: Callable[..., object]) -> inspect.Signature:
    """Return the signature of a callable; for a class, the signature of its
    constructor.

    Before Python 3.11.4, ``inspect.signature`` of a class uses an inherited
    ``__new__`` instead of an ``__init__`` that a nearer class defines.

    Examples
    --------
    >>> class Base:
    ...     def __new__(cls, *args):
    ...         return super().__new__(cls)
    >>> class Middle(Base):
    ...     def __init__(self, size):
    ...         self.size = size
    >>> class Last(Middle):
    ...     pass
    >>> signature_of(Last)
    <Signature (size)>
    """
    return inspect.signature(_without_class(function))


def _without_class(function: Callable[..., object]) -> Callable[..., object]:
    """Return a callable with the signature of a function or class.

    For a class without a ``__signature__``, the result is a function.
    """
    if isinstance(function, functools.partial):
        return functools.partial(_without_class(function.func),
                                 *function.args, **function.keywords)
    if isinstance(function, type) and not _says_its_own(function):
        constructor = _constructor_of(function)
        if constructor is not None:
            return functools.partial(constructor, function)
    return function


def _says_its_own(cls: type) -> bool:
    return any('__signature__' in vars(base) for base in cls.__mro__)


def _constructor_of(cls: type) -> Callable[..., object] | None:
    """Return the function that is called first with the arguments of a class.

    Returns: None if the function is not written in Python, or if the class has
        a ``__signature__``.
    """
    call = type(cls).__call__
    if call is not type.__call__:
        return call
    for base in cls.__mro__:
        if '__signature__' in vars(base):
            return None
        for name in ('__init__', '__new__'):
            found = vars(base).get(name)
            if not isinstance(found, (type(None), BuiltinFunctionType,
                                      WrapperDescriptorType)):
                constructor: Callable[..., object] = found.__get__(None, cls)
                return constructor
    return None


class ClassSignature:
    """Attribute ``__signature__`` of a class and its subclasses.

    It is the signature of the constructor. ``*args`` and ``**kwargs`` that the
    constructor passes to its bases are replaced by the bases' arguments.

    Examples
    --------
    >>> class Base:
    ...     __signature__ = ClassSignature()
    ...     def __new__(cls, *args, **kwargs):
    ...         return super().__new__(cls)
    >>> class Sized(Base):
    ...     def __init__(self, size):
    ...         self.size = size
    >>> inspect.signature(Sized)
    <Signature (size)>
    """

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        """Return the signature of a class; an object has none."""
        if instance is not None:
            raise AttributeError('__signature__')
        constructor = _constructor_of(owner)
        if constructor is None:
            return inspect.Signature()
        constructors = _constructors(owner)
        if constructors and constructor is vars(
                constructors[0].owner)['__init__']:
            return inspect.Signature(_arguments_of(owner))
        _, *parameters = inspect.signature(constructor).parameters.values()
        return inspect.Signature(parameters)


class _Constructor(NamedTuple):
    """An ``__init__``, and its parameters without `self`.

    `owner`: the class that defines it.
    `variable`: the annotations of ``*args`` and ``**kwargs``.
    """

    owner: type
    parameters: Sequence[inspect.Parameter]
    variable: Mapping[str, object]


@cached
def _constructor_in(base: type) -> _Constructor | None:
    """Return the ``__init__`` that a class itself defines, None if it defines
    none."""
    function = vars(base).get('__init__')
    if function is None or base is object:
        return None
    try:
        _, *parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return _Constructor(base, parameters, {
        parameter.name: _annotation(function, parameter)
        for parameter in parameters if parameter.kind in _VARIABLE})


def _constructors(cls: type) -> list[_Constructor]:
    """Return each ``__init__`` of a class and its bases."""
    return [*filter(None, map(_constructor_in, cls.__mro__))]


def constructors_of(cls: type) -> Iterator[Sequence[inspect.Parameter]]:
    """Yield the parameters, without `self`, of each ``__init__`` of a class
    and its bases."""
    for constructor in _constructors(cls):
        yield constructor.parameters


@cached
def parameters_of(cls: type) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a class and its bases by name."""
    found: dict[str, inspect.Parameter] = {}
    for parameters in constructors_of(cls):
        for parameter in parameters:
            found.setdefault(parameter.name, parameter)
    return found


@cached
def keywords_of(cls: type) -> Mapping[str, inspect.Parameter]:
    """Return the keyword arguments of a class: its own arguments, and the
    arguments that it passes to its bases."""
    return {parameter.name: parameter
            for parameter in _merged(_constructors(cls), guess=True)
            if parameter.kind in _BY_NAME}


@cached
def _arguments_of(cls: type) -> Sequence[inspect.Parameter]:
    """Return the parameters of a class, including those that it is known to
    pass to its bases."""
    return _merged(_constructors(cls))


def _merged(constructors: Sequence[_Constructor],
            guess: bool = False) -> list[inspect.Parameter]:
    """Return all parameters of the first constructor in `constructors`; each
    constructor calls the next one.

    `guess`: whether to assume that a user's constructor passes on all of its
        ``**kwargs``.
    """
    if not constructors:
        return []
    first, *others = constructors
    further = _merged(others, guess)
    merged: list[inspect.Parameter] = []
    for parameter in first.parameters:
        if parameter.kind not in _VARIABLE:
            merged.append(parameter)
            continue
        handed_on = (_handed_on(first, parameter, further)
                     if guess or _is_known(first, parameter)
                     else [parameter])
        names = {one.name for one in (*first.parameters, *merged)
                 if one is not parameter}
        merged += [one for one in handed_on if one.name not in names]
    return merged


def _is_known(first: _Constructor, variable: inspect.Parameter) -> bool:
    """Return whether it is known what ``*args`` or ``**kwargs`` stand for.

    In Fuel's classes they are passed to the next constructor. In other
    classes, an annotation must state it.
    """
    annotation = first.variable[variable.name]
    return (is_own(first.owner) or annotation is Never
            or get_origin(annotation) is Unpack)


def _handed_on(first: _Constructor, variable: inspect.Parameter,
               further: Sequence[inspect.Parameter]
               ) -> list[inspect.Parameter]:
    """Return the parameters of the next constructor that ``*args`` or
    ``**kwargs`` stand for."""
    annotation = first.variable[variable.name]
    if annotation is Never:
        return []
    if variable.kind is variable.VAR_KEYWORD and (
            get_origin(annotation) is Unpack):
        options, = get_args(annotation)
        return [_by_name(one) for one in further if one.kind in _BY_NAME
                and one.name in options.__annotations__]
    if variable.kind is variable.VAR_POSITIONAL:
        return [one for one in further
                if one.kind in (*_POSITIONAL, one.VAR_POSITIONAL)]
    return [_by_name(one) for one in further
            if one.kind in (*_BY_NAME, one.VAR_KEYWORD)]


def _by_name(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter as a keyword-only parameter."""
    if parameter.kind is parameter.VAR_KEYWORD:
        return parameter
    return parameter.replace(kind=parameter.KEYWORD_ONLY)


def _annotation(function: Any, parameter: inspect.Parameter) -> object:
    """Return the value of a parameter's annotation; None if it cannot be
    evaluated."""
    annotation: object = parameter.annotation
    if not isinstance(annotation, str):
        return annotation
    with suppress(Exception):
        return get_type_hints(
            SimpleNamespace(__annotations__={'found': annotation}),
            inspect.unwrap(function).__globals__)['found']
    return None
