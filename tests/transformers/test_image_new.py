"""The image stages that are new: sizes, flips, normalisation."""
import math

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image
from support.image_data import as_objects, batches, examples, first, pixels
from support.resuming import assert_resumes

from fuel import config
from fuel.datasets import IndexableDataset
from fuel.schemes import SequentialScheme, ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers.image import (
    CenterCrop,
    Normalize,
    RandomHorizontalFlip,
    RandomResizedCrop,
    Resize,
)
from fuel.transformers.image.resampling import resize_image
from fuel.transformers.image.random_crop import choose_part

RAGGED = [pixels(3, 6 + n, 9 - n, seed=n) for n in range(4)]
FORMS = [list, as_objects]


@pytest.mark.parametrize('form', FORMS)
@pytest.mark.parametrize('threads', [1, 3])
def test_resize_makes_one_array_of_pillows_pixels(form, threads):
    """Every form of batch becomes one array."""
    result = first(Resize(batches(form(RAGGED)), (5, 4), 'bicubic',
                          num_threads=threads))
    for image, resized in zip(RAGGED, result, strict=True):
        expected = Image.fromarray(numpy.ascontiguousarray(
            image.transpose(1, 2, 0))).resize(
                (4, 5), Image.Resampling.BICUBIC)
        assert_array_equal(numpy.array(expected).transpose(2, 0, 1), resized)
    assert (4, 3, 5, 4) == result.shape
    stacked = first(Resize(batches(pixels(2, 1, 4, 4, dtype='>f4')), (2, 2)))
    assert numpy.dtype('f4') == stacked.dtype
    assert (3, 5, 4) == first(Resize(examples(RAGGED), (5, 4))).shape


@pytest.mark.parametrize('form', FORMS)
def test_center_crop_takes_the_middle(form):
    """An odd margin is smaller above and on the left."""
    result = first(CenterCrop(batches(form(RAGGED)), (5, 4)))
    for image, crop in zip(RAGGED, result, strict=True):
        top, left = (image.shape[1] - 5) // 2, (image.shape[2] - 4) // 2
        assert_array_equal(image[:, top:top + 5, left:left + 4], crop)
    with pytest.raises(ValueError, match=r'image 2 has the shape \(3, 9, 6\)'
                       r'.*window_shape \(7, 7\)'):
        first(CenterCrop(batches(RAGGED[1:]), (7, 7)))


def test_fixed_size_stages_refuse_mixed_channels():
    """One array cannot hold images of one and of three channels."""
    mixed = [pixels(3, 4, 4), pixels(1, 4, 4)]
    for stage in (Resize, CenterCrop, RandomResizedCrop):
        with pytest.raises(ValueError, match="image 1 has 1 of uint8.*'RGB'"):
            first(stage(batches(mixed), (2, 2)))


@given(st.integers(1, 50), st.integers(1, 50), st.integers(0, 99),
       st.sampled_from([(.08, 1), (1, 1), (.001, .01)]),
       st.sampled_from([(.75, 1.33), (1, 1), (5, 9)]))
def test_choose_part_lies_inside(height, width, seed, scale, ratio):
    """The part is not empty and lies in the image, for any draws."""
    draws = numpy.random.default_rng(seed).random((10, 4))
    top, left, rows, columns = choose_part(height, width, scale, ratio, draws)
    assert 0 <= top <= top + rows - 1 < height
    assert 0 <= left <= left + columns - 1 < width


def test_choose_part_has_the_area_and_ratio_asked_for():
    """Areas and ratios are spread over what is allowed."""
    draws = numpy.random.default_rng(0).random((300, 10, 4))
    parts = [choose_part(400, 600, (.1, .5), (.5, 2), draw) for draw in draws]
    areas = [rows * columns / 240000 for _, _, rows, columns in parts]
    ratios = [columns / rows for _, _, rows, columns in parts]
    assert .099 < min(areas) < .12
    assert .45 < max(areas) < .501
    assert .495 < min(ratios) < .55
    assert 1.8 < max(ratios) < 2.02


def test_random_resized_crop_is_a_resized_part():
    """Without random choice it is the whole image, resized."""
    image = pixels(3, 8, 8)
    result = first(RandomResizedCrop(
        examples([image]), (4, 4), scale=(1, 1), ratio=(1, 1)))
    assert_array_equal(resize_image(image, (4, 4), 'bilinear'), result)


def flipped_or_not(images, results):
    """Return which images came out mirrored."""
    marks = []
    for image, result in zip(images, results, strict=True):
        mirrored = (image[..., ::-1] == result).all()
        assert mirrored or (image == result).all()
        marks.append(bool(mirrored))
    return marks


@pytest.mark.parametrize('form', [numpy.array, *FORMS])
def test_random_flip_flips_about_half(form):
    """The form of the batch is kept, and does not change the draws."""
    images = [pixels(3, 4, 5, seed=n) for n in range(64)]
    result = first(RandomHorizontalFlip(batches(form(images)), seed=3))
    assert type(form(images)) is type(result)
    marks = flipped_or_not(images, result)
    assert 16 < sum(marks) < 48
    again = first(RandomHorizontalFlip(batches(images), seed=3))
    assert marks == flipped_or_not(images, again)
    other = first(RandomHorizontalFlip(batches(images), seed=4))
    assert marks != flipped_or_not(images, other)
    for probability in (0, 1):
        assert [bool(probability)] * 64 == flipped_or_not(images, first(
            RandomHorizontalFlip(batches(images), probability)))


def test_random_stages_treat_image_and_mask_alike():
    """Sources of one stage get the same draws."""
    images = pixels(32, 1, 6, 6)
    dataset = IndexableDataset({'image': images, 'mask': images * 2 % 251})
    for stage in (RandomHorizontalFlip,
                  lambda stream: RandomResizedCrop(stream, (4, 4),
                                                   resample='nearest')):
        image, mask = next(stage(DataStream(
            dataset, iteration_scheme=SequentialScheme(32, 32))
        ).get_epoch_iterator())
        assert_array_equal(image * 2 % 251, mask)


def test_seeded_stages_draw_anew_each_batch_and_epoch():
    """Batches and epochs differ; stages of two classes are independent."""
    images = numpy.broadcast_to(pixels(1, 4, 5), (64, 1, 4, 5))
    stream = RandomHorizontalFlip(batches(images, 32))
    marks = [flipped_or_not(images[:32], result)
             for _ in range(2) for result, in stream.get_epoch_iterator()]
    assert 4 == len({tuple(mark) for mark in marks})

    class OtherFlip(RandomHorizontalFlip):
        """Draws for itself."""

    other = first(OtherFlip(batches(images, 32)))
    assert marks[0] != flipped_or_not(images[:32], other)


def build_new_pipeline():
    """Return a stream of all new stages."""
    data = as_objects([pixels(3, 9 + n, 12 - n, seed=n) for n in range(7)])
    stream = DataStream(IndexableDataset({'image': data}),
                        iteration_scheme=ShuffledScheme(7, 2))
    stream = RandomHorizontalFlip(RandomResizedCrop(stream, (6, 6)))
    return Normalize(CenterCrop(stream, (4, 5)), .5, 2, 1 / 255)


def test_new_stages_resume_exactly():
    """States hold the epoch's key and the number of the batch."""
    assert_resumes(build_new_pipeline, num_epochs=3)
    assert 4 == len(build_new_pipeline())


@pytest.mark.parametrize('threads', [2, 5])
def test_new_stages_results_do_not_depend_on_threads(threads):
    """All is drawn before any thread starts."""
    results = []
    for number in (1, threads):
        config.num_threads = number
        results.append([batch.tolist() for batch, in
                        build_new_pipeline().get_epoch_iterator()])
    assert results[0] == results[1]


@pytest.mark.parametrize('dtype', ['u1', '>i2', 'f4', 'f8', '?'])
@pytest.mark.parametrize('floatx', ['float32', 'float64'])
def test_normalize_equals_the_formula(dtype, floatx):
    """Images have one and three channels, and are stacked, ragged and
    single."""
    config.floatX = floatx
    mean, deviation = numpy.array([.4, .5, .6]), numpy.array([.2, .3, .4])
    images = [pixels(3, 4, 5 + n, seed=n).astype(dtype) for n in range(3)]
    stage = Normalize(batches(images), mean, deviation, 1 / 255)
    config.floatX = 'float64'
    for image, result in zip(images, first(stage), strict=True):
        expected = (image / 255. - mean.reshape(3, 1, 1)) / (
            deviation.reshape(3, 1, 1))
        assert_allclose(expected, result, rtol=1e-5, atol=1e-6)
        assert floatx == result.dtype
    stacked = pixels(2, 1, 3, 3)
    assert_array_equal(
        (stacked * numpy.float32(.5) - numpy.float32(1)).astype('f4'),
        first(Normalize(batches(stacked), 2, 2, dtype='float32')))
    assert (3, 4, 5) == first(Normalize(examples(images), mean)).shape


@pytest.mark.parametrize('build, text', [
    (lambda s: Resize(s, (0, 2)), 'shape must be two positive integers'),
    (lambda s: Resize(s, (2, 2), 'cubic'), "got 'cubic'"),
    (lambda s: CenterCrop(s, 3), 'window_shape must be two positive'),
    (lambda s: RandomResizedCrop(s, (2, 2), scale=(.5, 2)),
     'two positive numbers of at most 1, the least first'),
    (lambda s: RandomResizedCrop(s, (2, 2), ratio=(2, 1)), 'ratio must be'),
    (lambda s: RandomResizedCrop(s, (2, 2), scale=3), 'got 3'),
    (lambda s: RandomHorizontalFlip(s, 1.5), 'from 0 to 1, got 1.5'),
    (lambda s: RandomHorizontalFlip(s, math.nan), 'got nan'),
    (lambda s: Normalize(s, deviation=[1, 0]), r'positive, got \[1.0, 0.0\]'),
    (lambda s: Normalize(s, [[1]]), r'got the shapes \(1, 1\)'),
    (lambda s: Normalize(s, dtype='float16'), 'float32 or float64'),
    (lambda s: first(Normalize(s, [1, 2])),
     'mean has 2 numbers, but the images have 3 channels'),
])
def test_new_stages_bad_arguments_raise(build, text):
    """Arguments are checked when the stage is built, if they can be."""
    with pytest.raises(ValueError, match=text):
        build(batches(pixels(2, 3, 4, 4)))
