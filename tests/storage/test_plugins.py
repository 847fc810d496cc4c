"""Filters that HDF5 has as plug-ins give what h5py gives, decoded once."""
import h5py
import numpy
import pytest

from fuel.exceptions import DamagedFileError
from fuel.storage import open_reader
from storage_strategies import values

plugins = pytest.importorskip('hdf5plugin', exc_type=ImportError)

FILTERS = {
    'blosc lz4': lambda: plugins.Blosc(cname='lz4'),
    'blosc zstd': lambda: plugins.Blosc(
        cname='zstd', shuffle=plugins.Blosc.BITSHUFFLE),
    'blosc blosclz': lambda: plugins.Blosc(
        cname='blosclz', clevel=9, shuffle=plugins.Blosc.NOSHUFFLE),
    'blosc2': plugins.Blosc2, 'lz4': plugins.LZ4,
    'zstd': lambda: plugins.Zstd(clevel=1),
    'bitshuffle': lambda: plugins.Bitshuffle(cname='none'),
    'bitshuffle lz4': plugins.Bitshuffle,
    'bitshuffle zstd': lambda: plugins.Bitshuffle(cname='zstd'),
    'bzip2': plugins.BZip2,
}


def write(path, data, options):
    """Write a data set whose last chunks are not full."""
    with h5py.File(path, 'w') as file:
        file.create_dataset('x', data=data, chunks=(16, 30), **options)


@pytest.mark.parametrize('shuffled', [False, True])
@pytest.mark.parametrize('dtype', ['u1', '<i2', '>f4', '<f8'])
@pytest.mark.parametrize('name', FILTERS)
def test_rows_equal_those_of_h5py(tmp_path, name, dtype, shuffled):
    """In any order; each chunk is decoded once while it is remembered."""
    rng = numpy.random.RandomState(0)
    data = values(rng, (100, 50), dtype)
    options = {**FILTERS[name](), 'shuffle': shuffled,
               'fletcher32': shuffled}
    write(tmp_path / 'a.hdf5', data, options)
    with h5py.File(tmp_path / 'a.hdf5', 'r') as file:
        reader = open_reader(file['x'], 1 << 20)
        assert reader.layout.reader == 'decoded'
        for _ in range(5):
            rows = rng.randint(0, 100, 40)
            assert (data[rows] == reader.read(rows)).all()
        assert (data[3:90] == reader.read(slice(3, 90))).all()
        assert 14 == reader.store.num_decoded


# These plug-ins say nothing of a chunk that is cut, or wait for its end for
# ever: only a checksum tells.
CARELESS = 'zstd', 'bitshuffle', 'bzip2'


@pytest.mark.parametrize('name, checked', [
    (name, checked) for name in FILTERS for checked in (False, True)
    if checked or name not in CARELESS])
def test_chunk_that_is_cut_is_an_error(tmp_path, name, checked):
    """It names file, source and row."""
    data = values(numpy.random.RandomState(0), (100, 50), '<i4')
    write(tmp_path / 'a.hdf5', data,
          {**FILTERS[name](), 'fletcher32': checked})
    with h5py.File(tmp_path / 'a.hdf5', 'r+') as file:
        mask, stored = file['x'].id.read_direct_chunk((32, 0))
        file['x'].id.write_direct_chunk(
            (32, 0), stored[:len(stored) // 2], mask)
    with h5py.File(tmp_path / 'a.hdf5', 'r') as file:
        reader = open_reader(file['x'])
        with pytest.raises(DamagedFileError, match="a.hdf5, source 'x', row"):
            reader.read(numpy.array([5, 40]))
        assert (data[50] == reader.read(50)).all()
