"""The Iris data set, over a small file of its form."""
import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal
from support.hdf5_files import label

from fuel.datasets.hdf5 import H5PYDataset
from fuel.datasets.iris import Iris


def write_iris(path):
    """Write 150 examples in the form of ``iris.hdf5``."""
    with h5py.File(path, 'w') as file:
        file['features'] = numpy.arange(600, dtype='float32').reshape(150, 4)
        file['targets'] = numpy.arange(3, dtype='uint8').repeat(50)[:, None]
        label(file['features'], 'batch', 'feature')
        label(file['targets'], 'batch', 'index')
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'all': {'features': (0, 150), 'targets': (0, 150)}})


def test_iris_is_found_in_the_data_path_and_loaded(own_home):
    """`Iris(('all',))` reads iris.hdf5 into memory."""
    write_iris(own_home / 'data' / 'iris.hdf5')
    dataset = Iris(('all',), subset=slice(100, 150))
    assert dataset.load_in_memory
    assert dataset.sources == ('features', 'targets')
    assert dataset.axis_labels == {'features': ('batch', 'feature'),
                                   'targets': ('batch', 'index')}
    assert dataset.default_transformers == ()
    features, targets = dataset.get_data(None, [0, 49])
    assert_array_equal([[400, 401, 402, 403], [596, 597, 598, 599]], features)
    assert targets.tolist() == [[2], [2]]
    assert not Iris(('all',), load_in_memory=False).load_in_memory


def test_iris_filename_may_be_replaced(own_home):
    """A subclass may name another file, also by a property."""
    write_iris(own_home / 'data' / 'flowers.hdf5')

    class Flowers(Iris):
        @property
        def filename(self):
            return 'flowers.hdf5'

    assert Flowers(('all',)).num_examples == 150


def test_iris_missing_raises_filenotfounderror_with_the_remedy():
    """Without the file the text names the commands that make it."""
    with pytest.raises(FileNotFoundError, match=r'iris\.hdf5.*fuel-convert'):
        Iris(('all',))
