"""Random files of every compressor give what h5py gives, by all roads."""
import tempfile
from pathlib import Path

import h5py
import hdf5plugin as plugins
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.storage_strategies import TYPES, expected, requests, values, write

from fuel import config
from fuel.datasets import H5PYDataset, HDF5Dataset
from fuel.schemes import ShuffledScheme
from fuel.storage import choose_reader, filters, open_hdf5
from fuel.streams import DataStream
from fuel.transformers import MultiProcessing


@st.composite
def compressors(draw):
    """Draw a compressor with its options."""
    name = draw(st.sampled_from(
        ['Blosc', 'Blosc2', 'Zstd', 'LZ4', 'Bitshuffle']))
    codec = draw(st.sampled_from(['blosclz', 'lz4', 'lz4hc', 'zlib', 'zstd']))
    level = draw(st.integers(1, 9))
    if name == 'Blosc':
        return plugins.Blosc(cname=codec, clevel=level,
                             shuffle=draw(st.integers(0, 2)))
    if name == 'Blosc2':
        return plugins.Blosc2(cname=codec, clevel=level,
                              filters=draw(st.integers(0, 4)))
    if name == 'Zstd':
        return plugins.Zstd(clevel=level)
    if name == 'LZ4':
        return plugins.LZ4(nbytes=draw(st.sampled_from([0, 64, 1000])))
    return plugins.Bitshuffle(
        nelems=draw(st.sampled_from([0, 8, 64, 1024])),
        cname=draw(st.sampled_from(['none', 'lz4', 'zstd'])))


@st.composite
def datasets(draw):
    """Draw the keywords of a data set, and its data; some are large enough
    for many blocks of a compressor."""
    shape = (draw(st.integers(1, 70)), *draw(st.lists(
        st.integers(1, 40), max_size=3)))
    if numpy.prod(shape) > 40000:
        shape = shape[:2]
    dtype = numpy.dtype(draw(st.sampled_from(TYPES)))
    data = values(numpy.random.RandomState(draw(st.integers(0, 1000))),
                  shape, dtype)
    if draw(st.booleans()):
        data[:len(data) // 2] = numpy.zeros((), dtype)
    return {
        'shape': shape, 'dtype': dtype, 'chunks': tuple(
            draw(st.integers(1, length)) for length in shape),
        'shuffle': draw(st.booleans()), 'fletcher32': draw(st.booleans()),
        **draw(compressors())}, data


@given(datasets(), st.data(), st.sampled_from([1, 3]))
def test_rows_equal_those_of_h5py(created, data, num_threads):
    """One row, some, and all are read, with one thread and several; some
    chunks skipped the filters."""
    keywords, content = created
    config.num_threads = num_threads
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, 'a.hdf5')
        write(path, keywords, content, [slice(None)], unfiltered=data.draw(
            st.lists(st.integers(0, 5), max_size=2)))
        with h5py.File(path, 'r') as file:
            reader = choose_reader(file['x'], data.draw(
                st.sampled_from([0, 1000, 1 << 20])))
            assert 'decoded' == reader.layout.reader
            for rows in (data.draw(requests(len(content))), slice(None)):
                wanted = expected(file['x'], rows)
                found = reader.read(rows)
                assert (found.dtype, found.shape) == (
                    wanted.dtype, wanted.shape)
                assert (found == wanted).all()


NAMES = {
    'blosc': plugins.Blosc, 'blosc2': plugins.Blosc2, 'zstd': plugins.Zstd,
    'lz4': plugins.LZ4, 'bitshuffle': plugins.Bitshuffle}


@pytest.mark.parametrize('name', NAMES)
def test_data_sets_and_workers_give_the_rows(tmp_path, name):
    """Each kind of data set reads the file, in this process and in others."""
    content = numpy.random.RandomState(0).randint(
        0, 99, (200, 3, 70)).astype('<i4')
    content[:, 0, 0] = numpy.arange(200)
    for path in (tmp_path / 'plain.hdf5', tmp_path / 'own.hdf5'):
        with h5py.File(path, 'w') as file:
            file.create_dataset(
                'x', data=content, chunks=(13, 2, 70), shuffle=True,
                fletcher32=True, **NAMES[name]())
            if path.stem == 'own':
                file.attrs['split'] = H5PYDataset.create_split_array(
                    {'train': {'x': (0, 200)}})
    with open_hdf5(path) as file:
        assert (content[[7, 3, 150]] == file['x'][[7, 3, 150]]).all()
    for dataset in (
            HDF5Dataset(tmp_path / 'plain.hdf5', sources={'x': 'x'}),
            H5PYDataset(tmp_path / 'own.hdf5', ('train',), sources=('x',))):
        with dataset:
            stream = DataStream(
                dataset, iteration_scheme=ShuffledScheme(200, 30))
            for made in (stream, MultiProcessing(stream)):
                rows = numpy.concatenate(
                    [batch for batch, in made.get_epoch_iterator()])
                assert (content == rows[rows[:, 0, 0].argsort()]).all()


def test_library_is_used():
    """All formats are decoded by it here."""
    assert {32001, 32004, 32008, 32015, 32026} == set(filters.codes())
