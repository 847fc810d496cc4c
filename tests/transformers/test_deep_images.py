"""Images whose pixels are numbers of more than 8 bits."""
import io
import pickle
import struct

import numpy
import pytest
from numpy.testing import assert_array_equal
from PIL import Image

from fuel.datasets import IndexableDataset
from fuel.streams import DataStream
from fuel.transformers import MultiProcessing
from fuel.transformers.image import ImagesFromBytes


def big_endian_tiff(values):
    """Return a TIFF file of 16 bits, written byte by byte."""
    height, width = values.shape
    # Width, height, bits, no compression, black is 0, the start of the
    # pixels, one channel, the number of rows, and of bytes.
    tags = [(256, width), (257, height), (258, 16), (259, 1), (262, 1),
            (273, 8 + 2 + 9 * 12 + 4), (277, 1), (278, height),
            (279, 2 * height * width)]
    return struct.pack('>2sHIH', b'MM', 42, 8, len(tags)) + b''.join(
        struct.pack('>HHIHH', tag, 3, 1, value, 0) for tag, value in tags
    ) + bytes(4) + values.astype('>u2').tobytes()


def deep(dtype, form, highest=60000):
    """Return a grey picture, and its values."""
    values = numpy.linspace(0, highest, 20).astype(dtype).reshape(4, 5)
    if form == 'big-endian TIFF':
        return big_endian_tiff(values), values
    file = io.BytesIO()
    Image.fromarray(values).save(file, form)
    return file.getvalue(), values


def decoded(file, **arguments):
    """Return the stage that decodes three batches of eight such files."""
    return ImagesFromBytes(DataStream(
        IndexableDataset({'image': numpy.array([file] * 24, object)}),
        batch_size=8), **arguments)


@pytest.mark.parametrize('dtype, form', [
    ('uint16', 'PNG'), ('uint16', 'TIFF'), ('uint16', 'big-endian TIFF'),
    ('int32', 'TIFF'), ('float32', 'TIFF')])
@pytest.mark.parametrize('color_mode', ['RGB', 'L'])
def test_values_above_a_byte_are_told_once(dtype, form, color_mode, caplog):
    """They become 255, as they always did. None and 'I' keep them."""
    file, values = deep(dtype, form)
    stage = decoded(file, color_mode=color_mode, num_threads=8)
    images = [image for batch, in stage.get_epoch_iterator()
              for image in batch]
    assert 24 == len(images)
    for image in images:
        assert 'uint8' == image.dtype
        assert_array_equal(numpy.clip(values, 0, 255)[None].astype('uint8'),
                           image[:1])
    message, = caplog.messages
    assert 'values up to 60000' in message
    assert f'and color_mode={color_mode!r} of ImagesFromBytes' in message
    assert 'pass color_mode=None' in message
    list(pickle.loads(pickle.dumps(stage)).get_epoch_iterator())
    for kept in None, 'I':
        image = next(decoded(file, color_mode=kept).get_epoch_iterator())[0][0]
        assert_array_equal(values[None].astype('int32'), image.astype('int32'))
        assert image.dtype.isnative
    assert 1 == len(caplog.messages)


def test_values_of_a_byte_in_more_bits_are_not_told(caplog):
    """The mode alone replaces nothing."""
    file, values = deep('uint16', 'PNG', 255)
    image = next(decoded(file, color_mode='L').get_epoch_iterator())[0][0]
    assert_array_equal(values[None], image)
    assert not caplog.messages


@pytest.mark.parametrize('num_workers', [1, 2])
def test_values_above_a_byte_are_told_by_workers(num_workers, capfd):
    """Each process tells it at most once."""
    with MultiProcessing(
            decoded(deep('uint16', 'PNG')[0]), num_workers=num_workers,
            start_method='spawn') as stream:
        assert 3 == len(list(stream))
    told = capfd.readouterr().err.count('values up to 60000')
    assert 1 <= told <= num_workers


@pytest.mark.parametrize('color_mode, dtype, channels', [
    (None, None, None), ('RGB', 'uint8', 3), ('L', 'uint8', 1),
    ('I', 'int32', 1), ('F', 'float32', 1)])
def test_types_are_known_before_images_are_read(color_mode, dtype, channels):
    """They are those of the images; without a mode, the files decide."""
    stage = decoded(deep('uint16', 'PNG')[0], color_mode=color_mode)
    known, = stage.known_types().values()
    assert (dtype, channels) == (known.dtype, known.shape[1])
    image = next(stage.get_epoch_iterator())[0][0]
    if color_mode:
        assert (dtype, channels) == (image.dtype, len(image))
