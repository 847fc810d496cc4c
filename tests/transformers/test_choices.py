"""The streams of a mixture's items are found at any position.

The oracle looks at the points one by one.
"""
from itertools import pairwise

import numpy
import pytest

from fuel.datasets import IndexableDataset
from fuel.schemes import ComputedShuffledExampleScheme, ConstantScheme
from fuel.schemes.mixing import CHUNK, MixingRequests, as_thresholds
from fuel.streams import DataStream
from fuel.transformers import BalancedBatches, Batch, Mix
from fuel.transformers.mixture.choices import Choices

WEIGHTS = [[1.], [.5, .5], [.7, 0., .3], [0., 1e-3, 1.], [3., 2., 1., 1e-4]]


def choices_of(weights, seed=1):
    """Return the choices, and a function for the stream of an item."""
    weights = numpy.array(weights)
    points = MixingRequests(weights, seed, 0, numpy.inf)
    thresholds = as_thresholds(weights)
    return Choices(points, thresholds), lambda item: int(numpy.searchsorted(
        thresholds, points.request_at(item)[1], side='right'))


@pytest.mark.parametrize('weights', WEIGHTS)
def test_streams_are_counted_and_found_from_the_first_item(weights):
    """Questions come in any order, also about rare streams."""
    choices, stream_at = choices_of(weights)
    count = 3 * CHUNK + 100
    streams = numpy.array(list(map(stream_at, range(count))))
    generator = numpy.random.RandomState(1)
    for start in generator.randint(count, size=30):
        stop = start + int(generator.randint(1, 2 * CHUNK))
        assert streams[start:stop].tolist() == choices.streams(
            start, min(stop, count)).tolist()
    for place, weight in enumerate(weights):
        where = numpy.flatnonzero(streams == place)
        for position in [0, CHUNK, *generator.randint(count, size=20)]:
            assert choices.count(place, int(position)) == (
                where < position).sum()
        for number in generator.permutation(len(where))[:20].tolist():
            assert where[number] == choices.find(place, number)
        assert (weight > 0) == bool(len(where))


@pytest.mark.parametrize('weights', WEIGHTS[1:])
@pytest.mark.parametrize('start', [10 ** 12 + 5, 3 * 10 ** 15])
def test_far_items_are_found(weights, start):
    """A count and its inverse agree, and follow the points."""
    choices, stream_at = choices_of(weights, 7)
    for item in range(start, start + 40):
        place = stream_at(item)
        number = choices.count(place, item)
        assert item == choices_of(weights, 7)[0].find(place, number)
        for other in range(len(weights)):
            assert choices.count(other, item + 1) == (
                choices.count(other, item) + (other == place))


@pytest.mark.parametrize('weight', [1e-7, 1e-12])
def test_items_of_streams_of_hardly_any_weight_are_found(weight):
    """They are many chunks apart."""
    choices, stream_at = choices_of([1., weight])
    places = [choices.find(1, number) for number in range(12)]
    assert all(first < second for first, second in pairwise(places))
    for number, item in enumerate(places):
        assert 1 == stream_at(item)
        assert number == choices.count(1, item)


def examples(first, count):
    """Return a stream of single examples in a shuffled order."""
    return DataStream(
        IndexableDataset({'y': numpy.arange(first, first + count)}),
        iteration_scheme=ComputedShuffledExampleScheme(count, seed=first))


@pytest.mark.parametrize('stop', ['first', 'last', 'forever'])
def test_batches_of_mixed_examples_are_made_at_once(stop):
    """Streams end, or begin anew, inside of batches."""
    def make():
        return Mix([examples(0, 30), examples(100, 11), examples(200, 50)],
                   weights=[2, 1, 1], seed=3, stop=stop,
                   epoch_size=130 if stop == 'forever' else None)
    for wrap in (lambda stream: Batch(stream, ConstantScheme(16)),
                 lambda stream: BalancedBatches(
                     stream, lengths=tuple(
                         numpy.arange(count) % 7 + 1 for count in (
                             30, 11, 50)), batch_size=16)):
        stream = wrap(make())
        order = stream.order
        read = numpy.array([0, 100, 200])
        for epoch in range(2):
            items = [item[0].tolist() for item in stream]
            assert items == [
                (read[table.dataset] + table.row).tolist()
                for table in order.epoch(epoch)]
            assert len(items) >= 3
