"""Crop windows, mirror, convert: each against the plain NumPy it means."""
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal

from fuel.kernels import (
    convert_images,
    crop_windows,
    mirror_images,
    pixels,
    windows,
)
from fuel.kernels.outputs import Placement, placed
from fuel.utils.threads import map_chunks

MOVABLE = ['?', 'u1', '<i2', '>i2', '<f2', '<f4', '>f4', '<f8', '>c8', '<c16',
           'S3', '<U2', 'M8[s]', [('a', 'u1'), ('b', '>f4')]]
NUMERIC = ['?', 'i1', 'u1', '<u2', '>u2', '<i2', '<i4', '>i4', '<i8', '<u8',
           '<f2', '<f4', '>f4', '<f8', '>f8']


@st.composite
def image_batches(draw, dtypes=MOVABLE):
    """Draw a 4-d array of any type, strides and flags."""
    shape = draw(st.tuples(st.integers(0, 5), st.integers(0, 4),
                           st.integers(1, 7), st.integers(1, 40)))
    dtype = numpy.dtype(draw(st.sampled_from(dtypes)))
    order = draw(st.permutations(range(4)))
    step = draw(st.sampled_from([1, -1, 2]))
    offset = draw(st.sampled_from([0, 0, 1]))
    rng = numpy.random.RandomState(draw(st.integers(0, 2 ** 16)))
    stored = [shape[axis] for axis in order]
    stored[-1] *= abs(step)
    count = int(numpy.prod(stored))
    memory = rng.bytes(count * dtype.itemsize + offset)
    if dtype.kind in 'U?fc':
        # Only some bit patterns are characters, booleans or numbers.
        memory = bytes(offset) + rng.randint(0, 2, count).astype(
            dtype).tobytes()
    images = numpy.frombuffer(
        memory, dtype, count, offset).reshape(stored)[..., ::step]
    images = images.transpose(numpy.argsort(order))
    if draw(st.booleans()):
        images = images.copy(order='K')
        images.flags.writeable = draw(st.booleans())
    assert images.shape == shape
    return images


def crop_twin(images, tops, lefts, shape):
    """Define crop_windows."""
    return numpy.array(
        [image[:, y:y + shape[0], x:x + shape[1]]
         for image, y, x in zip(images, tops, lefts, strict=True)],
        images.dtype).reshape(*images.shape[:2], *shape)


def assert_own(array):
    """Assert that an array is what a stage may hand out."""
    assert array.flags.writeable
    assert array.flags.aligned
    assert array.dtype.isnative


@given(st.data(), image_batches(), st.integers(1, 4))
def test_crop_windows_any_array_equals_slicing(data, images, threads):
    """Types, strides, byte orders and read-only arrays give the results of
    slicing."""
    shape = [data.draw(st.integers(0, size)) for size in images.shape[2:]]
    tops, lefts = (
        data.draw(hnp.arrays('i4', len(images), elements=st.integers(
            0, size - window)))
        for size, window in zip(images.shape[2:], shape, strict=True))
    out = crop_windows(images, tops, lefts, shape, num_threads=threads)
    assert crop_twin(images, tops, lefts, shape).tobytes() == out.astype(
        images.dtype).tobytes()
    assert_own(out)
    assert not numpy.may_share_memory(out, images)


@given(st.data(), image_batches())
def test_mirror_images_any_array_equals_reversing(data, images):
    """The marked images have their columns reversed, the others not."""
    marks = data.draw(hnp.arrays(bool, len(images)))
    out = mirror_images(images, marks)
    expected = numpy.array(
        [image[..., ::-1] if mark else image
         for image, mark in zip(images, marks, strict=True)],
        images.dtype).reshape(images.shape)
    assert expected.tobytes() == out.astype(images.dtype).tobytes()
    assert_own(out)


@given(st.data(), image_batches(NUMERIC), st.sampled_from(['f4', 'f8']),
       st.booleans())
def test_convert_images_any_array_equals_two_passes(
        data, images, dtype, per_channel):
    """The kernel rounds as NumPy does, twice, in the type of the result."""
    dtype = numpy.dtype(dtype)
    size = images.shape[1] if per_channel else ()
    finite = st.floats(-4, 4, width=32)
    scale = data.draw(hnp.arrays('f8', size, elements=finite))
    shift = data.draw(hnp.arrays('f8', size, elements=finite))
    indices = None
    if len(images):
        indices = data.draw(st.none() | st.lists(
            st.integers(0, len(images) - 1)))
    out = convert_images(images, scale, shift, dtype, indices)
    chosen = images if indices is None else images[
        numpy.array(indices, int)]
    with numpy.errstate(all='ignore'):
        expected = (
            chosen.astype(dtype) * scale.astype(dtype).reshape(-1, 1, 1)
            + shift.astype(dtype).reshape(-1, 1, 1))
    assert_array_equal(expected, out)
    assert dtype == out.dtype
    assert_own(out)
    assert out.flags.c_contiguous


@pytest.mark.parametrize('threads', [1, 2, 3, 8])
def test_kernels_large_batch_same_on_any_number_of_threads(
        threads, monkeypatch):
    """Batches are split over threads, and give the same bytes."""
    for module in (pixels, windows):
        monkeypatch.setattr(module, 'MIN_BYTES', 1 << 16)
    split = []

    def counted(function, *args):
        return map_chunks(lambda *part: (
            split.append(part), function(*part)), *args)

    for module in (pixels, windows):
        monkeypatch.setattr(module, 'map_chunks', counted)
    images = numpy.random.RandomState(0).randint(
        0, 256, (64, 3, 128, 128)).astype('uint8')
    tops = lefts = numpy.arange(64) % 28
    assert_array_equal(
        crop_windows(images, tops, lefts, (100, 100), num_threads=1),
        crop_windows(images, tops, lefts, (100, 100), num_threads=threads))
    assert_array_equal(
        convert_images(images, .5, 2, num_threads=1),
        convert_images(images, .5, 2, num_threads=threads))
    assert_array_equal(
        mirror_images(images, tops % 2 == 0, num_threads=1),
        mirror_images(images, tops % 2 == 0, num_threads=threads))
    assert (len(split) > 6) == (threads > 1)


def test_crop_windows_of_objects_equals_slicing():
    """Objects are not moved as bytes, but they are moved."""
    images = numpy.empty((2, 1, 3, 3), object)
    images[...] = numpy.arange(18).reshape(images.shape)
    assert_array_equal(
        crop_twin(images, [1, 0], [0, 1], (2, 2)),
        crop_windows(images, [1, 0], [0, 1], (2, 2)))
    assert_array_equal(images[..., ::-1], mirror_images(images, [1, 1]))


def test_crop_windows_into_out_writes_there():
    """With ``out`` nothing is allocated, and strides of out are used."""
    images = numpy.arange(32, dtype='>i2').reshape(2, 1, 4, 4)
    out = numpy.zeros((2, 1, 2, 6), '>i2')[..., ::2]
    assert out is crop_windows(images, [0, 2], [1, 0], out=out)
    assert_array_equal(crop_twin(images, [0, 2], [1, 0], (2, 3)), out)


IMAGES = numpy.zeros((2, 3, 5, 4), 'u1')


@pytest.mark.parametrize('call, text', [
    (lambda: crop_windows(IMAGES[0], [0], [0], (1, 1)),
     r'axes \(batch, channel, height, width\), got the shape \(3, 5, 4\)'),
    (lambda: crop_windows(IMAGES, [0, 0], [0, 0]), 'needs the shape'),
    (lambda: crop_windows(IMAGES, [0, 0], [0, 0], (6, 1)),
     'larger than the images by 1 rows'),
    (lambda: crop_windows(IMAGES, [0, 0], [0, 0], (1, 7)),
     'larger than the images by 3 columns'),
    (lambda: crop_windows(IMAGES, [0, 4], [0, 0], (2, 2)),
     'image 1 begins at row 4, but must begin from 0 to 3'),
    (lambda: crop_windows(IMAGES, [0, 0], [-1, 0], (2, 2)),
     'image 0 begins at column -1'),
    (lambda: crop_windows(IMAGES, [0], [0, 0], (2, 2)),
     r'one integer row for each of the 2 windows, got int64 of shape \(1,\)'),
    (lambda: crop_windows(IMAGES, [0., 0.], [0, 0], (2, 2)), 'got float64'),
    (lambda: crop_windows(IMAGES, [0, 0], [0, 0],
                          out=numpy.zeros((2, 3, 2, 2), 'f4')),
     'dtype of the images, uint8, got float32'),
    (lambda: crop_windows(IMAGES, [0, 0], [0, 0],
                          out=numpy.zeros((1, 3, 2, 2), 'u1')),
     r'got \(1, 3, 2, 2\)'),
    (lambda: crop_windows(IMAGES, [0, 0], [0, 0], out=IMAGES),
     'must not share memory'),
    (lambda: crop_windows(IMAGES, [0, 0], [0, 0], out=numpy.frombuffer(
        bytes(12), 'u1').reshape(2, 3, 2, 1)), 'out must be writable'),
    (lambda: mirror_images(IMAGES, [True]), 'each of the 2 images'),
    (lambda: convert_images(IMAGES, 1, 0, 'int32'),
     'float32 or float64, got int32'),
    (lambda: convert_images(IMAGES, [1, 2], 0),
     r'scale must be one number or one for each of the 3 channels'),
    (lambda: convert_images(IMAGES, 1, 0, indices=[0, 2]), '2'),
    (lambda: convert_images(IMAGES, 1, 0, indices=[-1]), '-1'),
    (lambda: convert_images(IMAGES.astype('U1'), 1, 0), 'got images of <U1'),
])
def test_image_kernels_bad_arguments_raise_before_anything_runs(call, text):
    """Each wrong argument has an error that names it."""
    with pytest.raises(ValueError, match=text):
        call()


def test_kernels_on_several_threads_do_the_same(monkeypatch):
    """Each thread has its share of the batch."""
    images = numpy.random.RandomState(0).randint(
        0, 256, (37, 3, 8, 9)).astype('uint8')
    tops = numpy.arange(37) % 3
    marks = tops > 0

    def results(threads):
        return (crop_windows(images, tops, tops, (5, 6), num_threads=threads),
                mirror_images(images, marks, threads),
                convert_images(images, .1, .2, indices=[36, *range(30)],
                               num_threads=threads))

    alone = results(1)
    for module in (windows, pixels):
        monkeypatch.setattr(module, 'MIN_BYTES', 1)
    for expected, shared in zip(alone, results(3), strict=True):
        assert_array_equal(expected, shared)


@pytest.mark.parametrize('kernel', [
    lambda images: crop_windows(images, [0, 1], [1, 0], (3, 4)),
    lambda images: mirror_images(images, [True, False]),
    lambda images: convert_images(images, .5, 1)])
def test_kernels_write_where_a_worker_puts_its_batch(kernel):
    """Nothing is copied on the way; elsewhere the memory is the array's."""
    images = numpy.arange(120, dtype='uint8').reshape(2, 3, 4, 5)
    expected = kernel(images)
    slot = numpy.zeros(1000, 'uint8')
    placement = Placement(slot, [(64, expected.nbytes)])
    with placed(placement):
        found = kernel(images)
    assert numpy.shares_memory(found, slot)
    assert_array_equal(found, expected)
    assert [(64, 64 + expected.nbytes)] == placement.get_kept()
    found = found[1:, :1]
    assert not placement.is_free()
    del found
    assert placement.is_free()
