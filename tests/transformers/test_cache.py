"""Cache."""
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.schemes import (
    BatchSizeScheme,
    ConstantScheme,
    SequentialExampleScheme,
    SequentialScheme,
)
from fuel.streams import DataStream
from fuel.transformers import Cache, Mapping


def numbers(count, chunk):
    """Return a stream of numbers in chunks."""
    return DataStream(IndexableDataset(numpy.arange(count)),
                      iteration_scheme=SequentialScheme(count, chunk))


class Sizes(BatchSizeScheme):
    """The sizes that a user's scheme asks for."""

    def __init__(self, sizes):
        self.sizes = sizes

    def get_request_iterator(self):
        """Return the sizes."""
        return iter(self.sizes)


def test_cache_sizes_are_those_that_they_always_were():
    """Batches are fetched until a request is met, and no sooner."""
    stream = Cache(numbers(100, 11), ConstantScheme(7))
    for _ in range(2):
        sizes, found = [], []
        for batch, in stream.get_epoch_iterator():
            sizes.append(len(stream.cache[0]))
            found.append(batch.tolist())
        assert [4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 0, 4, 8, 1, 0] == sizes
        assert [7] * 14 + [2] == [len(batch) for batch in found]
        assert list(range(100)) == sum(found, [])
        assert [[]] == stream.cache


def test_cache_refills_until_a_request_is_met():
    """Requests of 5 over chunks of 2 give batches of 5."""
    stream = Cache(numbers(10, 2), ConstantScheme(5))
    assert [5, 5] == [len(batch) for batch, in stream.get_epoch_iterator()]


@given(st.lists(st.lists(st.integers(-9, 9), max_size=6), max_size=8),
       st.lists(st.integers(1, 12), max_size=20))
def test_cache_hands_out_every_example_once(chunks, sizes):
    """Requests are filled in order, until no example is left."""
    arrays = [numpy.array(chunk, int) for chunk in chunks]
    stream = Cache(DataStream(IterableDataset(arrays)), Sizes(sizes))
    left = sum(chunks, [])
    for size, (batch,) in zip(sizes, stream.get_epoch_iterator(),
                              strict=False):
        expected, left = left[:size], left[size:]
        assert expected == batch.tolist()
        # The kept examples are fewer than a chunk.
        assert left[:len(stream.cache[0])] == stream.cache[0]
        assert len(stream.cache[0]) < max(map(len, chunks))
    assert not left or sum(map(len, chunks)) - len(left) == sum(sizes)


@given(st.integers(1, 4), st.integers(1, 9))
def test_cache_of_ragged_and_listed_sources(chunk, size):
    """Each source keeps its examples, whatever they are."""
    ragged = [list(range(number % 3)) for number in range(10)]
    objects = numpy.empty(10, object)
    objects[:] = [numpy.arange(number % 4) for number in range(10)]
    dataset = IndexableDataset({
        'list': ragged, 'objects': objects, 'text': list('abcdefghij'),
        'rows': numpy.arange(20).reshape(10, 2)})
    stream = Cache(DataStream(dataset, iteration_scheme=SequentialScheme(
        10, chunk)), ConstantScheme(size))
    found = [[], [], [], []]
    for batch in stream.get_epoch_iterator():
        for part, examples in zip(found, batch, strict=True):
            assert isinstance(examples, numpy.ndarray)
            part.extend(list(example) for example in examples)
    assert ragged == found[0]
    assert [list(row) for row in objects] == found[1]
    assert [[letter] for letter in 'abcdefghij'] == found[2]
    assert numpy.arange(20).reshape(10, 2).tolist() == found[3]


def test_cache_of_batches_padded_to_different_lengths():
    """Rows of different lengths meet in an array of objects."""
    chunks = [numpy.ones((2, 3)), numpy.zeros((2, 5))]
    stream = Cache(DataStream(IterableDataset(chunks)), ConstantScheme(3))
    first, second = (batch for batch, in stream.get_epoch_iterator())
    assert [(3,), (3,), (5,)] == [row.shape for row in first]
    assert (1, 5) == second.shape
    # The rows are not views of the examples that are still kept.
    first[2][...] = 7
    assert [[0] * 5] == second.tolist()


def test_cache_of_different_types_takes_the_larger():
    """numpy.concatenate does the same."""
    chunks = [numpy.ones(2, 'int8'), numpy.ones(2, 'float32')]
    stream = Cache(DataStream(IterableDataset(chunks)), ConstantScheme(3))
    assert ['float32', 'float32'] == [
        batch.dtype.name for batch, in stream.get_epoch_iterator()]


def test_cache_may_be_assigned():
    """A subclass may fill or empty it."""
    stream = Cache(numbers(6, 3), ConstantScheme(2))
    stream.get_epoch_iterator()
    stream.cache = [[7, 8, 9]]
    assert [[7, 8, 9]] == stream.cache
    assert [7, 8] == stream.get_data(2)[0].tolist()
    assert [9, 0] == stream.get_data(2)[0].tolist()
    stream.cache = [[]]
    assert [3, 4] == stream.get_data(2)[0].tolist()


def test_cache_that_was_assigned_has_no_state():
    """Nobody knows where its examples come from."""
    class Filling(Cache):
        def get_data(self, request=None):
            self.cache = [[7, 8, 9]]
            return super().get_data(request)

        get_leftover = Cache.get_leftover

    stream = Filling(numbers(6, 3), ConstantScheme(2))
    next(stream.get_epoch_iterator())
    with pytest.raises(TypeError, match='whose cache was assigned'):
        stream.state_dict()


@pytest.mark.parametrize('request_, shown', [
    (None, 'None'), (0, '0'), (-1, '-1'), (2.5, '2.5'), ([1], r'\[1\]'),
    (True, 'True')])
def test_cache_request_that_is_not_a_size_raises(request_, shown):
    """The error shows the value."""
    stream = Cache(numbers(6, 3), ConstantScheme(2))
    stream.get_epoch_iterator()
    with pytest.raises(ValueError, match=f'as request, got {shown}'):
        stream.get_data(request_)


@pytest.mark.parametrize('scheme', [
    SequentialScheme(6, 2), SequentialExampleScheme(6), None])
def test_cache_needs_a_batch_size_scheme(scheme):
    """Indices mean nothing to it."""
    with pytest.raises(ValueError, match='must be a BatchSizeScheme'):
        Cache(numbers(6, 3), scheme)


def test_cache_of_sources_of_different_lengths_raises():
    """A batch is not torn."""
    stream = Cache(Mapping(numbers(6, 3), lambda data: (data[0], [1]),),
                   ConstantScheme(2))
    stream.data_stream.sources = ('x', 'y')
    with pytest.raises(ValueError, match='got x: 3, y: 1'):
        next(stream.get_epoch_iterator())
    stream = Cache(Mapping(numbers(6, 3), lambda data: (5,)),
                   ConstantScheme(2))
    with pytest.raises(ValueError, match="'data' .* got 5"):
        next(stream.get_epoch_iterator())


def test_cache_keeps_what_came_before_an_error():
    """The examples that were read come with the next batch."""
    broken = []

    def fail_once(data):
        if data[0][0] == 4 and not broken:
            broken.append(True)
            raise OSError('unreadable')
        return data

    stream = Cache(Mapping(numbers(8, 2), fail_once), ConstantScheme(5))
    epoch = stream.get_epoch_iterator()
    with pytest.raises(OSError, match='unreadable'):
        next(epoch)
    assert [[0, 1, 2, 3]] == stream.cache
    # The batch of 4 and 5 is the one that was not read.
    assert [[0, 1, 2, 3, 6], [7]] == [batch.tolist() for batch, in epoch]


def test_cache_state_after_an_error_counts_every_example():
    """A restored epoch has what had been read, without what failed."""
    def build(broken):
        def fail(data):
            if data[0][0] == 4 and broken:
                raise OSError('unreadable')
            return data
        return Cache(Mapping(numbers(8, 2), fail), ConstantScheme(3))

    stream = build(True)
    epoch = stream.get_epoch_iterator()
    assert [0, 1, 2] == next(epoch)[0].tolist()
    with pytest.raises(OSError, match='unreadable'):
        next(epoch)
    state = epoch.state_dict()
    assert [[3, 6, 7]] == [batch.tolist() for batch, in epoch]
    for broken in True, False:
        restored = build(broken)
        restored.load_state_dict(state)
        assert [[3, 6, 7]] == [
            batch.tolist() for batch, in restored.get_epoch_iterator()]


def test_cache_state_for_data_that_changed_raises():
    """It does not leave out the wrong examples."""
    def build(length):
        return Cache(Mapping(
            numbers(9, 9), lambda data: (data[0][:length],)),
            ConstantScheme(5))

    stream = build(9)
    epoch = stream.get_epoch_iterator()
    next(epoch)
    shorter = build(3)
    shorter.load_state_dict(epoch.state_dict())
    with pytest.raises(ValueError, match='now it has only 3'):
        shorter.get_epoch_iterator()


def test_cache_does_not_copy_the_rest_for_each_batch():
    """Small requests of a large batch take linear time."""
    class Rows(numpy.ndarray):
        read = 0

        def __getitem__(self, key):
            part = numpy.asarray(self)[key]
            Rows.read += part.size
            return part

    stream = Cache(
        Mapping(numbers(1000, 1000), lambda data: (data[0].view(Rows),)),
        ConstantScheme(1))
    assert 1000 == sum(1 for _ in stream.get_epoch_iterator())
    assert 1000 == Rows.read
