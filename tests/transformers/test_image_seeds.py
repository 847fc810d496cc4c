"""Stages of 0.2.0 that draw from `rng`, and what they draw by `seed`."""
import numpy
import pytest

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.streams import DataStream
from fuel.transformers import MultiProcessing, Unpack
from fuel.transformers.image import (
    MinimumImageDimensions,
    Random2DRotation,
    RandomFixedSizeCrop,
    RandomHorizontalFlip,
    RandomResizedCrop,
    Resize,
)

PIXELS = numpy.arange(12 * 2 * 6 * 7, dtype='uint8').reshape(12, 2, 6, 7)
LABELS = 'batch', 'channel', 'height', 'width'


def crops(stream, **how):
    """Return crops of three by four."""
    return RandomFixedSizeCrop(stream, (3, 4), **how)


STAGES = pytest.mark.parametrize('stage', [crops, Random2DRotation])


def batches(*sources, stacked=True):
    """Return batches of images, as arrays or as lists."""
    names = sources or ('image',)
    data = PIXELS if stacked else list(PIXELS)
    return DataStream(
        IndexableDataset(dict.fromkeys(names, data),
                         axis_labels=dict.fromkeys(names, LABELS)),
        batch_size=4)


def drawn(stream):
    """Return all images of an epoch, in one list."""
    return [image.tolist() for batch in stream for image in batch[0]]


@STAGES
def test_draws_depend_on_seed_and_epoch(stage):
    """They do not depend on earlier draws, nor on the form of a batch."""
    stream = stage(batches(), seed=3)
    first, second = drawn(stream), drawn(stream)
    assert first != second
    assert first == drawn(stage(batches(), seed=3))
    assert first != drawn(stage(batches(), seed=4))
    assert first == drawn(stage(batches(stacked=False), seed=3))


@STAGES
def test_sources_get_the_same_draws(stage):
    """An image and its mask stay aligned."""
    for image, mask in stage(batches('image', 'mask'), seed=1):
        assert numpy.array_equal(image, mask)


@pytest.mark.parametrize('stacked', [False, True])
@pytest.mark.parametrize('stage', [
    crops, Random2DRotation, RandomHorizontalFlip,
    lambda stream, **how: RandomResizedCrop(stream, (3, 3), **how)])
def test_examples_and_batches_of_pairs_stay_aligned(stage, stacked):
    """Masks of other channels and another type move with their images."""
    masks = PIXELS[:, 1:].astype('int16') + 100
    dataset = IndexableDataset(
        {'image': PIXELS if stacked else list(PIXELS), 'mask': masks},
        axis_labels={'image': LABELS, 'mask': LABELS})
    how = {'resample': 'nearest'} if stage not in (
        crops, RandomHorizontalFlip) else {}
    for stream in (DataStream(dataset, batch_size=4),
                   Unpack(DataStream(dataset, batch_size=4))):
        for images, moved in stage(stream, seed=1, **how):
            mask = numpy.asarray(moved)
            image = numpy.asarray(images)[..., 1:, :, :].astype(int)
            # A rotation leaves nothing in the corners.
            assert numpy.array_equal(image[mask > 0] + 100, mask[mask > 0])
            assert (mask[image > 0] > 0).all()


def moved_to(shape, stage):
    """Return a stage for images of a shape."""
    return lambda stream, **how: stage(stream, shape, **how)


@pytest.mark.parametrize('stage', [
    moved_to((4, 9), Resize), moved_to((9, 9), MinimumImageDimensions),
    moved_to((5, 5), RandomResizedCrop), Random2DRotation])
def test_each_source_may_have_a_filter_of_its_own(stage):
    """A mask has no classes between two others."""
    how = {} if stage(batches()).__class__ in (
        Resize, MinimumImageDimensions) else {'seed': 4}
    both = stage(batches('image', 'mask'), resample={
        'mask': 'nearest', 'image': 'bicubic'}, **how)
    images, masks = [
        [image for batch in stage(batches(), resample=name, **how)
         for image in batch[0]] for name in ('bicubic', 'nearest')]
    found = [pair for batch in both for pair in zip(*batch, strict=True)]
    assert 12 == len(found)
    for (image, mask), smooth, sharp in zip(
            found, images, masks, strict=True):
        assert numpy.array_equal(smooth, image)
        assert numpy.array_equal(sharp, mask)
    assert not all(numpy.array_equal(*pair) for pair in found)


@pytest.mark.parametrize('resample, text', [
    ({'image': 'bicubic'}, r"filter of each .* \('image', 'mask'\), got"),
    ({'image': 'bicubic', 'mask': 'nearest', 'y': 'box'}, 'got .*box'),
    ({'image': 'bicubic', 'mask': 'near'}, "one of .*, got 'near'"),
    ('near', "one of .*, got 'near'")])
def test_filters_are_checked(resample, text):
    """Each source has one."""
    for stage in (moved_to((4, 9), Resize), Random2DRotation,
                  moved_to((9, 9), MinimumImageDimensions),
                  moved_to((5, 5), RandomResizedCrop)):
        with pytest.raises(ValueError, match=text):
            stage(batches('image', 'mask'), resample=resample)


@STAGES
def test_examples_are_drawn_for(stage):
    """Each is drawn for by its number."""
    def build():
        return stage(DataStream(IterableDataset(
            list(PIXELS), axis_labels={'data': LABELS})), seed=5)

    found = [image.tolist() for image, in build()]
    assert 12 == len(found)
    assert found == [image.tolist() for image, in build()]
    ranks = [[image.tolist() for image, in build().shard(rank, 2)]
             for rank in range(2)]
    assert [found[0::2], found[1::2]] == ranks


@STAGES
def test_workers_share_a_stage_with_seed(stage):
    """One with `rng` draws what comes next, so they cannot."""
    expected = drawn(stage(batches(), seed=2))
    with MultiProcessing(stage(batches(), seed=2), num_workers=2) as stream:
        assert expected == drawn(stream)
    with pytest.raises(ValueError, match=(
            'so several workers cannot share it: give it seed= instead, or '
            'use a stage that takes seed=, or put it behind')):
        MultiProcessing(stage(batches()), num_workers=2)


@STAGES
def test_crops_lie_everywhere(stage):
    """All rows and columns, angles of both directions: none is left out."""
    if stage is crops:
        pixels = numpy.arange(20).reshape(1, 1, 4, 5).repeat(400, axis=0)
        stream = RandomFixedSizeCrop(DataStream(
            IndexableDataset({'x': pixels}, axis_labels={'x': LABELS}),
            batch_size=400), (3, 3), seed=1)
        corners = numpy.bincount(next(iter(stream))[0][:, 0, 0, 0])
        assert [0, 1, 2, 5, 6, 7] == numpy.flatnonzero(corners).tolist()
        # 400 draws of 1/6: within five standard deviations.
        assert (abs(corners[corners > 0] - 400 / 6) < 5 * 7.5).all()
    else:
        pixels = numpy.zeros((200, 1, 9, 9), 'uint8')
        pixels[:, :, 0, 4] = 255
        stream = Random2DRotation(DataStream(
            IndexableDataset({'x': pixels}, axis_labels={'x': LABELS}),
            batch_size=200), 1., seed=1)
        columns = next(iter(stream))[0].argmax(axis=-1).max(axis=(1, 2))
        assert {True, False} == set((columns > 4).tolist())


@STAGES
def test_rng_and_seed_exclude_each_other(stage):
    """The text says what each is for."""
    with pytest.raises(ValueError, match='takes rng.*0.2.0.*or seed.*one'):
        stage(batches(), rng=numpy.random.RandomState(1), seed=1)


@STAGES
def test_state_of_a_stage_with_rng_has_no_seed(stage):
    """States that were saved before there was a seed fit."""
    stream = stage(batches())
    next(stream.get_epoch_iterator())
    state = stream.state_dict()
    assert 'seed' not in state['stream']
    assert state['leftover'] is None
    assert 'numpy.random.RandomState' == state['rng']['kind']
