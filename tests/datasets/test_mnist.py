"""The MNIST data set, over a small file of its form."""
import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal
from support.hdf5_files import label

import fuel
from fuel.datasets.hdf5 import H5PYDataset
from fuel.datasets.mnist import MNIST
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream


@pytest.fixture
def images(own_home):
    """Write 30 images in the form of ``mnist.hdf5``; return them."""
    data = numpy.random.randint(0, 256, (30, 1, 28, 28)).astype('uint8')
    data[0, 0, 0, :2] = [0, 255]
    with h5py.File(own_home / 'data' / 'mnist.hdf5', 'w') as file:
        file['features'] = data
        file['targets'] = numpy.arange(30, dtype='uint8')[:, None] % 10
        label(file['features'], 'batch', 'channel', 'height', 'width')
        label(file['targets'], 'batch', 'index')
        file.attrs['split'] = H5PYDataset.create_split_array(
            {split: dict.fromkeys(['features', 'targets'], rows)
             for split, rows in [('train', (0, 20)), ('test', (20, 30))]})
    return data


def test_mnist_is_found_in_the_data_path_and_loaded(images):
    """Both splits are read into memory."""
    dataset = MNIST(('test',))
    assert dataset.load_in_memory
    assert dataset.filename == 'mnist.hdf5'
    assert dataset.axis_labels['features'] == (
        'batch', 'channel', 'height', 'width')
    features, targets = dataset.get_data(None, slice(0, 10))
    assert_array_equal(images[20:], features)
    assert targets.ravel().tolist() == list(range(10))
    assert MNIST(('train', 'test')).num_examples == 30
    with pytest.raises(ValueError, match='within 20 examples'):
        MNIST(('train',), subset=slice(20, 30))


@pytest.mark.parametrize('float_x', ['float32', 'float64'])
def test_mnist_default_stream_scales_to_floatx(images, float_x):
    """The default transformers give [0, 1] in ``config.floatX``."""
    fuel.config.floatX = float_x
    stream = DataStream.default_stream(
        MNIST(('train',)), iteration_scheme=SequentialScheme(20, 20))
    (features, targets), = stream.get_epoch_iterator()
    assert features.dtype == float_x
    assert targets.dtype == numpy.uint8
    assert features.max() == 1
    assert features.min() == 0
    assert_array_equal((images[:20] * (1 / 255.)).astype(float_x), features)


def test_mnist_default_transformers_may_be_replaced(images):
    """The default is a class attribute, which an instance may hide."""
    dataset = MNIST(('train',))
    dataset.default_transformers = ()
    stream = DataStream.default_stream(
        dataset, iteration_scheme=SequentialScheme(20, 20))
    assert next(stream.get_epoch_iterator())[0].dtype == numpy.uint8


def test_mnist_missing_raises_filenotfounderror_with_the_remedy():
    """Without the file the text names the commands that make it."""
    with pytest.raises(FileNotFoundError, match=r'mnist\.hdf5.*fuel-downloa'):
        MNIST(('train',))
