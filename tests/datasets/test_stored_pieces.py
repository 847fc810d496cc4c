"""The stored pieces that examples lie in, of data sets of every kind."""
import h5py
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from support.sparse_rows import random_csr

from fuel.datasets import (
    CSR, CSVDataset, H5PYDataset, HDF5Dataset, IndexableDataset,
    IterableDataset, JSONLDataset, NPYDataset, Ragged, Runs, Windows)
from fuel.schemes import BlockShuffledScheme, SequentialScheme
from fuel.streams import DataStream


def assert_same_pieces(expected, found):
    """Check that numbers of pieces tell the same ones apart, in one order."""
    assert found.dtype == numpy.intp
    assert_array_equal(numpy.unique(expected, return_inverse=True)[1],
                       numpy.unique(found, return_inverse=True)[1])


def piece_of(file, name, rows):
    """Return the chunk of each row along the first axis, as h5py has it."""
    return rows // file[name].chunks[0]


@st.composite
def files(draw):
    """Return for some files how many rows each has and how they are stored."""
    lengths = draw(st.lists(st.integers(1, 40), min_size=1, max_size=3))
    return [(length, {
        'chunks': (draw(st.integers(1, length)), draw(st.integers(1, 3))),
        'compression': draw(st.sampled_from([None, 'gzip']))})
        for length in lengths]


@settings(deadline=None, max_examples=40)
@given(files(), st.data())
def test_pieces_are_the_chunks_that_h5py_names(
        tmp_path_factory, stored, data):
    """They are equal for several files, splits in any order, and windows."""
    folder = tmp_path_factory.mktemp('chunks')
    total = sum(length for length, _ in stored)
    expected, start = [], 0
    for number, (length, options) in enumerate(stored):
        with h5py.File(folder / f'{number}.h5', 'w') as file:
            file.create_dataset('x', data=numpy.zeros((length, 3), 'i4'),
                                **options)
            expected.append(number * 1000 + piece_of(
                file, 'x', numpy.arange(length)))
        start += length
    expected = numpy.concatenate(expected)
    rows = data.draw(st.lists(st.integers(0, total - 1), min_size=1,
                              max_size=20, unique=True))
    paths = [str(folder / f'{number}.h5') for number in range(len(stored))]
    dataset = HDF5Dataset(paths, ['x'])
    assert_same_pieces(expected, dataset.chunk_of_examples('x'))
    with HDF5Dataset(paths, ['x'], splits={'some': numpy.array(rows)},
                     which_sets=('some',)) as some:
        assert_same_pieces(expected[rows], some.chunk_of_examples())
    with Windows(dataset, 2, runs='all', stride=3, pad='edge', pad_before=1,
                 pad_after=1, sources=('x', 'mask')) as windows:
        first = numpy.maximum(0, numpy.arange(len(windows)) * 3 - 1)
        assert_same_pieces(expected[first], windows.chunk_of_examples('x'))
    length, options = stored[0]
    rows = numpy.array(rows) % length
    with H5PYDataset(paths[0], splits={'some': rows},
                     which_sets=('some',)) as one:
        assert_array_equal(rows // options['chunks'][0],
                           one.chunk_of_examples())


def test_runs_have_the_chunk_of_their_first_row(tmp_path):
    """Runs without rows have one too; the largest source is the default."""
    with h5py.File(tmp_path / 'a.h5', 'w') as file:
        file.create_dataset('a', data=numpy.zeros(20), chunks=(2,),
                            compression='gzip')
        file.create_dataset('b', data=numpy.zeros((20, 4)), chunks=(6, 4),
                            compression='gzip')
    runs = Runs(HDF5Dataset(tmp_path / 'a.h5'),
                runs={'lengths': [5, 0, 8, 7, 0]})
    assert [0, 0, 0, 2, 3] == runs.chunk_of_examples().tolist()
    assert [0, 2, 2, 6, 9] == runs.chunk_of_examples('a').tolist()


def test_rows_made_of_ranges_have_the_chunk_that_they_begin_in(tmp_path):
    """Sparse ones, and those of different lengths."""
    matrix = random_csr(30, 50, seed=2)
    with h5py.File(tmp_path / 'a.h5', 'w') as file:
        cells = file.create_group('X')
        cells.attrs['encoding-type'] = 'csr_matrix'
        cells.attrs['shape'] = matrix.shape
        for name in 'data', 'indices', 'indptr':
            cells.create_dataset(name, data=getattr(matrix, name),
                                 chunks=(16,), compression='gzip')
    begins = numpy.minimum(matrix.indptr[:-1], matrix.nnz - 1) // 16
    for column in CSR('X'), Ragged('X/data', offsets='X/indptr'):
        dataset = HDF5Dataset(tmp_path / 'a.h5', {'x': column})
        assert_same_pieces(begins, dataset.chunk_of_examples())


def test_rows_that_hdf5_reads_have_their_chunks(tmp_path):
    """They have them in one file, and in several."""
    for number in range(2):
        with h5py.File(tmp_path / f'{number}.h5', 'w') as file:
            file.create_dataset(
                'x', data=numpy.zeros(10, 'i2'), chunks=(4,), dtype=(
                    '>i2' if number else '<i2'))
    dataset = HDF5Dataset([tmp_path / '0.h5', tmp_path / '1.h5'], ['x'])
    assert_same_pieces(
        numpy.array([0] * 4 + [1] * 4 + [2] * 2 + [3] * 4 + [4] * 4 + [5] * 2),
        dataset.chunk_of_examples())
    with h5py.File(tmp_path / '0.h5', 'r') as handle, H5PYDataset(
            handle, splits={'a': (3, 9)}, which_sets=('a',)) as one:
        assert [0, 1, 1, 1, 1, 2] == one.chunk_of_examples().tolist()


def sets_without_pieces(folder):
    """Return data sets whose rows lie by themselves."""
    with h5py.File(folder / 'a.h5', 'w') as file:
        file['x'] = numpy.arange(6)
    numpy.save(folder / 'a.npy', numpy.arange(6))
    numpy.savez_compressed(folder / 'a.npz', x=numpy.arange(6))
    (folder / 'a.csv').write_text('x\n1\n2\n3\n')
    (folder / 'a.jsonl').write_text('{"x": 1}\n{"x": 2}\n')
    stored = HDF5Dataset(folder / 'a.h5')
    return [
        stored, Windows(stored, 2), Runs(stored, runs={'lengths': [2, 4]}),
        H5PYDataset(folder / 'a.h5', splits={'all': (0, 6)}),
        NPYDataset(folder / 'a.npy'), NPYDataset(folder / 'a.npz'),
        CSVDataset(folder / 'a.csv'), JSONLDataset(folder / 'a.jsonl'),
        IndexableDataset({'x': numpy.arange(6)})]


def test_rows_that_lie_by_themselves_are_as_fast_in_any_order(tmp_path):
    """The error says so, with the file."""
    for dataset in sets_without_pieces(tmp_path):
        for source in None, dataset.sources[0]:
            with pytest.raises(ValueError, match=(
                    f'{dataset.sources[0]}.*is not chunked: any order of its '
                    f'examples is as fast as another')):
                dataset.chunk_of_examples(source)
        with pytest.raises(ValueError, match="no source 'w'"):
            dataset.chunk_of_examples('w')


def test_data_set_that_only_generates_says_so():
    """Blocks of another size can be given."""
    rows = IndexableDataset({'x': numpy.arange(6)})
    for dataset in (IterableDataset([1, 2]), DataStream(
            rows, iteration_scheme=SequentialScheme(6, 2)).as_dataset()):
        with pytest.raises(TypeError, match='pass block_size'):
            BlockShuffledScheme.aligned(dataset, 4)


def test_examples_in_memory_keep_the_chunks_of_their_file(tmp_path):
    """A scheme that is saved may be that of a data set in the file."""
    with h5py.File(tmp_path / 'a.h5', 'w') as file:
        file.create_dataset('x', data=numpy.arange(10), chunks=(4,))
    with H5PYDataset(tmp_path / 'a.h5', splits={'a': (2, 9)},
                     which_sets=('a',), load_in_memory=True) as dataset:
        assert [0, 0, 1, 1, 1, 1, 2] == dataset.chunk_of_examples().tolist()
        assert dataset._access.current is None


def test_aligned_epoch_of_several_files_decodes_each_chunk_once(tmp_path):
    """The cache has room for two windows."""
    for number in range(3):
        with h5py.File(tmp_path / f'{number}.h5', 'w') as file:
            file.create_dataset('x', data=numpy.zeros((50, 8)), chunks=(7, 8),
                                compression='gzip')
    dataset = HDF5Dataset(tmp_path / '*.h5', cache_bytes=4 * 7 * 64)
    stream = DataStream(dataset, iteration_scheme=BlockShuffledScheme.aligned(
        dataset, 4, window=2))
    assert 150 == sum(len(x) for x, in stream.get_epoch_iterator())
    assert 24 == dataset.readers['x'].store.num_decoded
