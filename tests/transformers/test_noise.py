"""Noise has the given amount and type, and is the same for a seed."""
import numpy
import pytest
from numpy.testing import assert_array_equal
from support.image_data import as_objects
from support.resuming import assert_resumes

from fuel.datasets import IndexableDataset
from fuel.schemes import SequentialExampleScheme, ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers.noise import (
    Dropout,
    GaussianNoise,
    SaltAndPepper,
    UniformNoise,
)

STAGES = [
    lambda stream, **kwargs: GaussianNoise(stream, 2., **kwargs),
    lambda stream, **kwargs: UniformNoise(stream, -1, 3, **kwargs),
    lambda stream, **kwargs: Dropout(stream, .25, **kwargs),
    lambda stream, **kwargs: SaltAndPepper(stream, .5, **kwargs)]


def stream_of(data, **others):
    """Return a stream of one batch."""
    return DataStream(IndexableDataset({'x': data, **others}),
                      iteration_scheme=ShuffledScheme(len(data), len(data)))


def noisy(stage, data):
    """Return a batch with noise."""
    return next(stage(stream_of(data)).get_epoch_iterator())[0]


def test_gaussian_noise_has_the_deviation():
    """Mean and deviation are as asked for."""
    noise = noisy(STAGES[0], numpy.full((100, 1000), 5.)) - 5
    assert abs(noise.mean()) < .05
    assert abs(noise.std() - 2) < .05


def test_uniform_noise_fills_the_range():
    """All of the range is filled evenly."""
    noise = noisy(STAGES[1], numpy.zeros((100, 1000)))
    counts, _ = numpy.histogram(noise, 4, (-1, 3))
    assert 100000 == counts.sum()
    assert (abs(counts - 25000) < 1500).all()


def test_dropout_keeps_the_mean():
    """A quarter becomes zero, the rest larger; unless it is not rescaled."""
    result = noisy(STAGES[2], numpy.full((100, 1000), 3.))
    assert [0, 4] == numpy.unique(result).tolist()
    assert abs(result.mean() - 3) < .1
    assert [0, 3] == numpy.unique(noisy(
        lambda stream: Dropout(stream, .25, rescale=False),
        numpy.full((100, 1000), 3.))).tolist()


@pytest.mark.parametrize('dtype, low, high', [
    ('u1', 0, 255), ('i2', 0, 32767), ('f4', 0, 1), ('?', 0, 1)])
def test_salt_and_pepper_sets_extremes(dtype, low, high):
    """A quarter of the numbers is set to each; the type is kept."""
    data = numpy.full((100, 1000), .5 if dtype == 'f4' else 1, dtype)
    result = noisy(STAGES[3], data)
    assert data.dtype == result.dtype
    assert abs((result == low).mean() - .25) < .02
    if dtype != '?':
        assert abs((result == high).mean() - .25) < .02


@pytest.mark.parametrize('stage', STAGES)
@pytest.mark.parametrize('dtype', ['f2', 'f4', 'f8', '>f4'])
def test_noise_keeps_type_and_form(stage, dtype):
    """Arrays, lists and arrays of objects keep types, in native order."""
    data = numpy.ones((3, 4, 5), dtype)
    result = noisy(stage, data)
    assert numpy.dtype(dtype).newbyteorder('=') == result.dtype
    assert data.shape == result.shape
    ragged = [numpy.ones(n, dtype) for n in (1, 2, 3)]
    assert [1, 2, 3] == sorted(len(x) for x in noisy(stage, ragged))
    objects = noisy(stage, as_objects(ragged))
    assert objects.dtype == object
    assert {1, 2, 3} == {len(element) for element in objects}


@pytest.mark.parametrize('stage', STAGES)
def test_noise_depends_on_seed_epoch_batch_and_source(stage):
    """Equal seeds give equal noise; nothing else does."""
    ones = numpy.ones((6, 50))

    def build(seed=None):
        return stage(DataStream(
            IndexableDataset({'x': ones, 'y': ones}),
            iteration_scheme=SequentialExampleScheme(6)), seed=seed)

    stream, same, other = build(), build(), build(77)
    epochs = [[part for data in s.get_epoch_iterator() for part in data]
              for s in (stream, stream, same, other)]
    for a, b in zip(epochs[0], epochs[2], strict=True):
        assert_array_equal(a, b)
    everything = [part.tobytes() for i in (0, 1, 3) for part in epochs[i]]
    assert len(everything) == len(set(everything))
    assert_resumes(build)


@pytest.mark.parametrize('build, text', [
    (lambda s: GaussianNoise(s, -1), 'finite and not negative, got -1'),
    (lambda s: UniformNoise(s, 2, 1), 'got 2 and 1'),
    (lambda s: Dropout(s, 1), 'from 0 to below 1, got 1'),
    (lambda s: SaltAndPepper(s, -.1), 'from 0 to 1, got -0.1'),
    (lambda s: next(GaussianNoise(s, 1).get_epoch_iterator()),
     'floating-point numbers, got uint8: put Cast'),
    (lambda s: next(SaltAndPepper(s, 1, high=256).get_epoch_iterator()),
     'high=256 does not fit the type of the data, uint8'),
])
def test_noise_bad_arguments_raise(build, text):
    """Arguments are checked at once; types when data come."""
    with pytest.raises(ValueError, match=text):
        build(stream_of(numpy.ones((2, 2), 'u1')))
