"""The stage that is kept with each stream, and what it knows."""
import copy
import gc
import pickle
import random
import weakref

import numpy
import pytest

from fuel.datasets import IndexableDataset
from fuel.epochs.stage import Stage, stage_of
from fuel.iterator import DataIterator
from fuel.streams import AbstractDataStream, DataStream
from fuel.transformers import (
    FilterSources, Mapping, Merge, MultiProcessing, MultiThreading, Rename,
    ScaleAndShift, Transformer)


def build():
    """Return a stream of two sources."""
    return DataStream(IndexableDataset({
        'a': numpy.arange(6), 'b': numpy.arange(6.)}), batch_size=2)


def with_first(batch):
    """Return the first part of a batch once more."""
    return (batch[0],)


def asked(stream):
    """Return what the sources of a pipeline are if each stage is asked."""
    if '_sources' in vars(stream):
        return tuple(stream._sources)
    below = getattr(stream, 'data_stream', None)
    if below is None:
        return tuple(stream.dataset.sources)
    sources = asked(below)
    if isinstance(stream, Mapping):
        return sources + tuple(stream.add_sources or ())
    if isinstance(stream, Rename):
        return tuple([stream._names.get(name, name) for name in sources])
    if isinstance(stream, FilterSources):
        return tuple([name for name in sources if name in stream._kept])
    return sources


def test_one_stage_is_kept_with_a_stream():
    """Copies, and what was pickled, have their own."""
    stream = build()
    stage = stage_of(stream)
    assert stage is stage_of(stream)
    for other in copy.copy(stream), pickle.loads(pickle.dumps(stream)):
        assert stage_of(other) is not stage
        assert stage_of(other).stream is other


def test_copy_by_the_attributes_has_its_own_stage():
    """Users' classes may copy themselves so."""
    stream = build()
    next(iter(stream))
    other = DataStream.__new__(DataStream)
    vars(other).update(vars(stream))
    assert stage_of(other) is not stage_of(stream)
    assert stage_of(other).stream is other
    assert stage_of(stream).stream is stream


def test_stream_that_pickles_its_attributes_keeps_the_loaded_state():
    """A `__getstate__` of a user's own returns them all."""
    stream = Whole(build())
    state = next_state(stream)
    stream.load_state_dict(state)
    other = pickle.loads(pickle.dumps(stream))
    assert other.state_dict() == state
    assert len(list(other)) == 2


class Whole(ScaleAndShift):
    """A stage that is pickled with all its attributes."""

    def __init__(self, data_stream):
        super().__init__(data_stream, 2, 0)

    def __getstate__(self):
        return dict(vars(self))


def next_state(stream):
    """Return the state after a batch."""
    next(iter(stream))
    return stream.state_dict()


def test_users_attributes_may_have_any_name():
    """Names that Fuel has used for itself are free."""
    class Own(Transformer):
        def __init__(self, data_stream):
            super().__init__(data_stream, False)
            self._runtime = self._stage = self.stage = 'mine'
            self.lock = self.epoch = self.meter = 'mine too'

        def transform_batch(self, batch):
            return batch

    stream = Own(build())
    assert len(list(stream)) == 3
    stream.load_state_dict(next_state(stream))
    assert len(list(stream)) == 2
    assert {'mine'} == {stream._runtime, stream._stage, stream.stage}


def test_class_with_slots_and_weak_references():
    """A subclass may declare some."""
    class Slim(Transformer):
        __slots__ = ('extra',)

        def transform_batch(self, batch):
            return batch

    stream = Slim(build(), False)
    stream.extra = 3
    assert weakref.ref(stream)() is stream
    assert len(list(stream)) == 3


def test_stream_is_let_go_at_once():
    """Its stage does not hold it, so that files are closed."""
    gc.collect()
    gc.disable()
    try:
        stream = ScaleAndShift(build(), 2, 0)
        list(stream)
        stream.state_dict()
        found = [weakref.ref(stream), weakref.ref(stream.data_stream),
                 weakref.ref(stage_of(stream))]
        del stream
        assert [None] * 3 == [reference() for reference in found]
    finally:
        gc.enable()


def test_items_do_not_ask_the_stages_below():
    """A stream keeps what it says while nothing is assigned."""
    calls = []

    class Asked(AbstractDataStream):
        def __init__(self, data_stream):
            super().__init__()
            self.data_stream = data_stream
            self.produces_examples = False

        def _get_sources(self):
            calls.append(self)
            return self.data_stream.sources

        def get_epoch_iterator(self, as_dict=False):
            return self.data_stream.get_epoch_iterator(as_dict)

    stream = Asked(build())
    for _ in range(4):
        stream = Mapping(stream, dict, mapping_accepts=dict)
    batches = iter(stream)
    next(batches)
    first = len(calls)
    assert len(list(batches)) == 2
    assert stream.sources == ('a', 'b')
    assert len(calls) == first <= 2


class Steady(Transformer):
    """A stage that hands batches on."""

    def __init__(self, data_stream):
        super().__init__(data_stream, False)

    def transform_batch(self, batch):
        return batch


def test_copy_of_a_stage_that_pickles_its_attributes_goes_on_from_the_state():
    """A copy, and the stream of a rank, keep a state that was loaded."""
    stream = Whole(build())
    stream.load_state_dict(next_state(stream))
    for other in copy.copy(stream), stream.shard(0, 1):
        assert other.state_dict()['epoch'] == 'running'
        assert len(list(other)) == 2


@pytest.mark.parametrize('change', [
    lambda stream, ends: stream.sources.__setitem__(1, 'c'),
    lambda stream, ends: vars(stream).__setitem__('_sources', ('a', 'c')),
    lambda stream, ends: setattr(stream, 'sources', ['a', 'c'])])
def test_names_in_a_list_may_change_in_place(change):
    """A stage above does not keep them."""
    stream = build()
    stream.sources = ['a', 'b']
    renamed = Rename(stream, {'a': 'x'})
    assert tuple(renamed.sources) == ('x', 'b')
    change(stream, 1)
    assert tuple(renamed.sources) == ('x', 'c')


def test_names_that_are_deleted_are_forgotten():
    """The stages above forget them too."""
    stream = build()
    stream.sources = ('p', 'q')
    top = Steady(stream)
    assert top.sources == ('p', 'q')
    del stream._sources
    assert top.sources == ('a', 'b')


def test_stream_below_may_be_a_property_or_belong_to_the_epoch():
    """Such a stage asks for its stream each time."""
    class Switching(Steady):
        epoch_attributes = ('child_epoch_iterator', 'data_stream')

    streams = []

    class Choosing(Steady):
        data_stream = property(lambda self: streams[0],
                               lambda self, value: streams.append(value))

    switching = Switching(build())
    assert Steady(switching).sources == ('a', 'b')
    switching.data_stream = Rename(build(), {'a': 'x'})
    assert Steady(switching).sources == ('x', 'b')
    top = Steady(Choosing(build()))
    assert top.sources == ('a', 'b')
    streams.insert(0, Rename(build(), {'b': 'y'}))
    assert top.sources == ('a', 'y')


@pytest.mark.parametrize('dataset', ['train', None, 3])
def test_attribute_named_dataset_may_be_anything(dataset):
    """A stage of a user's own may keep what it likes there."""
    stream = Steady(build())
    stream.dataset = dataset
    assert stream.sources == ('a', 'b')
    assert set(next(stream.get_epoch_iterator(as_dict=True))) == {'a', 'b'}


def test_assignment_while_sources_are_asked_is_not_lost(monkeypatch):
    """Another thread may assign between asking and keeping."""
    stream = build()
    top = Rename(stream, {'a': 'x'})
    assert top.sources == ('x', 'b')
    stream.sources = ('a', 'c')
    keep = Stage.keep_sources

    def assign_before(stage, known, changes):
        if stage is stage_of(top):
            stream.sources = ('a', 'd')
        keep(stage, known, changes)

    monkeypatch.setattr(Stage, 'keep_sources', assign_before)
    assert top.sources == ('x', 'c')
    monkeypatch.undo()
    assert top.sources == ('x', 'd')


def test_stream_may_read_any_iterator():
    """A stage may have no stream below, or more iterators than streams."""
    class Numbers(AbstractDataStream):
        sources = ('a',)
        produces_examples = True
        epoch_attributes = ('child_epoch_iterator',)

        def get_epoch_iterator(self, as_dict=False):
            self.child_epoch_iterator = iter(range(3))
            return super().get_epoch_iterator(as_dict)

        def get_data(self, request=None):
            return (next(self.child_epoch_iterator),)

    assert list(Numbers()) == [(0,), (1,), (2,)]


class Noisy(Transformer):
    """A stage that draws from a generator, and keeps nothing."""

    def __init__(self, data_stream):
        super().__init__(data_stream, False)
        self.rng = numpy.random.RandomState(5)

    def transform_batch(self, batch):
        return (batch[0] + self.rng.randint(1000),)


class DrawsBefore(Transformer):
    """A stage that draws from the generator below before its epoch."""

    def get_epoch_iterator(self, as_dict=False):
        self.child_epoch_iterator = self.data_stream.get_epoch_iterator()
        self.data_stream.rng.randint(10)
        return DataIterator(self, None, as_dict)

    def transform_batch(self, batch):
        return batch


def test_generator_that_is_drawn_from_before_an_epoch_is_put_back():
    """A stage may begin its epoch as those of Fuel 0.2.0 do."""
    def made():
        return DrawsBefore(Noisy(build()), False)

    stream = made()
    batches = iter(stream)
    next(batches)
    state = stream.state_dict()
    rest = [batch[0].tolist() for batch in batches]
    other = made()
    other.load_state_dict(state)
    assert [batch[0].tolist() for batch in other] == rest


@pytest.mark.parametrize('kind', [MultiThreading, MultiProcessing])
def test_epoch_over_workers_knows_the_share_below(kind):
    """The epoch counts the items of all ranks, and checks the draws."""
    def made(rank=0, ranks=2, stages=1):
        stream = kind(DataStream(
            IndexableDataset({'a': numpy.arange(40)}),
            batch_size=2).shard(rank, ranks))
        for _ in range(stages):
            stream = Steady(stream)
        return stream

    for stages in 0, 1:
        stream = made(stages=stages)
        batches = iter(stream)
        assert batches.epoch.step == 2
        for _ in range(3):
            next(batches)
        state = stream.state_dict()
        assert state['position'] == 6
        other = made(stages=stages)
        other.load_state_dict(state)
        rest = iter(other)
        assert len(rest) == len(list(rest)) == 7
        whole = made(0, 1, stages)
        whole.load_state_dict(state)
        rest = iter(whole)
        assert len(rest) == len(list(rest)) == 14
    with pytest.raises(ValueError, match='draws from rng'):
        iter(Noisy(made()))


@pytest.mark.parametrize('change, wanted', [
    (lambda chain: setattr(chain[0], 'sources', ('x', 'y')),
     ('x', 'y', 'c', 'd')),
    (lambda chain: setattr(chain[0].dataset, 'sources', ('b', 'a')),
     ('b', 'a', 'c', 'd')),
    (lambda chain: setattr(chain[1], 'add_sources', ('e', 'f')),
     ('a', 'b', 'e', 'f', 'd')),
    (lambda chain: setattr(chain[2], 'data_stream', chain[0]),
     ('a', 'b', 'd')),
    (lambda chain: setattr(chain[3], 'sources', ('only',)), ('only',))])
def test_assignment_is_seen_at_once(change, wanted):
    """All stages above see it, also in the middle of an epoch."""
    chain = [build()]
    for name in 'c', 'd':
        chain.append(Mapping(chain[-1], with_first, add_sources=(name,)))
    chain.append(ScaleAndShift(chain[-1], 1, 0))
    top = chain[-1]
    assert top.sources == ('a', 'b', 'c', 'd')
    batches = iter(top)
    next(batches)
    change(chain)
    assert top.sources == wanted


def test_sources_are_those_of_all_stages():
    """Any assignments in any pipeline are followed."""
    rng = random.Random(7)
    for _ in range(300):
        chain = [build()]
        for number in range(rng.randrange(1, 7)):
            chain.append(stage_over(chain[-1], number, rng))
        for _ in range(8):
            changed = rng.choice(chain)
            change(changed, chain, rng)
            for stream in rng.sample(chain, len(chain)):
                assert tuple(stream.sources) == asked(stream)


def stage_over(stream, number, rng):
    """Return a stage that reads a stream."""
    kind = rng.randrange(4)
    if kind == 0:
        return Mapping(stream, with_first, add_sources=(f'm{number}',))
    if kind == 1:
        return Rename(stream, {stream.sources[0]: f'r{number}'})
    if kind == 2:
        kept = rng.sample(
            stream.sources, rng.randrange(1, len(stream.sources) + 1))
        return FilterSources(stream, sorted(kept, key=stream.sources.index))
    return ScaleAndShift(stream, 2, 1)


def change(stream, chain, rng):
    """Assign something of a stream that decides its sources, or not."""
    kind = rng.randrange(5)
    if kind == 0:
        stream.sources = tuple(f's{rng.randrange(9)}{place}' for place in
                               range(rng.randrange(1, 4)))
    elif kind == 1 and isinstance(stream, Mapping):
        stream.add_sources = (f'n{rng.randrange(9)}',)
    elif kind == 2 and stream is not chain[0]:
        # Of the streams that come before it.
        stream.data_stream = rng.choice(chain[:chain.index(stream)])
    elif kind == 3:
        chain[0].dataset.sources = tuple(rng.sample(('a', 'b'), 2))
    else:
        stream.unrelated = rng.random()


def test_merged_sources_follow_what_is_assigned():
    """The sources of each of several streams are followed."""
    one, other = build(), Rename(build(), {'a': 'c', 'b': 'd'})
    merged = Merge((one, other), ('a', 'b', 'c', 'd'))
    top = Rename(merged, {'d': 'last'})
    assert top.sources == ('a', 'b', 'c', 'last')
    merged.sources = ('p', 'q', 'r', 'd')
    assert top.sources == ('p', 'q', 'r', 'last')


def test_data_set_keeps_no_stage():
    """A data set gives its types as streams do, and pickles as before."""
    dataset = build().dataset
    before = set(vars(dataset))
    assert repr(build()) and stage_of(dataset).inputs == ()
    assert set(vars(dataset)) == before


def subclasses(cls):
    """Return the classes of Fuel that are derived from a class."""
    found = [one for child in cls.__subclasses__()
             for one in [child, *subclasses(child)]]
    return [one for one in found if one.__module__.startswith('fuel.')]


def test_each_of_sixteen_members_of_the_contract_is_overridden():
    """A member that nobody overrides is final."""
    members = {name for name, member in vars(Stage).items()
               if not name.startswith('_') and not getattr(
                   getattr(member, 'fget', member), '__final__', False)}
    assert len(members) <= 16
    overridden = {name for cls in subclasses(Stage) for name in vars(cls)}
    assert members - overridden == set()


def test_no_final_member_of_a_stage_is_overridden():
    """A stage that reads a final member need not ask which class has it."""
    final = {name for base in (Stage, *Stage.__bases__)
             for name, member in vars(base).items()
             if getattr(getattr(member, 'fget', member), '__final__', False)}
    assert final
    assert not [(cls.__name__, name) for cls in subclasses(Stage)
                for name in final & vars(cls).keys()]
