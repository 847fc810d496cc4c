"""MixUp and CutMix against what their papers say, in plain NumPy."""
import numpy
import pytest
from numpy.testing import assert_array_equal
from support.resuming import assert_resumes

from fuel.datasets import IndexableDataset
from fuel.describe import SourceType
from fuel.describe.source_types import types_of
from fuel.exceptions import AxisLabelsMismatchError
from fuel.streams import DataStream
from fuel.transformers import Mapping, MultiProcessing, Unpack
from fuel.transformers.image import CutMix, MixUp

CLASSES = 5
AXES = 'batch', 'channel', 'height', 'width'
RNG = numpy.random.RandomState(3)
IMAGES = RNG.normal(size=(24, 3, 6, 9)).astype('float32')
LABELS = RNG.randint(CLASSES, size=24)
ONE_HOT = numpy.eye(CLASSES, dtype='float32')[LABELS]


def stream(targets=LABELS, images=IMAGES, size=8, **more):
    """Return a stream of batches of images and targets, in order."""
    arrays = {'features': images, 'targets': targets, **more}
    return DataStream(IndexableDataset(arrays, axis_labels={
        name: AXES for name, array in arrays.items()
        if getattr(array, 'ndim', 0) == 4}), batch_size=size)


def draws_of(stage):
    """Return the generator of each batch of the next epoch."""
    generators, draw = [], stage.generator

    def record():
        generators.append(draw())
        return draw()

    stage.generator = record
    return generators


def mixed_up(images, shares, generator, alpha):
    """Return images and targets as the paper on mixup has them."""
    generator.random()
    partners = generator.permutation(len(images))
    share = generator.beta(alpha, alpha)
    return [numpy.stack([
        share * data[one] + (1 - share) * data[other]
        for one, other in enumerate(partners)]) for data in (images, shares)]


def cut_and_mixed(images, shares, generator, alpha):
    """Return images and targets as the paper on CutMix has them."""
    generator.random()
    partners = generator.permutation(len(images))
    share = generator.beta(alpha, alpha)
    height, width = images.shape[2:]
    half_height = int(height * (1 - share) ** .5) // 2
    half_width = int(width * (1 - share) ** .5) // 2
    row, column = generator.integers(height), generator.integers(width)
    is_other = numpy.zeros((height, width), bool)
    for y in range(row - half_height, row + half_height):
        for x in range(column - half_width, column + half_width):
            if 0 <= y < height and 0 <= x < width:
                is_other[y, x] = True
    share = 1 - is_other.mean()
    return (numpy.where(is_other, images[partners], images),
            share * shares + (1 - share) * shares[partners])


@pytest.mark.parametrize('alpha', [.2, 1., 4.])
@pytest.mark.parametrize('stage, reference', [
    (MixUp, mixed_up), (CutMix, cut_and_mixed)])
@pytest.mark.parametrize('targets', [
    LABELS, LABELS[:, None].astype('uint8'), ONE_HOT, ONE_HOT.astype(bool)])
def test_batches_are_what_the_paper_says(stage, reference, targets, alpha):
    """Targets of any form become shares of each class."""
    mixing = stage(stream(targets, size=9), CLASSES, alpha, seed=5)
    generators = draws_of(mixing)
    batches = list(mixing)
    assert 3 == len(batches) == len(generators)
    for number, (features, found) in enumerate(batches):
        rows = slice(9 * number, 9 * number + 9)
        images, shares = reference(
            IMAGES[rows], ONE_HOT[rows], generators[number], alpha)
        numpy.testing.assert_allclose(features, images, rtol=1e-5, atol=1e-6)
        numpy.testing.assert_allclose(found, shares, rtol=1e-5, atol=1e-6)
        assert (numpy.float32, numpy.float32) == (features.dtype, found.dtype)
        numpy.testing.assert_allclose(found.sum(1), 1, rtol=1e-6)


def test_shares_are_drawn_from_beta():
    """Their mean and variance, over many batches of two."""
    count = 4000
    numbers = numpy.tile([0, 1], count)
    for alpha in .2, 1.:
        mixing = MixUp(stream(numbers, numbers[:, None] * 1., 2), 2, alpha,
                       seed=1)
        shares = numpy.array([targets[0, 0] for _, targets in mixing])
        # Each second one is mixed with itself.
        shares = shares[shares < 1]
        assert abs(len(shares) / count - .5) < .04
        # Beta(alpha, alpha): mean 1/2, variance 1 / (8 alpha + 4).
        deviation = (8 * alpha + 4) ** -.5
        assert abs(shares.mean() - .5) < 4 * deviation / len(shares) ** .5
        assert abs(shares.std() / deviation - 1) < .06


@pytest.mark.parametrize('stage', [MixUp, CutMix])
@pytest.mark.parametrize('which', [('features', 'same'), ('features',)])
def test_an_array_that_comes_twice_is_mixed_once(stage, which):
    """The array is mixed where it is chosen, and stays elsewhere."""
    def twice(batch):
        return batch[0],

    labels = dict.fromkeys(('features', 'same'), AXES)
    found = stage(Mapping(stream(), twice, ['same'], axis_labels=labels),
                  CLASSES, alpha=1., which_sources=which)
    plain = stage(stream(), CLASSES, alpha=1.)
    for (one, _, other), (mixed, _), (images, _) in zip(
            found, plain, stream(), strict=True):
        assert_array_equal(one, mixed)
        assert_array_equal(other, mixed if 'same' in which else images)


def test_types_of_data_stay():
    """Images of any type are cut; those that are blended keep theirs."""
    for dtype in 'uint8', 'int64', 'float16':
        features, _ = next(iter(CutMix(
            stream(images=(IMAGES * 50).astype(dtype)), CLASSES, seed=1)))
        assert dtype == features.dtype
    for dtype in 'float16', 'float64':
        features, _ = next(iter(MixUp(
            stream(images=IMAGES.astype(dtype)), CLASSES, seed=1)))
        assert dtype == features.dtype


def test_an_image_and_its_mask_get_the_same_draws():
    """Masks may have other channels and another type."""
    masks = (IMAGES[:, :1] > 0).astype('uint8')
    pairs = stream(mask=masks)
    cut = CutMix(pairs, target_source=None,
                 which_sources=('features', 'mask'), seed=2)
    plain = [batch[1] for batch in pairs]
    for (features, targets, mask), labels in zip(cut, plain, strict=True):
        assert numpy.array_equal(features[:, :1] > 0, mask.astype(bool))
        assert numpy.array_equal(labels, targets)


@pytest.mark.parametrize('stage', [MixUp, CutMix])
def test_draws_depend_on_seed_epoch_and_batch(stage):
    """They are resumed, and shared by workers and ranks."""
    def build(seed=3):
        return stage(stream(), CLASSES, seed=seed)

    def drawn(stream):
        return [[part.tolist() for part in batch] for batch in stream]

    assert_resumes(build, num_epochs=1)
    whole = build()
    first, second = drawn(whole), drawn(whole)
    assert first != second
    assert first != drawn(build(4))
    with MultiProcessing(build(), num_workers=2) as workers:
        assert first == drawn(workers)
    assert first == [batch for step in zip(*[
        drawn(build().shard(rank, 3)) for rank in range(3)], strict=True)
        for batch in step]


def test_some_batches_are_left_as_they_are():
    """Their targets are shares, too."""
    mixing = MixUp(stream(size=1), CLASSES, probability=0, seed=1)
    for (features, targets), image, row in zip(
            mixing, IMAGES, ONE_HOT, strict=True):
        assert numpy.array_equal(image, features[0])
        assert row.tolist() == targets[0].tolist()
    mixing = MixUp(stream(size=2), CLASSES, 4., probability=.5, seed=1)
    changed = [not numpy.array_equal(mixed, plain) for (mixed, _), (plain, _)
               in zip(mixing, stream(size=2), strict=True)]
    assert 0 < sum(changed) < len(changed)


def test_one_after_the_other():
    """The second takes the shares of the first for targets."""
    both = CutMix(MixUp(stream(), CLASSES, seed=1), seed=1)
    for _, targets in both:
        assert (8, CLASSES) == targets.shape
        numpy.testing.assert_allclose(targets.sum(1), 1, rtol=1e-6)
    assert {'features': AXES, 'targets': ('batch', 'class')
            } == both.axis_labels


def test_types_are_known():
    """Those of targets are known as soon as the number of classes is."""
    known = types_of(CutMix(stream(), CLASSES))
    assert SourceType(numpy.dtype('f4'), (8, CLASSES)) == known['targets']
    assert (8, 3, 6, 9) == known['features'].shape
    assert 'targets' not in types_of(CutMix(stream()))


def first(stage, *args, **kwargs):
    """Return the first batch of a stage."""
    return next(iter(stage(*args, **kwargs)))


def test_what_cannot_be_mixed_is_refused():
    """The error has the remedy."""
    with pytest.raises(ValueError, match='produces single ones.*put Batch'):
        MixUp(Unpack(stream()), CLASSES)
    with pytest.raises(ValueError, match="float.*got uint8 of 'features'.*Ca"):
        first(MixUp, stream(images=IMAGES.astype('uint8')), CLASSES)
    with pytest.raises(ValueError, match="'features' in one array, got list"):
        first(CutMix, stream(images=[
            image[:, :4 + number % 2] for number, image in enumerate(IMAGES)]
            ), CLASSES)
    with pytest.raises(ValueError, match='channel, height, width.*which_sou'):
        first(CutMix, stream(images=IMAGES[:, 0]), CLASSES)
    with pytest.raises(ValueError, match='one height and width'):
        first(CutMix, stream(mask=IMAGES[:, :, 1:]), CLASSES)
    with pytest.raises(AxisLabelsMismatchError, match='CutMix expects'):
        wrong = stream()
        wrong.axis_labels = {'features': ('batch', 'height', 'width', 'c')}
        first(CutMix, wrong, CLASSES)


@pytest.mark.parametrize('targets, num_classes, text', [
    (LABELS, None, "'targets' has numbers of classes: pass num_classes"),
    (LABELS - 1, CLASSES, 'from 0 to 4 .* got -1 in example [0-7] of a ba'),
    (LABELS + 1, CLASSES, 'from 0 to 4 .* got 5 in example [0-7] of a batch'),
    (ONE_HOT, 4, r'a share of each class, of the shape \(batch, 4\); got flo'),
    (LABELS.astype(float), 4, r'got float64 of the shape \(8,\)'),
    (LABELS.astype(str), 4, r'got <U.* of the shape \(8,\)'),
])
def test_targets_are_checked(targets, num_classes, text):
    """The error has the first example that does not fit."""
    with pytest.raises(ValueError, match=text):
        list(MixUp(stream(targets), num_classes, seed=1))


@pytest.mark.parametrize('arguments, text', [
    ({'alpha': 0}, 'alpha must be positive'),
    ({'alpha': float('nan')}, 'alpha must be positive'),
    ({'probability': 2}, 'probability must be from 0 to 1'),
    ({'num_classes': 0}, 'num_classes'),
    ({'target_source': 'target'}, "'target'.*'targets'"),
    ({'which_sources': 'targets'}, 'leave it out of which_sources'),
])
def test_arguments_are_checked(arguments, text):
    """The constructor checks them."""
    for stage in MixUp, CutMix:
        with pytest.raises(ValueError, match=text):
            stage(stream(), **arguments)


def test_rows_of_a_batch_are_refused():
    """The others are on other ranks."""
    with pytest.raises(NotImplementedError, match=(
            "MixUp mixes the examples of whole batches.*use by='batch'")):
        MixUp(stream(), CLASSES).shard(0, 2, by='example')
    with pytest.raises(NotImplementedError, match='MixUp mixes'):
        MixUp(stream().shard(0, 2, by='example'), CLASSES)
