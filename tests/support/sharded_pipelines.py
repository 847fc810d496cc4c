"""Pipelines whose order ranks share, and the plain order beside them."""
import itertools
import json

import numpy

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.schemes import (
    BlockShuffledScheme, ComputedShuffledScheme, ConcatenatedScheme,
    ConstantScheme, SequentialScheme, ShuffledExampleScheme, ShuffledScheme)
from fuel.streams import DataStream
from fuel.transformers import (
    Batch, Cache, Cast, Chain, Merge, Mix, Rename, Take, Unpack)
from fuel.transformers.image import Random2DRotation, RandomFixedSizeCrop
from fuel.transformers.noise import GaussianNoise
from fuel.transformers.shuffling import ShuffleBuffer


def dataset(count):
    """Return examples of two numbers and their own number."""
    return IndexableDataset({
        'x': numpy.arange(count * 2.).reshape(count, 2),
        'y': numpy.arange(count)})


def batches(count, size, scheme=ShuffledScheme):
    """Return a stream of batches."""
    return DataStream(dataset(count), iteration_scheme=scheme(count, size))


def blocks(count, size):
    """Return a scheme that reads blocks of three."""
    return BlockShuffledScheme(count, size, block_size=3, window=2)


def twice(count, size):
    """Return a scheme of two parts, whose requests are read in order."""
    return ConcatenatedScheme([
        ShuffledScheme(count, size),
        SequentialScheme(range(count), size)])


def examples(count):
    """Return a stream of examples."""
    return DataStream(dataset(count),
                      iteration_scheme=ShuffledExampleScheme(count))


def noisy(stream):
    """Return a stream whose numbers change at random."""
    return GaussianNoise(stream, .5, which_sources=('x',))


def images(count, size):
    """Return a stream of batches of images."""
    pixels = numpy.arange(count * 25, dtype='uint8').reshape(count, 1, 5, 5)
    return DataStream(
        IndexableDataset({'x': pixels, 'y': numpy.arange(count)}, axis_labels={
            'x': ('batch', 'channel', 'height', 'width'), 'y': ('batch',)}),
        iteration_scheme=ShuffledScheme(count, size))


def halves(stream):
    """Return a stream of another type."""
    return Cast(stream, 'float32', which_sources=('x',))


def mixed(count, make, **how):
    """Return a mixture of three streams of different lengths."""
    return Mix({name: make(length) for name, length in (
        ('large', count), ('small', count // 3 + 1), ('last', 3))},
        {'large': 3, 'small': 2, 'last': 1}, seed=count, **how)


# By name: a pipeline of so many examples, in batches of a size; and whether
# its batches can be split over ranks.
PIPELINES = {
    'ShuffledScheme': (batches, True),
    'SequentialScheme': (
        lambda n, b: batches(n, b, SequentialScheme), True),
    'BlockShuffledScheme': (lambda n, b: batches(n, b, blocks), True),
    'ComputedShuffledScheme': (
        lambda n, b: batches(n, b, ComputedShuffledScheme), True),
    'ConcatenatedScheme': (
        lambda n, b: noisy(batches(n, b, twice)), True),
    'examples': (lambda n, b: examples(n), False),
    'stages': (lambda n, b: Rename(
        noisy(halves(batches(n, b))), {'x': 'z'}), True),
    'images': (lambda n, b: Random2DRotation(RandomFixedSizeCrop(
        images(n, b), (3, 3), seed=n, which_sources=('x',)), seed=b,
        which_sources=('x',)), True),
    'Batch': (lambda n, b: noisy(Batch(
        noisy(examples(n)), ConstantScheme(b))), True),
    'Batch strict': (lambda n, b: Batch(
        examples(n), ConstantScheme(b), strictness=1), True),
    'Batch ends early': (lambda n, b: Batch(
        examples(n), ConstantScheme(b, num_examples=max(1, n - 2))), True),
    'Unpack': (lambda n, b: halves(Unpack(noisy(batches(n, b)))), False),
    'Cache': (lambda n, b: Cache(
        noisy(batches(n, b)), ConstantScheme(5)), True),
    'Cache of small batches': (lambda n, b: halves(Cache(
        batches(n, 2), ConstantScheme(b))), True),
    'ShuffleBuffer': (lambda n, b: noisy(ShuffleBuffer(
        noisy(examples(n)), b)), False),
    'Merge': (lambda n, b: Merge(
        (batches(n, b), noisy(batches(n, b))), tuple('abcd')), False),
    'Take': (lambda n, b: Take(halves(batches(n, b)), 5), False),
    'Chain': (lambda n, b: Chain(
        [noisy(batches(n, b)), batches(n, b, SequentialScheme)]), False),
    'Mix': (lambda n, b: noisy(mixed(n, examples, origin_source='z')), False),
    'Mix to the last': (lambda n, b: mixed(
        n, lambda length: noisy(batches(length, b)), stop='last',
        origin_source='z'), True),
    'Mix of batches': (lambda n, b: noisy(mixed(
        n, lambda length: batches(length, b))), True),
    'Mix for ever': (lambda n, b: mixed(
        n, lambda length: noisy(batches(length, b)), stop='forever',
        epoch_size=n), True),
    'Batch of Mix': (lambda n, b: noisy(Batch(
        noisy(mixed(n, examples)), ConstantScheme(b))), True),
    'Batch of Mix to the last': (lambda n, b: Batch(
        mixed(n, examples, stop='last'), ConstantScheme(b),
        strictness=1), True),
    'Batch of Mix for ever': (lambda n, b: Batch(
        mixed(n, examples, stop='forever', epoch_size=n),
        ConstantScheme(b)), True),
    'ShuffleBuffer of Mix': (lambda n, b: ShuffleBuffer(
        mixed(n, examples, stop='last'), b), False),
    'Take of Mix': (lambda n, b: Take(mixed(n, examples), 5), False),
    'Mix in order': (lambda n, b: mixed(n, lambda length: DataStream(
        IterableDataset({'y': range(length)}))), False),
    'IterableDataset': (lambda n, b: DataStream(IterableDataset(
        {'y': range(n)})), False),
}
# Those that cannot go back to the start of an epoch, to pad its end.
ONLY_FORWARD = {'Mix for ever', 'Batch of Mix for ever', 'Mix in order',
                'IterableDataset'}
# Those that draw anew for what is repeated.
NOISY = {'ConcatenatedScheme', 'stages', 'images', 'Batch', 'Unpack', 'Cache',
         'ShuffleBuffer', 'Merge', 'Chain', 'Mix', 'Mix to the last',
         'Mix of batches', 'Batch of Mix'}


def build(name, count, size):
    """Return a new pipeline."""
    return PIPELINES[name][0](count, size)


def full_size(name, size):
    """Return how many examples a whole batch has, None if not known."""
    return {'Cache': 5, 'ConcatenatedScheme': None}.get(name, size)


def frozen(item):
    """Return an item as something that compares."""
    return repr([numpy.asarray(part).tolist() for part in item])


def items(stream, most=None):
    """Return items of an epoch, as something that compares."""
    return [frozen(item) for item in itertools.islice(stream, most)]


def rows(stream, most=None):
    """Return the rows of each batch of an epoch."""
    return [[repr(row) for row in zip(
        *[numpy.asarray(part).tolist() for part in batch], strict=True)]
        for batch in itertools.islice(stream, most)]


def through_json(state):
    """Return a state as it comes out of a file."""
    return json.loads(json.dumps(state))
