"""Merge."""
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.schemes import (
    ConstantScheme,
    SequentialScheme,
    ShuffledExampleScheme,
)
from fuel.streams import AbstractDataStream, DataStream
from fuel.transformers import Batch, Mapping, Merge, Unpack


def lines(*examples):
    """Return a stream of examples."""
    return DataStream(IterableDataset(list(examples)))


@given(st.lists(st.lists(st.integers(), min_size=4, max_size=4),
                min_size=1, max_size=4))
def test_merge_equals_zip(columns):
    """It does epoch after epoch."""
    names = tuple('abcd'[:len(columns)])
    stream = Merge([lines(*column) for column in columns], names)
    assert names == stream.sources
    assert 4 == len(stream)
    for _ in range(2):
        assert list(zip(*columns, strict=True)) == list(
            stream.get_epoch_iterator())


@pytest.mark.parametrize('kind', [tuple, list, iter])
def test_merge_of_streams_with_several_sources(kind):
    """Their sources follow each other."""
    pair = DataStream(IterableDataset({'x': [1, 2], 'y': [3, 4]}))
    stream = Merge(kind([pair, lines(5, 6)]), kind(['a', 'b', 'c']))
    assert ('a', 'b', 'c') == stream.sources
    assert [{'a': 1, 'b': 3, 'c': 5}, {'a': 2, 'b': 4, 'c': 6}] == list(
        stream.get_epoch_iterator(as_dict=True))
    assert stream.produces_examples


@pytest.mark.parametrize('lengths', [(3, 2), (2, 3), (2, 3, 4), (0, 1)])
def test_merge_of_different_lengths_warns_once(lengths):
    """It ends with the shortest, and warns."""
    stream = Merge([lines(*range(length)) for length in lengths],
                   tuple('abcd'[:len(lengths)]))
    with pytest.warns(UserWarning, match='epochs of different lengths'):
        assert min(lengths) == len(list(stream.get_epoch_iterator()))
    # The next epoch starts at the first items, without a warning.
    expected = list(zip(*map(range, lengths), strict=False))
    assert expected == list(stream.get_epoch_iterator())
    assert min(lengths) == len(stream)


@pytest.mark.parametrize('lengths', [(3, 2), (2, 3)])
def test_strict_merge_of_different_lengths_raises(lengths):
    """It is an error each time."""
    stream = Merge([lines(*range(length)) for length in lengths],
                   ('a', 'b'), strict=True)
    for _ in range(2):
        epoch = stream.get_epoch_iterator()
        assert [(0, 0), (1, 1)] == [next(epoch), next(epoch)]
        with pytest.raises(ValueError, match='strict=False'):
            next(epoch)
    equal = Merge([lines(1), lines(2)], ('a', 'b'), strict=True)
    assert [(1, 2)] == list(equal.get_epoch_iterator())


def test_merge_of_a_stream_that_fails_stays_in_step():
    """Items stay in step after an error."""
    def check(data):
        if data[0] == 1:
            raise OSError('unreadable')
        return data

    for place in range(3):
        streams = [lines(0, 1, 2) for _ in range(3)]
        streams[place] = Mapping(streams[place], check)
        epoch = Merge(streams, tuple('abc')).get_epoch_iterator()
        assert (0, 0, 0) == next(epoch)
        with pytest.raises(OSError, match='unreadable'):
            next(epoch)
        assert [(2, 2, 2)] == list(epoch)


@pytest.mark.parametrize('streams, sources, reason', [
    ((lines(1), lines(2)), ('a',), r'2 sources.*got 1 names'),
    ((lines(1),), ('a', 'b'), '1 sources.*got 2 names'),
    ((lines(1), Batch(lines(1), ConstantScheme(1))), ('a', 'b'),
     'they produce examples, batches'),
    ((), (), 'at least one stream'),
    ((lines(1), lines(2)), 'ab', r"write \('ab',\)")])
def test_merge_of_what_does_not_fit_raises(streams, sources, reason):
    """Numbers and kinds must agree; a string is not a tuple."""
    with pytest.raises(ValueError, match=reason):
        Merge(streams, sources)


def test_merge_of_batches():
    """All streams produce batches."""
    def batches():
        return DataStream(IndexableDataset(numpy.arange(3)),
                          iteration_scheme=SequentialScheme(3, 2))

    stream = Merge((batches(), batches()), ('a', 'b'))
    assert not stream.produces_examples
    assert [[[0, 1], [0, 1]], [[2], [2]]] == [
        [part.tolist() for part in data]
        for data in stream.get_epoch_iterator()]


def test_merge_hands_on_close_reset_and_next_epoch():
    """All streams get the calls."""
    called = []

    class Noting(AbstractDataStream):
        produces_examples = True
        sources = ('x',)

        def get_data(self, request=None):
            raise StopIteration

        def close(self):
            called.append('close')

        def reset(self):
            called.append('reset')

        def next_epoch(self):
            called.append('next_epoch')

    with Merge((Noting(), Noting()), ('a', 'b')) as stream:
        stream.reset()
        stream.next_epoch()
    assert ['reset', 'reset', 'next_epoch', 'next_epoch', 'close', 'close'
            ] == called


def test_merge_labels_and_requests():
    """The labels are those that are given."""
    labels = {'a': ('batch',)}
    stream = Merge((lines(1),), ('a',), axis_labels=labels)
    assert labels == stream.axis_labels
    assert Merge((lines(1),), ('a',)).axis_labels is None
    with pytest.raises(ValueError, match='takes no requests, got 1'):
        stream.get_data(1)


def test_merge_of_unknown_length_has_none():
    """The length is known only if each stream has one."""
    unknown = Unpack(DataStream(
        IndexableDataset([1]), iteration_scheme=SequentialScheme(1, 1)))
    with pytest.raises(TypeError, match='not known'):
        len(Merge((lines(1), unknown), ('a', 'b')))


def test_merge_of_a_shuffled_stream_with_itself_makes_pairs():
    """Two epochs of one stream side by side, each with its own order."""
    stream = DataStream(IndexableDataset(list(range(8))),
                        iteration_scheme=ShuffledExampleScheme(8))
    left, right = zip(*Merge((stream, stream), ('a', 'b')
                             ).get_epoch_iterator(), strict=True)
    assert set(range(8)) == set(left) == set(right)
    assert left != right
