"""The compiled reader of stages does what their `get_data` does."""
import gc
import pickle
import threading
import weakref

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from fuel.datasets import IndexableDataset
from fuel.schemes import (
    SequentialExampleScheme,
    SequentialScheme,
    ShuffledScheme,
)
from fuel.streams import AbstractDataStream, DataStream
from fuel.transformers import (
    Cast,
    FilterSources,
    Flatten,
    ForceFloatX,
    Mapping,
    Rename,
    ScaleAndShift,
)


def batches(count=8, size=2, dtype='uint8', sources=('x', 'y')):
    """Return a stream of batches of two sources."""
    data = numpy.arange(count * 4).reshape(count, 2, 2).astype(dtype)
    return DataStream(
        IndexableDataset(dict.fromkeys(sources, data)),
        iteration_scheme=SequentialScheme(count, size))


def first(stream):
    """Return the first item of a new epoch."""
    return next(stream.get_epoch_iterator())


# Users' code

@pytest.mark.parametrize('owner', ['instance', 'class', 'subclass'])
@pytest.mark.parametrize('hook', [
    'get_data', 'transform_batch', 'transform_source_batch'])
def test_replaced_hook_is_called_for_every_batch(monkeypatch, owner, hook):
    """The hook is replaced on the stage, on Fuel's class, or in a user's
    class."""
    calls = []
    original = getattr(Flatten, hook)
    cls = type('Own', (Flatten,), {}) if owner == 'subclass' else Flatten
    stage = cls(batches(), which_sources='x')

    def replaced(*arguments, **kwargs):
        calls.append(hook)
        if owner == 'instance':
            arguments = (stage, *arguments)
        return original(*arguments, **kwargs)

    if owner == 'subclass':
        setattr(cls, hook, replaced)
    else:
        monkeypatch.setattr(
            stage if owner == 'instance' else cls, hook, replaced,
            raising=False)
    found = list(stage.get_epoch_iterator())
    assert 4 == len(found)
    # The last call of get_data meets the end.
    assert 4 + (hook == 'get_data') == len(calls)
    assert all((2, 4) == x.shape for x, _ in found)


@pytest.mark.parametrize('returned, expected', [
    (lambda data: list(data), list),
    (lambda data: (part for part in data), tuple),
    (lambda data: iter(data), tuple),
    (lambda data: tuple(data), tuple)])
def test_mapping_may_return_anything(returned, expected):
    """Iterators are read out, lists stay lists."""
    for data in Mapping(batches(), returned).get_epoch_iterator():
        assert expected is type(data)
        assert 2 == len(data)


def test_sources_are_looked_up_once_an_epoch():
    """Names that change between two epochs take effect."""
    stream = batches()
    stage = Flatten(stream, which_sources='x')
    assert [(2, 4), (2, 2, 2)] == [part.shape for part in first(stage)]
    stream.sources = ('y', 'x')
    assert [(2, 2, 2), (2, 4)] == [part.shape for part in first(stage)]
    stage.which_sources = ('y',)
    assert [(2, 4), (2, 2, 2)] == [part.shape for part in first(stage)]


def test_functions_of_one_mapping_never_run_in_two_threads_at_once():
    """They need not be safe for that."""
    running, most = [], []

    def function(data):
        running.append(1)
        most.append(len(running))
        threading.Event().wait(.001)
        running.pop()
        return data

    stage = Mapping(batches(20), function)
    threads = [threading.Thread(
        target=lambda: list(stage.get_epoch_iterator())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 30 == len(most)
    assert {1} == set(most)


def test_stages_read_a_stream_with_an_iterator_of_its_own():
    """A stage reads an iterator that does not know conversions."""
    class Own(AbstractDataStream):
        sources = ('x',)
        produces_examples = False

        def get_epoch_iterator(self, as_dict=False):
            return iter([(numpy.array([1, 2], 'uint8'),)] * 2)

    stage = Flatten(Cast(ScaleAndShift(Own(), .5, 0), 'float32'))
    found = [x.tolist() for x, in stage.get_epoch_iterator()]
    assert [[[.5], [1]]] * 2 == found


# Errors and positions

def build(fail=()):
    """Return stages; one fails for some batches."""
    def function(data):
        if data[0].flat[0] in fail:
            raise ArithmeticError(data[0].flat[0])
        return data

    stage = Mapping(Flatten(batches(), which_sources='x'), function)
    return FilterSources(Rename(stage, {'x': 'z'}), ['z'])


def test_error_is_raised_once_and_the_epoch_goes_on():
    """It names its stage, the item and the examples."""
    epoch = build([0, 16]).get_epoch_iterator()
    found, notes = [], []
    for _ in range(4):
        try:
            found.append(int(next(epoch)[0][0, 0]))
        except ArithmeticError as error:
            found.append('error')
            notes.append(error.__notes__)
    assert ['error', 8, 'error', 24] == found
    for each in notes:
        assert 1 == sum('in stage Mapping' in note for note in each)
        assert 1 == sum('of the data set' in note for note in each)
    with pytest.raises(StopIteration):
        next(epoch)


@pytest.mark.parametrize('steps', range(5))
def test_pickled_or_saved_epoch_goes_on_behind_errors(steps):
    """It does in the same process and in a restored stream."""
    expected = [x.tolist() for x, in build().get_epoch_iterator()]
    stage = build()
    epoch = stage.get_epoch_iterator()
    for _ in range(steps):
        next(epoch)
    restored = build()
    restored.load_state_dict(stage.state_dict())
    assert expected[steps:] == [
        x.tolist() for x, in restored.get_epoch_iterator()]
    plain = Rename(Flatten(batches()), {'x': 'z'})
    epoch = plain.get_epoch_iterator()
    for _ in range(steps):
        next(epoch)
    copy = pickle.loads(pickle.dumps(epoch))
    assert [len(data) for data in epoch] == [len(data) for data in copy]


def test_stage_goes_with_its_last_reference():
    """An epoch that is left holds no cycle."""
    gc.disable()
    try:
        stage = Flatten(batches())
        epoch = stage.get_epoch_iterator()
        next(epoch)
        reference = weakref.ref(stage)
        del stage, epoch
        assert reference() is None
    finally:
        gc.enable()


# Conversions

STAGES = {
    'scale': lambda stream: ScaleAndShift(
        stream, 1 / 255., .5, which_sources='x'),
    'integral': lambda stream: ScaleAndShift(
        stream, 3, 1, which_sources='x'),
    'array': lambda stream: ScaleAndShift(
        stream, numpy.array([.5]), 0, which_sources='x'),
    'cast': lambda stream: Cast(stream, 'float32', which_sources='x'),
    'cast all': lambda stream: Cast(stream, 'float32'),
    'narrow': lambda stream: Cast(stream, 'float16', which_sources='x'),
    'floatX': ForceFloatX,
    'other': lambda stream: ScaleAndShift(
        stream, 7., 1, which_sources='y'),
    'flat': Flatten,
}


class Plain(DataStream):
    """A stream whose own `get_data` keeps stages from agreeing with it."""

    def get_data(self, request=None):
        """Return the data of a request."""
        return super().get_data(request)


@given(st.lists(st.sampled_from(sorted(STAGES)), min_size=1, max_size=4),
       st.sampled_from(['uint8', 'int64', 'float32', 'float64', 'bool']),
       st.booleans())
def test_agreed_conversions_give_the_same_bits(names, dtype, examples):
    """Each stage by itself, and all as they agree, give equal types and
    values."""
    data = numpy.random.RandomState(0).randint(
        0, 256, (12, 3, 2)).astype(dtype)
    dataset = IndexableDataset({'x': data, 'y': data[::-1].copy()})

    def scheme():
        return (SequentialExampleScheme(12) if examples
                else ShuffledScheme(12, 5))

    def unagreed(stage):
        # A stage with a hook of its own reads in the ordinary way.
        stage.get_data = type(stage).get_data.__get__(stage)
        return stage

    alone = Plain(dataset, iteration_scheme=scheme())
    agreed = DataStream(dataset, iteration_scheme=scheme())
    for name in names:
        alone, agreed = unagreed(STAGES[name](alone)), STAGES[name](agreed)
    for expected, found in zip(
            alone.get_epoch_iterator(), agreed.get_epoch_iterator(),
            strict=True):
        for a, b in zip(expected, found, strict=True):
            assert a.dtype == b.dtype
            assert_array_equal(a, b)


def test_owner_who_changes_an_array_is_seen_by_the_next_batch():
    """The change shows also where data are scaled while they are read."""
    data = numpy.zeros((4, 3), 'uint8')
    stage = Cast(ScaleAndShift(DataStream(
        IndexableDataset({'x': data}),
        iteration_scheme=SequentialScheme(4, 2)), .5, 1.), 'float32')
    epoch = stage.get_epoch_iterator()
    assert_array_equal(1, next(epoch)[0])
    data[2:] = 4
    assert_array_equal(3, next(epoch)[0])
