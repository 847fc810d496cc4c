"""What every stage promises: exact states, re-entrance, ownership."""
import functools
import itertools
import json
import operator
import pickle
import threading

import numpy
import pytest

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.schemes import (
    ConstantScheme,
    SequentialScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
)
from fuel.streams import DataStream
from fuel.transformers import (
    Batch,
    Cache,
    Cast,
    Filter,
    FilterSources,
    Flatten,
    ForceFloatX,
    Mapping,
    Merge,
    Padding,
    Rename,
    ScaleAndShift,
    SortMapping,
    Transformer,
    Unpack,
)

SIZE = 23
ROWS = numpy.arange(SIZE * 6).reshape(SIZE, 2, 3)
RAGGED = [list(range(number % 4)) for number in range(SIZE)]


def data_set():
    """Return a data set with arrays and sequences."""
    return IndexableDataset(
        {'x': ROWS.copy(), 'y': list(range(SIZE)),
         'z': [list(row) for row in RAGGED]},
        axis_labels={'x': ('batch', 'height', 'width'), 'y': ('batch',),
                     'z': None})


def batches():
    """Return a shuffled stream of batches."""
    return DataStream(data_set(), iteration_scheme=ShuffledScheme(SIZE, 5))


def examples():
    """Return a shuffled stream of examples."""
    return DataStream(
        data_set(), iteration_scheme=ShuffledExampleScheme(SIZE))


def lines():
    """Return a stream of examples that are read in order."""
    return DataStream(IterableDataset({'x': ROWS, 'y': RAGGED}))


def same(data):
    """Return the data: a function that pickles."""
    return data


def is_wanted(data):
    """Tell whether an example is to be kept."""
    return data[1] % 3 == 0


class Noisy(Transformer):
    """A random stage, as users write them."""

    def __init__(self, data_stream):
        super().__init__(data_stream, data_stream.produces_examples)
        self.rng = numpy.random.RandomState(5)

    def transform_example(self, example):
        """Return the example with a random number at the end."""
        return (*example[:-1], self.rng.randint(1000))

    def transform_batch(self, batch):
        """Return the batch with random numbers at the end."""
        return (*batch[:-1], self.rng.randint(1000, size=len(batch[0])))


class Running(Transformer):
    """A user's stage with something of its own to remember."""

    epoch_attributes = (*Transformer.epoch_attributes, 'total')

    def __init__(self, data_stream):
        super().__init__(data_stream, data_stream.produces_examples)

    def get_epoch_iterator(self, **kwargs):
        """Begin to count anew."""
        self.total = 0
        return super().get_epoch_iterator(**kwargs)

    def get_data(self, request=None):
        """Return the data with a number in the place of the last."""
        data = next(self.child_epoch_iterator)
        self.total += 1
        return (*data[:-1], self.total)

    def get_leftover(self):
        """Return the count."""
        return self.total

    def set_leftover(self, leftover):
        """Take up the count."""
        self.total = leftover


def merged_with_itself():
    """Return a stream merged with itself: two epochs side by side."""
    stream = examples()
    return Merge((stream, Mapping(stream, same)), tuple('abcdef'))


PIPELINES = {
    'Mapping': lambda: Mapping(batches(), same),
    'SortMapping': lambda: Mapping(
        batches(), SortMapping(operator.itemgetter(1))),
    'Mapping dict': lambda: Mapping(batches(), same, mapping_accepts=dict),
    'Filter': lambda: Filter(examples(), is_wanted),
    'FilterSources': lambda: FilterSources(batches(), ('x', 'z')),
    'Rename': lambda: Rename(batches(), {'x': 'y', 'y': 'x'}),
    'Flatten': lambda: Flatten(batches(), which_sources=('x',)),
    'Flatten examples': lambda: Flatten(examples(), which_sources=('x',)),
    'ScaleAndShift': lambda: ScaleAndShift(batches(), 0.5, 1),
    'Cast': lambda: Cast(ScaleAndShift(
        batches(), 0.5, 1, which_sources=('x', 'y')), 'float32',
        which_sources=('x',)),
    'ForceFloatX': lambda: ForceFloatX(batches()),
    'Cache': lambda: Cache(Mapping(batches(), same), ConstantScheme(7)),
    'Cache smaller': lambda: Cache(batches(), ConstantScheme(3)),
    'Cache ends early': lambda: Cache(batches(), ConstantScheme(7, times=2)),
    'Batch': lambda: Batch(Mapping(lines(), same), ConstantScheme(4)),
    'Batch strict': lambda: Batch(
        examples(), ConstantScheme(4), strictness=1),
    'Batch ends early': lambda: Batch(
        lines(), ConstantScheme(4, num_examples=10)),
    'Unpack': lambda: Unpack(Mapping(batches(), same)),
    'Batch of Unpack': lambda: Batch(
        Unpack(Noisy(batches())), ConstantScheme(4)),
    'Cache of Batch': lambda: Cache(
        Batch(Filter(examples(), is_wanted), ConstantScheme(3)),
        ConstantScheme(2)),
    'Unpack of Cache': lambda: Unpack(Cache(batches(), ConstantScheme(7))),
    'Padding': lambda: Padding(
        batches(), mask_sources=('z',), mask_dtype='int8'),
    'Merge': lambda: Merge(
        (lines(), Unpack(batches())), tuple('abcde')),
    'Merge with itself': merged_with_itself,
    'Batch of Merge': lambda: Batch(
        Merge((lines(), examples()), tuple('abcde')), ConstantScheme(4)),
    'Noisy': lambda: Noisy(batches()),
    'Running': lambda: Running(Noisy(examples())),
    'Sequential': lambda: Cache(Flatten(ScaleAndShift(DataStream(
        data_set(), iteration_scheme=SequentialScheme(SIZE, 4)), 2, 0,
        which_sources=('x',)), which_sources=('x',)), ConstantScheme(5)),
}
each_pipeline = pytest.mark.parametrize('name', PIPELINES)

# What Filter, Cache and Unpack will return, and users' stages.
UNKNOWN_LENGTH = (
    'Filter', 'Cache', 'Cache smaller', 'Cache ends early', 'Unpack',
    'Batch of Unpack', 'Cache of Batch', 'Unpack of Cache', 'Merge',
    'Running', 'Sequential')

# A generator of a stage goes on from one epoch to the next, so what it
# draws depends on how far the epochs before it were read.
DRAWING = ('Batch of Unpack', 'Noisy', 'Running')
each_pipeline_that_draws_nothing = pytest.mark.parametrize(
    'name', [name for name in PIPELINES if name not in DRAWING])


def plain(data):
    """Return data as something that compares and shows its types."""
    if isinstance(data, numpy.ndarray):
        return (data.dtype.str, data.shape, [plain(part) for part in data]
                if data.dtype == object else data.tolist())
    if isinstance(data, (list, tuple)):
        return [plain(part) for part in data]
    return type(data).__name__, data


def rest(epoch):
    """Return what is left of an epoch."""
    return [plain(data) for data in epoch]


@functools.cache
def reference(name):
    """Return the first three epochs, read without a break."""
    stream = PIPELINES[name]()
    return [rest(stream.get_epoch_iterator()) for _ in range(3)]


def test_pipelines_have_something_to_restore():
    """The tests below would pass on empty epochs."""
    for name in PIPELINES:
        assert min(map(len, reference(name))) > 1


def resume(name, state):
    """Return a fresh stream that goes on from a state."""
    stream = PIPELINES[name]()
    stream.load_state_dict(json.loads(json.dumps(state)))
    return stream


@each_pipeline
def test_state_restores_rest_and_next_epoch_at_every_step(name):
    """In a pipeline built anew, from what JSON holds."""
    stream = PIPELINES[name]()
    expected = reference(name)
    for number in range(2):
        epoch = stream.get_epoch_iterator()
        for position in range(len(expected[number]) + 1):
            state = stream.state_dict()
            assert state == epoch.state_dict()
            restored = resume(name, state)
            assert state == restored.state_dict()
            assert expected[number][position:] == rest(
                restored.get_epoch_iterator())
            assert expected[number + 1] == rest(
                restored.get_epoch_iterator())
            next(epoch, None)
        # Now StopIteration was raised, so the next epoch is due.
        restored = resume(name, stream.state_dict())
        assert expected[number + 1] == rest(restored.get_epoch_iterator())


@each_pipeline
def test_state_survives_being_restored_and_saved_again(name):
    """At every step from one fresh pipeline to the next."""
    found = []
    stream = PIPELINES[name]()
    for _ in range(len(reference(name)[0])):
        found.append(plain(next(stream.get_epoch_iterator())))
        stream = resume(name, stream.state_dict())
    assert reference(name)[0] == found
    assert [] == rest(stream.get_epoch_iterator())


@each_pipeline
def test_state_is_small(name):
    """Counts and states of generators, never data."""
    stream = PIPELINES[name]()
    epoch = stream.get_epoch_iterator()
    next(epoch)
    text = json.dumps(stream.state_dict())
    assert len(text) < 60_000
    assert 'leftover' in text


@each_pipeline
@pytest.mark.parametrize('protocol', [0, pickle.HIGHEST_PROTOCOL])
def test_pickled_iterator_goes_on_at_every_step(name, protocol):
    """Alone and with its stream."""
    expected = reference(name)
    stream = PIPELINES[name]()
    epoch = stream.get_epoch_iterator()
    for position in range(len(expected[0]) + 1):
        data = pickle.dumps((stream, epoch), protocol)
        other, copy = pickle.loads(data)
        assert expected[0][position:] == rest(copy)
        assert expected[1] == rest(other.get_epoch_iterator())
        next(epoch, None)
    # A stream alone keeps its generators, and begins an epoch.
    assert expected[1] == rest(pickle.loads(
        pickle.dumps(stream, protocol)).get_epoch_iterator())


@each_pipeline_that_draws_nothing
def test_abandoned_epoch_leaves_nothing_behind(name):
    """R17, A5: the next epoch began with what was left of the last."""
    expected = reference(name)
    stream = PIPELINES[name]()
    epoch = stream.get_epoch_iterator()
    for _ in range(2):
        next(epoch)
    del epoch
    assert expected[1] == rest(stream.get_epoch_iterator())
    assert expected[2] == rest(stream.get_epoch_iterator())


@each_pipeline_that_draws_nothing
def test_interleaved_epochs_do_not_disturb_each_other(name):
    """Each of them is as if it were alone."""
    expected = reference(name)
    stream = PIPELINES[name]()
    found = [[], []]
    for pair in itertools.zip_longest(
            stream.get_epoch_iterator(), stream.get_epoch_iterator()):
        for epoch, data in zip(found, pair, strict=True):
            if data is not None:
                epoch.append(plain(data))
    assert expected[:2] == found


@each_pipeline_that_draws_nothing
def test_states_of_interleaved_epochs_are_their_own(name):
    """Even when one has come to its end and the other has not."""
    expected = reference(name)
    stream = PIPELINES[name]()
    first = stream.get_epoch_iterator()
    found = [next(first) for _ in expected[0]]
    second = stream.get_epoch_iterator()
    next(second)
    assert len(expected[0]) == len(found)
    assert [] == rest(resume(name, first.state_dict()).get_epoch_iterator())
    assert expected[1][1:] == rest(
        resume(name, second.state_dict()).get_epoch_iterator())


@each_pipeline_that_draws_nothing
def test_epochs_in_two_threads_do_not_disturb_each_other(name):
    """One iterator for each thread."""
    expected = reference(name)
    stream = PIPELINES[name]()
    epochs = [stream.get_epoch_iterator() for _ in range(2)]
    found = [None, None]
    barrier = threading.Barrier(2, timeout=30)

    def read(place):
        barrier.wait()
        found[place] = rest(epochs[place])

    threads = [threading.Thread(target=read, args=(place,), daemon=True)
               for place in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert expected[:2] == found


def overwrite(data):
    """Change everything that can be changed."""
    if isinstance(data, numpy.ndarray):
        assert data.flags.writeable
        assert data.flags.aligned
        assert data.dtype.isnative
        for part in data if data.dtype == object else ():
            overwrite(part)
        data[...] = 77
    elif isinstance(data, list):
        for part in data:
            overwrite(part)
        data[:] = ['overwritten']


@each_pipeline
def test_data_belong_to_the_user(name):
    """A20: overwriting them changes no later data and no data set."""
    stream = PIPELINES[name]()
    for expected in reference(name):
        found = []
        for data in stream.get_epoch_iterator():
            found.append(plain(data))
            for part in data:
                overwrite(part)
        assert expected == found


@each_pipeline
def test_epoch_as_dict_has_the_same_data(name):
    """Under the names of the sources, in their order."""
    stream = PIPELINES[name]()
    found = []
    for data in stream.get_epoch_iterator(as_dict=True):
        assert list(stream.sources) == list(data)
        found.append(plain(tuple(data.values())))
    assert reference(name)[0] == found


@each_pipeline
def test_iterator_that_ended_stays_ended(name):
    """It does not begin anew."""
    epoch = PIPELINES[name]().get_epoch_iterator()
    for _ in epoch:
        pass
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(epoch)


@each_pipeline
def test_length_is_right_where_it_is_known(name):
    """A stage that cannot know says so."""
    stream = PIPELINES[name]()
    if name in UNKNOWN_LENGTH:
        with pytest.raises(TypeError, match='not known'):
            len(stream)
    else:
        assert len(reference(name)[0]) == len(stream)


@each_pipeline
def test_request_is_refused_or_needed(name):
    """Stages that are pulled take none; Batch and Cache need one."""
    stream = PIPELINES[name]()
    stream.get_epoch_iterator()
    request = None if isinstance(stream, (Batch, Cache)) else 3
    if not isinstance(stream, Running):
        with pytest.raises(ValueError, match='takes no requests|as request'):
            stream.get_data(request)


def test_restored_epoch_makes_no_request_twice():
    """Only the batch with left-overs is read again."""
    class Counting(IndexableDataset):
        asked = 0

        def get_data(self, state=None, request=None):
            self.asked += 1
            return super().get_data(state, request)

    def build():
        stream = DataStream(Counting(ROWS),
                            iteration_scheme=ShuffledScheme(SIZE, 5))
        return stream.dataset, Unpack(Cast(stream, 'float32'))

    stream = build()[1]
    epoch = stream.get_epoch_iterator()
    for _ in range(12):
        next(epoch)
    dataset, restored = build()
    restored.load_state_dict(stream.state_dict())
    assert 11 == sum(1 for _ in restored.get_epoch_iterator())
    assert 3 == dataset.asked
