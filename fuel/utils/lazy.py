"""Attributes that are loaded at the first read and are not pickled."""
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

_Class = TypeVar('_Class', bound=type[Any])
_MISSING = object()


Getter = Callable[[Any], Any]
Setter = Callable[[Any, Any], None]


def lazy_property_factory(lazy_property: str) -> tuple[Getter, Setter]:
    """Return the getter and the setter of a property that is loaded at the
    first read.

    Parameters
    ----------
    lazy_property : str
        Name of the property. Its value is kept in an attribute with this name
        after an underscore.

    Returns
    -------
    getter, setter : callable
        Arguments for :class:`property`. If there is no value, the getter calls
        ``self.load()``; it raises ValueError if this does not set the value.

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

    The class's method ``load`` sets these attributes again, for example from
    a disk, when one of them is read and has no value. Use this decorator for
    large attributes, and for attributes that cannot be pickled.

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
        When a class without a method ``load`` is decorated. Also when an
        object is pickled while one of these attributes is an iterator, since
        the position of the iterator would be lost.

    Notes
    -----
    If a class defines ``__getstate__`` itself, this method decides what is
    pickled.

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
    """Return a ``__getstate__`` that removes the lazy attributes from the
    state that the base classes return."""
    def getstate(self: Any) -> Any:
        state = super(cls, self).__getstate__()
        if isinstance(state, tuple):
            # Attributes and slots, as Python's own __getstate__ returns them.
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
