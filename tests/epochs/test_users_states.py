"""The states of users' parts are theirs, whatever their form."""
import json
import random

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuel.datasets import Dataset, IndexableDataset
from fuel.exceptions import StateMismatchError
from fuel.schemes import (
    BatchScheme, ConcatenatedScheme, SequentialScheme, ShuffledScheme)
from fuel.streams import DataStream
from fuel.transformers import Expand, Transformer

# Names that Fuel's own states and objects have for something.
NAMES = [
    'rng', 'schemes', 'epoch', 'seed', 'scheme', 'kind', 'state', 'format',
    'stream', 'crc', 'fuel', 'position', 'requested', 'children', 'leftover',
    'dataset', 'failed', 'skipped', 'key', 'item', '_first_epochs']

# Forms in which a number is saved, and read out of what JSON gives back.
FORMS = {
    'number': (lambda number, name: number, lambda saved, name: saved),
    'text': (lambda number, name: str(number),
             lambda saved, name: int(saved)),
    'list': (lambda number, name: [number], lambda saved, name: saved[0]),
    'dict': (lambda number, name: {name: number},
             lambda saved, name: saved[name]),
    'nested': (lambda number, name: {name: [{'n': number}]},
               lambda saved, name: saved[name][0]['n']),
    'tuple': (lambda number, name: {name: (number,)},
              lambda saved, name: saved[name][0]),
    'integer key': (lambda number, name: {7: number},
                    lambda saved, name: saved.get('7', saved.get(7))),
}

ATTRIBUTES = {
    'nothing': lambda: None,
    'number': lambda: 3,
    'list': lambda: [1, 2],
    'dict': lambda: {'a': 1},
    'RandomState': lambda: numpy.random.RandomState(1),
    'Generator': lambda: numpy.random.default_rng(1),
    'Random': lambda: random.Random(1),
}


class Saving:
    """Saves a number in some form; has an attribute of some name."""

    def give(self, form, name, attribute, value):
        """Set the form, and the attribute unless its name is ''."""
        self.save, self.take = FORMS[form]
        self.own_key = name
        if attribute:
            setattr(self, attribute, ATTRIBUTES[value]())


class Drawn(Saving, BatchScheme):
    """Draws by the number of the epoch."""

    def __init__(self, *given):
        super().__init__(10, 3)
        self.number = 0
        self.give(*given)

    def get_request_iterator(self):
        order = list(range(10))
        random.Random(self.number).shuffle(order)
        self.number += 1
        return iter([order[start:start + 3] for start in range(0, 10, 3)])

    def state_dict(self):
        return self.save(self.number, self.own_key)

    def load_state_dict(self, state):
        self.number = self.take(state, self.own_key)


class Countdown(Saving, Dataset):
    """Is read in order."""

    provides_sources = ('left',)
    example_iteration_scheme = None

    def __init__(self, *given):
        super().__init__()
        self.give(*given)

    def open(self):
        return [4]

    def get_data(self, state=None, request=None):
        if not state[0]:
            raise StopIteration
        state[0] -= 1
        return ([state[0]],)

    def get_position(self, state):
        return self.save(state[0], self.own_key)

    def open_at(self, position):
        return [self.take(position, self.own_key)]


class Counting(Saving, Transformer):
    """Adds the number of the item."""

    epoch_attributes = (*Transformer.epoch_attributes, 'number')

    def __init__(self, stream, *given):
        super().__init__(stream, False)
        self.give(*given)

    def start_epoch(self):
        self.number = 0
        super().start_epoch()

    def get_data(self, request=None):
        if request is not None:
            raise ValueError('Counting takes no requests')
        data, = next(self.child_epoch_iterator)
        self.number += 1
        return ([self.number + part for part in data],)

    def get_leftover(self):
        return self.save(self.number, self.own_key)

    def set_leftover(self, leftover):
        self.number = self.take(leftover, self.own_key)


def over(scheme):
    """Return a stream with a scheme."""
    return DataStream(
        IndexableDataset(list(range(10))), iteration_scheme=scheme)


PARTS = {
    'scheme': lambda *given: over(Drawn(*given)),
    'schemes': lambda *given: over(ConcatenatedScheme(
        [Drawn(*given), SequentialScheme([1, 2], 2), Drawn(*given)])),
    'share': lambda *given: over(Drawn(*given).shard(1, 2)),
    'shared stream': lambda *given: over(Drawn(*given)).shard(1, 2),
    'data set': lambda *given: DataStream(Countdown(*given)),
    'stage': lambda *given: Counting(over(SequentialScheme(10, 3)), *given),
    'stage above': lambda *given: Counting(
        Counting(over(Drawn(*given)), *given), *given),
}


def expect_resumed(build, epoch, step):
    """A state that was saved at a step of an epoch gives the rest of it, and
    the next one."""
    stream = build()
    for _ in range(epoch):
        list(stream)
    iterator = iter(stream)
    for _ in range(step):
        next(iterator)
    text = json.dumps(stream.state_dict())
    expected = [list(iterator), list(stream)]
    resumed = build()
    resumed.load_state_dict(json.loads(text))
    assert text == json.dumps(resumed.state_dict())
    assert expected == [list(resumed), list(resumed)]


@settings(deadline=None)
@given(st.sampled_from(sorted(PARTS)), st.sampled_from(sorted(FORMS)),
       st.sampled_from(NAMES), st.sampled_from(['', *NAMES]),
       st.sampled_from(sorted(ATTRIBUTES)), st.integers(0, 1),
       st.integers(0, 2))
def test_state_of_a_users_part_may_have_any_form(
        part, form, name, attribute, value, epoch, step):
    """No key of it means something to Fuel, and no attribute of its owner."""
    if part.startswith(('stage', 'data')) and attribute == 'rng':
        # A stage's generator of this name is saved beside what it keeps.
        attribute = ''
    if 'stage' in part and attribute in {'dataset', 'scheme'}:
        attribute = ''
    expect_resumed(lambda: PARTS[part](form, name, attribute, value),
                   epoch, step)


@pytest.mark.parametrize('value', ['RandomState', 'Generator', 'Random'])
@pytest.mark.parametrize('form', FORMS)
@pytest.mark.parametrize('name', ['rng', 'schemes'])
def test_state_of_a_users_scheme_with_a_generator(form, name, value):
    """The keys of Fuel's own schemes are free, too."""
    for step in range(3):
        expect_resumed(lambda: over(Drawn(form, name, 'rng', value)), 1, step)


@pytest.mark.parametrize('make', [
    lambda: numpy.random.RandomState(1), lambda: numpy.random.default_rng(1),
    lambda: random.Random(1)])
def test_scheme_of_a_user_saves_its_generator_as_it_likes(make):
    """The state of its own is not one of Fuel's, under the same key."""

    class Permuted(BatchScheme):
        def __init__(self):
            super().__init__(10, 3)
            self.rng = make()

        def get_request_iterator(self):
            order = list(range(10))
            self.rng.shuffle(order)
            return iter([order[start:start + 3] for start in (0, 3, 6, 9)])

        def state_dict(self):
            if isinstance(self.rng, random.Random):
                version, words, gauss = self.rng.getstate()
                return {'rng': [version, list(words), gauss]}
            if isinstance(self.rng, numpy.random.RandomState):
                name, words, *more = self.rng.get_state()
                return {'rng': [name, words.tolist(), *more]}
            return {'rng': self.rng.bit_generator.state}

        def load_state_dict(self, state):
            if isinstance(self.rng, random.Random):
                version, words, gauss = state['rng']
                self.rng.setstate((version, tuple(words), gauss))
            elif isinstance(self.rng, numpy.random.RandomState):
                self.rng.set_state(state['rng'])
            else:
                self.rng.bit_generator.state = state['rng']

    for epoch in range(2):
        for step in range(4):
            expect_resumed(lambda: over(Permuted()), epoch, step)


@pytest.mark.parametrize('damage', [
    None, 3, {'kind': 'random.Random', 'state': 1}, {'kind': 7}])
def test_damaged_state_of_fuels_own_form_is_refused_in_a_users_scheme(damage):
    """The error names the scheme and its generator."""

    class Later(ShuffledScheme):
        def state_dict(self):
            return {'mine': super().state_dict()}

        def load_state_dict(self, state):
            super().load_state_dict(state['mine'])

    state = over(Later(10, 3)).state_dict()
    over(Later(10, 3)).load_state_dict(state)
    state['scheme']['mine']['rng'] = damage
    with pytest.raises(StateMismatchError, match='Later: .*generator'):
        over(Later(10, 3)).load_state_dict(state)


def test_scheme_that_says_more_than_its_base_takes_up():
    """Such a scheme may override only `state_dict`."""

    class Noting(ShuffledScheme):
        saved = 0

        def state_dict(self):
            self.saved += 1
            return {**super().state_dict(), 'saved': self.saved}

    stream = over(Noting(10, 3))
    next(iter(stream))
    state = stream.state_dict()
    resumed = over(Noting(10, 3))
    resumed.load_state_dict(state)
    assert 3 == len(list(resumed))


class OfTheClass(Transformer):
    """Draws from a generator that its class has."""

    rng = numpy.random.default_rng(3)

    def transform_batch(self, batch):
        return ([part + int(self.rng.integers(99)) for part in batch[0]],)


class OfAProperty(OfTheClass):
    def __init__(self, *args):
        super().__init__(*args)
        self.mine = numpy.random.default_rng(4)

    @property
    def rng(self):
        return self.mine


@pytest.mark.parametrize('stage', [OfTheClass, OfAProperty])
def test_generator_of_a_stage_may_be_of_its_class(stage):
    """The generator of a class is saved, so it is taken up."""
    stream = stage(over(SequentialScheme(10, 3)), False)
    epoch = iter(stream)
    next(epoch)
    state = stream.state_dict()
    expected = list(epoch)
    resumed = stage(over(SequentialScheme(10, 3)), False)
    resumed.load_state_dict(state)
    assert expected == list(resumed)


def test_data_set_whose_position_is_none_is_refused_when_it_is_saved():
    """The error comes when the state is saved, not when it is needed."""

    class Nowhere(Countdown):
        def get_position(self, state):
            return None

    stream = DataStream(Nowhere('number', '', '', 'nothing'))
    next(iter(stream))
    with pytest.raises(TypeError, match=r'get_position.*Nowhere returned No'):
        stream.state_dict()


class Kept(Saving, Transformer):
    """Keeps a number of an epoch."""

    epoch_attributes = (*Transformer.epoch_attributes, 'number')

    def start_epoch(self):
        self.number = 0
        super().start_epoch()

    def get_leftover(self):
        return self.save(self.number, self.own_key)

    def set_leftover(self, leftover):
        self.number = self.take(leftover, self.own_key)


class Twice(Expand, Kept):
    """Makes two pieces, one of them the number of the item."""

    def __init__(self, stream, *given):
        super().__init__(stream)
        self.give(*given)

    def expand(self, item):
        self.number += 1
        return [([self.number],), item]


@pytest.mark.parametrize('form', ['dict', 'nested'])
@pytest.mark.parametrize('step', range(4))
def test_class_behind_expand_keeps_a_dict(form, step):
    """The dict may have any key but that of the pieces."""
    expect_resumed(lambda: Twice(
        over(SequentialScheme(10, 3)), form, 'item', '', 'nothing'), 0, step)


@pytest.mark.parametrize('form, name', [('dict', 'used'), ('number', '')])
@pytest.mark.parametrize('step', range(1, 3))
def test_class_behind_expand_that_keeps_what_is_lost_is_refused(
        form, name, step):
    """Saving raises the error, wherever a piece is left."""
    epoch = iter(Twice(
        over(SequentialScheme(10, 3)), form, name, '', 'nothing'))
    for _ in range(step):
        next(epoch)
    with pytest.raises(TypeError, match="return a dict or None.*'used'"):
        epoch.state_dict()


class Foreign:
    """A stream that only has what every stream has, and a state."""

    sources = ('data',)
    produces_examples = False
    axis_labels = iteration_scheme = None
    number = 0

    def get_epoch_iterator(self, as_dict=False):
        self.number += 1
        return iter([([self.number, item],) for item in range(3)])

    def state_dict(self):
        return {'skipped': self.number, 'epoch': 'any'}

    def load_state_dict(self, state):
        self.number = state['skipped']


class Same(Transformer):
    def transform_batch(self, batch):
        return batch


@pytest.mark.parametrize('epochs', range(2))
def test_state_of_a_stream_that_is_not_fuels_is_taken_up(epochs):
    """A stage of Fuel reads it."""
    stream = Same(Foreign(), False)
    for _ in range(epochs):
        list(stream)
    state = json.loads(json.dumps(stream.state_dict()))
    resumed = Same(Foreign(), False)
    resumed.load_state_dict(state)
    assert list(stream) == list(resumed)
