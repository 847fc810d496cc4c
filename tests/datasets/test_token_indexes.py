"""Raw files with an index of Megatron, written here byte by byte."""
import pickle
import struct

import numpy
import pytest
from numpy.testing import assert_array_equal
from support.range_server import serving
from support.resuming import assert_resumes

import fuel
from fuel.datasets import BinaryDataset, Runs, Windows, random_split
from fuel.exceptions import DamagedFileError, FuelError, StateMismatchError
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream

MAGIC = b'MMIDIDX\0\0'
CODES = {1: 'B', 2: 'b', 3: 'h', 4: 'i', 5: 'q', 6: 'd', 7: 'f', 8: 'H'}
NAMES = {1: 'uint8', 2: 'int8', 3: 'int16', 4: 'int32', 5: 'int64',
         6: 'float64', 7: 'float32', 8: 'uint16'}
# Of 20 sequences, each begins with its number; some have that alone.
SEQUENCES = [[number, *range(number % 4)] for number in range(20)]


def index(lengths, offsets, code=8, magic=MAGIC, version=1, documents=None,
          count=None, modes=b''):
    """Return the content of an index; all sequences are one document."""
    documents = [0, len(lengths)] if documents is None else documents
    return b''.join([
        magic, struct.pack('<Q', version), struct.pack('<B', code),
        struct.pack('<Q', len(lengths) if count is None else count),
        struct.pack('<Q', len(documents)),
        struct.pack(f'<{len(lengths)}i', *lengths),
        struct.pack(f'<{len(offsets)}q', *offsets),
        struct.pack(f'<{len(documents)}q', *documents), modes])


def write(stem, sequences, code=8, order=None, modes=b'', documents=None):
    """Write sequences and their index, which has them in some order; each is
    a document."""
    each = [struct.pack(f'<{len(some)}{CODES[code]}', *some)
            for some in sequences]
    places = [sum(map(len, each[:number])) for number in range(len(each))]
    order = range(len(each)) if order is None else order
    stem.with_suffix('.bin').write_bytes(b''.join(each))
    stem.with_suffix('.idx').write_bytes(index(
        [len(sequences[place]) for place in order],
        [places[place] for place in order], code,
        documents=range(len(each) + 1) if documents is None else documents,
        modes=modes))


def lists(batch):
    """Return the sequences in a batch as lists."""
    return [some.tolist() for some in batch]


@pytest.fixture
def stem(tmp_path):
    """Return the path of the twenty sequences, without an extension."""
    write(tmp_path / 'corpus', SEQUENCES)
    return tmp_path / 'corpus'


@pytest.mark.parametrize('ending', ['', '.bin', '.idx'])
@pytest.mark.parametrize('arguments', [{}, {'dtype': 'uint16'}])
@pytest.mark.parametrize('make', [fuel.load, BinaryDataset])
def test_either_name_opens_the_sequences(stem, ending, arguments, make):
    """Requests of every kind; the type may be passed too."""
    dataset = make(f'{stem}{ending}', **arguments)
    assert isinstance(dataset, BinaryDataset)
    assert 20 == len(dataset)
    assert ('data',) == dataset.sources
    assert SEQUENCES == lists(dataset[:][0])
    assert [SEQUENCES[7], SEQUENCES[0], SEQUENCES[7]] == lists(
        dataset.get_data(None, [7, 0, 7])[0])
    one, = dataset.get_data(None, 3)
    assert 'uint16' == one.dtype
    assert one.flags.writeable
    assert SEQUENCES[3] == one.tolist()
    assert (f'{stem}.bin', '', 5) == dataset.place_of_row(5)
    assert SEQUENCES == lists(pickle.loads(pickle.dumps(dataset))[:][0])


@pytest.mark.parametrize('code', CODES)
def test_types_follow_from_the_index(tmp_path, code):
    """All that Megatron numbers; an index with modes too."""
    write(tmp_path / 'x', SEQUENCES, code, modes=bytes(20))
    rows, = fuel.load(tmp_path / 'x.bin')[:]
    assert {numpy.dtype(NAMES[code])} == {some.dtype for some in rows}
    assert SEQUENCES == lists(rows)


def test_order_is_that_of_the_index(tmp_path):
    """Offsets need not increase, and sequences may be empty."""
    sequences = [[], [1, 2], [], [3], [4, 5, 6], []]
    write(tmp_path / 'x', sequences, order=[4, 0, 1, 5, 3, 2])
    assert [[4, 5, 6], [], [1, 2], [], [3], []] == lists(
        fuel.load(tmp_path / 'x')[:][0])


def test_tokens_may_begin_like_other_files(tmp_path):
    """The index decides: magic numbers of llm.c, Parquet, gzip."""
    for start in (struct.pack('<i', 20240520), b'PAR1', b'\x1f\x8b\0\0'):
        tokens = [*start, *range(60)]
        write(tmp_path / 'x', [tokens], 1)
        assert [tokens] == lists(fuel.load(tmp_path / 'x.bin')[:][0])


def test_files_follow_each_other(tmp_path):
    """A pattern may find the indexes too; all files have one, or none."""
    write(tmp_path / 'part_2', SEQUENCES[:5])
    write(tmp_path / 'part_10', SEQUENCES[5:])
    for pattern in 'part_*.bin', 'part_*.idx', 'part_*':
        dataset = fuel.load(tmp_path / pattern)
        assert SEQUENCES == lists(dataset[:][0])
        assert (str(tmp_path / 'part_10.bin'), '', 1) == (
            dataset.place_of_row(6))
    (tmp_path / 'part_2.idx').unlink()
    with pytest.raises(ValueError, match=r'part_2\.bin has no index'):
        BinaryDataset(tmp_path / 'part_*.bin')
    write(tmp_path / 'part_2', SEQUENCES[:5], 4)
    with pytest.raises(ValueError, match='must have rows of one type'):
        BinaryDataset(tmp_path / 'part_*.bin')


def test_epochs_are_shuffled_sharded_and_resumed(stem):
    """As of any rows."""
    def stream():
        return DataStream(fuel.load(stem), iteration_scheme=ShuffledScheme(
            20, 6, rng=numpy.random.RandomState(3)))

    order = [some[0] for batch, in stream().get_epoch_iterator()
             for some in lists(batch)]
    assert list(range(20)) == sorted(order) != order
    assert_resumes(stream, 1)
    for ranks in 1, 2:
        seen = [some for rank in range(ranks) for batch, in stream().shard(
            rank, ranks).get_epoch_iterator() for some in lists(batch)]
        assert SEQUENCES == sorted(seen)


@pytest.mark.parametrize('ending', ['', '.bin', '.idx'])
def test_remote_sequences(tmp_path, ending):
    """The index lies beside the tokens on a server too."""
    tokens = numpy.arange(1 << 21).astype('uint16')
    tokens.tofile(tmp_path / 'x.bin')
    places = numpy.arange(1 << 14) * 256
    (tmp_path / 'x.idx').write_bytes(index(
        [128] * len(places), places.tolist()))
    with serving(tmp_path) as server:
        dataset = fuel.load(server.url(f'x{ending}'))
        assert BinaryDataset(server.url(f'x{ending}')).path == dataset.path
        found, = dataset.get_data(None, [9000, 3])
        assert_array_equal(tokens[9000 * 128:9001 * 128], found[0])
        assert_array_equal(tokens[384:512], found[1])
        stream = DataStream(dataset, iteration_scheme=ShuffledScheme(
            len(dataset), 512, seed=1))
        seen = numpy.concatenate([
            some for batch, in stream.get_epoch_iterator() for some in batch])
        assert_array_equal(numpy.sort(tokens), numpy.sort(seen))
        dataset.close(None)


def test_an_empty_run_of_sequences_is_read(stem):
    """Alone, it has no sequence."""
    runs = Runs(fuel.load(stem), runs={'lengths': [3, 0, 17]})
    assert [[], SEQUENCES[:3]] == [
        lists(some) for some in runs.get_data(None, [1, 0])[0]]
    assert [] == lists(runs.get_data(None, 1)[0])


@pytest.fixture
def documents(tmp_path):
    """Return a pattern of two files of four and three documents; three of
    the seven are empty."""
    write(tmp_path / 'x_0', SEQUENCES[:12], modes=bytes(12),
          documents=[0, 3, 3, 9, 12])
    write(tmp_path / 'x_1', SEQUENCES[12:], documents=[0, 0, 8, 8])
    return tmp_path / 'x_*.bin'


def test_documents_are_runs(documents):
    """Whole, of several files, in splits, and in copies."""
    dataset = fuel.load(documents)
    bounds = [0, 3, 3, 9, 12, 12, 20, 20]
    assert bounds == dataset.runs.tolist()
    assert bounds == pickle.loads(pickle.dumps(dataset)).runs.tolist()
    for number in range(7):
        some, = Runs(dataset).get_data(None, number)
        assert SEQUENCES[bounds[number]:bounds[number + 1]] == lists(some)
    part = fuel.load(documents, splits={'a': (2, 11)}, split='a')
    assert [0, 1, 7, 9] == part.runs.tolist()
    assert [0, 2, 3] == Runs(part).find_uncut_runs()[1].tolist()
    found = random_split(dataset, {'a': None, 'b': .4}, groups='runs', seed=1)
    for rows in found.values():
        assert set(rows) in [{*range(3), *range(3, 9), *range(9, 12)},
                             {*range(12, 20)}]


def test_no_window_goes_from_one_document_to_the_next(documents):
    """Unless all sequences are one run."""
    dataset = fuel.load(documents)
    windows = Windows(dataset, 4)
    assert [3, 4, 5, *range(12, 17)] == [
        some[0][0] for some, in windows]
    assert [SEQUENCES[4:8], SEQUENCES[14:18]] == [
        lists(some) for some in windows.get_data(None, [1, 5])[0]]
    assert 17 == len(Windows(dataset, 4, runs='all'))
    assert_resumes(lambda: DataStream(
        Windows(fuel.load(documents), 4), iteration_scheme=ShuffledScheme(
            8, 3, rng=numpy.random.RandomState(1))), 1)
    numbers = documents.with_name('numbers')
    numpy.arange(9).tofile(numbers)
    assert BinaryDataset(numbers, 'int64').runs is None
    assert 6 == len(Windows(BinaryDataset(numbers, 'int64'), 4))


def test_other_documents_in_a_new_index_are_noticed(stem):
    """Windows are refused, since they were others."""
    windows = Windows(fuel.load(stem), 1)
    write(stem, SEQUENCES, documents=[0, 20])
    with pytest.raises(StateMismatchError, match='other bounds'):
        list(DataStream(windows, batch_size=4).get_epoch_iterator())


@pytest.mark.parametrize('content, words', [
    *[(index([2, 1], [0, 4], documents=some), 'documents .*from 0 to 2, ')
      for some in ((1, 2), (0, 1), (0, 3), (0, 2, 1, 2), (0,), ())],
    (index([2, 1], [0, 4], magic=b'MMIDIDY\0\0'), r'must be an index.*IDY'),
    (index([2, 1], [0, 4])[:33], 'at least 34 bytes, and this has 33'),
    (b'', 'this has 0 and begins with'),
    (index([2, 1], [0, 4], version=2), 'version 1 .*got version 2'),
    (index([2, 1], [0, 4], code=0), 'type of 1 to 8, .*type 0'),
    (index([2, 1], [0, 4], code=9), 'type of 1 to 8, .*type 9'),
    (index([2, 1], [0, 4])[:-1], '2 sequences and 2 bounds .* 74 .*has 73'),
    (index([2, 1], [0, 4]) + b'\0', 'need 74 bytes, but it has 75'),
    (index([2, 1], [0, 4], count=2 ** 64 - 1), 'it was cut'),
    (index([2, 2], [0, 4]), 'sequence 1 has 2 tokens of uint16 from byte 4'),
    (index([2, 1], [0, 2 ** 63 - 2]), 'sequence 1 has 1 tokens'),
    (index([2 ** 31 - 1, 1], [0, 4]), 'sequence 0 has 2147483647 tokens'),
    (index([-1, 3], [0, 0]), 'sequence 0 has -1 tokens'),
    (index([3, 1], [0, -2]), 'sequence 1 has 1 tokens .*from byte -2'),
    (index([3, 1], [0, 3]), 'sequence 1 has 1 tokens .*from byte 3'),
    (index([1, 1], [0, 2]), r'states 4 bytes .*x\.bin has 6 bytes'),
    (index([], []), 'states 0 bytes of tokens')])
def test_an_index_that_lies_is_refused(tmp_path, content, words):
    """The error names the index, and what is wrong."""
    (tmp_path / 'x.bin').write_bytes(bytes(6))
    (tmp_path / 'x.idx').write_bytes(content)
    for make in fuel.load, BinaryDataset:
        with pytest.raises(DamagedFileError, match=words) as caught:
            make(tmp_path / 'x.bin')
        assert str(tmp_path / 'x.idx') in str(caught.value)


def test_other_types_sizes_and_empty_files_are_refused(stem):
    """A type that differs; a file of tokens of another size."""
    with pytest.raises(ValueError, match=r"corpus\.idx states that .*'uint16'"
                                         '; got int32'):
        fuel.load(stem, dtype='int32')
    content = stem.with_suffix('.bin').read_bytes()
    for other in content + b'\0\0', content[:-2], b'':
        stem.with_suffix('.bin').write_bytes(other)
        with pytest.raises(DamagedFileError, match=r'corpus\.idx'):
            fuel.load(stem)
    stem.with_suffix('.idx').write_bytes(index([0, 0], [0, 0]))
    with pytest.raises(DamagedFileError, match='states 0 bytes'):
        fuel.load(stem)
    stem.with_suffix('.bin').unlink()
    with pytest.raises(FileNotFoundError, match=r'corpus\.bin'):
        fuel.load(stem)


@pytest.mark.parametrize('ending', ['.bin', '.idx'])
def test_a_replaced_file_is_noticed(stem, ending):
    """The next epoch reads both again, and finds that they do not fit."""
    dataset = fuel.load(stem)
    other = stem.with_name('other')
    write(other, SEQUENCES[:-1])
    other.with_suffix(ending).replace(stem.with_suffix(ending))
    with pytest.raises(FuelError, match='corpus'):
        list(DataStream(dataset, batch_size=4).get_epoch_iterator())
