"""Places of the chunks of a data set, and a damaged index of them."""
import itertools
import struct

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal

from fuel.datasets import HDF5Dataset
from fuel.exceptions import DamagedFileError
from fuel.storage import choose_reader

# Of a chunk in a tree of the older format: bytes and filters, which precede
# its place, and the place in elements; the address follows.
KEY = '<IIQQQ'


def write_chunks(path, compression):
    """Write twelve rows in six chunks of the older format; return them."""
    rows = numpy.random.default_rng(1).integers(0, 1000, (12, 4))
    with h5py.File(path, 'w', libver='earliest') as file:
        file.create_dataset(
            'x', data=rows, chunks=(4, 2), compression=compression)
    return rows


def find_entry(path, corner):
    """Return where the key of a chunk is in the file, its bytes and its
    address; read without Fuel."""
    content = path.read_bytes()
    with h5py.File(path) as file:
        dataset = file['x'].id
        chunks = list(map(
            dataset.get_chunk_info, range(dataset.get_num_chunks())))
    found, = [chunk for chunk in chunks if corner == chunk.chunk_offset]
    entry = struct.pack(KEY + 'Q', found.size, 0, *corner, 0,
                        found.byte_offset)
    assert 1 == content.count(entry)
    return content.index(entry), found.size, found.byte_offset


def overwrite(path, place, data):
    """Put other bytes into a file."""
    content = bytearray(path.read_bytes())
    content[place:place + len(data)] = data
    path.write_bytes(content)


def refused(path, text):
    """Check that nothing is read, by any way, and that the error names file
    and data set."""
    with h5py.File(path) as file, pytest.raises(
            DamagedFileError, match=rf"a\.h5.*'/x': {text}.*is damaged"):
        choose_reader(file['x'])
    with pytest.raises(DamagedFileError, match=text):
        dataset = HDF5Dataset(str(path), ['x'])
        dataset.get_data(None, [0])


@pytest.mark.parametrize('compression', [None, 'gzip'])
@pytest.mark.parametrize('before, after, text', [
    ((4, 2), (4, 0), r'the index of its chunks has \(4, 0\) after \(4, 0\)'),
    ((8, 0), (4, 0), r'the index of its chunks has \(4, 0\) after \(4, 2\)'),
    ((4, 0), (8, 0), r'the index of its chunks has \(4, 2\) after \(8, 0\)'),
    ((4, 2), (4, 3), r'HDF5 cannot list its chunks: ')])
def test_index_whose_places_do_not_ascend_is_refused(
        tmp_path, compression, before, after, text):
    """Two chunks that claim one place gave wrong rows, and zeros in the place
    of others."""
    path = tmp_path / 'a.h5'
    write_chunks(path, compression)
    place, size, _ = find_entry(path, before)
    overwrite(path, place, struct.pack(KEY, size, 0, *after, 0))
    refused(path, text)


@pytest.mark.parametrize('compression', [None, 'gzip'])
@pytest.mark.parametrize('shift', [0, 1, 8])
def test_chunks_that_share_bytes_are_refused(tmp_path, compression, shift):
    """Chunks may begin at the same byte or inside each other."""
    path = tmp_path / 'a.h5'
    write_chunks(path, compression)
    place, _, _ = find_entry(path, (4, 2))
    _, _, other = find_entry(path, (8, 0))
    overwrite(path, place + struct.calcsize(KEY),
              struct.pack('<Q', other + shift))
    refused(path, r'its chunks at .* and .* share bytes')


@pytest.mark.parametrize('compression', [None, 'gzip'])
def test_one_damaged_byte_of_an_index_never_gives_other_rows(
        tmp_path, compression):
    """Each byte of keys and addresses is damaged: rows are those of HDF5, or
    there is an error."""
    path = tmp_path / 'a.h5'
    rows = write_chunks(path, compression)
    content = path.read_bytes()
    start, _, _ = find_entry(path, (4, 0))
    rng = numpy.random.default_rng(2)
    errors = 0
    # The place of the chunk and its address, without size and filters.
    for place in range(start + 8, start + 40):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            with h5py.File(path) as file:
                found = choose_reader(file['x']).read(slice(0, 12))
        except (DamagedFileError, OSError):
            errors += 1
        else:
            # The number of the last axis is of bytes, and not used.
            assert_array_equal(rows, found)
    assert errors >= 16


@pytest.mark.parametrize('libver', ['earliest', 'v108', 'latest'])
@pytest.mark.parametrize('compression', [None, 'gzip'])
def test_rows_are_hdf5s_whatever_axes_may_grow(tmp_path, libver, compression):
    """HDF5 lists chunks at wrong places where an axis other than the first
    may grow, in its newer format."""
    path = tmp_path / 'a.h5'
    lengths = [12, 40, None]
    with h5py.File(path, 'w', libver=libver) as file:
        for number, maxshape in enumerate(itertools.product(
                lengths, [9, 40, None], [4, None])):
            array = file.create_dataset(
                f'{number}', (12, 9, 4), 'i4', chunks=(4, 3, 2),
                maxshape=maxshape, compression=compression)
            array[:, 3:] = numpy.random.default_rng(number).integers(
                1, 1000, (12, 6, 4))
    with h5py.File(path) as file:
        for array in file.values():
            found = choose_reader(array).read(slice(0, 12))
            assert_array_equal(array[:], found, str(array.maxshape))
