"""Raw files with an index of Megatron, where each row is one token."""
import itertools
import pickle

import numpy
import pytest
from numpy.testing import assert_array_equal
from support.range_server import serving
from support.resuming import assert_resumes

import fuel
from datasets.test_token_indexes import CODES, NAMES, index, write
from fuel.datasets import (
    BinaryDataset, IndexableDataset, Runs, Windows, random_split)
from fuel.exceptions import FuelError, StateMismatchError
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream

# Lengths of the sequences of two files, two of them 0, and the bounds of
# their documents: of several sequences, of one, and of none.
LENGTHS = [[5, 0, 7, 1, 4, 12], [3, 9, 0, 2]]
DOCUMENTS = [[0, 3, 3, 4, 6], [0, 0, 2, 4, 4]]
# The same documents, in tokens of both files.
BOUNDS = [0, 12, 12, 13, 29, 29, 41, 43, 43]
TOKENS = numpy.random.RandomState(5).permutation(43)


def write_both(folder, code=8):
    """Write the two files, and return a pattern that they match."""
    left = TOKENS.tolist()
    for number, (lengths, documents) in enumerate(
            zip(LENGTHS, DOCUMENTS, strict=True)):
        sequences = [[left.pop(0) for _ in range(length)]
                     for length in lengths]
        write(folder / f'x_{number}', sequences, code, documents=documents)
    return folder / 'x_*.bin'


@pytest.fixture
def corpus(tmp_path):
    """Return a pattern of two files."""
    return write_both(tmp_path)


def pairs(length, stride, bounds):
    """Return inputs and targets of all windows, cut out with NumPy."""
    found = [TOKENS[start:start + length + 1]
             for first, stop in itertools.pairwise(bounds)
             for start in range(first, stop - length, stride)]
    return numpy.array(found)[:, :-1], numpy.array(found)[:, 1:]


@pytest.mark.parametrize('code', CODES)
@pytest.mark.parametrize('make', [fuel.load, BinaryDataset])
def test_each_row_is_a_token(tmp_path, code, make):
    """Of all types; the documents are the runs."""
    dataset = make(write_both(tmp_path, code), rows='tokens')
    assert len(dataset) == 43
    assert dataset[:][0].dtype == NAMES[code]
    for copy in dataset, pickle.loads(pickle.dumps(dataset)):
        assert_array_equal(copy[:][0], TOKENS)
        assert_array_equal(copy.get_data(None, [40, 2, 2])[0],
                           TOKENS[[40, 2, 2]])
        assert copy.get_data(None, 7)[0] == TOKENS[7]
        assert copy.runs.tolist() == BOUNDS
    assert dataset.place_of_row(30) == (str(tmp_path / 'x_1.bin'), '', 1)
    documents = Runs(dataset)
    assert len(documents) == 8
    for number in range(8):
        some, = documents.get_data(None, number)
        assert_array_equal(some, TOKENS[BOUNDS[number]:BOUNDS[number + 1]])


@pytest.mark.parametrize('ending', ['', '.bin', '.idx'])
@pytest.mark.parametrize('arguments', [{}, {'dtype': 'uint16'}])
def test_names_of_one_file(corpus, ending, arguments):
    """Those of the sequences."""
    stem = corpus.with_name('x_1')
    found = fuel.load(f'{stem}{ending}', rows='tokens', **arguments)
    assert_array_equal(found[:][0], TOKENS[29:])
    assert found.runs.tolist() == [0, 0, 12, 14, 14]


@pytest.mark.parametrize('length, stride', [(1, 1), (4, 4), (5, 2), (11, 3)])
@pytest.mark.parametrize('runs, bounds', [(None, BOUNDS), ('all', [0, 43])])
def test_windows_have_the_next_tokens(corpus, length, stride, runs, bounds):
    """None goes from one document to the next, unless all are one run."""
    windows = Windows(fuel.load(corpus, rows='tokens'), length, runs=runs,
                      stride=stride, targets='next')
    expected = pairs(length, stride, bounds)
    assert_array_equal(windows[:], expected)

    def stream():
        return DataStream(
            Windows(fuel.load(corpus, rows='tokens'), length, runs=runs,
                    stride=stride, targets='next'),
            iteration_scheme=ShuffledScheme(
                len(windows), 3, rng=numpy.random.RandomState(1)))

    assert_resumes(stream, 1)
    for ranks in 1, 2, 4:
        seen = [tuple(map(tuple, pair)) for rank in range(ranks)
                for batch in stream().shard(rank, ranks).get_epoch_iterator()
                for pair in zip(*map(numpy.ndarray.tolist, batch),
                                strict=True)]
        assert sorted(seen) == sorted(
            tuple(map(tuple, pair)) for pair in zip(
                *map(numpy.ndarray.tolist, expected), strict=True))


def test_splits_are_of_tokens(corpus):
    """They cut documents, or have whole ones."""
    part = fuel.load(corpus, rows='tokens', splits={'a': (10, 31)}, split='a')
    assert part.runs.tolist() == [0, 2, 3, 19, 21]
    assert_array_equal(Windows(part, 2, targets='next')[0], [
        TOKENS[13:15], TOKENS[14:16]])
    found = random_split(fuel.load(corpus, rows='tokens'),
                         {'a': None, 'b': .4}, groups='runs', seed=1)
    for rows in found.values():
        for first, stop in itertools.pairwise(BOUNDS):
            assert numpy.isin(range(first, stop), rows).sum() in (
                0, stop - first)


def test_remote_tokens(tmp_path):
    """The index lies beside the tokens on a server too."""
    write_both(tmp_path)
    with serving(tmp_path) as server:
        for ending in '.bin', '.idx':
            dataset = fuel.load(server.url(f'x_0{ending}'), rows='tokens')
            assert_array_equal(dataset[:][0], TOKENS[:29])
            assert dataset.runs.tolist() == BOUNDS[:5]
            dataset.close(None)


def test_printed_call_has_the_argument(corpus):
    """It opens the same rows."""
    dataset = fuel.load(corpus, rows='tokens')
    assert str(dataset).startswith(repr(dataset))
    assert "rows='tokens'" in repr(dataset)
    assert_array_equal(eval(repr(dataset))[:][0], TOKENS)
    assert "x_{0..1}.bin'" in repr(dataset)
    part = fuel.load(corpus, rows='tokens', splits={'a': [3, 1]}, split='a')
    assert_array_equal(eval(repr(part))[:][0], TOKENS[[3, 1]])
    assert 'rows' not in repr(fuel.load(corpus))
    assert len(eval(repr(fuel.load(corpus)))) == 10
    windows = Windows(dataset, 4, targets='next')
    assert_array_equal(eval(repr(windows))[:], windows[:])


def test_states_of_sequences_and_tokens_differ(tmp_path):
    """Even if each sequence is one token. A state of sequences does not
    have the argument, as states of before."""
    write(tmp_path / 'x', [[5], [6], [7]])

    def stream(**kwargs):
        return DataStream(fuel.load(tmp_path / 'x', **kwargs), batch_size=1)

    saved = {}
    for rows in 'sequences', 'tokens':
        saved[rows] = stream(rows=rows)
        next(saved[rows].get_epoch_iterator())
    state = saved['sequences'].state_dict()
    assert 'data set rows' not in state['stream']
    again = stream()
    again.load_state_dict(state)
    batch, = next(again.get_epoch_iterator())
    assert batch[0].tolist() == [6]
    with pytest.raises(StateMismatchError, match='rows'):
        stream(rows='tokens').load_state_dict(state)
    # A pickle of before has neither of these attributes.
    dataset = fuel.load(tmp_path / 'x')
    del vars(dataset)['rows'], vars(dataset)['_splits']
    dataset = pickle.loads(pickle.dumps(dataset))
    assert dataset[2][0].tolist() == [7]
    assert repr(dataset) == repr(fuel.load(tmp_path / 'x'))
    with pytest.raises(StateMismatchError, match='rows'):
        stream().load_state_dict(saved['tokens'].state_dict())


def test_other_documents_in_a_new_index_are_noticed(tmp_path):
    """Although the tokens are the same."""
    write(tmp_path / 'x', [[1, 2, 3], [4, 5, 6]])
    windows = Windows(fuel.load(tmp_path / 'x', rows='tokens'), 1)
    write(tmp_path / 'x', [[1, 2, 3], [4, 5, 6]], documents=[0, 2])
    with pytest.raises(StateMismatchError, match='other bounds'):
        list(DataStream(windows, batch_size=4).get_epoch_iterator())


def test_a_replaced_index_is_noticed(tmp_path):
    """The next epoch reads it again, and finds that it does not fit."""
    write(tmp_path / 'x', [[1, 2, 3], [4, 5, 6]])
    dataset = fuel.load(tmp_path / 'x', rows='tokens')
    write(tmp_path / 'y', [[1, 2, 3]])
    (tmp_path / 'y.idx').replace(tmp_path / 'x.idx')
    with pytest.raises(FuelError, match=r'x\.idx'):
        list(DataStream(dataset, batch_size=4).get_epoch_iterator())


def test_what_has_no_tokens_by_rows_is_refused(tmp_path):
    """No index; sequences in another order, twice, or after a gap."""
    numpy.arange(9, dtype='uint16').tofile(tmp_path / 'x.bin')
    for arguments in {}, {'dtype': 'uint16'}:
        with pytest.raises(ValueError, match=r'none beside .*x\.bin.*dtype='):
            fuel.load(tmp_path / 'x.bin', rows='tokens', **arguments)
    for lengths, offsets, place in (
            ([4, 5], [10, 0], 0), ([5, 9], [0, 0], 1), ([3, 5], [0, 8], 1),
            ([8], [2], 0)):
        (tmp_path / 'x.idx').write_bytes(index(lengths, offsets))
        assert len(fuel.load(tmp_path / 'x')) == len(lengths)
        with pytest.raises(ValueError, match=(
                rf'x\.idx.*sequence {place} begins .*leave out rows=')):
            fuel.load(tmp_path / 'x', rows='tokens')
    # An empty sequence has no place.
    (tmp_path / 'x.idx').write_bytes(index([0, 9, 0], [4, 0, 2]))
    assert len(fuel.load(tmp_path / 'x', rows='tokens')) == 9
    with pytest.raises(ValueError, match="'sequences' or 'tokens'"):
        fuel.load(tmp_path / 'x', rows='token')
    numpy.save(tmp_path / 'x.npy', numpy.arange(9))
    with pytest.raises(TypeError, match="no argument 'rows'"):
        fuel.load(tmp_path / 'x.npy', rows='tokens')


@pytest.mark.parametrize('length', [1, 20])
def test_next_sequence_is_not_a_target(corpus, length):
    """The error says how to have tokens, whatever the length."""
    dataset = fuel.load(corpus)
    with pytest.raises(ValueError, match=(
            "'data' are arrays of different lengths.*: pass rows='tokens'")):
        Windows(dataset, length, targets='next')
    with pytest.raises(ValueError, match=(
            "windows of the BinaryDataset that Runs reads; pass rows='tok")):
        Windows(Runs(dataset), length, targets='next')
    assert len(Windows(dataset, 2)) == 5


def test_rows_of_other_ragged_sources_have_no_targets(corpus):
    """Of files, in memory, and runs; unless another source is read."""
    tokens = fuel.load(corpus, rows='tokens')
    with pytest.raises(ValueError, match='BinaryDataset that Runs reads'):
        Windows(Runs(tokens), 1, targets='next')
    ragged = [[1, 2], [3], [4, 5], [6]]
    objects = numpy.array([numpy.array(some) for some in ragged], object)
    for rows in ragged, objects:
        dataset = IndexableDataset({'x': rows, 'y': numpy.arange(4)})
        with pytest.raises(ValueError, match="of source 'x' .* leave out"):
            Windows(dataset, 2, targets='next')
        windows = Windows(dataset, 2, targets='next', sources=('y_targets',))
        assert windows[:][0].tolist() == [[1, 2], [2, 3]]


@pytest.mark.parametrize('rows', [
    ['a', 'bc', 'd'], numpy.array(['a', 'bc', 'd'], object),
    numpy.array(['a', 'bc', 'd']), [[1, 2], [3, 4], [5, 6]]])
def test_single_rows_in_memory_have_targets(rows):
    """Words, and lists of one length, are not arrays of different lengths."""
    windows = Windows(IndexableDataset({'x': rows}), 2, targets='next')
    inputs, targets = windows[0]
    assert list(map(list, inputs)) == list(map(list, rows[:2]))
    assert list(map(list, targets)) == list(map(list, rows[1:]))


@pytest.mark.parametrize('name', ['x_2.bin', 'x_2'])
def test_missing_remote_tokens_are_called_missing(corpus, tmp_path, name):
    """The error does not say that only the index is."""
    with serving(tmp_path) as server:
        with pytest.raises(FileNotFoundError, match=rf'{name}: there is no s'):
            fuel.load(server.url(name), rows='tokens')
        (tmp_path / name).write_bytes(b'ab')
        with pytest.raises(ValueError, match='there is none beside .*x_2'):
            fuel.load(server.url(name), rows='tokens')
