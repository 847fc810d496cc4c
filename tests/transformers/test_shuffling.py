"""The shuffle buffer, and batches of similar lengths."""
import json

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.resuming import assert_resumes

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.schemes import SequentialExampleScheme, SequentialScheme
from fuel.streams import DataStream
from fuel.transformers import Padding
from fuel.transformers.sequences import BucketBatch
from fuel.transformers.shuffling import ShuffleBuffer


def numbers(count):
    """Return a stream that can only be read in order."""
    return DataStream(IterableDataset(range(count)))


def order(stream):
    """Return the first source of an epoch."""
    return [number for number, in stream.get_epoch_iterator()]


@given(st.integers(0, 60), st.integers(1, 30), st.integers(0, 99))
def test_shuffle_buffer_any_size_hands_out_each_once(count, size, seed):
    """Nothing is lost, repeated, or later than promised."""
    result = order(ShuffleBuffer(numbers(count), size, seed=seed))
    assert list(range(count)) == sorted(result)
    for place, number in enumerate(result):
        assert number - place < size
        assert place - number <= (size if number >= size else 2 * size)


class Counted:
    """Numbers that are noted when they are read."""

    def __init__(self, count, note):
        self.count = count
        self.note = note

    def __iter__(self):
        for number in range(self.count):
            self.note(number)
            yield number


@given(st.integers(0, 80), st.integers(1, 30))
def test_shuffle_buffer_never_holds_more_than_its_size(count, size):
    """Its size bounds the memory."""
    stream = ShuffleBuffer(numbers(count), size)
    read = []
    stream.data_stream.dataset.iterables = [
        Counted(count, read.append)]
    for handed_out, _ in enumerate(stream.get_epoch_iterator()):
        # Those read and not handed out yet, before this one was.
        assert len(read) - handed_out <= size


def test_shuffle_buffer_mixes_from_the_start():
    """The first example is any of the first ones, later ones move far."""
    firsts = [order(ShuffleBuffer(numbers(200), 100, seed=seed))[0]
              for seed in range(60)]
    assert max(firsts) > 80
    assert len(set(firsts)) > 30
    result = numpy.array(order(ShuffleBuffer(numbers(5000), 100)))
    moved = result - numpy.arange(5000)
    assert 20 < moved[1000:4000].std() < 50
    assert abs(numpy.corrcoef(moved[:-1], moved[1:])[0, 1]) < .2


def test_shuffle_buffer_epochs_differ_and_seeds_repeat():
    """An order depends on the seed and the epoch alone."""
    stream, same = (ShuffleBuffer(numbers(50), 20, seed=3) for _ in range(2))
    assert order(stream) == order(same)
    second = order(stream)
    assert second == order(same)
    assert second != order(stream)
    assert list(range(9)) == order(ShuffleBuffer(numbers(9), 1))


@pytest.mark.parametrize('count, size', [(11, 4), (7, 20), (9, 1), (0, 3)])
def test_shuffle_buffer_resumes_exactly(count, size):
    """It resumes at every step, from counts alone."""
    assert_resumes(lambda: ShuffleBuffer(numbers(count), size))


def test_shuffle_buffer_state_is_small_and_restoring_reads_little():
    """A state holds no examples; at most two buffers are read again."""
    read = []

    class Noted(IndexableDataset):
        def get_data(self, state=None, request=None):
            read.append(request)
            return super().get_data(state, request)

    def build():
        return ShuffleBuffer(DataStream(
            Noted(list(range(4000))),
            iteration_scheme=SequentialExampleScheme(4000)), 100)

    stream = build()
    epoch = stream.get_epoch_iterator()
    for _ in range(2500):
        next(epoch)
    state = json.dumps(stream.state_dict())
    assert len(state) < 4000
    restored = build()
    restored.load_state_dict(json.loads(state))
    read.clear()
    assert next(epoch) == next(restored.get_epoch_iterator())
    assert len(read) <= 2 * 200 + 2
    assert min(read) > 2200


def test_shuffle_buffer_bad_arguments_raise():
    """It takes only examples, and a positive size."""
    with pytest.raises(ValueError, match='produces batches: put Unpack'):
        ShuffleBuffer(DataStream(IndexableDataset([1]), iteration_scheme=(
            SequentialScheme(1, 1))), 3)
    with pytest.raises(ValueError, match='buffer_size must be a positive'):
        ShuffleBuffer(numbers(3), 0)
    assert 5 == len(ShuffleBuffer(DataStream(IndexableDataset(
        list(range(5))), iteration_scheme=SequentialExampleScheme(5)), 3))


# -- BucketBatch

LENGTHS = st.lists(st.integers(0, 12), max_size=60)


def sentences(lengths):
    """Return a stream of sentences of these lengths, and their numbers."""
    return DataStream(IterableDataset({
        'words': [[i] * length for i, length in enumerate(lengths)],
        'number': range(len(lengths))}))


@given(LENGTHS, st.integers(12, 40), st.integers(1, 30), st.booleans())
def test_bucket_batch_keeps_the_budget_and_every_example(
        lengths, budget, pool, shuffle):
    """Each example comes once, in a batch that fits when padded."""
    seen = []
    for words, number in BucketBatch(
            sentences(lengths), budget, pool_size=pool,
            shuffle=shuffle).get_epoch_iterator():
        longest = max(map(len, words))
        assert longest * len(words) <= budget
        assert [lengths[i] for i in number] == [len(word) for word in words]
        seen.extend(number.tolist())
    assert list(range(len(lengths))) == sorted(seen)


def test_bucket_batch_pads_little():
    """Far less than batches in order would."""
    lengths = numpy.random.RandomState(0).randint(1, 60, 2000).tolist()
    padded = Padding(BucketBatch(sentences(lengths), 1000),
                     mask_sources=('words',), mask_dtype='float32')
    size = sum(words.size for words, _, _ in padded.get_epoch_iterator())
    assert size < 1.05 * sum(lengths)
    in_order = [order for _, _, order in padded.get_epoch_iterator()]
    means = [numpy.mean([lengths[i] for i in batch]) for batch in in_order]
    # Batches come in random order, not the shortest first.
    assert 5 < sum(numpy.diff(means) < 0)


def test_bucket_batch_resumes_exactly():
    """States hold the number of a pool and how much of it was used."""
    lengths = [3, 1, 4, 1, 5, 2, 6, 5, 3, 5, 8, 7]
    assert_resumes(lambda: BucketBatch(
        sentences(lengths), 10, pool_size=5))
    assert_resumes(lambda: BucketBatch(
        sentences(lengths), 10, pool_size=5, shuffle=False))


def test_bucket_batch_bad_arguments_raise():
    """A sequence that no batch can hold is named."""
    with pytest.raises(ValueError, match=(
            r"sequence of 'words' has the length 9, more than token_budget "
            r'8 .example 1 of pool 0')):
        next(BucketBatch(sentences([1, 9]), 8).get_epoch_iterator())
    with pytest.raises(ValueError, match='token_budget must be a positive'):
        BucketBatch(sentences([]), 0)
    with pytest.raises(ValueError,
                       match="'length_source' asks for 'word'.*words"):
        BucketBatch(sentences([]), 5, length_source='word')
    with pytest.raises(ValueError, match='put Unpack'):
        BucketBatch(BucketBatch(sentences([]), 5), 5)
