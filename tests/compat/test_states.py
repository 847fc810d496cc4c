"""States that 1.0.0 saved are taken up by each later 1.x, and orders stay.

``states.json`` has for each pipeline the items of two epochs, and the state
after three items of the second. What it has is never changed: a pipeline that
is new is added by ``PYTHONPATH=tests python -m compat.test_states``, run with
the version of Fuel whose states are to be kept. All that are there now were
saved before 1.0.0 was released, by the commit 1035f1d2.
"""
import inspect
from pathlib import Path

import numpy
import pytest
from support import reference, saved_states

from compat import state_files, state_pipelines
from fuel.datasets import IndexableDataset, IterableDataset, Runs, Windows
from fuel.epochs.fingerprint import name_of
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
    'RandomHorizontalFlip, by example': lambda: RandomHorizontalFlip(
        images(), seed=1, draws='example'),
    'RandomFixedSizeCrop, by example': lambda: RandomFixedSizeCrop(
        Unpack(images()), (2, 2), seed=1, draws='example'),
    'RandomFixedSizeCrop, rng': lambda: RandomFixedSizeCrop(images(), (2, 2)),
}


ALL = {**{name: state_pipelines.gathered(build)
          for name, build in PIPELINES.items()},
       **state_pipelines.PIPELINES, **state_files.PIPELINES}


def test_pipelines_have_names_of_their_own():
    """One that has the name of another would take its place."""
    assert len(ALL) == sum(map(len, (
        PIPELINES, state_pipelines.PIPELINES, state_files.PIPELINES)))


@pytest.mark.parametrize('name', ALL)
def test_orders_and_draws_are_those_of_1_0(name):
    """Of a first and a second epoch."""
    saved_states.check_orders(STATES, name, ALL[name])


@pytest.mark.parametrize('name', ALL)
def test_state_of_1_0_goes_on_with_the_next_item(name):
    """In a pipeline that was built anew."""
    saved_states.check_rest(STATES, name, ALL[name])


BASE = 'a base: a state names the class that is derived from it'
NO_STREAM = 'nothing that an epoch is made of'
OPTIONS = 'the types of keyword arguments'
BELOW = 'the state is that of the stream below: see the pipelines of its name'
# Public classes that no state names, and why not.
WITHOUT_STATE = {
    BASE: {
        'datasets.Dataset', 'datasets.built_in.BuiltInDataset',
        'datasets.built_in.BuiltInImages',
        'datasets.built_in.DatasetInFormats', 'streams.AbstractDataStream',
        'schemes.IterationScheme', 'schemes.BatchScheme',
        'schemes.BatchSizeScheme', 'schemes.IndexScheme',
        'transformers.Transformer', 'transformers.SourcewiseTransformer',
        'transformers.AgnosticTransformer',
        'transformers.AgnosticSourcewiseTransformer',
        'transformers.SeededTransformer', 'transformers.Expand',
        'transformers.ExpectsAxisLabels'},
    NO_STREAM: {
        'datasets.hdf5.EpochCost', 'datasets.runs.Provenance',
        'datasets.vocabulary.Vocabulary', 'iterator.DataIterator',
        'epochs.read_options.ReadOptions', 'epochs.read_options.Conversion',
        'epochs.skipped.Skipped', 'epochs.skipped.SkippedExample',
        'schemes.OrderMeasure', 'transformers.BackgroundProcess',
        'transformers.sequences.PackingReport'},
    OPTIONS: {
        'datasets.options.DatasetOptions',
        'datasets.options.IndexableOptions', 'datasets.options.HDF5Options',
        'datasets.options.BuiltInOptions', 'datasets.options.TextOptions',
        'transformers.options.LabelOptions',
        'transformers.options.StreamOptions',
        'transformers.options.SourcewiseOptions',
        'transformers.options.SeededOptions',
        'transformers.options.MixerOptions',
        'transformers.options.NoiseOptions',
        'transformers.options.ThreadedOptions',
        'transformers.options.ImageOptions',
        'transformers.options.RandomImageOptions',
        'transformers.options.WorkerOptions'},
    BELOW: {
        'transformers.MultiProcessing', 'transformers.MultiThreading',
        # A state is one of the whole order.
        'schemes.Shard', 'schemes.ShardedScheme'},
}
PACKAGES = ('datasets', 'epochs', 'iterator', 'schemes', 'streams',
            'transformers')


def test_each_public_stage_scheme_and_data_set_has_a_state():
    """A class that no state names has a reason; a new one gets a pipeline."""
    public = {name: reference.find(f'fuel.{name}') for name in (
        name.removeprefix('fuel.') for name in reference.listed())
        if name.startswith(tuple(f'{package}.' for package in PACKAGES))}
    classes = {name for name, found in public.items()
               if inspect.isclass(found)}
    named = saved_states.names_in(STATES)
    # States have columns as users write them.
    without = {name for name in classes if name_of(public[name]) not in named
               and not (name.startswith('datasets.columns.')
                        and public[name].__name__ in named)}
    assert without == set().union(*WITHOUT_STATE.values())


if __name__ == '__main__':
    saved_states.write_new(STATES, ALL)
