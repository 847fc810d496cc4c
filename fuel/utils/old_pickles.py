"""Complete objects that an older release of Fuel has pickled.

If the class did not have an attribute in that release, the attribute gets the
value that it has in a new object.
"""
from __future__ import annotations

from typing import Any

from fuel.exceptions import StateMismatchError
from fuel.utils.overrides import cached, is_own
from fuel.utils.signatures import signature_of

# Every release pickles these arguments. If an object lacks one of them, its
# class does not have it.
_ALWAYS_KEPT = frozenset(
    ['axis_labels', 'iteration_scheme', 'produces_examples',
     'which_sources'])


def add_new_arguments(instance: object) -> None:
    """Set the arguments that a newer release has added, to their defaults.

    Examples
    --------
    >>> from fuel.transformers import Merge
    >>> stage = Merge.__new__(Merge)
    >>> add_new_arguments(stage)
    >>> stage.strict
    False
    """
    present = vars(instance)
    for name, default in _kept_arguments(type(instance)).items():
        present.setdefault(name, default)


@cached
def _kept_arguments(cls: type) -> dict[str, Any]:
    """Return the defaults of the optional arguments that objects of a class
    keep in attributes with the same names."""
    found: dict[str, Any] = {}
    for base in cls.__mro__:
        init = vars(base).get('__init__')
        if init is None or not is_own(base):
            continue
        for name, parameter in signature_of(init).parameters.items():
            if (parameter.default is not parameter.empty
                    and name not in _ALWAYS_KEPT
                    and name not in vars(base).get('made_into_others', ())
                    and not hasattr(base, name)):
                found.setdefault(name, parameter.default)
    return found


def pickled_sources(stage: object) -> tuple[str, ...]:
    """Return the names of the sources of a pickled stage, and remove them from
    its attributes."""
    present = vars(stage)
    for name in ('_sources', 'sources'):
        if name in present:
            return tuple(present.pop(name))
    name = type(stage).__name__
    raise StateMismatchError(
        f'this pickle holds a {name} of another release of Fuel, without '
        f'the names of its sources: run the code that made it, to build the '
        f'{name} again; the data sets and schemes of that release can be '
        'loaded')
