"""Windows and n-grams, and batches of similar lengths."""
import warnings

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.resuming import assert_resumes

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.schemes import SequentialScheme, ShuffledExampleScheme
from fuel.streams import DataStream
from fuel.transformers.sequences import NGrams, Window

SEQUENCES = [[1, 2, 3, 4], [5, 6, 7], [8], [], [9, 10, 11, 12, 13]]

# Sequences drawn at random may be too short.
pytestmark = pytest.mark.filterwarnings(
    'ignore:an epoch of')


def stream_of(sequences):
    """Return a stream of sequences, one source."""
    return DataStream(IterableDataset(sequences))


def windows(sequence, offset, source, target, overlapping):
    """Define the windows of a sequence: all pairs that lie inside."""
    pairs = []
    for begin in range(len(sequence)):
        other = begin + offset + (0 if overlapping else source)
        if (begin + source <= len(sequence) and other >= 0
                and other + target <= len(sequence)):
            pairs.append((sequence[begin:begin + source],
                          sequence[other:other + target]))
    return pairs


@given(st.lists(st.lists(st.integers(0, 9), max_size=9), max_size=4),
       st.integers(-5, 5), st.integers(1, 4), st.integers(1, 4),
       st.booleans())
def test_window_any_arguments_gives_all_pairs_inside(
        sequences, offset, source, target, overlapping):
    """Both windows are whole, wherever the offset puts the target."""
    stream = Window(offset, source, target, overlapping,
                    stream_of(sequences))
    expected = [pair for sequence in sequences for pair in windows(
        sequence, offset, source, target, overlapping)]
    assert expected == list(stream.get_epoch_iterator())
    assert expected == list(stream.get_epoch_iterator())


def test_window_left_overs_stay_in_their_epoch():
    """An abandoned epoch leaves nothing for the next."""
    stream = Window(1, 2, 2, True, stream_of(SEQUENCES))
    expected = list(stream.get_epoch_iterator())
    for taken in range(len(expected)):
        epoch = stream.get_epoch_iterator()
        assert expected[:taken] == [next(epoch) for _ in range(taken)]
        assert expected == list(stream.get_epoch_iterator())
        assert expected[taken:] == list(epoch)


def test_window_of_arrays_are_copies():
    """Neighbouring windows share items, but no memory."""
    stream = Window(0, 3, 3, True, stream_of([numpy.arange(5)]))
    for source, target in stream.get_epoch_iterator():
        assert source.tolist() == target.tolist() == list(range(
            source[0], source[0] + 3))
        source[:] = -1
        target[:] = -1


def test_ngrams_target_is_an_item():
    """The target is what follows the n-gram."""
    stream = NGrams(3, stream_of(SEQUENCES))
    assert [([1, 2, 3], 4), ([9, 10, 11], 12), ([10, 11, 12], 13)] == list(
        stream.get_epoch_iterator())
    assert ('data', 'targets') == stream.sources
    stream = NGrams(1, stream_of([[1, 2]]), target_source='next')
    assert [{'data': [1], 'next': 2}] == list(
        stream.get_epoch_iterator(as_dict=True))


def test_window_labels_are_those_of_the_source():
    """The target of n-grams has no axis for the length."""
    dataset = IterableDataset(
        {'x': [[1, 2]]}, axis_labels={'x': ('time', 'unit')})
    assert {'x': ('time', 'unit'), 'targets': ('time', 'unit')} == Window(
        0, 1, 1, True, DataStream(dataset)).axis_labels
    assert {'x': ('time', 'unit'), 'targets': ('unit',)} == NGrams(
        1, DataStream(dataset)).axis_labels
    assert NGrams(1, stream_of([])).axis_labels is None


def shuffled():
    """Return sequences in random order."""
    data = numpy.empty(len(SEQUENCES), object)
    data[:] = SEQUENCES
    return DataStream(IndexableDataset(data),
                      iteration_scheme=ShuffledExampleScheme(len(data)))


@pytest.mark.parametrize('build', [
    lambda: Window(1, 2, 2, True, shuffled()),
    lambda: Window(-1, 2, 1, False, stream_of(SEQUENCES)),
    lambda: NGrams(2, stream_of(SEQUENCES))])
def test_window_resumes_within_a_sequence(build):
    """States hold where the next window begins, never the sequence."""
    assert_resumes(build)


@pytest.mark.parametrize('build, text', [
    (lambda: NGrams(2, DataStream(IterableDataset({'x': [], 'y': []}))),
     r"one source, but the data stream has \('x', 'y'\)"),
    (lambda: NGrams(2, DataStream(
        IndexableDataset([1]), iteration_scheme=SequentialScheme(1, 1))),
     'produces batches: put Unpack'),
    (lambda: NGrams(0, stream_of([])), 'source_window must be a positive'),
    (lambda: Window(0, 1, -1, True, stream_of([])), 'target_window must'),
    (lambda: NGrams(1, stream_of([]), target_source='data'),
     "name of the source, 'data'"),
    (lambda: Window(0, 1, 1, True, stream_of([])).get_data([1]),
     'takes no requests'),
])
def test_window_bad_arguments_raise(build, text):
    """Arguments are checked when the stage is built."""
    with pytest.raises(ValueError, match=text):
        build()


@pytest.mark.parametrize('arguments, needed', [
    ((1, 4, 4, True), 5), ((0, 3, 2, False), 5), ((-2, 3, 3, True), 5)])
def test_epoch_without_a_window_warns_once(arguments, needed):
    """Each epoch whose sequences are all too short; no other."""
    stream = Window(*arguments, stream_of([[1], [1, 2, 3, 4], [1, 2]]))
    with pytest.warns(UserWarning, match=(
            f'an epoch of Window is empty: .* at least {needed} items, and '
            'the longest that was read has 4.')) as caught:
        assert [] == list(stream)
    assert 1 == len(caught)
    assert 1 == len(list(Window(*arguments, stream_of([[1], [0] * needed]))))


def test_epoch_without_a_window_ends_where_warnings_are_errors():
    """The error comes once, and then the end."""
    epoch = Window(1, 4, 4, True, stream_of([[1, 2]])).get_epoch_iterator()
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        with pytest.raises(UserWarning, match='an epoch of Window is empty'):
            next(epoch)
        with pytest.raises(StopIteration):
            next(epoch)


def test_resumed_epoch_that_delivered_windows_does_not_warn():
    """The long sequence was read before the state was saved."""
    stream = Window(1, 2, 2, True, stream_of([[1, 2, 3], [1], [2]]))
    iterator = stream.get_epoch_iterator()
    assert ([1, 2], [2, 3]) == next(iterator)
    stream.load_state_dict(iterator.state_dict())
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        assert [] == list(stream)
