"""Filters that HDF5 has as plug-ins give what h5py gives, decoded once, by
imagecodecs or by HDF5."""
import os
import random
import sys
from pathlib import Path

import h5py
import hdf5plugin as plugins
import numpy
import pytest
from support.processes import run_python
from support.storage_strategies import values

from fuel.exceptions import DamagedFileError
from fuel.storage import choose_reader, describe, filters
from fuel.storage.chunks import DecodedReader
from fuel.utils.extras import how_to_install

FILTERS = {
    'blosc': plugins.Blosc,
    'blosc zstd': lambda: plugins.Blosc(
        cname='zstd', shuffle=plugins.Blosc.BITSHUFFLE),
    'blosc blosclz': lambda: plugins.Blosc(
        cname='blosclz', clevel=9, shuffle=plugins.Blosc.NOSHUFFLE),
    'blosc2': plugins.Blosc2,
    'blosc2 zstd': lambda: plugins.Blosc2(
        cname='zstd', filters=plugins.Blosc2.BITSHUFFLE),
    'lz4': plugins.LZ4, 'lz4 blocks': lambda: plugins.LZ4(nbytes=512),
    'zstd': lambda: plugins.Zstd(clevel=1),
    'bitshuffle': lambda: plugins.Bitshuffle(cname='none'),
    'bitshuffle lz4': plugins.Bitshuffle,
    'bitshuffle zstd': lambda: plugins.Bitshuffle(cname='zstd'),
    'bzip2': plugins.BZip2,
}


# It compresses nothing: HDF5 alone knows which chunks it left as they were.
BY_HDF5 = 'bitshuffle'


@pytest.fixture(params=['imagecodecs', 'HDF5'])
def decoder(request, name, monkeypatch):
    """Return what decodes; the other one is not there."""
    if request.param == 'HDF5':
        monkeypatch.setattr(filters, 'codes', frozenset)
    elif name != BY_HDF5:
        monkeypatch.setattr(DecodedReader, '_decode_with_h5py', _fail)
    return request.param


def _fail(*_):
    raise AssertionError('HDF5 was asked')


def write(path, data, options):
    """Write a data set whose last chunks are not full."""
    with h5py.File(path, 'w') as file:
        file.create_dataset('x', data=data, chunks=(16, 30), **options)


@pytest.mark.parametrize('shuffled', [False, True])
@pytest.mark.parametrize('dtype', ['u1', '<i2', '>f4', '<f8'])
@pytest.mark.parametrize('name', FILTERS)
def test_rows_equal_those_of_h5py(tmp_path, name, dtype, shuffled, decoder):
    """Rows are equal in any order; each chunk is decoded once while it is
    cached."""
    rng = numpy.random.RandomState(0)
    data = values(rng, (100, 50), dtype)
    options = {**FILTERS[name](), 'shuffle': shuffled,
               'fletcher32': shuffled}
    write(tmp_path / 'a.hdf5', data, options)
    with h5py.File(tmp_path / 'a.hdf5', 'r') as file:
        reader = choose_reader(file['x'], 1 << 20)
        assert reader.layout.reader == 'decoded'
        for _ in range(5):
            rows = rng.randint(0, 100, 40)
            assert (data[rows] == reader.read(rows)).all()
        assert (data[3:90] == reader.read(slice(3, 90))).all()
        assert 14 == reader.store.num_decoded


@pytest.mark.parametrize('checked', [False, True])
@pytest.mark.parametrize('name', FILTERS)
def test_chunk_that_is_cut_is_an_error(tmp_path, name, checked, decoder):
    """The error names file, source and row."""
    data = values(numpy.random.RandomState(0), (100, 50), '<i4')
    write(tmp_path / 'a.hdf5', data,
          {**FILTERS[name](), 'fletcher32': checked})
    with h5py.File(tmp_path / 'a.hdf5', 'r+') as file:
        mask, stored = file['x'].id.read_direct_chunk((32, 0))
        file['x'].id.write_direct_chunk(
            (32, 0), stored[:len(stored) // 2], mask)
    with h5py.File(tmp_path / 'a.hdf5', 'r') as file:
        reader = choose_reader(file['x'])
        with pytest.raises(DamagedFileError, match="a.hdf5, source 'x', row"):
            reader.read(numpy.array([5, 40]))
        assert (data[50] == reader.read(50)).all()


@pytest.mark.timeout(120)
@pytest.mark.parametrize('name', ['imagecodecs', 'HDF5'])
def test_damage_never_ends_the_process(tmp_path, request, monkeypatch, name):
    """A chunk that is cut is an error, whatever its filter; other damage is
    one that names the place, or is what the format cannot notice."""
    count = 300 if request.config.getoption('full') else 8
    folder = Path(__file__).parent
    monkeypatch.setenv('PYTHONPATH', os.pathsep.join(
        [str(folder.parent), *filter(None, sys.path)]))
    status, _, errors = run_python(
        '-W', 'error', folder / 'damaged_plugins.py',
        str(random.randrange(2 ** 32)), str(count), tmp_path, name)
    lines = (tmp_path / 'told').read_text().splitlines()
    assert (status, count * len(FILTERS)) == (0, len(lines)), (
        lines[-1], errors)
    for line in lines:
        what, _, came = line.rpartition(',')
        assert came in ('named', 'right', 'wrong'), what
        if what.endswith(',cut') or what.startswith('bzip2'):
            assert came != 'wrong', what


@pytest.mark.parametrize('name', FILTERS)
def test_chunks_of_many_blocks(tmp_path, name, decoder):
    """Lengths inside the chunks are understood to the last byte."""
    rng = numpy.random.RandomState(0)
    data = rng.randint(0, 3, (300, 1003)).astype('<i4')
    data[100:200] = rng.randint(0, 1 << 30, (100, 1003))
    data[200:] = 0
    with h5py.File(tmp_path / 'a.hdf5', 'w') as file:
        file.create_dataset('x', data=data, chunks=(257, 1003),
                            **FILTERS[name]())
    with h5py.File(tmp_path / 'a.hdf5', 'r') as file:
        rows = choose_reader(file['x']).read(numpy.arange(300))
        assert (data == rows).all()


@pytest.mark.parametrize('name, code, dtype', [
    ('zstd', 32015, '<i4'), ('lz4', 32004, '<i4'), ('blosc', 32001, '<i4'),
    ('bitshuffle', 32008, '<i4'), ('zstd', 32015, 'ragged')])
def test_filter_that_is_missing_is_not_damage(tmp_path, name, code, dtype):
    """The error names it, and what to do: the extra, or the plug-in."""
    with h5py.File(tmp_path / 'a.hdf5', 'w') as file:
        if dtype == 'ragged':
            x = file.create_dataset('x', (20,), h5py.vlen_dtype('i4'),
                                    chunks=(4,), **FILTERS[name]())
            x[...] = [numpy.arange(3)] * 20
        else:
            file.create_dataset('x', data=numpy.arange(999, dtype=dtype),
                                chunks=(400,), **FILTERS[name]())
    status, out, errors = run_python('-c', """
import h5py, sys
sys.modules['imagecodecs'] = None
from fuel.storage import choose_reader
with h5py.File(sys.argv[1], 'r') as file:
    try:
        choose_reader(file['x']).read(3)
    except OSError as error:
        print(type(error).__name__, error)
""", tmp_path / 'a.hdf5')
    assert (0, b'') == (status, errors)
    assert out.startswith(b'OSError ' + os.fsencode(tmp_path / 'a.hdf5')
                          + b", source 'x': ")
    assert f'filter {code} ({name})'.encode() in out
    assert how_to_install('codecs').encode() in out
    assert b'pip install hdf5plugin' in out
    assert b'import hdf5plugin first' in out


@pytest.mark.parametrize('name', sorted(FILTERS.keys() - {BY_HDF5}))
def test_no_plugin_is_needed(tmp_path, name):
    """Fuel decodes the plug-ins' compression by itself."""
    write(tmp_path / 'a.hdf5', numpy.ones((100, 50), '<i4'), FILTERS[name]())
    assert (0, b'50.0\n', b'') == run_python('-c', """
import h5py, sys
from fuel.storage import choose_reader
with h5py.File(sys.argv[1], 'r') as file:
    print(float(choose_reader(file['x']).read(3).sum()))
""", tmp_path / 'a.hdf5')


@pytest.mark.parametrize('name', FILTERS)
def test_description_has_the_short_name_of_a_filter(tmp_path, name):
    """The sentence that the plug-in registers is not shown."""
    write(tmp_path / 'a.hdf5', numpy.ones((100, 50), '<i4'), FILTERS[name]())
    with h5py.File(tmp_path / 'a.hdf5', 'r') as file:
        assert (name.split()[0],) == describe(file['x']).filters
