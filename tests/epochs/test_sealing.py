"""Text of a state that is encoded once, and parts that each state has
alone."""
import json
import pickle
import random
import zlib

import numpy
import pytest
from support import sharded_pipelines
from support.sharded_pipelines import batches, dataset, halves

from fuel.datasets import IndexableDataset
from fuel.exceptions import StateMismatchError
from fuel.schemes import (
    IterationScheme,
    SequentialScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
)
from fuel.schemes.iteration_scheme import scheme_state
from fuel.streams import DataStream
from fuel.transformers import Mapping, Rename, ScaleAndShift
from fuel.transformers.image import RandomFixedSizeCrop
from fuel.utils import rng_state


def shuffled():
    """Return a pipeline whose state differs only in counts."""
    return Rename(halves(batches(23, 4)), {'x': 'z'})


def spoil(value):
    """Change all that can be changed within plain data."""
    if isinstance(value, dict):
        for part in value.values():
            spoil(part)
        value['spoiled'] = True
    elif isinstance(value, list):
        for part in value:
            spoil(part)
        value.append('spoiled')


@pytest.mark.parametrize('name', sharded_pipelines.PIPELINES)
def test_checksum_is_that_of_the_state_as_it_is_read(name):
    """The checksum is right also where most of the text was made before."""
    stream = sharded_pipelines.build(name, 23, 4)
    iterator = stream.get_epoch_iterator()
    for _ in range(3):
        state = stream.state_dict()
        text = json.dumps({key: part for key, part in state.items()
                           if key != 'crc'},
                          sort_keys=True, separators=(',', ':'))
        assert zlib.crc32(text.encode()) == state['crc']
        next(iterator, None)


def test_states_share_nothing_that_can_be_changed():
    """A caller may do with one what he likes."""
    stream = shuffled()
    iterator = stream.get_epoch_iterator()
    states = []
    for _ in range(3):
        next(iterator)
        spoiled, state = stream.state_dict(), iterator.state_dict()
        text = json.dumps(state)
        spoil(spoiled)
        assert text == json.dumps(state)
        states.append(state)
    assert [1, 2, 3] == [state['position'] for state in states]
    rest = [numpy.asarray(batch[1]).tolist() for batch in iterator]
    for place, state in enumerate(states):
        other = shuffled()
        other.load_state_dict(state)
        assert rest == [numpy.asarray(batch[1]).tolist()
                        for batch in other][2 - place:]


def test_state_says_what_the_pipeline_is_now():
    """The state is current although an older one was encoded before."""
    stream = Mapping(batches(12, 3, SequentialScheme), tuple)
    iterator = stream.get_epoch_iterator()
    next(iterator)
    before = stream.state_dict()
    stream.mapping = list
    stream.data_stream.dataset = dataset(15)
    after = stream.state_dict()
    assert 'builtins.tuple' == before['stream']['mapping']
    assert 'builtins.list' == after['stream']['mapping']
    assert [12, 15] == [
        state['children'][0]['stream']['data set num_examples']
        for state in (before, after)]
    with pytest.raises(StateMismatchError, match='mapping was'):
        stream.load_state_dict(before)


def test_argument_stands_for_what_it_was_when_a_state_was_saved_first():
    """A state after each batch does not look at large arrays again."""
    scale = numpy.array([2.])
    stream = ScaleAndShift(batches(12, 3, SequentialScheme), scale, 0,
                           which_sources=('x',))
    iterator = stream.get_epoch_iterator()
    next(iterator)
    before = stream.state_dict()
    scale[:] = 7
    assert before['stream'] == stream.state_dict()['stream']
    stream.scale = scale.copy()
    assert before['stream'] != stream.state_dict()['stream']


class Failing(IndexableDataset):
    """Has one batch that cannot be read."""

    def get_data(self, state=None, request=None):
        """Raise for the third batch."""
        if 6 in request:
            raise OSError('bad sector')
        return super().get_data(state, request)


def test_failure_after_a_state_is_in_the_next_one():
    """The failure changes more than a count."""
    def build():
        return Rename(DataStream(
            Failing({'x': numpy.arange(12)}), batch_size=3), {'x': 'y'})

    stream = build()
    iterator = stream.get_epoch_iterator()
    next(iterator), next(iterator)
    assert 2 == stream.state_dict()['position']
    with pytest.raises(OSError, match='bad sector'):
        next(iterator)
    state = stream.state_dict()
    assert (2, 3) == (state['children'][0]['position'],
                      state['children'][0]['requested'])
    other = build()
    other.load_state_dict(state)
    rest, = other
    assert [9, 10, 11] == rest[0].tolist()


def test_state_after_the_end_is_that_of_no_epoch():
    """The end is in the state although the one before only counted."""
    stream = shuffled()
    for _ in stream:
        stream.state_dict()
    assert 'finished' == stream.state_dict()['epoch']


@pytest.mark.parametrize('rng', [
    numpy.random.RandomState(1), numpy.random.default_rng(1)])
def test_position_keeps_the_generator_as_it_was(rng):
    """Later draws do not change it."""
    stream = RandomFixedSizeCrop(DataStream(
        IndexableDataset(numpy.zeros((8, 1, 9, 9))), batch_size=2),
        (2, 2), rng=rng)
    iterator = stream.get_epoch_iterator()
    next(iterator)
    position, state = iterator.get_position(), stream.state_dict()
    next(iterator)
    assert state['rng'] != stream.state_dict()['rng']
    assert state['rng'] == rng_state.as_plain(position.rng)


def test_scheme_of_each_epoch_is_in_its_states():
    """The text of the epoch before is not taken for it."""
    stream = DataStream(dataset(12), iteration_scheme=ShuffledScheme(12, 4))
    schemes = []
    for _ in range(2):
        iterator = stream.get_epoch_iterator()
        next(iterator)
        schemes += [stream.state_dict()['scheme'] for _ in range(2)]
    assert schemes[0] == schemes[1] != schemes[2] == schemes[3]


class LastNumber(IterationScheme):
    """Requests that depend on a state, which is one dict that changes."""

    requests_examples = False

    def __init__(self):
        self.state = {'epochs': 0}

    def state_dict(self):
        """Return the number of epochs so far."""
        return self.state

    def load_state_dict(self, state):
        """Take up such a number."""
        self.state.update(state)

    def get_request_iterator(self):
        """Return three requests, which say the epoch."""
        number = self.state['epochs']
        self.state['epochs'] += 1
        return iter([[number], [number, 1], [number, 2]])


def test_scheme_may_go_on_with_the_state_that_it_returned():
    """Each state has that of its own epoch, or of the next one."""
    def build():
        return DataStream(IndexableDataset(list(range(9))),
                          iteration_scheme=LastNumber())

    stream = build()
    for number in range(3):
        epoch = stream.get_epoch_iterator()
        next(epoch)
        restored = build()
        restored.load_state_dict(stream.state_dict())
        assert list(epoch) == list(restored.get_epoch_iterator())
        restored.load_state_dict(stream.state_dict())
        assert ([number + 1],) == next(restored.get_epoch_iterator())


@pytest.mark.parametrize('make', [ShuffledScheme, ShuffledExampleScheme])
@pytest.mark.parametrize('rng', [
    numpy.random.RandomState, numpy.random.default_rng, random.Random,
    lambda seed: numpy.random.RandomState(numpy.random.PCG64(seed))],
    ids=['RandomState', 'Generator', 'Random', 'PCG64'])
def test_state_of_a_scheme_is_made_when_it_is_asked_for(
        make, rng, monkeypatch):
    """The state is that of the generator before the order was drawn."""
    scheme = make(*(12, 5)[:2 - make.requests_examples], rng=rng(3))
    stream = DataStream(IndexableDataset(numpy.arange(12)),
                        iteration_scheme=scheme)
    made = []
    monkeypatch.setattr(
        rng_state, 'as_plain', lambda snapshot, made_by=rng_state.as_plain: (
            made.append(snapshot), made_by(snapshot))[1])
    for _ in range(2):
        before = scheme_state(scheme)
        made.clear()
        epoch = stream.get_epoch_iterator()
        next(epoch)
        copied = pickle.loads(pickle.dumps(epoch, 0))
        assert [] == made
        assert before == epoch.state_dict()['scheme']
        next(epoch)
        assert before == epoch.state_dict()['scheme']
        assert 1 == len(made)
        assert before == copied.state_dict()['scheme']


def test_hooks_of_a_scheme_that_are_replaced_are_asked():
    """A hook of an object or a class is called before the order is drawn."""
    class Counting(ShuffledScheme):
        asked = 0

        def state_dict(self):
            self.asked += 1
            return {**super().state_dict(), 'asked': self.asked}

    scheme = Counting(12, 5)
    before = scheme.rng.get_state()[1].tolist()
    stream = DataStream(IndexableDataset(numpy.arange(12)),
                        iteration_scheme=scheme)
    assert 1 == stream.get_epoch_iterator().state_dict()['scheme']['asked']
    scheme = ShuffledScheme(12, 5)
    scheme.state_dict = lambda: {'first': int(scheme.rng.get_state()[1][0])}
    stream = DataStream(IndexableDataset(numpy.arange(12)),
                        iteration_scheme=scheme)
    assert {'first': before[0]} == (
        stream.get_epoch_iterator().state_dict()['scheme'])
