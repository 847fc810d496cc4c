"""The image stages of old: decode, enlarge, crop, rotate."""
import io
import logging
import math
import pickle
import random

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from PIL import Image
from support.image_data import (
    LABELS,
    as_objects,
    batches,
    encode,
    examples,
    first,
    pixels,
)
from support.resuming import assert_resumes

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.exceptions import AxisLabelsMismatchError, UndecodableImageError
from fuel.schemes import SequentialScheme, ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import Mapping
from fuel.transformers._image import window_batch_bchw
from fuel.transformers.defaults import rgb_images_from_encoded_bytes
from fuel.transformers.image import (
    ImagesFromBytes,
    MinimumImageDimensions,
    Random2DRotation,
    RandomFixedSizeCrop,
    RandomHorizontalFlip,
    Resize,
)
from fuel.transformers.image.sizes import scaled
from fuel.transformers.image.resampling import resize_image, rotate_image

FILTERS = {'nearest': Image.Resampling.NEAREST,
           'bilinear': Image.Resampling.BILINEAR,
           'bicubic': Image.Resampling.BICUBIC}


# -- ImagesFromBytes

@pytest.mark.parametrize('mode, channels', [
    ('RGB', 3), ('L', 1), ('CMYK', 4), ('RGBA', 4), ('P', 1), ('LA', 2),
    ('1', 1)])
@pytest.mark.parametrize('color_mode', [None, 'RGB', 'L'])
def test_images_from_bytes_each_mode_equals_pillow(
        mode, channels, color_mode):
    """Channels come first; a mode of None keeps that of the file."""
    source = pixels(6, 5, 3)
    form = 'JPEG' if mode == 'CMYK' else 'PNG'
    file = encode(source, form, mode)
    image = first(ImagesFromBytes(
        examples([file], None), color_mode=color_mode))
    reference = Image.open(io.BytesIO(file))
    if color_mode:
        reference = reference.convert(color_mode)
        channels = len(reference.getbands())
    expected = numpy.array(reference)
    assert (channels, 6, 5) == image.shape
    assert_array_equal(expected.reshape(6, 5, channels).transpose(2, 0, 1),
                       image)
    assert image.flags.writeable
    assert image.dtype == expected.dtype


def test_images_from_bytes_batch_gives_list_with_labels():
    """Batches become lists; other sources and their labels are kept."""
    files = [encode(pixels(4, n, 3)) for n in (3, 5)]
    stream = ImagesFromBytes(DataStream(
        IndexableDataset({'image': files, 'label': numpy.arange(2)},
                         axis_labels={'label': ('batch',)}),
        iteration_scheme=SequentialScheme(2, 2)), which_sources='image')
    images, labels = next(stream.get_epoch_iterator())
    assert isinstance(images, list)
    assert [(3, 4, 3), (3, 4, 5)] == [image.shape for image in images]
    assert_array_equal([0, 1], labels)
    assert {'image': LABELS, 'label': ('batch',)} == stream.axis_labels
    assert 1 == len(stream)


@pytest.mark.parametrize('labels', [None, LABELS])
@pytest.mark.parametrize('which', [None, ('image',), 'image'])
def test_images_from_bytes_without_labels(labels, which):
    """A subset of the sources of an unlabelled stream is fine."""
    stream = batches([encode(pixels(2, 2, 3))], labels=labels)
    images = first(ImagesFromBytes(stream, which_sources=which))
    assert (3, 2, 2) == images[0].shape


@pytest.mark.parametrize('threads', [1, 2, 7])
def test_images_from_bytes_threads_keep_the_order(threads):
    """The images come in the order of the batch."""
    sources = [pixels(8, 8 + n, 3, seed=n) for n in range(20)]
    images = first(ImagesFromBytes(batches(
        [encode(source) for source in sources], labels=None),
        num_threads=threads))
    for source, image in zip(sources, images, strict=True):
        assert_array_equal(source.transpose(2, 0, 1), image)


def test_images_from_bytes_shrink_to_decodes_at_reduced_scale():
    """A JPEG is decoded smaller, but not below the shape; a PNG is not."""
    big = Image.fromarray(pixels(20, 30, 3)).resize((240, 160))
    jpeg = encode(numpy.array(big), 'JPEG')
    for shape, expected in [((40, 40), (3, 40, 60)), ((41, 40), (3, 80, 120)),
                            ((161, 10), (3, 160, 240))]:
        image = first(ImagesFromBytes(
            examples([jpeg], None), shrink_to=shape))
        assert expected == image.shape
    image = first(ImagesFromBytes(
        examples([encode(numpy.array(big))], None), shrink_to=(10, 10)))
    assert (3, 160, 240) == image.shape


@pytest.mark.parametrize('value', [
    54321, 'text', numpy.zeros(3), numpy.zeros((2, 3), 'uint8')])
def test_images_from_bytes_not_bytes_raises_type_error(value):
    """Only bytes are decoded."""
    with pytest.raises(TypeError, match=(
            "(?s)'image' must be bytes, got.*which_sources=.*ToBytes")):
        first(ImagesFromBytes(DataStream(IterableDataset(
            {'image': [value]}))))


def test_images_from_bytes_takes_arrays_of_bytes():
    """An HDF5 file stores them so."""
    files = as_objects([numpy.frombuffer(encode(pixels(3, n, 3)), 'uint8')
                        for n in (3, 4)])
    assert [(3, 3, 3), (3, 3, 4)] == [
        image.shape for image in first(ImagesFromBytes(batches(
            files, labels=None)))]


GOOD = encode(pixels(3, 4, 3))
JPEG = encode(numpy.array(Image.fromarray(pixels(9, 9, 3)).resize((99, 99))),
              'JPEG')
BAD = [b'', b'no image', GOOD[:40], JPEG[:len(JPEG) // 2]]


@pytest.mark.parametrize('bad', BAD, ids=range(len(BAD)))
def test_images_from_bytes_damaged_file_names_source_and_place(bad):
    """The error says which image it is, and what to do."""
    with pytest.raises(UndecodableImageError, match=(
            r"(?s)image 1 of a batch of 'image' \(\d+ bytes.*"
            "on_error='skip'")):
        first(ImagesFromBytes(batches([GOOD, bad], labels=None)))
    with pytest.raises(OSError, match="the image of 'image'") as caught:
        first(ImagesFromBytes(examples([bad], None)))
    assert 'object at 0x' not in str(caught.value)


def test_images_from_bytes_bomb_is_an_error(monkeypatch):
    """An image with too many pixels is not decoded, nor only warned of."""
    for limit in (11, 4):
        monkeypatch.setattr(Image, 'MAX_IMAGE_PIXELS', limit)
        with pytest.raises(UndecodableImageError, match='bomb'):
            first(ImagesFromBytes(examples([GOOD], None)))


def test_images_from_bytes_runs_no_program():
    """Pillow would have Ghostscript run an EPS file."""
    file = io.BytesIO()
    Image.new('RGB', (4, 3)).save(file, 'EPS')
    with pytest.raises(UndecodableImageError, match='it is an EPS file'):
        first(ImagesFromBytes(examples([file.getvalue()], None)))


def test_images_from_bytes_lack_of_memory_is_not_the_images_fault(
        monkeypatch):
    """It is not skipped."""
    def fail(*args):
        raise MemoryError

    monkeypatch.setattr(Image, 'open', fail)
    with pytest.raises(MemoryError):
        first(ImagesFromBytes(examples([GOOD], None), on_error='skip'))


def test_images_from_bytes_skip_leaves_out_of_all_sources(caplog):
    """Undecodable images are counted and logged; sources stay aligned."""
    stream = ImagesFromBytes(
        batches([GOOD, b'x', GOOD, b'y', b'z', b'', GOOD], 3, labels=None,
                label=numpy.arange(7), name=list('abcdefg')),
        which_sources='image', on_error='skip')
    with caplog.at_level(logging.WARNING):
        found = [(len(images), labels.tolist(), names)
                 for images, labels, names in stream.get_epoch_iterator()]
    # The second batch had no good image at all.
    assert [(2, [0, 2], ['a', 'c']), (1, [6], ['g'])] == found
    assert 4 == stream.num_skipped
    text = 'ImagesFromBytes left out {} undecodable image(s) of a batch of 3'
    assert [text.format(1) + '; 1 so far: example 1 of the data set',
            text.format(3) + '; 4 so far: examples [3, 4, 5] of the data set'
            ] == [
        record.getMessage() for record in caplog.records]


def test_images_from_bytes_skip_in_examples_takes_the_next():
    """An example stream goes on with the next good one."""
    stream = ImagesFromBytes(examples([b'x', GOOD, b'', GOOD], None),
                             on_error='skip')
    assert 2 == len(list(stream.get_epoch_iterator()))
    assert 2 == stream.num_skipped
    assert_resumes(lambda: ImagesFromBytes(
        examples([b'x', GOOD, b'', GOOD], None), on_error='skip'))


@pytest.mark.parametrize('kwargs, text', [
    ({'color_mode': 'rainbow'}, "mode of Pillow .*got 'rainbow'"),
    ({'on_error': 'ignore'}, "got 'ignore'"),
    ({'shrink_to': 5}, 'shrink_to must be two positive integers'),
    ({'num_threads': 0}, 'num_threads must be a positive integer, got 0'),
    ({'which_sources': 'imag'}, "did you mean 'image'"),
])
def test_images_from_bytes_bad_argument_raises_at_once(kwargs, text):
    """Arguments are checked when the stage is built."""
    with pytest.raises(ValueError, match=text):
        ImagesFromBytes(examples([GOOD]), **kwargs)


def test_rgb_images_from_encoded_bytes_decodes_stored_arrays():
    """The default stages of image sets work on ragged unlabelled arrays."""
    files = as_objects([numpy.frombuffer(encode(pixels(3, n, 3)), 'uint8')
                        for n in (3, 4)])
    stream = batches(files, labels=None)
    for stage, args, kwargs in rgb_images_from_encoded_bytes(('image',)):
        stream = stage(stream, *args, **kwargs)
    assert [(3, 3, 3), (3, 3, 4)] == [image.shape for image in first(stream)]


# -- resampling

@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 30),
       st.integers(1, 30), st.sampled_from(sorted(FILTERS)),
       st.integers(1, 4))
def test_resize_image_uint8_equals_pillow(
        height, width, new_height, new_width, resample, channels):
    """Each channel is what Pillow makes of it, however it is stored."""
    image = pixels(channels, height, width)
    expected = numpy.stack([
        numpy.asarray(Image.fromarray(plane).resize(
            (new_width, new_height), FILTERS[resample])) for plane in image])
    stored = numpy.ascontiguousarray(image.transpose(1, 2, 0))
    for variant in (image, stored.transpose(2, 0, 1)):
        result = resize_image(variant, (new_height, new_width), resample)
        assert_array_equal(expected, result)
    assert_array_equal(expected[0], resize_image(
        image[0], (new_height, new_width), resample))


@pytest.mark.parametrize('dtype', [
    'f2', 'f4', 'f8', '>f4', 'i2', 'u2', 'i4', 'i8', 'u8', '?'])
@pytest.mark.parametrize('resample', sorted(FILTERS))
def test_resize_image_other_types_keep_type_and_values(dtype, resample):
    """All types are resampled; integers are rounded and stay in range."""
    image = (pixels(2, 5, 6) > 100 if dtype == '?'
             else pixels(2, 5, 6, dtype=dtype))
    result = resize_image(image, (9, 8), resample)
    assert image.dtype == result.dtype
    expected = numpy.stack([
        numpy.asarray(Image.fromarray(plane.astype('f4')).resize(
            (8, 9), FILTERS[resample])) for plane in image])
    assert abs(result.astype('f8') - expected).max() <= (
        .5 if dtype == '?' else .6 if result.dtype.kind in 'iu' else
        .2 if dtype == 'f2' else 1e-4)


def test_resize_image_overshoot_is_clipped_not_wrapped():
    """Bicubic goes beyond the extremes; integers must not wrap."""
    image = numpy.array([[[0, 0, 65535, 65535]]], 'u2')
    result = resize_image(image, (1, 16), 'bicubic')
    assert 65535 == result.max()
    assert (numpy.diff(result[0, 0, 5:11].astype(int)) >= 0).all()
    large = numpy.full((1, 2, 2), 2 ** 64 - 1, 'u8')
    assert (resize_image(large, (3, 3), 'bilinear') > 2 ** 63).all()


@given(st.integers(1, 9), st.integers(1, 9), st.floats(-180, 180),
       st.sampled_from(['u1', 'i2', 'f4', 'f8', 'c8', 'S3']))
def test_rotate_image_nearest_moves_any_type_as_pillow_does(
        height, width, angle, dtype):
    """Every type is moved as Pillow moves uint8."""
    numbers = pixels(2, height, width)
    image = numbers.astype(dtype)
    expected = numpy.stack([
        numpy.asarray(Image.fromarray(plane).rotate(angle))
        for plane in numbers]).astype(dtype)
    result = rotate_image(image, angle, 'nearest')
    assert image.dtype == result.dtype
    if dtype == 'S3':
        result[result == b''] = b'0'
    assert_array_equal(expected, result)


@given(st.tuples(st.integers(1, 40), st.integers(1, 40)),
       st.tuples(st.integers(1, 40), st.integers(1, 40)), st.booleans())
def test_scaled_is_the_smallest_similar_shape(shape, minimum, shrink):
    """Both sides are large enough, one of them exactly; unless it may shrink,
    an image that is large enough stays as it is."""
    height, width = scaled(shape, minimum, shrink)
    assert height >= (minimum[0] if shrink else max(minimum[0], shape[0]))
    assert width >= (minimum[1] if shrink else max(minimum[1], shape[1]))
    if shrink or (height, width) != shape:
        assert height == minimum[0] or width == minimum[1]
        factor = max(minimum[0] / shape[0], minimum[1] / shape[1])
        assert abs(height - shape[0] * factor) < 1
        assert abs(width - shape[1] * factor) < 1


# -- MinimumImageDimensions

@pytest.mark.parametrize('channels', [1, 2, 3, 4])
@pytest.mark.parametrize('dtype', ['u1', 'f4', 'f8'])
@pytest.mark.parametrize('labels', [None, LABELS])
def test_minimum_dimensions_any_channels(channels, dtype, labels):
    """One channel is fine, and so is a stream without labels."""
    images = [pixels(channels, 3, 4, dtype=dtype),
              pixels(channels, 9, 9, dtype=dtype)]
    result = first(MinimumImageDimensions(
        batches(images, labels=labels), (6, 6)))
    assert isinstance(result, list)
    assert [(channels, 6, 8), (channels, 9, 9)] == [
        image.shape for image in result]
    assert_array_equal(images[1], result[1])
    assert {numpy.dtype(dtype)} == {image.dtype for image in result}


def test_minimum_dimensions_honours_resample():
    """Each filter gives what Pillow gives, and they differ."""
    image = pixels(3, 4, 4)
    results = {}
    for resample, constant in FILTERS.items():
        results[resample] = first(MinimumImageDimensions(
            examples([image]), (9, 9), resample=resample))
        expected = numpy.asarray(Image.fromarray(
            numpy.ascontiguousarray(image.transpose(1, 2, 0))).resize(
                (9, 9), constant))
        assert_array_equal(expected.transpose(2, 0, 1), results[resample])
    assert not (results['nearest'] == results['bicubic']).all()


def test_minimum_dimensions_of_any_form_are_enough():
    """Images are one array, objects, or have no channel."""
    stack = first(MinimumImageDimensions(
        batches(pixels(3, 2, 4, 5)), (8, 8)))
    assert [(2, 8, 10)] * 3 == [image.shape for image in stack]
    objects = first(MinimumImageDimensions(
        batches(as_objects([pixels(1, 4, 5), pixels(1, 9, 9)])), (8, 8)))
    assert [(1, 8, 10), (1, 9, 9)] == [image.shape for image in objects]
    grey = first(MinimumImageDimensions(
        batches(pixels(3, 4, 5), labels=('batch', 'height', 'width')),
        (8, 8)))
    assert [(8, 10)] * 3 == [image.shape for image in grey]
    assert (8, 10) == first(MinimumImageDimensions(
        examples(pixels(3, 4, 5), ('height', 'width')), (8, 8))).shape


def test_minimum_dimensions_bad_input_raises():
    """Filters and shapes are checked at once, ranks when data come."""
    with pytest.raises(ValueError, match="one of 'nearest'.*got 'nonsense'"):
        MinimumImageDimensions(examples(pixels(1, 1, 2, 2)), (2, 2),
                               resample='nonsense')
    with pytest.raises(ValueError, match='minimum_shape must be two'):
        MinimumImageDimensions(examples(pixels(1, 1, 2, 2)), (2, 2, 2))
    with pytest.raises(NotImplementedError, match='height, width'):
        first(MinimumImageDimensions(
            examples(pixels(2, 2, 2, 2, 2), None), (4, 4)))
    # Enlarged to 300 rows it would have 6 milliards of pixels.
    with pytest.raises(ValueError, match='20000000 x 300 pixels, more than'):
        first(MinimumImageDimensions(
            examples(pixels(1, 1, 3, 200000), None), (300, 300)))
    with pytest.raises(AxisLabelsMismatchError, match="'image'"):
        first(MinimumImageDimensions(examples(
            pixels(1, 1, 2, 2), ('height', 'width', 'channel')), (2, 2)))


# -- RandomFixedSizeCrop

@pytest.mark.parametrize('dtype', ['u1', '<f2', 'f4', 'f8', '>i2', 'i8',
                                   '?'])
@pytest.mark.parametrize('labels', [None, LABELS])
def test_random_crop_of_array_draws_columns_then_rows(dtype, labels):
    """Any type is cropped, read-only arrays too; columns are drawn before
    rows."""
    images = pixels(7, 3, 9, 8, dtype=dtype)
    images.flags.writeable = False
    rng = numpy.random.RandomState(5)
    lefts = rng.randint(0, 8 - 4 + 1, 7)
    tops = rng.randint(0, 9 - 5 + 1, 7)
    stage = RandomFixedSizeCrop(batches(images, labels=labels), (5, 4),
                                rng=numpy.random.RandomState(5))
    for crops in (first(stage), ):
        expected = numpy.stack([
            image[:, y:y + 5, x:x + 4]
            for image, y, x in zip(images, tops, lefts, strict=True)])
        assert_array_equal(expected, crops)
        assert crops.dtype == numpy.dtype(dtype).newbyteorder('=')
        assert crops.flags.writeable


@pytest.mark.parametrize('form', [list, as_objects])
def test_random_crop_of_images_draws_row_then_column_for_each(form):
    """A side that is as long as that of the crop draws nothing."""
    shapes = [(3, 9, 8), (3, 5, 7), (3, 8, 4), (3, 5, 4), (1, 6, 6)]
    images = [pixels(*shape) for shape in shapes]
    rng = numpy.random.RandomState(3)
    expected = []
    for image in images:
        _, height, width = image.shape
        y = rng.randint(0, height - 5 + 1) if height > 5 else 0
        x = rng.randint(0, width - 4 + 1) if width > 4 else 0
        expected.append(image[:, y:y + 5, x:x + 4])
    crops = first(RandomFixedSizeCrop(
        batches(form(images)), (5, 4), rng=numpy.random.RandomState(3)))
    assert type(crops) is list
    for a, b in zip(expected, crops, strict=True):
        assert_array_equal(a, b)
        assert b.flags.writeable
    one_by_one = RandomFixedSizeCrop(
        DataStream(IterableDataset({'image': images})), (5, 4),
        rng=numpy.random.RandomState(3))
    for a, (b,) in zip(expected, one_by_one.get_epoch_iterator(),
                       strict=True):
        assert_array_equal(a, b)


@pytest.mark.parametrize('threads', [1, 2, 5])
def test_random_crop_stack_gives_one_array(threads):
    """With ``stack`` the windows of a list are written to one array."""
    images = [pixels(3, 6 + n, 7, seed=n).transpose(0, 2, 1)
              for n in range(9)]
    as_list = first(RandomFixedSizeCrop(
        batches(images), (4, 5), rng=numpy.random.RandomState(1)))
    stacked = first(RandomFixedSizeCrop(
        batches(images), (4, 5), stack=True,
        rng=numpy.random.RandomState(1), num_threads=threads))
    assert_array_equal(numpy.stack(as_list), stacked)
    with pytest.raises(ValueError, match='image 1 has 1 of uint8'):
        first(RandomFixedSizeCrop(batches(
            [images[0], pixels(1, 9, 9)]), (4, 5), stack=True))


@pytest.mark.parametrize('rng', [
    numpy.random.default_rng(0), random.Random(0)], ids=['numpy', 'random'])
def test_random_stages_take_other_generators(rng):
    """A Generator and a random.Random will do."""
    images = pixels(20, 1, 6, 6)
    crops = first(RandomFixedSizeCrop(batches(images), (3, 3), rng=rng))
    assert (20, 1, 3, 3) == crops.shape
    assert len({crop.tobytes() for crop in crops}) > 3
    first(RandomFixedSizeCrop(batches(list(images)), (3, 3), rng=rng))
    rotated = first(Random2DRotation(batches(images), rng=rng))
    assert images.shape == rotated.shape


def test_random_crop_bad_input_raises():
    """Windows that are too large and arrays of other ranks are errors."""
    with pytest.raises(ValueError, match=r'each image has the shape \(1, 4, '
                       r'4\).*window_shape \(5, 2\)'):
        first(RandomFixedSizeCrop(batches(pixels(2, 1, 4, 4)), (5, 2)))
    with pytest.raises(ValueError, match='image 1 of the batch has'):
        first(RandomFixedSizeCrop(batches(
            [pixels(1, 5, 5), pixels(1, 5, 4)]), (5, 5)))
    with pytest.raises(ValueError, match=(
            r'got the shape \(2, 4, 4\): name the sources with images')):
        first(RandomFixedSizeCrop(batches(pixels(2, 4, 4)), (2, 2)))
    with pytest.raises(ValueError, match='image 1 of a batch must be an arr'):
        first(RandomFixedSizeCrop(batches(
            [pixels(1, 4, 4), pixels(4, 4)]), (2, 2)))
    with pytest.raises(ValueError, match='an image must be an array'):
        first(RandomFixedSizeCrop(examples(pixels(2, 4, 4)), (2, 2)))
    with pytest.raises(AxisLabelsMismatchError, match='transpose'):
        first(RandomFixedSizeCrop(batches(
            pixels(1, 4, 4, 1),
            labels=('batch', 'height', 'width', 'channel')), (2, 2)))


def test_image_stages_after_mapping_without_labels(caplog):
    """A stream without labels is warned about once, and works."""
    for make in (lambda stream: RandomFixedSizeCrop(stream, (3, 3)),
                 Random2DRotation,
                 lambda stream: MinimumImageDimensions(stream, (8, 8))):
        stream = Mapping(batches(pixels(4, 1, 6, 6), 2), lambda data: data)
        stream.axis_labels = None
        caplog.clear()
        for _ in range(2):
            assert 2 == len(list(make(stream).get_epoch_iterator()))
        assert 1 == len(caplog.records)


@pytest.mark.parametrize('make', [
    lambda stream: RandomFixedSizeCrop(stream, (3, 3)),
    lambda stream: MinimumImageDimensions(stream, (8, 8)),
    lambda stream: Resize(stream, (4, 4)), RandomHorizontalFlip],
    ids=['crop', 'minimum', 'resize', 'flip'])
def test_images_without_labels_whose_channels_seem_to_be_last(make):
    """One warning says so; labels, or few rows, show that it is meant."""
    transposed = batches(pixels(4, 9, 9, 3), 2, labels=None)
    with pytest.warns(UserWarning, match=r'shape \(9, 9, 3\), which looks '
                                         'like .* transpose') as caught:
        assert 2 == len(list(make(transposed).get_epoch_iterator()))
    assert 1 == len(caught)
    for shape, labels in (
            ((4, 9, 9, 3), ('batch', 'channel', 'height', 'width')),
            ((4, 3, 9, 3), None), ((4, 9, 9, 9), None)):
        list(make(batches(pixels(*shape), 2, labels)).get_epoch_iterator())


def test_window_batch_bchw_writes_windows():
    """The old function takes offsets of any integer type and any dtype."""
    batch = pixels(2, 1, 4, 4, dtype='f2')
    out = numpy.empty((2, 1, 2, 3), 'f2')
    window_batch_bchw(batch, numpy.array([0, 2], 'u1'), [1, 0], out)
    assert_array_equal(batch[0, :, :2, 1:], out[0])
    assert_array_equal(batch[1, :, 2:, :3], out[1])
    with pytest.raises(ValueError, match='begins at row 3'):
        window_batch_bchw(batch, [0, 3], [0, 0], out)


# -- Random2DRotation

@pytest.mark.parametrize('resample', sorted(FILTERS))
@pytest.mark.parametrize('channels', [1, 3, 4])
@pytest.mark.parametrize('maximum', [math.pi, .3])
def test_rotation_pixels_are_pillows(resample, channels, maximum):
    """Angles are drawn at once, in degrees; pixels are Pillow's."""
    images = pixels(5, channels, 10, 12)
    angles = numpy.random.RandomState(123).uniform(
        -numpy.rad2deg(maximum), numpy.rad2deg(maximum), 5)
    expected = numpy.stack([
        [numpy.asarray(Image.fromarray(plane).rotate(
            angle, FILTERS[resample])) for plane in image]
        for image, angle in zip(images, angles, strict=True)])
    for data in (images, list(images), as_objects(images)):
        result = first(Random2DRotation(
            batches(data), maximum, resample=resample,
            rng=numpy.random.RandomState(123)))
        assert type(data) is type(result)
        assert getattr(data, 'dtype', 0) == getattr(result, 'dtype', 0)
        for a, b in zip(expected, result, strict=True):
            assert_array_equal(a, b)
    one = first(Random2DRotation(
        examples(images), maximum, resample=resample,
        rng=numpy.random.RandomState(123)))
    assert_array_equal(expected[0], one)


@pytest.mark.parametrize('maximum', [0, -1, 3.2, float('nan')])
def test_rotation_bad_maximum_raises(maximum):
    """The angle is in radians, above 0 and at most pi."""
    with pytest.raises(ValueError, match='radians, above 0 and at most pi'):
        Random2DRotation(batches(pixels(1, 1, 2, 2)), maximum)


def test_rotation_unknown_filter_raises():
    """Not every filter for resizing can rotate."""
    with pytest.raises(ValueError, match="got 'lanczos'"):
        Random2DRotation(batches(pixels(1, 1, 2, 2)), resample='lanczos')


# -- all of them

def build_old_pipeline():
    """Return a stream of every old stage, over encoded images."""
    files = [encode(pixels(6 + n % 3, 9, 3, seed=n)) for n in range(7)]
    stream = DataStream(IndexableDataset({'image': files}),
                        iteration_scheme=ShuffledScheme(7, 3))
    stream = ImagesFromBytes(stream)
    stream = MinimumImageDimensions(stream, (8, 8), resample='bilinear')
    stream = Random2DRotation(stream, .5)
    return RandomFixedSizeCrop(stream, (5, 6))


def test_old_stages_resume_exactly():
    """States of every step are JSON or pickled."""
    assert_resumes(build_old_pipeline)


@pytest.mark.parametrize('threads', [2, 4])
def test_old_stages_results_do_not_depend_on_threads(threads, monkeypatch):
    """All is drawn before any thread starts."""
    epochs = []
    for number in (1, threads):
        monkeypatch.setenv('FUEL_NUM_THREADS', str(number))
        epochs.append([[image.tolist() for image in images] for images,
                       in build_old_pipeline().get_epoch_iterator()])
    assert epochs[0] == epochs[1]


def test_image_stages_pickle_under_their_public_names():
    """A pickled class is found again where users import it."""
    for stage in (ImagesFromBytes, MinimumImageDimensions, Random2DRotation,
                  RandomFixedSizeCrop):
        assert stage.__module__ == 'fuel.transformers.image'
        assert pickle.loads(pickle.dumps(stage)) is stage
