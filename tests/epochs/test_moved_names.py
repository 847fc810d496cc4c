"""States fit pipelines whose classes and functions were moved since."""
import json

import numpy
import pytest

from fuel.datasets import IndexableDataset
from fuel.epochs.moved_names import FIRST_NAMES
from fuel.exceptions import StateMismatchError
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream
from fuel.transformers import Mapping, Transformer


class Stage(Transformer):
    """A stage that gives a batch as it is."""

    produces_examples = False

    def __init__(self, data_stream, functions=None):
        super().__init__(data_stream)
        self.functions = functions

    def transform_batch(self, batch):
        """Return a batch."""
        return batch


def negative(batch):
    """Return the negative of a batch."""
    return (-numpy.asarray(batch[0]),)


def in_module(name, module):
    """Return a class or a function, as if a module defined it."""
    if isinstance(name, type):
        return type(name.__name__, (name,), {
            '__module__': module, '__qualname__': name.__qualname__})

    def function(batch):
        return name(batch)

    function.__module__, function.__qualname__ = module, name.__qualname__
    return function


def pipeline(module):
    """Return a pipeline of classes and functions of a module."""
    functions = [in_module(negative, module) for _ in range(20)]
    data = in_module(IndexableDataset, module)(numpy.arange(12))
    scheme = in_module(SequentialScheme, module)(12, 3)
    return in_module(Stage, module)(
        Mapping(DataStream(data, iteration_scheme=scheme), functions[0]),
        functions)


NAMES = ['IndexableDataset', 'SequentialScheme', 'Stage', 'negative']


def state_in(stream):
    """Return the state after two items, as a file keeps it."""
    epoch = stream.get_epoch_iterator()
    next(epoch), next(epoch)
    return json.loads(json.dumps(stream.state_dict()))


def rest(stream, state):
    """Return what is left of an epoch."""
    stream.load_state_dict(state)
    return [batch[0].tolist() for batch in stream.get_epoch_iterator()]


@pytest.fixture
def moved(monkeypatch):
    """Say that all names of ``earlier`` and ``later`` began in ``first``."""
    def move(*modules):
        for module in modules:
            for name in NAMES:
                monkeypatch.setitem(
                    FIRST_NAMES, f'{module}.{name}', f'first.{name}')
    return move


LEFT = [[-6, -7, -8], [-9, -10, -11]]


def test_state_of_what_was_moved_fits_from_before_and_after(moved):
    """The class, the scheme, the data set and the functions moved twice.
    Twenty of the functions are in the state as a checksum."""
    before = state_in(pipeline('first'))
    moved('earlier', 'later')
    for module in ('first', 'earlier', 'later'):
        assert LEFT == rest(pipeline(module), before)
        after = state_in(pipeline(module))
        assert after == before
        assert LEFT == rest(pipeline('first'), after)


def test_state_with_a_later_name_fits_what_has_the_first_one(moved):
    """A version that moved a name without saying so has such states."""
    def named(module):
        return Stage(Mapping(DataStream(
            in_module(IndexableDataset, module)(numpy.arange(12)),
            iteration_scheme=in_module(SequentialScheme, module)(12, 3)),
            in_module(negative, module)))

    state = state_in(named('later'))
    moved('later')
    assert LEFT == rest(named('later'), state)
    assert LEFT == rest(named('first'), state)


def test_state_of_another_class_is_still_refused(moved):
    """A table of names makes no two classes equal."""
    state = state_in(pipeline('first'))
    with pytest.raises(StateMismatchError, match=(
            'functions was|class was|data set was')):
        rest(pipeline('later'), state)
    moved('later')
    with pytest.raises(StateMismatchError, match="'other.Stage'"):
        rest(in_module(Stage, 'other')(pipeline('later').data_stream,
                                       pipeline('later').functions), state)


def test_description_nested_too_deeply_is_refused():
    """A damaged state raises the error that a program catches."""
    stream = pipeline('first')
    state = state_in(stream)
    nested = []
    for _ in range(100_000):
        nested = [nested]
    state['stream']['functions'] = nested
    with pytest.raises(StateMismatchError, match='nested too deeply'):
        stream.load_state_dict(state)
    # Python would take it apart by recursion.
    while nested:
        nested = nested.pop()


def test_each_first_name_is_none_that_was_moved():
    """A name leads to the first in one step, and is not its own."""
    assert FIRST_NAMES.keys().isdisjoint(FIRST_NAMES.values())
