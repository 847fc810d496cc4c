"""Iris and MNIST: the pattern of the other converters."""
import gzip
import os
from argparse import ArgumentParser

import h5py
import numpy
import pytest
from support import raw_data

from fuel.converters import all_converters
from fuel.converters.base import BadInputFile, MissingInputFiles
from fuel.converters.iris import convert_iris
from fuel.converters.mnist import (
    convert_mnist,
    read_mnist_images,
    read_mnist_labels,
)

IMAGES = 'train-images-idx3-ubyte.gz'
LABELS = 'train-labels-idx1-ubyte.gz'


@pytest.mark.parametrize('name, function', [('iris', convert_iris),
                                            ('mnist', convert_mnist)])
def test_fill_subparser_returns_the_converter(name, function):
    """The registry leads to the conversion function itself."""
    assert function is dict(all_converters)[name](ArgumentParser())


def test_iris_is_converted(tmp_path):
    """Four float32 features, one label; any values, not just UCI's."""
    values = raw_data.iris(tmp_path)['all']['features']
    path, = convert_iris(str(tmp_path), str(tmp_path))
    assert str(tmp_path / 'iris.hdf5') == path
    with h5py.File(path, 'r') as h5file:
        numpy.testing.assert_array_equal(values, h5file['features'][...])
        assert numpy.dtype('float32') == h5file['features'].dtype
        numpy.testing.assert_array_equal(
            numpy.repeat([0, 1, 2], 50)[:, None], h5file['targets'][...])
        assert numpy.dtype('uint8') == h5file['targets'].dtype
        assert ['batch', 'feature'] == [
            dim.label for dim in h5file['features'].dims]
        assert ['batch', 'index'] == [
            dim.label for dim in h5file['targets'].dims]
        assert {b'all'} == set(h5file.attrs['split']['split'])


def test_iris_missing_is_an_os_error(tmp_path):
    """Iris has no check of its own: the file is simply not there."""
    with pytest.raises(OSError, match='iris.data'):
        convert_iris(str(tmp_path), str(tmp_path))


@pytest.mark.parametrize('content, text', [
    (raw_data.PAGE, 'web page'), (b'', 'empty'), (b'\n\n', 'no examples'),
    (b'1,2,3,4,Iris-setosa\n1,2,3,4,Iris-vir', "line 2, got '1,2,3,4,Iris-v"),
    (b'1,2,3,Iris-setosa\n', 'four numbers'),
    (b'1,2,3,4,5,Iris-setosa\n', 'four numbers'),
    (b'\xff\xfe\n', 'line 1')])
def test_iris_bad_input_leaves_the_old_file(tmp_path, content, text):
    """The line is named, and nothing is written."""
    (tmp_path / 'iris.data').write_bytes(content)
    (tmp_path / 'iris.hdf5').write_bytes(b'old')
    with pytest.raises(BadInputFile, match=text):
        convert_iris(str(tmp_path), str(tmp_path))
    assert b'old' == (tmp_path / 'iris.hdf5').read_bytes()
    assert ['iris.data', 'iris.hdf5'] == sorted(os.listdir(tmp_path))


def test_mnist_is_converted(tmp_path):
    """Images become (batch, channel, height, width), labels a column."""
    expected = raw_data.mnist(tmp_path)
    path, = convert_mnist(str(tmp_path), str(tmp_path))
    assert str(tmp_path / 'mnist.hdf5') == path
    with h5py.File(path, 'r') as h5file:
        for source in ('features', 'targets'):
            numpy.testing.assert_array_equal(
                numpy.concatenate([expected['train'][source],
                                   expected['test'][source]]),
                h5file[source][...])
        assert numpy.dtype('uint8') == h5file['targets'].dtype
        assert ['batch', 'channel', 'height', 'width'] == [
            dim.label for dim in h5file['features'].dims]
        assert ['batch', 'index'] == [
            dim.label for dim in h5file['targets'].dims]


@pytest.mark.parametrize('dtype', ['float32', 'float64', 'bool'])
def test_mnist_dtype_names_the_file(tmp_path, dtype):
    """Another type has another name, and values in the unit interval."""
    images = raw_data.mnist(tmp_path)['train']['features']
    path, = convert_mnist(str(tmp_path), str(tmp_path), dtype=dtype)
    assert str(tmp_path / f'mnist_{dtype}.hdf5') == path
    expected = images >= 128 if dtype == 'bool' else (
        images.astype(dtype) / numpy.array(255, dtype))
    with h5py.File(path, 'r') as h5file:
        assert numpy.dtype(dtype) == h5file['features'].dtype
        numpy.testing.assert_array_equal(expected,
                                         h5file['features'][:12])


def test_read_mnist_images_unknown_dtype_raises(tmp_path):
    """Only three types make sense."""
    raw_data.mnist(tmp_path)
    with pytest.raises(ValueError, match='dtype must be one of'):
        read_mnist_images(str(tmp_path / IMAGES), 'int32')


def test_read_mnist_wrong_magic_raises(tmp_path):
    """Images are not labels."""
    raw_data.mnist(tmp_path)
    with pytest.raises(ValueError, match='expected 2051, got 2049'):
        read_mnist_images(str(tmp_path / LABELS))
    with pytest.raises(ValueError, match='expected 2049, got 2051'):
        read_mnist_labels(str(tmp_path / IMAGES))


def cut(content):
    """Return a gzip file without its end."""
    return content[:-20]


def damage(content):
    """Return a gzip file with other content than its check sum says."""
    return content[:-8] + bytes(4) + content[-4:]


def lose_a_row(content):
    """Return an image file that is shorter than its header says."""
    return gzip.compress(gzip.decompress(content)[:-28])


@pytest.mark.parametrize('spoil, text', [
    (lambda content: raw_data.PAGE, 'web page'), (cut, 'cut short'),
    (damage, 'not a sound gzip file'), (lose_a_row, 'for the shape'),
    (lambda content: gzip.compress(b'\0\0'), 'header of 16 bytes')])
def test_mnist_bad_input_leaves_the_old_file(tmp_path, spoil, text):
    """The file is named, and nothing is written."""
    raw_data.mnist(tmp_path)
    (tmp_path / IMAGES).write_bytes(spoil((tmp_path / IMAGES).read_bytes()))
    (tmp_path / 'mnist.hdf5').write_bytes(b'old')
    with pytest.raises(BadInputFile, match=text):
        convert_mnist(str(tmp_path), str(tmp_path))
    assert b'old' == (tmp_path / 'mnist.hdf5').read_bytes()


def test_mnist_fewer_labels_than_images_raises(tmp_path):
    """Each image has a label."""
    raw_data.mnist(tmp_path)
    (tmp_path / LABELS).write_bytes(raw_data.idx(numpy.zeros(11, 'uint8')))
    with pytest.raises(BadInputFile, match='expected 12 labels'):
        convert_mnist(str(tmp_path), str(tmp_path))


def test_mnist_missing_files_raise(tmp_path):
    """The missing file is named."""
    raw_data.mnist(tmp_path)
    os.remove(tmp_path / LABELS)
    with pytest.raises(MissingInputFiles, match=LABELS):
        convert_mnist(str(tmp_path), str(tmp_path))
