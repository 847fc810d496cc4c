"""Which arguments callables take, the same on every Python."""
import functools

import pytest

from fuel.utils.arguments import signature_of


class Base:
    """Hands on what it does not look at."""

    def __new__(cls, *args, **kwargs):
        return super().__new__(cls)


class Sized(Base):
    def __init__(self, size, *, unit='px'):
        self.size = size


class Plain(Sized):
    pass


class New(Sized):
    def __new__(cls, other):
        return super().__new__(cls, other)


class Pair(tuple):
    def __init__(self, values):
        pass


class Meta(type):
    def __call__(cls, width, height):
        return super().__call__(width * height)


class Area(Sized, metaclass=Meta):
    pass


def called(first, *rest):
    """Do nothing."""


@pytest.mark.parametrize('callable_, expected', [
    (Sized, "(size, *, unit='px')"),
    (Plain, "(size, *, unit='px')"),
    (functools.partial(Plain, 3), "(*, unit='px')"),
    (functools.partial(Plain, unit='m'), "(size, *, unit='m')"),
    (New, '(other)'), (Pair, '(values)'), (Area, '(width, height)'),
    (object, '()'), (called, '(first, *rest)'),
    (functools.partial(called, 1), '(*rest)'),
    ('a'.join, '(iterable, /)'), (Plain(1).__init__, "(size, *, unit='px')")])
def test_signature_of_a_class_is_that_of_the_nearest_constructor(
        callable_, expected):
    """Whether it is inherited or not, and a function's is its own."""
    assert expected == str(signature_of(callable_))


def test_signature_of_a_class_that_has_none_is_refused():
    """As by the standard library."""
    with pytest.raises(ValueError, match='no signature found'):
        signature_of(type('Text', (str,), {}))
