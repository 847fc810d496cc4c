"""Plain batches of HDF5 files come by one call, and only those."""
import os

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal

from fuel.datasets import H5PYDataset

X = numpy.arange(400, dtype='int16').reshape(100, 4)
Y = numpy.arange(100, dtype='uint8').reshape(100, 1)
REQUEST = numpy.array([9, 3, 3, 59])
LAYOUTS = {
    'contiguous': {},
    'chunked': {'chunks': (7, 4)},
    'gzip': {'chunks': (7, 4), 'compression': 'gzip'},
}


def write(path, splits=None, x=X, **options):
    """Write two sources, of which `options` are those of one."""
    with h5py.File(path, 'w') as file:
        file.create_dataset('x', data=x, **options)
        file['y'] = Y
        file.attrs['split'] = H5PYDataset.create_split_array(
            splits or {'train': {'x': (0, 60), 'y': (0, 60)},
                       'test': {'x': (60, 100), 'y': (60, 100)}})
    return str(path)


@pytest.fixture
def path(tmp_path):
    """Write a file of two splits."""
    return write(tmp_path / 'x.hdf5')


def is_direct(dataset):
    """Tell whether a batch comes without the data set's own reading."""
    dataset.get_data(None, REQUEST % dataset.num_examples)
    direct = dataset._access.direct
    return direct is not None and direct.read(
        REQUEST % dataset.num_examples) is not None


@pytest.mark.parametrize('layout', LAYOUTS)
def test_batches_of_plain_layouts_are_direct(tmp_path, layout):
    """From the second one on, in any split."""
    path = write(tmp_path / 'x.hdf5', **LAYOUTS[layout])
    for split, first in (('train', 0), ('test', 60)):
        with H5PYDataset(path, (split,)) as dataset:
            assert is_direct(dataset)
            rows = REQUEST % dataset.num_examples
            for _ in range(2):
                x, y = dataset.get_data(None, rows)
                assert_array_equal(X[rows + first], x)
                assert_array_equal(Y[rows + first], y)
                x[...], y[...] = 0, 0


@pytest.mark.parametrize('x', [
    X.astype('>i2'), numpy.array([b'a', b'bc'] * 50, 'O')], ids=str)
def test_other_types_are_not_direct(tmp_path, x):
    """Those that need more than copying."""
    options = {'dtype': h5py.string_dtype()} if x.dtype == 'O' else {}
    path = write(tmp_path / 'x.hdf5', x=x, **options)
    with H5PYDataset(path, ('train',)) as dataset:
        assert not is_direct(dataset)
        assert_array_equal(x[REQUEST], dataset.get_data(None, REQUEST)[0])


def test_scattered_splits_are_not_direct(tmp_path):
    """Their rows are looked up."""
    path = write(tmp_path / 'x.hdf5')
    with h5py.File(path, 'a') as file:
        file['order'] = numpy.arange(1, 100, 2)
        order = file['order'].ref
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 50, order), 'y': (0, 50, order)}})
    with H5PYDataset(path, ('train',)) as dataset:
        rows = REQUEST % 50
        assert not is_direct(dataset)
        assert_array_equal(X[1::2][rows], dataset.get_data(None, rows)[0])


def test_other_sources_are_read_when_they_are_asked_for(path):
    """What was direct before is forgotten."""
    with H5PYDataset(path, ('train',), sources=('x',)) as dataset:
        assert is_direct(dataset)
        dataset.sources = ('y', 'x')
        y, x = dataset.get_data(None, REQUEST)
        assert_array_equal(Y[REQUEST], y)
        assert_array_equal(X[REQUEST], x)


def test_data_loaded_later_are_read_from_memory(path):
    """The file may change then."""
    dataset = H5PYDataset(path, ('train',))
    assert is_direct(dataset)
    dataset.load_in_memory = True
    dataset.load()
    dataset.close(None)
    os.remove(path)
    assert_array_equal(X[REQUEST], dataset.get_data(None, REQUEST)[0])


def test_closed_data_sets_open_the_new_file(path, tmp_path):
    """A file that took the place of the old one is read after close()."""
    dataset = H5PYDataset(path, ('train',))
    assert is_direct(dataset)
    other = write(tmp_path / 'other.hdf5', x=X + 1)
    os.replace(other, path)
    assert_array_equal(X[REQUEST], dataset.get_data(None, REQUEST)[0])
    dataset.close(None)
    assert_array_equal(X[REQUEST] + 1, dataset.get_data(None, REQUEST)[0])
    dataset.close(None)


def test_subclasses_that_read_in_their_own_way_do_so_for_every_batch(path):
    """Each of the hooks that a subclass may override."""
    class Doubled(H5PYDataset):
        def _out_of_memory_get_data(self, state=None, request=None):
            data, shapes = super()._out_of_memory_get_data(state, request)
            return [part * 2 for part in data], shapes

    with Doubled(path, ('train',)) as dataset:
        for _ in range(3):
            assert_array_equal(
                X[REQUEST] * 2, dataset.get_data(None, REQUEST)[0])


def test_handles_of_the_user_are_read_as_long_as_they_are_open(path):
    """Afterwards the path leads to the file, which may be another."""
    with h5py.File(path, 'r') as handle:
        dataset = H5PYDataset(handle, ('train',))
        assert not is_direct(dataset)
    os.replace(write(path + '2', x=X + 1), path)
    assert_array_equal(X[REQUEST] + 1, dataset.get_data(None, REQUEST)[0])
    dataset.close(None)


def test_wrong_requests_are_refused_as_before(path):
    """What is not direct is said by who knows all cases."""
    with H5PYDataset(path, ('train',)) as dataset:
        assert is_direct(dataset)
        for wrong in ([60], [-1]):
            with pytest.raises(ValueError, match='from 0 to 59'):
                dataset.get_data(None, numpy.array(wrong))
        with pytest.raises(ValueError, match='boolean'):
            dataset.get_data(None, numpy.ones(60, bool))
