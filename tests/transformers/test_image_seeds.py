"""Stages of 0.2.0 that draw from `rng`, and what they draw by `seed`."""
import numpy
import pytest

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.streams import DataStream
from fuel.transformers import MultiProcessing
from fuel.transformers.image import Random2DRotation, RandomFixedSizeCrop

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
    """Not on what was drawn before, nor on the form of a batch."""
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


@STAGES
def test_examples_are_drawn_for(stage):
    """Each by its number."""
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
    """So states saved before there was one fit."""
    stream = stage(batches())
    next(stream.get_epoch_iterator())
    state = stream.state_dict()
    assert 'seed' not in state['stream']
    assert state['leftover'] is None
    assert 'numpy.random.RandomState' == state['rng']['kind']
