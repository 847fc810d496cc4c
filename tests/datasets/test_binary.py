"""Raw files of numbers, with NumPy's `fromfile` as the oracle."""
import os
import pickle

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.testing import assert_array_equal
from support.range_server import serving

import fuel
from fuel.datasets import BinaryDataset, Windows
from fuel.exceptions import DamagedFileError, StateMismatchError
from fuel.schemes import ShuffledScheme
from fuel.storage.mapped import MappedReader
from fuel.streams import DataStream

TYPES = st.sampled_from(['u1', '<u2', '>u2', '<u4', '>i8', 'f2', '<f4', '?',
                         '(2,3)u1', '(2,)>i2', [('a', 'u1'), ('b', '>i2')]])


def of_llm_c(tokens, magic=20240520, version=1, count=None):
    """Return the content of a file with llm.c's header, as its
    `write_datafile` makes it."""
    header = numpy.zeros(256, numpy.int32)
    header[:3] = magic, version, len(tokens) if count is None else count
    return header.tobytes() + tokens.tobytes()


@settings(suppress_health_check=list(HealthCheck))
@given(data=st.data(), dtype=TYPES)
def test_rows_equal_those_of_numpy(tmp_path_factory, data, dtype):
    """Types, shapes, files and requests vary."""
    folder = tmp_path_factory.getbasetemp()
    dtype = numpy.dtype(dtype)
    counts = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    paths = [folder / f'{number}.any' for number in range(len(counts))]
    for path, count in zip(paths, counts, strict=True):
        data.draw(arrays.arrays(dtype.base, (count, *dtype.shape))).tofile(
            path)
    rows = numpy.concatenate([
        numpy.fromfile(path, dtype.base).reshape(-1, *dtype.shape)
        for path in paths])
    rows = rows.astype(rows.dtype.newbyteorder('='))
    dataset = BinaryDataset(paths, dtype)
    assert dataset.sources == ('data',)
    assert dataset.num_examples == len(rows)
    place = st.integers(0, len(rows) - 1)
    for request in (data.draw(place), slice(0, len(rows)), data.draw(
            st.lists(place, min_size=1, max_size=9))):
        found, = dataset.get_data(None, request)
        assert found.dtype == rows.dtype
        assert found.tobytes() == rows[request].tobytes()
    assert dataset.place_of_row(len(rows) - 1) == (
        str(paths[-1]), '', counts[-1] - 1)


@pytest.mark.parametrize('magic, version, dtype', [
    (20240520, 1, 'uint16'), (20240801, 7, 'uint32')])
def test_header_of_llm_c_states_the_type(tmp_path, magic, version, dtype):
    """The type may be passed too; shards follow each other."""
    shards = [numpy.arange(5 * number, 5 * number + 5).astype(dtype)
              for number in range(12)]
    for number, shard in enumerate(shards):
        (tmp_path / f'shard_{number}.bin').write_bytes(
            of_llm_c(shard, magic, version))
    for given_ in ({}, {'dtype': dtype}):
        dataset = fuel.load(tmp_path / 'shard_*.bin', **given_)
        assert isinstance(dataset, BinaryDataset)
        rows, = dataset[:]
        assert rows.dtype == dtype
        assert_array_equal(rows, numpy.arange(60))
    assert fuel.load(tmp_path / 'shard_7.bin')[:][0].tolist() == [
        *range(35, 40)]


TOKENS = numpy.arange(9, dtype='uint16')


@pytest.mark.parametrize('content, dtype, error, words', [
    (TOKENS.tobytes()[:-1], 'uint16', ValueError,
     r'train\.bin has 17 bytes, .*multiple of 2, .*row of uint16'),
    (TOKENS.tobytes(), '(2,2)u2', ValueError, '18 bytes, .*multiple of 8'),
    (b'', 'uint16', ValueError, r'train\.bin is empty: perhaps'),
    (of_llm_c(TOKENS)[:-2], None, DamagedFileError,
     r'holds 9 tokens of 2 bytes after 1024 bytes, but it has 1040 bytes'),
    (of_llm_c(TOKENS) + b'\0\0', None, DamagedFileError, 'has 1044 bytes'),
    (of_llm_c(TOKENS)[:100], None, DamagedFileError, 'has 100 bytes'),
    (of_llm_c(TOKENS[:0]), None, ValueError, 'is empty: perhaps'),
    (of_llm_c(TOKENS, version=2), None, ValueError,
     'version must be 1, got 2'),
    (of_llm_c(TOKENS, magic=20240801), 'uint32', ValueError,
     'version must be 7, got 1'),
    (of_llm_c(TOKENS), 'int32', ValueError,
     "holds uint16: leave out dtype, or pass 'uint16'; got int32"),
    (TOKENS.tobytes(), object, ValueError, "dtype must be .* 'uint16', got"),
    (TOKENS.tobytes(), 'S0', ValueError, 'dtype must be .*fixed number')])
def test_files_that_do_not_fit_are_refused(
        tmp_path, content, dtype, error, words):
    """The error names the file, and what was expected."""
    path = tmp_path / 'train.bin'
    path.write_bytes(content)
    arguments = {} if dtype is None else {'dtype': dtype}
    for make in BinaryDataset, fuel.load:
        with pytest.raises(error, match=words):
            make(path, **arguments)


@pytest.mark.parametrize('name', ['train.bin', 'train.dat', 'train.raw'])
def test_without_a_type_the_error_has_the_line_to_write(tmp_path, name):
    """The line opens the file."""
    path = tmp_path / name
    TOKENS.tofile(path)
    with pytest.raises(ValueError, match='no format that is known') as caught:
        fuel.load(path)
    line = f"fuel.load({str(path)!r}, dtype='uint16')"
    assert line in str(caught.value)
    assert_array_equal(eval(line)[:][0], TOKENS)
    with pytest.raises(ValueError, match="pass dtype='uint16', or another"):
        BinaryDataset(path)


def test_other_formats_are_not_read_as_numbers(tmp_path):
    """Their extension says what they are, whatever arguments are passed."""
    numpy.save(tmp_path / 'x.npy', TOKENS)
    (tmp_path / 'x.csv').write_text('a\n1\n')
    for name in 'x.npy', 'x.csv':
        with pytest.raises(TypeError, match='dtype'):
            fuel.load(tmp_path / name, dtype='uint16')


def test_names_of_splits_keep_files_apart(tmp_path):
    """Its train.bin and val.bin are in one folder with nanoGPT."""
    for split, count in (('train', 9), ('val', 4)):
        TOKENS[:count].tofile(tmp_path / f'{split}.bin')
    pattern = str(tmp_path / '*.bin')
    with pytest.raises(ValueError, match="splits 'train', 'val'"):
        fuel.load(pattern, dtype='uint16')
    assert len(fuel.load(pattern, 'val', dtype='uint16')) == 4
    assert len(fuel.load(pattern, 'all', dtype='uint16')) == 13


def test_splits_pickles_and_states(tmp_path):
    """A file of another length is refused by the copy, and a cut file by the
    data set."""
    path = tmp_path / 'x.bin'
    TOKENS.tofile(path)
    dataset = BinaryDataset(path, 'u2', ('b', 'a'), {'a': [8, 1], 'b': (2, 4)})
    assert dataset[:][0].tolist() == [2, 3, 8, 1]
    copied = pickle.loads(pickle.dumps(dataset))
    assert copied[:][0].tolist() == [2, 3, 8, 1]
    os.truncate(path, 6)
    with pytest.raises(DamagedFileError, match='has 6 now'):
        dataset[:]
    with pytest.raises(StateMismatchError, match='had 9 examples'):
        dataset.renew()


def test_remote_file_is_read_by_ranges(tmp_path):
    """Only the ranges of the rows are fetched, in windows too."""
    tokens = numpy.random.RandomState(0).randint(0, 50000, 1 << 21).astype(
        'uint16')
    tokens.tofile(tmp_path / 'x.bin')
    with serving(tmp_path) as server:
        dataset = fuel.load(server.url('x.bin'), dtype='uint16')
        windows = Windows(dataset, 100, stride=1000, targets='next')
        inputs, targets = windows.get_data(None, [2000, 3])
        assert_array_equal(inputs, [tokens[2000000:2000100],
                                    tokens[3000:3100]])
        assert_array_equal(targets, [tokens[2000001:2000101],
                                     tokens[3001:3101]])
        stream = DataStream(windows, iteration_scheme=ShuffledScheme(
            len(windows), 64, seed=1))
        seen = numpy.concatenate([
            inputs[:, 0] for inputs, _ in stream.get_epoch_iterator()])
        assert_array_equal(numpy.sort(seen), numpy.sort(
            tokens[:len(windows) * 1000:1000]))
        dataset.close(None)


def test_rows_are_copied_in_c(tmp_path):
    """Batches of an epoch need no call of Python for each row."""
    TOKENS.tofile(tmp_path / 'x.bin')
    dataset = BinaryDataset(tmp_path / 'x.bin', 'u2')
    assert isinstance(dataset.readers['data'], MappedReader)
    assert dataset.readers['data'].direct() is not None
