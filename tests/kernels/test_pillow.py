"""Pixels taken out of Pillow's images."""
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from PIL import Image

from fuel.kernels.pillow import copy_pixels
from fuel.transformers.image.decode import _to_array

HAS_ARROW = hasattr(Image.Image, '__arrow_c_array__')


@given(st.integers(1, 40), st.integers(1, 40), st.sampled_from(
    ['L', 'P', 'RGB', 'RGBA', 'CMYK', 'LA', '1', 'I', 'F', 'YCbCr', 'HSV']))
def test_to_array_any_mode_equals_numpy(height, width, mode):
    """The kernel and NumPy copy the same pixels."""
    values = numpy.random.RandomState(height * 41 + width).randint(
        0, 256, (height, width, 3)).astype('uint8')
    image = Image.fromarray(values)
    if mode in ('LA', 'HSV', 'YCbCr', 'RGBA', 'CMYK', 'L', '1', 'P'):
        image = image.convert(mode)
    elif mode != 'RGB':
        image = image.convert('L').convert(mode)
    expected = numpy.array(image)
    expected = (expected[numpy.newaxis] if expected.ndim == 2
                else expected.transpose(2, 0, 1))
    result = _to_array(image)
    assert_array_equal(expected, result)
    assert expected.dtype == result.dtype
    assert result.flags.writeable
    assert result.flags.c_contiguous
    result[...] = 0
    assert_array_equal(expected, _to_array(image))


def test_to_array_large_image_in_several_pieces_of_memory():
    """Pillow keeps images above some size in several blocks."""
    image = Image.new('RGB', (2600, 2600), (1, 2, 3))
    image.putpixel((2599, 2599), (4, 5, 6))
    result = _to_array(image)
    assert [1, 2, 3] == result[:, 0, 0].tolist()
    assert [4, 5, 6] == result[:, -1, -1].tolist()
    assert 2600 * 2600 * 6 + 9 == result.sum(dtype='int64')


@pytest.mark.skipif(not HAS_ARROW, reason='Pillow before 11.2')
@pytest.mark.parametrize('channels, height, width, text', [
    (3, 4, 4, 'not an array of the pixels'),
    (1, 4, 5, 'not an array of the pixels'),
])
def test_copy_pixels_of_another_shape_is_an_error(
        channels, height, width, text):
    """Nothing is read beyond the memory of the image."""
    capsule = Image.new('RGB', (5, 4)).__arrow_c_array__()[1]
    with pytest.raises(ValueError, match=text):
        copy_pixels(capsule, channels, height, width)
    with pytest.raises(ValueError, match='arrow_array|invalid PyCapsule'):
        copy_pixels(object(), 3, 4, 5)
