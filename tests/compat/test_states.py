"""States that 1.0.0 saved are taken up by each later 1.x, and orders stay.

``states.json`` has for each pipeline below the items of two epochs, and the
state after three items of the second. A release never changes the file: a
pipeline that is new is added, by ``python tests/compat/test_states.py``. Only
until 1.0.0 is released it may be deleted and written anew.
"""
import json
from pathlib import Path

import numpy
import pytest

from fuel.datasets import IndexableDataset, IterableDataset, Runs, Windows
from fuel.schemes import (
    BalancedScheme,
    BlockShuffledScheme,
    ComputedBlockShuffledScheme,
    ComputedShuffledExampleScheme,
    ComputedShuffledScheme,
    ConstantScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
    WeightedScheme,
)
from fuel.streams import DataStream
from fuel.transformers import (
    Batch,
    Cache,
    Chain,
    Filter,
    Mapping,
    Merge,
    Mix,
    Padding,
    Take,
    Unpack,
)
from fuel.transformers.image import (
    RandomFixedSizeCrop,
    RandomHorizontalFlip,
)
from fuel.transformers.sequences import BucketBatch, Chunk, Pack, Window
from fuel.transformers.shuffling import ShuffleBuffer

STATES = Path(__file__).with_name('states.json')
SIZE = 24


def numbers(scheme=None, **arguments):
    """Return a stream of numbers."""
    return DataStream(IndexableDataset({'x': numpy.arange(SIZE)}),
                      iteration_scheme=scheme, **arguments)


def examples(seed=1):
    """Return a stream of single examples."""
    return numbers(ShuffledExampleScheme(SIZE, seed=seed))


def documents():
    """Return a stream of sequences of different lengths."""
    return DataStream(IterableDataset({'words': [
        list(range(start, start + 1 + start % 7)) for start in range(SIZE)]}))


def steps():
    """Return steps of episodes."""
    return IndexableDataset({'action': numpy.arange(SIZE)})


def images():
    """Return batches of images whose pixels are all different."""
    pixels = numpy.arange(SIZE * 48, dtype='uint16').reshape(SIZE, 3, 4, 4)
    return DataStream(IndexableDataset(
        {'image': pixels},
        axis_labels={'image': ('batch', 'channel', 'height', 'width')}),
        batch_size=4)


LABELS = [number % 3 for number in range(SIZE)]
PIPELINES = {
    'shuffled by default': lambda: numbers(batch_size=5, shuffle=True),
    'ShuffledScheme': lambda: numbers(ShuffledScheme(SIZE, 4, seed=1)),
    'ShuffledScheme, rank': lambda: numbers(
        ShuffledScheme(SIZE, 2, seed=1)).shard(1, 3),
    'ShuffledScheme, by example': lambda: numbers(
        ShuffledScheme(SIZE, 6, seed=1)).shard(1, 3, by='example'),
    'BlockShuffledScheme': lambda: numbers(
        BlockShuffledScheme(SIZE, 4, block_size=3, window=2, seed=1)),
    'ComputedShuffledScheme': lambda: numbers(
        ComputedShuffledScheme(SIZE, 4, seed=1)),
    'ComputedBlockShuffledScheme': lambda: numbers(
        ComputedBlockShuffledScheme(SIZE, 4, block_size=3, window=2, seed=1)),
    'ComputedShuffledExampleScheme': lambda: numbers(
        ComputedShuffledExampleScheme(SIZE, seed=1)),
    'WeightedScheme': lambda: numbers(
        WeightedScheme(list(range(1, SIZE + 1)), 4, seed=1)),
    'BalancedScheme': lambda: numbers(BalancedScheme(LABELS, 6, seed=1)),
    'Batch': lambda: Batch(examples(), batch_size=4),
    'Cache': lambda: Cache(numbers(ShuffledScheme(SIZE, 5, seed=1)),
                           ConstantScheme(4)),
    'Unpack': lambda: Unpack(numbers(ShuffledScheme(SIZE, 5, seed=1))),
    'Filter': lambda: Batch(Filter(examples(), any), batch_size=2),
    'Mapping': lambda: Mapping(
        numbers(batch_size=5, shuffle=True), tuple, add_sources=('y',)),
    'Merge': lambda: Merge([examples(1), examples(2)], ('x', 'y')),
    'Mix': lambda: Mix({'a': examples(1), 'b': examples(2)},
                       weights={'a': 2, 'b': 1}),
    'Chain': lambda: Chain([Take(examples(1), 4), examples(2)]),
    'ShuffleBuffer': lambda: ShuffleBuffer(examples(), 5, seed=1),
    'Padding': lambda: Padding(Batch(documents(), batch_size=4)),
    'BucketBatch': lambda: BucketBatch(documents(), 12),
    'Pack': lambda: Pack(documents(), 8),
    'Chunk': lambda: Chunk(documents(), 3),
    'Window': lambda: Window(1, 3, 2, True, documents()),
    'Runs': lambda: DataStream(Runs(steps(), runs={'lengths': [9, 8, 7]}),
                               iteration_scheme=ShuffledExampleScheme(
                                   3, seed=1)),
    'Windows': lambda: DataStream(
        Windows(steps(), 3, runs={'lengths': [9, 8, 7]}), batch_size=4,
        shuffle=True),
    'RandomHorizontalFlip': lambda: RandomHorizontalFlip(images(), seed=1),
    'RandomFixedSizeCrop': lambda: RandomFixedSizeCrop(
        images(), (2, 2), seed=1),
    'RandomFixedSizeCrop, rng': lambda: RandomFixedSizeCrop(images(), (2, 2)),
}


def as_lists(value):
    """Return items as JSON has them."""
    if isinstance(value, (list, tuple)):
        return [as_lists(part) for part in value]
    return value.tolist() if hasattr(value, 'tolist') else value


def written(build):
    """Return the items of two epochs, and a state in the second."""
    stream = build()
    first = as_lists(list(stream.get_epoch_iterator()))
    epoch = stream.get_epoch_iterator()
    second = [as_lists(next(epoch)) for _ in range(3)]
    state = stream.state_dict()
    return {'epochs': [first, second + as_lists(list(epoch))],
            'state': state}


@pytest.fixture(scope='module')
def saved():
    """Return what 1.0.0 wrote."""
    return json.loads(STATES.read_text())


@pytest.mark.parametrize('name', PIPELINES)
def test_orders_and_draws_are_those_of_1_0(name, saved):
    """Of a first and a second epoch."""
    assert saved[name]['epochs'] == written(PIPELINES[name])['epochs']


@pytest.mark.parametrize('name', PIPELINES)
def test_state_of_1_0_goes_on_with_the_next_item(name, saved):
    """In a pipeline that was built anew."""
    stream = PIPELINES[name]()
    stream.load_state_dict(saved[name]['state'])
    assert saved[name]['epochs'][1][3:] == as_lists(
        list(stream.get_epoch_iterator()))


def write_new():
    """Add the pipelines that the file does not have."""
    known = json.loads(STATES.read_text()) if STATES.exists() else {}
    for name, build in PIPELINES.items():
        known.setdefault(name, written(build))
    lines = ',\n'.join(f'{json.dumps(name)}: '
                       f'{json.dumps(about, separators=(",", ":"))}'
                       for name, about in known.items())
    STATES.write_text(f'{{{lines}}}\n')


if __name__ == '__main__':
    write_new()
