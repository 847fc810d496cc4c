"""The usual stages for common kinds of data."""
import numpy
import pytest

from fuel import config
from fuel.datasets import IndexableDataset
from fuel.schemes import SequentialExampleScheme, SequentialScheme
from fuel.streams import DataStream
from fuel.transformers import Cast, ScaleAndShift
from fuel.transformers.defaults import (
    ToBytes,
    rgb_images_from_encoded_bytes,
    uint8_pixels_to_floatX,
)
from fuel.transformers.image import ImagesFromBytes

LETTERS = numpy.frombuffer(b'abcd', 'uint8').reshape(2, 2)


def letters(scheme, **kwargs):
    """Return a stream over two pairs of letters."""
    return DataStream(IndexableDataset({'x': LETTERS, 'y': [1, 2]},
                                       **kwargs), iteration_scheme=scheme)


def test_to_bytes_of_examples_and_batches():
    """An example becomes bytes, a batch a list of bytes."""
    stream = ToBytes(letters(SequentialExampleScheme(2)),
                     which_sources=('x',))
    assert [(b'ab', 1), (b'cd', 2)] == list(stream.get_epoch_iterator())
    stream = ToBytes(letters(SequentialScheme(2, 2)), which_sources=('x',))
    assert [([b'ab', b'cd'], [1, 2])] == list(stream.get_epoch_iterator())


def test_to_bytes_leaves_bytes_and_their_zeros_alone():
    """A list of bytes and a ragged batch are files of any length."""
    rows = numpy.empty(2, object)
    rows[:] = [b'a\0', LETTERS[0]]
    stream = DataStream(IndexableDataset(rows),
                        iteration_scheme=SequentialScheme(2, 2))
    assert [([b'a\0', b'ab'],)] == list(ToBytes(stream).get_epoch_iterator())


@pytest.mark.parametrize('scheme, expected', [
    (SequentialExampleScheme(2), ('bytes',)),
    (SequentialScheme(2, 2), ('batch', 'bytes'))])
def test_to_bytes_leaves_the_labels_of_its_stream_alone(scheme, expected):
    """The labels of the wrapped stream stay as they are."""
    labels = {'x': ('batch', 'letter'), 'y': ('batch',)}
    stream = letters(scheme, axis_labels=labels)
    before = dict(stream.axis_labels)
    stage = ToBytes(stream, which_sources=('x',))
    assert {'x': expected, 'y': before['y']} == stage.axis_labels
    assert before == stream.axis_labels
    assert {'x': ('batch', 'letter'), 'y': ('batch',)} == labels
    assert {'x': expected, 'y': expected} == ToBytes(
        letters(scheme)).axis_labels


def test_uint8_pixels_to_float_x():
    """They are exactly what data sets have always named."""
    config.floatX = 'float32'
    stages = uint8_pixels_to_floatX(('features',))
    which = {'which_sources': ('features',)}
    assert ((ScaleAndShift, [1 / 255., 0], which),
            (Cast, ['floatX'], which)) == stages

    class Images(IndexableDataset):
        default_transformers = stages

    pixels = numpy.arange(256, dtype='uint8').reshape(4, 64)
    stream = DataStream.default_stream(
        Images({'features': pixels, 'targets': numpy.arange(4)}),
        iteration_scheme=SequentialScheme(4, 4))
    features, targets = next(stream.get_epoch_iterator())
    numpy.testing.assert_array_equal(
        (pixels * (1 / 255.)).astype('float32'), features)
    assert numpy.float32 == features.dtype
    assert 'int64' == targets.dtype


def test_rgb_images_from_encoded_bytes():
    """They are made for the named sources, whatever their names."""
    which = {'which_sources': ('pictures',)}
    assert ((ToBytes, [], which), (ImagesFromBytes, [], which)) == (
        rgb_images_from_encoded_bytes(('pictures',)))


def test_default_stream_of_some_sources():
    """The default stages may be for sources that nobody asked for."""
    class Images(IndexableDataset):
        default_transformers = uint8_pixels_to_floatX(('features',))

    dataset = Images({'features': numpy.ones((2, 3), 'uint8'),
                      'targets': [3, 4]}, sources=('targets',))
    stream = DataStream.default_stream(
        dataset, iteration_scheme=SequentialScheme(2, 2))
    assert [([3, 4],)] == list(stream.get_epoch_iterator())


def test_default_stream_with_a_misspelt_source_raises():
    """A source that the data set does not provide is a mistake."""
    class Images(IndexableDataset):
        default_transformers = uint8_pixels_to_floatX(('feature',))

    dataset = Images({'features': numpy.ones((2, 3), 'uint8')})
    with pytest.raises(ValueError, match="did you mean 'features'"):
        DataStream.default_stream(
            dataset, iteration_scheme=SequentialScheme(2, 2))
