"""Filters of chunks are undone as the file says they were applied."""
import h5py
import numpy
import pytest

from fuel.datasets import HDF5Dataset
from fuel.storage.filters import decode_chunk
from fuel.storage.layout import ChunkFilter

DATA = numpy.arange(48, dtype=numpy.uint8)


def shuffled(size):
    """Return the bytes as HDF5 puts them: the first of each element first."""
    return DATA.reshape(-1, size).T.tobytes()


@pytest.mark.parametrize('options, itemsize', [
    ((4,), 4), ((4,), 1), ((2,), 8), ((8,), 2), ((1,), 4), ((), 4), ((), 1)])
def test_filter_says_of_how_many_bytes_its_elements_are(options, itemsize):
    """The filter decides; the type of the data does if it says nothing."""
    size = options[0] if options else itemsize
    found = numpy.empty_like(DATA)
    decode_chunk(shuffled(size), 0, (
        ChunkFilter(h5py.h5z.FILTER_SHUFFLE, 'shuffle', options),),
        itemsize, found)
    assert DATA.tolist() == found.tolist()


@pytest.mark.parametrize('order', [
    ('deflate', 'shuffle'), ('lzf', 'shuffle', 'fletcher32'),
    ('deflate', 'fletcher32', 'shuffle'), ('shuffle', 'deflate', 'shuffle')])
def test_filters_are_undone_in_any_order(tmp_path, order):
    """A shuffle of compressed bytes, which HDF5 applies, is undone too."""
    rows = numpy.random.RandomState(0).randint(0, 50, (100, 8), numpy.int32)
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_chunk((16, 8))
    for name in order:
        if name == 'lzf':
            properties.set_filter(h5py.h5z.FILTER_LZF)
        else:
            getattr(properties, f'set_{name}')()
    with h5py.File(tmp_path / 'x.hdf5', 'w') as file:
        h5py.Dataset(h5py.h5d.create(
            file.id, b'x', h5py.h5t.NATIVE_INT32,
            h5py.h5s.create_simple(rows.shape), properties))[...] = rows
    dataset = HDF5Dataset(tmp_path / 'x.hdf5', 'x')
    found, = dataset.get_data(None, slice(0, 100))
    assert numpy.array_equal(rows, found)


def test_chunk_of_another_size_is_refused():
    """The error has the size of the chunk and the one it should have."""
    with pytest.raises(ValueError, match='decodes to 48 bytes instead of 40'):
        decode_chunk(shuffled(4), 0, (
            ChunkFilter(h5py.h5z.FILTER_SHUFFLE, 'shuffle', (4,)),),
            4, numpy.empty(40, numpy.uint8))
