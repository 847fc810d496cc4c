"""The arguments that a class takes, including those of its bases."""
from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Mapping
from itertools import takewhile
from typing import Any, NamedTuple, Self, TypeVar

from fuel.suggestions import did_you_mean, nearest
from fuel.typing import AxisLabels
from fuel.utils.checks import truth
from fuel.utils.overrides import cached, class_hook, is_own
from fuel.utils.signatures import (
    ClassSignature, keywords_of, parameters_of)

Value = TypeVar('Value')

# Attributes that hold an argument under another name.
_ATTRIBUTES = {'examples': 'indices'}


class _Saved(NamedTuple):
    """The arguments of a class that a saved state must fit.

    `names`: names of the arguments, one per line.
    `attributes`: for each argument, the name of the attribute that holds it,
        this name with an underscore, and the default for objects that lack
        both, such as old pickles.
    `hook`: the class's own `kept_arguments`, which replaces `attributes`; None
        if the class does not override it.
    """

    names: str
    attributes: tuple[tuple[str, str, object], ...]
    hook: Callable[[Any], Mapping[str, object]] | None


class PlainArgument:
    """Base class of arguments that a saved state describes by their content.

    Most other objects are described only by their classes.
    """

    def plain(self) -> Mapping[str, object]:
        """Return the content that determines the values, as plain data."""
        raise NotImplementedError


def kept_values(owner: object, by_name: bool = False) -> list[Any]:
    """Return the arguments of an object that a saved state must fit.

    `by_name`: whether to read the attributes with the names of the arguments,
        even if the class overrides `kept_arguments`.
    Returns: a list: first one text with the names of the arguments, one per
        line; then the values of the arguments.
    """
    # Called for each stage and each state, so it must be fast.
    names, attributes, hook = _saved_arguments(type(owner))
    if hook is not None and not by_name:
        kept = hook(owner)
        return ['\n'.join(kept), *kept.values()]
    present = vars(owner)
    values: list[Any] = [names]
    for name, hidden, default in attributes:
        values.append(present[name] if name in present
                      else present.get(hidden, default))
    return values


@cached
def _saved_arguments(cls: type) -> _Saved:
    # A generator is described by its kind, and its state is saved.
    left_out = {'rng'}
    for base in cls.__mro__:
        if issubclass(base, NamedArguments):
            left_out.update(base.unsaved_arguments)
    names = sorted(parameters_of(cls).keys() - left_out)
    held = [_ATTRIBUTES.get(name, name) for name in names]
    defaults = [getattr(cls, name, None) for name in held]
    hook = class_hook(cls, 'kept_arguments')
    return _Saved('\n'.join(names), tuple([
        (name, f'_{name}',
         default if isinstance(default, (bool, int, float, str)) else None)
        for name, default in zip(held, defaults, strict=True)]),
        None if hook is NamedArguments.kept_arguments else hook)


class NamedArguments:
    """Base class of classes that refuse unknown keywords: the error names the
    unknown keyword and the most similar known one.

    If the name of a required argument is misspelt, Python itself says only
    that the argument is missing. A user's own constructor is not checked: it
    may take any keyword.

    Attributes
    ----------
    instead_of : dict
        Class attribute: for each keyword that only other classes take, a text
        that says what to write instead; ``{}`` in it becomes the name of the
        class.
    unsaved_arguments : tuple of str
        Class attribute: arguments that a saved state need not fit, in addition
        to those that the bases name. They do not change the values or their
        order; examples are the place of the data and the speed of reading.
    kept_meanings : dict
        Class attribute: what a saved state may have checksums of; for each
        argument, a text that says what it means if they differ.
    must_override : tuple of str
        Class attribute: names of methods. A class that overrides none of
        them is abstract and cannot be constructed.
    """

    instead_of: Mapping[str, str] = {}
    unsaved_arguments: tuple[str, ...] = ()
    kept_meanings: Mapping[str, str] = {}
    must_override: tuple[str, ...] = ()
    #: The signature that `inspect`, `help` and the manual show.
    __signature__ = ClassSignature()

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """Return a new object; raise TypeError if the class does not take the
        keywords."""
        if _is_abstract(cls):
            raise _abstract(cls)
        if kwargs and has_own_constructor(cls):
            known = keywords_of(cls)
            if not kwargs.keys() <= known.keys():
                raise unknown_argument(cls, [
                    name for name in kwargs if name not in known])
            for name in _truths_of(cls).intersection(kwargs):
                truth(f'{name} of {cls.__name__}', kwargs[name])
        new = super().__new__
        if new is not object.__new__:
            # From another base of a user's class, such as tuple.
            return new(cls, *args, **kwargs)
        if (args or kwargs) and cls.__init__ is object.__init__:
            # Python leaves this check to the class that has `__new__`.
            raise TypeError(f'{cls.__name__}() takes no arguments')
        return new(cls)

    def kept_arguments(self) -> Mapping[str, object]:
        """Return the arguments that a saved state must fit, by name.

        This is a hook for classes that keep an argument under another name,
        or that depend on a value which is not an argument.

        Returns
        -------
        mapping of str to object
            Defaults to the attributes with the names of the arguments,
            without `unsaved_arguments`. A value of None is not saved.
        """
        names, *values = kept_values(self, by_name=True)
        return dict(zip(names.splitlines(), values, strict=True))


@cached
def _is_abstract(cls: type[NamedArguments]) -> bool:
    """Return whether a class overrides none of the methods in
    `must_override`."""
    return bool(cls.must_override) and all(
        vars(base).keys().isdisjoint(cls.must_override)
        for base in _below_declaration(cls))


def _below_declaration(cls: type[NamedArguments]) -> list[type]:
    """Return a class and its bases, up to the base (not included) that
    declares `must_override`."""
    return list(takewhile(lambda base: 'must_override' not in vars(base),
                          cls.__mro__))


def _abstract(cls: type[NamedArguments]) -> TypeError:
    """Return the error that a class is abstract."""
    methods = {name for base in _below_declaration(cls)
               for name in vars(base)}
    near = filter(None, (nearest(name, methods, .8)
                         for name in cls.must_override))
    return TypeError(
        f'{cls.__name__} is abstract: derive a class from it that implements '
        + ' or '.join(cls.must_override)
        + ''.join(f' (did you mean that by {name!r}?)' for name in near))


# Fuel 0.2.0 accepted any object for these arguments.
_ANY_TRUTH = {'load_in_memory', 'sort_indices', 'sorted_indices'}


@cached
def _truths_of(cls: type) -> frozenset[str]:
    """Return the names of the arguments of a class that are truth values."""
    return frozenset(
        name for name, parameter in parameters_of(cls).items()
        if isinstance(parameter.default, bool)).difference(_ANY_TRUTH)


@cached
def has_own_constructor(cls: type) -> bool:
    """Return whether the constructor of a class is part of Fuel."""
    return is_own(next(base for base in cls.__mro__
                       if '__init__' in vars(base)))


def unknown_argument(cls: type, unknown: Iterable[str]) -> TypeError:
    """Return the error that a class does not take a keyword."""
    name = next(iter(unknown))
    remedy = getattr(cls, 'instead_of', {}).get(name)
    if remedy is not None:
        return TypeError(f'{cls.__name__} takes no argument {name!r}: '
                         + remedy.format(cls.__name__))
    known = tuple(keywords_of(cls))
    hint = did_you_mean(name, known, '{} ')
    return TypeError(
        f'{cls.__name__} takes no argument {name!r}: {hint}it takes '
        + ', '.join(known))


def is_dataset(candidate: object) -> bool:
    """Return whether an object is a data set of Fuel, not a stream."""
    return hasattr(type(candidate), 'takes_requests')


def is_stream(candidate: object) -> bool:
    """Return whether an object has epochs, as a stream of any class has."""
    return hasattr(candidate, 'get_epoch_iterator')


def labels_in(owner: object) -> AxisLabels | None:
    """Return the axis labels of a stream or data set, None if it has none."""
    labels: AxisLabels | None = checked_labels(
        owner, getattr(owner, 'axis_labels', None))
    return labels or None


def checked_labels(owner: object, labels: Any) -> Any:
    """Return an object's axis labels; raise TypeError if they are a text.

    False values other than a dict become None.
    """
    if isinstance(labels, str) and labels:
        raise TypeError(
            f'axis_labels of {type(owner).__name__} must be a dict from '
            f"names of sources to names of axes, got {labels!r}; those of a "
            f"stage may be 'kept'")
    # An empty dict may be filled after it is passed.
    return labels if isinstance(labels, Mapping) else labels or None


def try_call(default: Value, function: Callable[..., Value],
             *args: object) -> Value:
    """Call a function and return its result, or a default if it raises."""
    try:
        return function(*args)
    except Exception:  # noqa: BLE001 (a description never raises)
        return default


def one_line(subject: object) -> str:
    """Return a description of an object as a call of its class, with the
    arguments that it keeps."""
    arguments = try_call(list[str](), _arguments, subject)
    return f'{type(subject).__name__}({", ".join(arguments)})'


_short = reprlib.Repr()
_short.maxlist = _short.maxtuple = 4
_short.maxstring = _short.maxother = 40


def _arguments(subject: object) -> list[str]:
    found = []
    kept = vars(subject)
    for name, parameter in parameters_of(type(subject)).items():
        attribute = _ATTRIBUTES.get(name, name)
        if attribute not in kept:
            continue
        value = kept[attribute]
        if value is None or value is parameter.default:
            continue
        found.append(f'{name}={_value(value)}')
    return found


def _value(value: object) -> str:
    if isinstance(value, range) and value == range(len(value)):
        return str(len(value))
    if isinstance(value, (bool, int, float, str, range)):
        return _short.repr(value)
    if isinstance(value, (list, tuple)):
        text = '[' + ', '.join(map(_value, value[:3]))
        return f'{text}, ... {len(value)} in all]' if len(value) > 3 else (
            text + ']')
    if hasattr(value, 'get_request_iterator'):
        return one_line(value)
    return f'<{type(value).__name__}>'
