"""The arguments of callables are the same on every Python."""
import functools
import inspect
from typing import Unpack

import pytest

from fuel.datasets import IterableDataset
from fuel.streams import DataStream
from fuel.transformers import SeededTransformer, SourcewiseTransformer
from fuel.transformers.options import StreamOptions
from fuel.utils.arguments import NamedArguments
from fuel.utils.signatures import signature_of


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
    """A constructor may be inherited; a function has its own signature."""
    assert expected == str(signature_of(callable_))


class Typed(SourcewiseTransformer):
    def __init__(self, data_stream, size,
                 **kwargs: Unpack[StreamOptions]):
        super().__init__(data_stream, True, **kwargs)


class Loose(SourcewiseTransformer):
    def __init__(self, data_stream, size, **kwargs):
        super().__init__(data_stream, True, **kwargs)


class Seeded(SeededTransformer, SourcewiseTransformer):
    pass


class SeededLoose(SeededTransformer, Loose):
    pass


class Made(Typed):
    def __new__(cls, width, height):
        return super().__new__(cls)


class Named(Typed, metaclass=Meta):
    pass


class Unknown(SourcewiseTransformer):
    def __init__(self, data_stream, **kwargs: 'Missing'):  # noqa: F821
        super().__init__(data_stream, True, **kwargs)


class Nothing(NamedArguments):
    pass


@pytest.mark.parametrize('cls, expected', [
    (Typed, '(data_stream, size, *, iteration_scheme=None, axis_labels=None)'),
    (Loose, '(data_stream, size, **kwargs)'),
    (Seeded, (
        '(data_stream, produces_examples, which_sources=None, *, seed=None, '
        "draws='item', iteration_scheme=None, axis_labels=None)")),
    (SeededLoose,
     "(data_stream, size, *, seed=None, draws='item', **kwargs)"),
    (Made, '(width, height)'), (Named, '(width, height)'),
    (Unknown, '(data_stream, **kwargs)'), (Nothing, '()')])
def test_signature_of_a_users_class_names_what_is_known(cls, expected):
    """Keywords whose names nobody says stay as the user wrote them."""
    for found in (inspect.signature(cls), signature_of(cls),
                  signature_of(functools.partial(cls))):
        assert expected == str(found.replace(parameters=[
            parameter.replace(annotation=parameter.empty)
            for parameter in found.parameters.values()]))


def test_objects_have_no_signature_of_their_class():
    """One that can be called has that of its `__call__`."""
    class Called(Typed):
        def __call__(self, argument):
            """Do nothing."""

    stage = Called(DataStream(IterableDataset([1])), 3)
    assert '(argument)' == str(inspect.signature(stage))
    with pytest.raises(AttributeError, match='__signature__'):
        _ = stage.__signature__


@pytest.mark.parametrize('cls, known', [
    (Typed, 'data_stream, size, iteration_scheme, axis_labels'),
    (Loose, ('data_stream, size, produces_examples, which_sources, '
             'iteration_scheme, axis_labels')),
    (Seeded, ('data_stream, produces_examples, which_sources, seed, '
              'draws, iteration_scheme, axis_labels')),
    (SeededLoose, ('data_stream, size, seed, draws, produces_examples, '
                   'which_sources, iteration_scheme, axis_labels'))])
def test_unknown_keyword_is_refused_with_those_that_are_taken(cls, known):
    """A user's constructor that hands all on is taken to do so."""
    class Derived(cls):
        pass

    with pytest.raises(TypeError, match=(
            "Derived takes no argument 'axis_label': did you mean "
            f"'axis_labels'. it takes {known}$")):
        Derived(DataStream(IterableDataset([1])), 3, axis_label=None)


def test_signature_of_a_class_that_has_none_is_refused():
    """The standard library refuses it, too."""
    with pytest.raises(ValueError, match='no signature found'):
        signature_of(type('Text', (str,), {}))
