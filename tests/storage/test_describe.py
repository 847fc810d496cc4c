"""Descriptions of a data set's storage."""
import h5py
import numpy
import pytest

from fuel.storage import describe


@pytest.mark.parametrize('options, text', [
    ({}, 'contiguous, no filter, 96 bytes stored, 96 decoded, read directly'),
    ({'chunks': (4, 2)},
     'chunked (4, 2), no filter, 128 bytes stored, 96 decoded, read'),
    ({'chunks': (6, 2), 'shuffle': True, 'compression': 'gzip',
      'compression_opts': 3, 'fletcher32': True},
     'chunked (6, 2), shuffle + gzip 3 + fletcher32, '),
    ({'dtype': h5py.string_dtype()},
     'contiguous, no filter, 0 bytes stored, 96 decoded, read by h5py: noth'),
    ({'dtype': h5py.vlen_dtype('u1'), 'chunks': (2, 2), 'shuffle': True},
     'chunked (2, 2), shuffle, 0 bytes stored, 96 decoded, read by h5py: it'),
])
def test_description_names_layout_filters_and_sizes(tmp_path, options, text):
    """It is one line for people, with the reason where h5py must read."""
    with h5py.File(tmp_path / 'a.hdf5', 'w') as file:
        x = file.create_dataset(
            'x', (6, 2), **{'dtype': 'f8', 'fillvalue': None, **options})
        if x.dtype.kind == 'f':
            x[...] = numpy.ones((6, 2))
    with h5py.File(tmp_path / 'a.hdf5', 'r') as file:
        assert str(describe(file['x'])).startswith(text)


def test_description_of_a_null_space_is_empty(tmp_path):
    """A data set without a shape has no bytes."""
    with h5py.File(tmp_path / 'a.hdf5', 'w') as file:
        file['x'] = h5py.Empty('f8')
    with h5py.File(tmp_path / 'a.hdf5', 'r') as file:
        found = describe(file['x'])
    assert 0 == found.decoded_nbytes
    assert 'h5py' == found.reader
