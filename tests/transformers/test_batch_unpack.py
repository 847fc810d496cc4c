"""Batch and Unpack, which undo each other."""
import warnings

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.schemes import (
    ConstantScheme,
    SequentialExampleScheme,
    SequentialScheme,
    ShuffledScheme,
)
from fuel.streams import DataStream
from fuel.transformers import Batch, Cache, Cast, Mapping, Padding, Unpack


def lines(*examples, **kwargs):
    """Return a stream of examples."""
    return DataStream(IterableDataset({'x': list(examples)}, **kwargs))


def batch_of(*examples):
    """Return one batch of examples."""
    return next(Batch(lines(*examples), ConstantScheme(
        len(examples))).get_epoch_iterator())[0]


# Batch

# NumPy makes floating numbers of 0 and 2 ** 63.
@given(st.lists(st.integers(-2 ** 63, 2 ** 63 - 1)), st.integers(1, 7),
       st.sampled_from([0, 1, 2]))
def test_batch_hands_out_every_example_once(numbers, size, strictness):
    """Only the last batch depends on the strictness."""
    stream = Batch(lines(*numbers), ConstantScheme(size),
                   strictness=strictness)
    expected = [numbers[start:start + size]
                for start in range(0, len(numbers), size)]
    short = bool(len(numbers) % size)
    found = []
    if strictness == 2 and short:
        with pytest.raises(ValueError, match=f'batch of {size} examples'):
            found.extend(batch.tolist()
                         for batch, in stream.get_epoch_iterator())
    else:
        found.extend(batch.tolist()
                     for batch, in stream.get_epoch_iterator())
    assert expected[:-1] + ([] if short and strictness else
                            expected[-1:]) == found


@given(st.integers(0, 12), st.integers(1, 5), st.sampled_from([0, 1]),
       st.none() | st.integers(1, 14), st.booleans())
def test_batch_counts_its_items(count, size, strictness, requested, drop_last):
    """A smaller last batch that the scheme requests counts too."""
    scheme = ConstantScheme(size, requested, drop_last=drop_last)
    stream = Batch(DataStream(
        IndexableDataset(numpy.arange(count)),
        iteration_scheme=SequentialExampleScheme(count)),
        scheme, strictness=strictness)
    with warnings.catch_warnings(action='ignore'):
        assert stream.num_items() == len(list(stream))


def test_drop_last_is_strictness_one():
    """The word of streams and schemes means the same here."""
    dropping = Batch(lines(1, 2, 3), batch_size=2, drop_last=True)
    strict = Batch(lines(1, 2, 3), batch_size=2, strictness=1)
    for stream in (dropping, strict):
        assert [[1, 2]] == [batch.tolist() for batch, in stream]
    dropping.load_state_dict(strict.state_dict())
    with pytest.raises(ValueError, match='pass one of them'):
        Batch(lines(1), batch_size=2, drop_last=True, strictness=2)


def test_batch_of_ragged_examples_is_an_array_of_objects():
    """Examples of different shape become an array of objects."""
    batch = batch_of([1, 2], [1, 2, 3])
    assert (2,) == batch.shape
    assert object == batch.dtype
    assert [[1, 2], [1, 2, 3]] == batch.tolist()


@pytest.mark.parametrize('examples', [
    ([[1], [1, 2]], [[3], [4]]),
    ([1, [2]], [3, 4]),
    (numpy.ones((2, 3)), numpy.ones((2, 4))),
    (numpy.ones((2, 3)), numpy.ones((1, 3))),
    (numpy.ones(2), [1, 2, 3]),
    ([], [1]), (1, [1]), (numpy.array(1), numpy.ones(1)),
    (b'ab\0', b'c'), ('ab\0', 'c'), ('a', 1), ([b'\0'], [b'a']),
    ({'a': 1}, {'b': 2}), (None, 1), (slice(1), slice(2))])
def test_batch_of_anything_keeps_the_examples_as_they_are(examples):
    """No element changes its type, and no zero at an end is lost."""
    batch = batch_of(*examples)
    assert (2,) == batch.shape[:1]
    assert object == batch.dtype
    for expected, example in zip(examples, batch, strict=True):
        assert type(expected) is type(example)
        numpy.testing.assert_array_equal(
            numpy.array(expected, object), numpy.array(example, object))


@pytest.mark.parametrize('examples, expected', [
    ((1, 2), 'int64'), ((1, 2.5), 'float64'),
    ((numpy.float32(1), numpy.float32(2)), 'float32'),
    ((numpy.ones(2, 'uint8'), numpy.zeros(2, 'uint8')), 'uint8'),
    (([1, 2], [3, 4]), 'int64'), (([1, 2], numpy.ones(2)), 'float64'),
    (('ab', 'c'), '<U2'), ((b'ab', b'c'), 'S2')])
def test_batch_of_equal_shapes_is_a_plain_array(examples, expected):
    """The result is that of numpy.asarray."""
    batch = batch_of(*examples)
    assert numpy.dtype(expected) == batch.dtype
    numpy.testing.assert_array_equal(numpy.array(examples), batch)


def test_batch_puts_batch_before_the_labels():
    """Labels that are None are carried."""
    labels = {'x': ('batch', 'channel')}
    stream = lines([1], axis_labels=labels)
    assert {'x': ('batch', 'channel')} == Batch(
        stream, ConstantScheme(1)).axis_labels
    stream.axis_labels = {'x': None}
    assert {'x': None} == Batch(stream, ConstantScheme(1)).axis_labels
    stream.axis_labels = {'x': 'index'}
    assert {'x': ('batch', 'index')} == Batch(
        stream, ConstantScheme(1)).axis_labels
    stream.axis_labels = None
    assert Batch(stream, ConstantScheme(1)).axis_labels is None


def test_batch_takes_a_size_instead_of_a_scheme():
    """One of the two is needed."""
    stream = DataStream(IterableDataset([1, 2, 3]))
    assert [[1, 2], [3]] == [
        part.tolist() for part, in Batch(stream, batch_size=2)]
    assert '2 batches of 2' in repr(Batch(stream, batch_size=2))
    for kwargs in ({}, {'batch_size': 2,
                        'iteration_scheme': ConstantScheme(2)}):
        with pytest.raises(TypeError, match='either batch_size, such as'):
            Batch(stream, **kwargs)
    with pytest.raises(ValueError, match='batch_size must be a positive'):
        Batch(stream, batch_size=0)


def test_batch_of_batches_raises():
    """It needs examples."""
    stream = DataStream(IndexableDataset([1, 2]),
                        iteration_scheme=SequentialScheme(2, 1))
    with pytest.raises(ValueError, match='produces batches already'):
        Batch(stream, ConstantScheme(2))


def test_batch_with_a_scheme_for_examples_raises():
    """It needs sizes."""
    with pytest.raises(ValueError, match='requests examples'):
        Batch(lines(1), SequentialExampleScheme(2))


def test_batch_unknown_strictness_raises():
    """Three are known."""
    with pytest.raises(ValueError, match='must be 0, 1 or 2, got 3'):
        Batch(lines(1), ConstantScheme(2), strictness=3)


@pytest.mark.parametrize('request_', [None, 0, -2, 1.5, [1, 2]])
def test_batch_request_that_is_not_a_size_raises(request_):
    """The error shows the value."""
    stream = Batch(lines(1), ConstantScheme(2))
    stream.get_epoch_iterator()
    with pytest.raises(ValueError, match='Batch needs a positive number'):
        stream.get_data(request_)


def test_batch_keeps_what_came_before_an_error():
    """The examples before a bad one come with the next batch."""
    unreadable = {3}

    def check(data):
        if data[0] in unreadable:
            raise OSError('unreadable')
        return data

    def build():
        return Batch(Mapping(lines(*range(7)), check), ConstantScheme(2))

    stream = build()
    epoch = stream.get_epoch_iterator()
    assert [0, 1] == next(epoch)[0].tolist()
    with pytest.raises(OSError, match='unreadable'):
        next(epoch)
    state = epoch.state_dict()
    assert [[2, 4], [5, 6]] == [batch.tolist() for batch, in epoch]
    # The exception was delivered before the state was saved.
    for place in {3}, set():
        unreadable.intersection_update(place)
        restored = build()
        restored.load_state_dict(state)
        assert [[2, 4], [5, 6]] == [
            batch.tolist() for batch, in restored.get_epoch_iterator()]


def test_batch_of_examples_with_too_few_sources_raises():
    """Nothing is cut off."""
    stream = Batch(Mapping(lines(1), lambda data: ()), ConstantScheme(1))
    with (pytest.warns(UserWarning, match='a tuple of 0'),
          pytest.raises(ValueError, match='data of 1 sources.*but 0 came')):
        next(stream.get_epoch_iterator())


# Unpack

@given(st.lists(st.lists(st.integers(), max_size=4), max_size=6))
def test_unpack_hands_out_every_example_once(batches):
    """Empty batches do not end an epoch."""
    stream = DataStream(IterableDataset(batches))
    stream.produces_examples = False
    expected = [(example,) for batch in batches for example in batch]
    unpack = Unpack(stream)
    for _ in range(2):
        assert expected == list(unpack.get_epoch_iterator())


def test_unpack_begins_each_epoch_anew():
    """The second epoch does not begin with left-overs of the first."""
    stream = Unpack(DataStream(
        IndexableDataset([0, 1, 2]), iteration_scheme=SequentialScheme(3, 3)))
    assert (0,) == next(stream.get_epoch_iterator())
    assert [(0,), (1,), (2,)] == list(stream.get_epoch_iterator())


def test_unpack_examples_do_not_keep_the_batch_alive():
    """Writing to one example does not change another."""
    stream = Unpack(DataStream(
        IndexableDataset(numpy.arange(6).reshape(3, 2)),
        iteration_scheme=SequentialScheme(3, 3)))
    examples = [example for example, in stream.get_epoch_iterator()]
    assert [[0, 1], [2, 3], [4, 5]] == [row.tolist() for row in examples]
    assert [None] * 3 == [row.base for row in examples]


def test_unpack_drops_the_first_label():
    """Labels that are None are carried."""
    dataset = IndexableDataset(
        {'x': [[1]], 'y': [1], 'z': [1], 'w': [1]},
        axis_labels={'x': ('batch', 'feature'), 'y': ('batch',), 'z': None,
                     'w': 'batch'})
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(1, 1))
    assert {'x': ('feature',), 'y': (), 'z': None, 'w': ()} == Unpack(
        stream).axis_labels


def test_unpack_of_examples_raises():
    """There is nothing to unpack."""
    with pytest.raises(ValueError, match='produces examples already'):
        Unpack(lines(1))


def test_unpack_of_sources_of_different_lengths_raises():
    """Nothing is cut off."""
    stream = Mapping(DataStream(
        IndexableDataset([1, 2]), iteration_scheme=SequentialScheme(2, 2)),
        lambda data: ([1],), add_sources=('y',))
    with pytest.raises(ValueError, match='got data: 2, y: 1'):
        next(Unpack(stream).get_epoch_iterator())


def test_unpack_state_for_a_batch_that_became_empty_raises():
    """It does not go on at another example."""
    def build(function):
        return Unpack(Mapping(DataStream(
            IndexableDataset([1, 2]),
            iteration_scheme=SequentialScheme(2, 2)), function))

    stream = build(lambda data: data)
    epoch = stream.get_epoch_iterator()
    next(epoch)
    changed = build(lambda data: ([],))
    changed.load_state_dict(stream.state_dict())
    with pytest.raises(ValueError, match='is empty now'):
        changed.get_epoch_iterator()


@given(st.integers(1, 20), st.integers(1, 7), st.integers(1, 7),
       st.integers(1, 7))
def test_a_chain_of_stages_conserves_examples(count, one, two, three):
    """Repacking ragged examples over and over loses and repeats none."""
    ragged = [list(range(number % 4)) for number in range(count)]
    stream = DataStream(
        IndexableDataset({'number': numpy.arange(count), 'row': ragged}),
        iteration_scheme=ShuffledScheme(count, one))
    stream = Batch(Unpack(Cache(stream, ConstantScheme(two))),
                   ConstantScheme(three))
    stream = Padding(stream, mask_sources=('row',), mask_dtype='int8')
    for _ in range(2):
        found = {}
        for number, row, mask in stream.get_epoch_iterator():
            for key, length, padded in zip(
                    number.tolist(), mask.sum(axis=1), row, strict=True):
                assert key not in found
                found[key] = padded[:length].tolist()
        assert dict(enumerate(ragged)) == found


def test_restored_unpack_makes_no_request_twice():
    """Only the batch with left-overs is read again."""
    class Counting(IndexableDataset):
        asked = 0

        def get_data(self, state=None, request=None):
            self.asked += 1
            return super().get_data(state, request)

    def build():
        stream = DataStream(Counting(numpy.arange(23)),
                            iteration_scheme=ShuffledScheme(23, 5))
        return stream.dataset, Unpack(Cast(stream, 'float32'))

    stream = build()[1]
    epoch = stream.get_epoch_iterator()
    for _ in range(12):
        next(epoch)
    dataset, restored = build()
    restored.load_state_dict(stream.state_dict())
    assert 11 == sum(1 for _ in restored.get_epoch_iterator())
    assert 3 == dataset.asked


def test_length_of_an_epoch_without_a_batch_does_not_warn():
    """The epoch does, once it begins."""
    stream = Batch(DataStream(
        IndexableDataset([0, 1, 2]),
        iteration_scheme=SequentialExampleScheme(3)),
        ConstantScheme(3, num_examples=2, drop_last=True))
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        assert 0 == len(stream)
        with pytest.raises(UserWarning, match='no batch'):
            stream.get_epoch_iterator()
