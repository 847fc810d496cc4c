"""The toy data sets."""
import hashlib
import pickle

import numpy
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fuel
from fuel.datasets.toy import Spiral, SwissRoll
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream


def everything(dataset):
    """Return all examples."""
    return dataset.get_data(None, slice(0, dataset.num_examples))


def test_spiral_points_lie_on_their_arm():
    """Features follow from position and label, within the unit circle."""
    dataset = Spiral(500, classes=3)
    features, position, label = everything(dataset)
    assert dataset.sources == ('features', 'position', 'label')
    assert dataset.num_examples == 500
    assert features.shape == (500, 2)
    assert features.dtype == numpy.float32
    assert position.shape == label.shape == (500,)
    assert set(label.tolist()) == {0, 1, 2}
    assert 0 <= position.min() <= position.max() < 1
    radius = numpy.hypot(*features.T)
    assert_allclose((1 + 2 * position) / 3, radius, rtol=1e-5)
    turns = numpy.arctan2(features[:, 0], features[:, 1]) / (2 * numpy.pi)
    off = (turns - position - label / 3) % 1
    assert_allclose(numpy.minimum(off, 1 - off), 0, atol=1e-5)


def test_spiral_cycles_stretch_the_arm():
    """Position runs to the number of cycles."""
    _, position, label = everything(Spiral(500, cycles=2.5))
    assert 2.3 < position.max() < 2.5
    assert not label.any()


def test_swiss_roll_points_lie_on_the_roll():
    """Position gives radius and z; everything lies within [-1, 1]."""
    dataset = SwissRoll(500)
    features, position = everything(dataset)
    assert dataset.sources == ('features', 'position')
    assert features.shape == (500, 3)
    assert features.dtype == numpy.float32
    assert position.shape == (500, 2)
    assert_allclose((1 + 2 * position[:, 0]) / 3,
                    numpy.hypot(features[:, 0], features[:, 1]), rtol=1e-5)
    assert_allclose(position[:, 1], features[:, 2], rtol=1e-6)
    assert numpy.abs(features).max() <= 1


@pytest.mark.parametrize('dataset, digests', [
    (lambda: SwissRoll(100, noise=.1, seed=7),
     {'features': ('float32', 'b4c65b30f8ff'),
      'position': ('float32', 'fdae5bb57b95')}),
    (lambda: Spiral(100, classes=3, cycles=2., noise=.1, seed=7),
     {'features': ('float32', 'c3c53fafb148'),
      'position': ('float64', '0f29ef2445bc'),
      'label': ('int64', '976763d82d83')})], ids=['SwissRoll', 'Spiral'])
def test_toy_data_are_those_of_the_old_release(dataset, digests):
    """A seed gives the points that Fuel 0.2.0 gave, bit for bit."""
    dataset = dataset()
    arrays = dict(zip(dataset.sources, everything(dataset), strict=True))
    assert arrays['features'].dtype == numpy.float32
    assert digests == {
        source: (dtype, hashlib.sha1(
            arrays[source].astype(dtype).tobytes()).hexdigest()[:12])
        for source, (dtype, _) in digests.items()}
    assert all(arrays[source].dtype == dtype
               for source, (dtype, _) in digests.items()
               if dtype.startswith('float'))


def test_swiss_roll_x_is_the_cosine_and_y_the_sine():
    """The angle runs from 1.5 pi to 4.5 pi, from x to y."""
    features, position = everything(SwissRoll(200))
    angle = 1.5 * numpy.pi * (1 + 2 * position[:, 0])
    radius = (1 + 2 * position[:, 0]) / 3
    assert_allclose(radius * numpy.cos(angle), features[:, 0], atol=1e-5)
    assert_allclose(radius * numpy.sin(angle), features[:, 1], atol=1e-5)


@pytest.mark.parametrize('cls', [Spiral, SwissRoll])
def test_toy_data_depend_on_the_default_seed_alone(cls):
    """The same seed gives the same points, another one others."""
    first = everything(cls(50, noise=0.1))
    for mine, again in zip(first, everything(cls(50, noise=0.1)),
                           strict=True):
        assert_array_equal(mine, again)
    fuel.config.default_seed = 2
    second = everything(cls(50, noise=0.1))
    assert not numpy.array_equal(first[0], second[0])
    seeded = everything(cls(50, noise=0.1, seed=1))
    assert_array_equal(first[0], seeded[0])


@pytest.mark.parametrize('cls', [Spiral, SwissRoll])
def test_toy_noise_has_the_given_deviation(cls):
    """Noise is normal, of standard deviation `noise`, on the features
    alone."""
    plain, noisy = everything(cls(4000)), everything(cls(4000, noise=0.5))
    assert_allclose((noisy[0] - plain[0]).std(axis=0), 0.5, rtol=0.1)
    for one, other in zip(plain[1:], noisy[1:], strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize('cls', [Spiral, SwissRoll])
def test_toy_data_stream_and_pickle(cls):
    """Toy data are streamed and pickled like any data in memory."""
    dataset = pickle.loads(pickle.dumps(cls(20, sources=('position',))))
    stream = DataStream(dataset, iteration_scheme=ShuffledScheme(20, 8))
    assert [len(batch[0]) for batch in stream.get_epoch_iterator()] == [
        8, 8, 4]
    assert cls(30, start=10).num_examples == 20


@pytest.mark.parametrize('cls, kwargs, text', [
    (Spiral, {'num_examples': 0}, 'num_examples must be at least 1, got 0'),
    (Spiral, {'classes': 0}, 'classes must be at least 1, got 0'),
    (Spiral, {'noise': -1}, 'at least 0, got -1'),
    (SwissRoll, {'num_examples': -5}, 'num_examples must be at least 1'),
    (SwissRoll, {'noise': float('nan')}, 'at least 0, got nan')])
def test_toy_impossible_arguments_raise_valueerror(cls, kwargs, text):
    """No points, no arms and negative noise are refused."""
    with pytest.raises(ValueError, match=text):
        cls(**kwargs)
