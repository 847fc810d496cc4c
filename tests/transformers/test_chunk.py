"""Chunk: long sequences in pieces."""
import json
import warnings

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.exceptions import StateMismatchError
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream
from fuel.transformers.sequences import Chunk

# Documents drawn at random may be too short.
pytestmark = pytest.mark.filterwarnings(
    'ignore:an epoch of Chunk is empty')


def documents(lengths):
    """Return a stream of documents, as lists of numbers."""
    return DataStream(IterableDataset({'x': [
        [100 * place + item for item in range(length)]
        for place, length in enumerate(lengths)]}))


def chunks_of(document, length, stride, last, shift):
    """Return the chunks of a document, as in a book."""
    usable = len(document) - shift
    chunks, begin = [], 0
    while begin == 0 or begin - stride + length < usable:
        if begin + length > usable and last == 'shift':
            begin = max(0, usable - length)
        chunk = document[begin:min(begin + length, usable)]
        if chunk and (len(chunk) == length or last != 'drop'):
            end = begin + len(chunk)
            chunks.append((chunk, document[begin + 1:end + 1])
                          if shift else (chunk,))
        begin += stride
    return chunks


CASES = st.integers(1, 6).flatmap(lambda length: st.tuples(
    st.lists(st.integers(0, 20), max_size=6), st.just(length),
    st.integers(1, length), st.sampled_from(['short', 'drop', 'shift']),
    st.booleans()))


def build(lengths, length, stride, last, shift):
    """Return the stage of a case."""
    return Chunk(documents(lengths), length, stride=stride, last=last,
                 target_source='next' if shift else None)


@given(CASES)
def test_chunk_equals_plain_python(case):
    """The chunks do not depend on the way that documents end."""
    stream = build(*case)
    documents_, parameters = documents(case[0]), case[1:]
    assert [chunk for document, in documents_.get_epoch_iterator()
            for chunk in chunks_of(document, *parameters)] == list(
        stream.get_epoch_iterator())


@given(CASES)
def test_every_item_is_in_a_chunk(case):
    """The last ones may be dropped."""
    lengths, length, stride, _, shift = case
    for last in 'short', 'shift':
        stream = build(lengths, length, stride, last, shift)
        seen = {item for parts in stream.get_epoch_iterator()
                for item in parts[0]}
        assert seen == {100 * place + item for place, each
                        in enumerate(lengths) for item in range(each - shift)}


@given(CASES, st.integers(0, 20))
def test_position_is_exact(case, step):
    """It is exact between two chunks of a document and between documents."""
    first = build(*case)
    whole = list(first.get_epoch_iterator())
    first = build(*case)
    epoch = first.get_epoch_iterator()
    step = min(step, len(whole))
    for _ in range(step):
        next(epoch)
    second = build(*case)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert whole[step:] == list(second.get_epoch_iterator())


def test_sources_are_cut_together():
    """Each source gets arrays of its own."""
    x = numpy.arange(10).reshape(5, 2)
    stream = Chunk(DataStream(IterableDataset(
        {'x': [x], 'y': [list('abcde')]})), 3)
    found = list(stream.get_epoch_iterator())
    assert [list('abc'), list('de')] == [y for _, y in found]
    assert [x[:3].tolist(), x[3:].tolist()] == [
        each.tolist() for each, _ in found]
    assert not any(numpy.shares_memory(x, each) for each, _ in found)


def test_labels_of_the_target_are_those_of_the_source():
    """They are, as far as they are known."""
    stream = DataStream(IterableDataset(
        {'x': [[1, 2]]}, axis_labels={'x': ('time',)}))
    assert {'x': ('time',), 'next': ('time',)} == Chunk(
        stream, 2, target_source='next').axis_labels


def test_sources_of_different_lengths_are_refused():
    """The error has their lengths."""
    stream = DataStream(IterableDataset({'x': [[1]], 'y': [[1, 2]]}))
    with pytest.raises(ValueError, match='together, got x: 1, y: 2'):
        list(Chunk(stream, 2).get_epoch_iterator())


@pytest.mark.parametrize(('arguments', 'text'), [
    ({'length': 0}, 'length must be a positive'),
    ({'stride': 0}, 'stride must be a positive'),
    ({'stride': 4}, 'stride must be at most length, 3, got 4'),
    ({'last': 'pad'}, "last must be 'short', 'drop' or 'shift'"),
    ({'target_source': 'x'}, 'cannot have the name of the source')])
def test_wrong_arguments_are_refused(arguments, text):
    """The error names the argument."""
    with pytest.raises(ValueError, match=text):
        Chunk(documents([4]), **{'length': 3, **arguments})


def test_streams_that_do_not_fit_are_refused():
    """Batches do not fit, nor do several sources where a target is wanted."""
    dataset = IndexableDataset({'x': [[1], [2]], 'y': [[1], [2]]})
    with pytest.raises(ValueError, match='produces batches: put Unpack'):
        Chunk(DataStream(dataset, iteration_scheme=SequentialScheme(2, 2)), 2)
    pair = DataStream(IterableDataset({'x': [[1]], 'y': [[1]]}))
    with pytest.raises(ValueError, match=r'of one source, but .* FilterSou'):
        Chunk(pair, 2, target_source='next')


@pytest.mark.parametrize('begin', [-1, 99, 1.5, None, 'a'])
def test_damaged_states_are_refused(begin):
    """The position is outside of the document, or missing."""
    stream = Chunk(documents([9]), 2)
    next(stream.get_epoch_iterator())
    state = stream.state_dict()
    del state['crc']
    state['leftover'] = {'begin': begin}
    restored = Chunk(documents([9]), 2)
    restored.load_state_dict(state)
    with pytest.raises(StateMismatchError, match='leftover'):
        restored.get_epoch_iterator()


@pytest.mark.parametrize('shift, last, longest, expected', [
    (False, 'drop', 3, 4), (True, 'drop', 4, 5), (True, 'short', 1, 2)])
def test_epoch_without_a_chunk_warns(shift, last, longest, expected):
    """It would end at once, and a training loop learn nothing."""
    stream = build([1, longest], 4, 4, last, shift)
    with pytest.warns(UserWarning, match=(
            f'an epoch of Chunk is empty: .* at least {expected} items, and '
            f'the longest that was read has {longest}.')) as caught:
        assert [] == list(stream.get_epoch_iterator())
    assert 1 == len(caught)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        assert list(build([1, expected], 4, 4, last, shift))
        # An empty epoch of an empty stream is expected.
        assert [] == list(build([], 4, 4, last, shift))
