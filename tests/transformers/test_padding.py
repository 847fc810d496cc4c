"""Padding."""
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from fuel import config
from fuel.datasets import IndexableDataset, IterableDataset
from fuel.kernels import pad_sequences
from fuel.schemes import ConstantScheme, SequentialScheme
from fuel.streams import DataStream
from fuel.transformers import Batch, Mapping, Padding, Unpack

DTYPES = [numpy.dtype(code) for code in '?bhilBHILefdFD']


def batches(*sequences, labels=None):
    """Return a stream with one batch of sequences."""
    return DataStream(
        IndexableDataset({'x': list(sequences), 'y': list(sequences)},
                         axis_labels=labels),
        iteration_scheme=SequentialScheme(len(sequences), len(sequences)))


def padded(*sequences):
    """Return a batch of sequences, padded."""
    return next(Padding(
        batches(*sequences), mask_sources=('x',)).get_epoch_iterator())[0]


@given(st.data(), st.lists(st.integers(0, 5), min_size=1, max_size=6),
       st.sampled_from([(), (2,), (1, 3), (0,)]))
def test_padding_equals_a_loop(data, lengths, rest):
    """Each sequence is where it belongs, zeros elsewhere."""
    sequences = [data.draw(npst.arrays(
        data.draw(st.sampled_from(DTYPES)), (length, *rest)))
        for length in lengths]
    if data.draw(st.booleans()):
        sequences = [sequence[::-1] for sequence in sequences]
    result, mask = pad_sequences(sequences, 'float32')
    assert numpy.result_type(*sequences) == result.dtype
    assert (len(lengths), max(lengths), *rest) == result.shape
    assert 'float32' == mask.dtype
    for place, sequence in enumerate(sequences):
        for time in range(max(lengths)):
            inside = time < len(sequence)
            assert inside == mask[place, time]
            numpy.testing.assert_array_equal(
                sequence[time] if inside else numpy.zeros(rest),
                result[place, time])


def test_padding_adds_masks_after_their_sources():
    """Masks are named after them."""
    stream = Padding(batches([1], [2, 3]))
    assert ('x', 'x_mask', 'y', 'y_mask') == stream.sources
    assert not stream.produces_examples
    batch = next(stream.get_epoch_iterator(as_dict=True))
    assert [[1, 0], [2, 3]] == batch['x'].tolist()
    assert [[1, 0], [1, 1]] == batch['y_mask'].tolist()
    stream = Padding(batches([1], [2, 3]), mask_sources=['y'])
    assert ('x', 'y', 'y_mask') == stream.sources
    assert ([[1], [2, 3]], [[1, 0], [2, 3]], [[1, 0], [1, 1]]) == tuple(
        part if isinstance(part, list) else part.tolist()
        for part in next(stream.get_epoch_iterator()))


def test_padding_holds_all_sequences():
    """A batch has a type that holds all of its sequences."""
    result = padded([1, 2], [1.5, 2.5, 3.5])
    assert [[1, 2, 0], [1.5, 2.5, 3.5]] == result.tolist()
    assert numpy.float64 == result.dtype


def test_padding_of_empty_lists_takes_the_type_of_others():
    """They have none of their own."""
    result = padded([], [1, 2])
    assert [[0, 0], [1, 2]] == result.tolist()
    assert numpy.int64 == result.dtype
    assert (2, 1, 3) == padded([], [[1, 2, 3]]).shape
    assert (2, 0) == padded([], []).shape


def test_padding_of_words():
    """Padded with empty strings."""
    assert [['a', ''], ['bb', 'ccc']] == padded(
        ['a'], ['bb', 'ccc']).tolist()


@pytest.mark.parametrize('make', [
    lambda batch: numpy.array([*batch, None], object)[:-1], tuple, iter])
def test_padding_accepts_any_kind_of_batch(make):
    """Arrays of objects come from H5PYDataset and from Batch."""
    stream = Mapping(batches([1], [2, 3]),
                     lambda data: tuple(make(part) for part in data))
    result = next(Padding(
        stream, mask_sources=('x',)).get_epoch_iterator())[0]
    assert [[1, 0], [2, 3]] == result.tolist()


def test_padding_of_ragged_batches_from_batch():
    """A last batch of a single example is padded, too."""
    stream = DataStream(IterableDataset([[1, 2], [3], [4, 5]]))
    stream = Padding(Batch(stream, ConstantScheme(2)), mask_dtype='int8')
    assert [([[1, 2], [3, 0]], [[1, 1], [1, 0]]), ([[4, 5]], [[1, 1]])] == [
        (data.tolist(), mask.tolist())
        for data, mask in stream.get_epoch_iterator()]


def test_padding_of_equal_lengths():
    """An array of them is one already; an empty batch, too."""
    for shape in [(2, 3), (2, 3, 4), (0, 3)]:
        array = numpy.ones(shape)
        result, mask = pad_sequences(array, 'int8')
        numpy.testing.assert_array_equal(array, result)
        numpy.testing.assert_array_equal(numpy.ones(shape[:2]), mask)
    result, mask = pad_sequences([], 'int8')
    assert (0, 0) == result.shape == mask.shape


def test_padding_mask_is_float_x():
    """The setting counts as it was when the stage was built."""
    config.floatX = 'float32'
    stream = Padding(batches([1]))
    config.floatX = 'float64'
    assert 'float32' == stream.mask_dtype
    assert 'float32' == next(stream.get_epoch_iterator())[1].dtype
    with pytest.raises(TypeError, match="got 'flaot'"):
        Padding(batches([1]), mask_dtype='flaot')


@pytest.mark.parametrize('sequences, reason', [
    (([[1, 2]], [[1, 2, 3]]), r'got \[\(2,\), \(3,\)\]'),
    (([[1, 2]], [1]), r'got \[\(\), \(2,\)\]'),
    ((1, 2), 'element 0 of the batch must be a sequence, got 1'),
    (('ab', 'c'), 'must be a sequence'),
    ((numpy.ones(2), numpy.array(3)), 'element 1')])
def test_padding_what_does_not_fit_raises(sequences, reason):
    """The error names the source."""
    with pytest.raises(ValueError, match=reason) as raised:
        padded(*sequences)
    assert "in source 'x'" in raised.value.__notes__


def test_padding_of_examples_raises():
    """There is nothing to make equal."""
    with pytest.raises(ValueError, match='produces examples: put Batch'):
        Padding(DataStream(IterableDataset([[1]])))


def test_padding_labels():
    """A mask has the first two; labels that are None are carried."""
    stream = batches([1], labels={'x': ('batch', 'time', 'feature'),
                                  'y': None})
    assert {'x': ('batch', 'time', 'feature'), 'x_mask': ('batch', 'time'),
            'y': None, 'y_mask': None} == Padding(stream).axis_labels
    assert Padding(batches([1])).axis_labels is None


def test_padding_may_be_subclassed():
    """Scripts pad with something else and read the stage's attributes."""
    class WithOnes(Padding):
        def transform_batch(self, batch):
            assert ('x', 'y') == tuple(self.mask_sources)
            return tuple(
                part + (1 - numpy.ones(1, self.mask_dtype))
                for part in super().transform_batch(batch))

    stream = WithOnes(batches([1], [2, 3]))
    assert 4 == len(next(stream.get_epoch_iterator()))
    assert ('x', 'x_mask', 'y', 'y_mask') == stream.sources


@pytest.mark.parametrize('ranks', [1, 2, 3, 5])
def test_ranks_pad_to_the_longest_of_their_rows(ranks):
    """They do behind Unpack, too: each has the data of the whole order, and
    not more zeros than it needs."""
    sequences = [list(range(1, 2 + 7 * i % 6)) for i in range(30)]

    def build():
        return Padding(DataStream(
            IndexableDataset({'x': sequences}), batch_size=10),
            mask_dtype='bool')

    shares = [list(Unpack(build()).shard(rank, ranks).get_epoch_iterator())
              for rank in range(ranks)]
    for place, expected in enumerate(sequences):
        row, mask = shares[place % ranks][place // ranks]
        assert expected == row[mask].tolist()
        assert not row[~mask].any()
        of_batch = range(place // 10 * 10, place // 10 * 10 + 10)
        assert len(row) == max(
            len(sequences[i]) for i in of_batch if i % ranks == place % ranks)
    if ranks in (1, 2, 5):
        shares = [build().shard(rank, ranks, by='example')
                  for rank in range(ranks)]
        size = 10 // ranks
        for number, parts in enumerate(zip(*shares, strict=True)):
            for rank, (rows, masks) in enumerate(parts):
                start = 10 * number + rank * size
                assert sequences[start:start + size] == [
                    row[mask].tolist() for row, mask in zip(
                        rows, masks, strict=True)]
                assert rows.shape[1] == max(map(
                    len, sequences[start:start + size]))
