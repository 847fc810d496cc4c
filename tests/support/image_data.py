"""Images, files of images and streams of them, for tests."""
import io

import numpy
from PIL import Image

from fuel.datasets import IndexableDataset
from fuel.schemes import SequentialExampleScheme, SequentialScheme
from fuel.streams import DataStream

LABELS = ('batch', 'channel', 'height', 'width')


def pixels(*shape, dtype='uint8', seed=0):
    """Return random pixels."""
    values = numpy.random.RandomState(seed).randint(0, 200, shape)
    return values.astype(dtype)


def encode(array, form='PNG', mode=None, **kwargs):
    """Return the bytes of an image file with the pixels (h, w[, c])."""
    file = io.BytesIO()
    image = Image.fromarray(array)
    (image.convert(mode) if mode else image).save(file, form, **kwargs)
    return file.getvalue()


def examples(data, labels=LABELS[1:], **others):
    """Return a stream of single examples with the source 'image'."""
    axis_labels = labels and {'image': labels}
    return DataStream(
        IndexableDataset({'image': data, **others}, axis_labels=axis_labels),
        iteration_scheme=SequentialExampleScheme(len(data)))


def batches(data, size=None, labels=LABELS, **others):
    """Return a stream of batches with the source 'image'."""
    axis_labels = labels and {'image': labels}
    return DataStream(
        IndexableDataset({'image': data, **others}, axis_labels=axis_labels),
        iteration_scheme=SequentialScheme(len(data), size or len(data)))


def first(stream):
    """Return the first source of the first item."""
    return next(stream.get_epoch_iterator())[0]


def as_objects(images):
    """Return images in an array of objects."""
    array = numpy.empty(len(images), object)
    for i, image in enumerate(images):
        array[i] = image
    return array
