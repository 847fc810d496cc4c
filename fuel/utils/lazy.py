"""Attributes that are loaded when first read and never pickled."""
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

_Class = TypeVar('_Class', bound=type[Any])
_MISSING = object()


Getter = Callable[[Any], Any]
Setter = Callable[[Any, Any], None]


def lazy_property_factory(lazy_property: str) -> tuple[Getter, Setter]:
    """Create the functions of a property that is loaded when first read.

    Parameters
    ----------
    lazy_property : str
        Name of the property. Its value is kept in the attribute of this
        name with an underscore before it.

    Returns
    -------
    getter, setter : callable
        For :class:`property`. The getter calls ``self.load()`` if there is
        no value, and raises ValueError if that did not set it.

    Examples
    --------
    >>> from fuel.utils import lazy_property_factory
    >>> class Squares:
    ...     values = property(*lazy_property_factory('values'))
    ...     def load(self):
    ...         self.values = [i ** 2 for i in range(4)]
    >>> Squares().values
    [0, 1, 4, 9]
    """
    storage = '_' + lazy_property

    def getter(self: Any) -> Any:
        value = getattr(self, storage, _MISSING)
        if value is _MISSING:
            self.load()
            value = getattr(self, storage, _MISSING)
        if value is _MISSING:
            raise ValueError(
                f'{type(self).__name__}.load() did not set '
                f'{lazy_property!r}; every attribute named in '
                'do_not_pickle_attributes must be assigned there')
        return value

    def setter(self: Any, value: object) -> None:
        setattr(self, storage, value)

    return getter, setter


def do_not_pickle_attributes(
        *lazy_properties: str) -> Callable[[_Class], _Class]:
    """Decorate a class so that some attributes are not pickled.

    They are reloaded (e.g. from disk) by the class's ``load`` method when
    they are first read: after unpickling, or before anything set them. Use
    it for bulky attributes, and for those that cannot be pickled at all.

    Parameters
    ----------
    *lazy_properties : str
        The names of the attributes.

    Returns
    -------
    callable
        The class decorator.

    Raises
    ------
    ValueError
        When a class without a ``load`` method is decorated; and when an
        object is pickled while such an attribute is an iterator, since its
        position would be lost.

    Notes
    -----
    A class that defines ``__getstate__`` itself is pickled its own way.

    Examples
    --------
    >>> import pickle
    >>> from fuel.utils import do_not_pickle_attributes
    >>> @do_not_pickle_attributes('features', 'targets')
    ... class Numbers:
    ...     def load(self):
    ...         self.features = range(10 ** 6)
    ...         self.targets = range(10 ** 6)[::-1]
    >>> numbers = Numbers()
    >>> numbers.targets[0]
    999999
    >>> numbers.__getstate__()
    {}
    """
    def decorate(cls: _Class) -> _Class:
        if not hasattr(cls, 'load'):
            raise ValueError(
                f'{cls.__name__} has no method load(self), which '
                'do_not_pickle_attributes needs to set '
                f'{", ".join(lazy_properties)}')
        for name in lazy_properties:
            setattr(cls, name, property(*lazy_property_factory(name)))
        if '__getstate__' not in vars(cls):
            getstate = _getstate_without(cls, lazy_properties)
            setattr(cls, '__getstate__', getstate)  # noqa: B010 (mypy)
        return cls
    return decorate


def _getstate_without(cls: type[Any], lazy_properties: tuple[str, ...]
                      ) -> Callable[[Any], Any]:
    """Make a ``__getstate__`` that removes the lazy attributes from the state
    of the base classes."""
    def getstate(self: Any) -> Any:
        state = super(cls, self).__getstate__()
        if isinstance(state, tuple):
            # Attributes and slots, as Python's own __getstate__ gives them.
            return tuple(without_lazy(part) for part in state)
        return without_lazy(state)

    def without_lazy(state: object) -> Any:
        if not isinstance(state, dict):
            return state
        state = state.copy()
        for name in lazy_properties:
            if isinstance(state.pop('_' + name, None), Iterator):
                raise ValueError(
                    f'{cls.__name__}.{name} is an iterator: it would lose '
                    'its position, so it cannot be left out of a pickle and '
                    'reloaded; keep it elsewhere, or make it an iterable')
        return state

    getstate.__name__ = '__getstate__'
    return getstate
