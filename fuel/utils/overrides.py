"""Check whether a user's class overrides a method on which another method
relies."""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

Function = TypeVar('Function', bound=Callable[..., Any])


#: The methods of stages that make items.
ITEM_METHODS = (
    'get_data', 'transform_example', 'transform_batch', 'transform_any',
    'transform_source_example', 'transform_source_batch',
    'transform_any_source', '_transform', '_prepare', '_write')


def cached(function: Function) -> Function:
    """Return a function that caches its results, with the same type.

    It is meant for functions that are called for few classes.
    """
    return functools.lru_cache(512)(function)  # type: ignore[return-value]


def is_own(cls: type) -> bool:
    """Return whether a class is part of Fuel."""
    return cls.__module__.partition('.')[0] == 'fuel'


def class_hook(cls: type, name: str) -> Any:
    """Return the function of a class that is a hook, None if it has none.

    An attribute with this name that is not callable does not count, nor does
    an attribute of an object.
    """
    nearest = getattr(cls, name, None)
    if callable(nearest):
        return nearest
    return next((vars(base)[name] for base in cls.__mro__
                 if name in vars(base) and callable(vars(base)[name])), None)


def covers(instance: object, method: str, hooks: Iterable[str]) -> bool:
    """Return whether a method of an object may be used instead of its hooks.

    It may not if a subclass, or the object itself, overrides a hook but not
    the method. It may not either if a hook of Fuel's own class was replaced.
    """
    hooks = tuple(hooks)
    if not getattr(instance, '__dict__', {}).keys().isdisjoint(hooks):
        return False
    found = False
    # The loop calls no Python functions, since each epoch checks this for each
    # stage.
    for cls in type(instance).__mro__:
        members = cls.__dict__
        found = found or method in members
        if members.keys().isdisjoint(hooks):
            continue
        if not found:
            return False
        if not cls.__module__.startswith('fuel.'):
            continue
        for name in hooks:
            hook = members.get(name)
            if hook is not None:
                module = getattr(
                    getattr(hook, 'fget', hook), '__module__', None)
                if module is None or not module.startswith('fuel.'):
                    return False
    return found


def is_original(instance: object, method: str) -> bool:
    """Return whether a method of an object is defined by Fuel."""
    if method in getattr(instance, '__dict__', {}):
        return False
    function: object = getattr(type(instance), method, None)
    return (getattr(function, '__module__', None) or '').startswith('fuel.')


def is_default(instance: object, hook: str) -> bool:
    """Return whether no class overrides a hook, neither a user's class nor one
    of Fuel's."""
    holders = [cls for cls in type(instance).__mro__ if hook in cls.__dict__]
    return len(holders) == 1 and is_original(instance, hook)


def declares(stage: object, name: str) -> bool:
    """Return whether a stage, or its class, declares an attribute to be True.

    A declaration of a base class does not count if a subclass overrides a
    method that makes items.
    """
    return (getattr(stage, name, None) is True
            and covers(stage, name, ITEM_METHODS))


def calls(*names: str) -> Callable[[Function], Function]:
    """Mark a function that makes items instead of a stage's methods.

    `names`: the methods that the function calls.
    """
    def mark(function: Function) -> Function:
        function.__dict__['bypassed'] = tuple(
            set(ITEM_METHODS).difference(names))
        return function
    return mark


def replaces_methods(stage: object, name: str) -> bool:
    """Return whether a function marked by :func:`calls` can replace a stage's
    methods.

    It can if no class overrides a method that it does not call.
    """
    function: object = getattr(type(stage), name)
    return covers(stage, name, vars(function)['bypassed'])


# Called for every batch, for few classes.
@cached
def hook_covers_method(cls: type, method: str, hook: str) -> bool:
    """Return whether a class's `hook` fits its `method`.

    It does not fit if a user's subclass overrides the method alone, since the
    inherited hook does not know the new method.  Fuel's own classes are
    trusted.
    """
    for base in cls.__mro__:
        if hook in vars(base):
            return True
        if method in vars(base) and not is_own(base):
            return False
    return False
