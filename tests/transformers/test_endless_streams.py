"""A part of a stream whose next epoch goes on where it stands resumes.

What a stage had read, and not yet delivered, when an epoch was left decides
where the next one begins.
"""
import pytest
from support.pipelines import Noisy
from support.resuming import assert_resumes

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.schemes import ConstantScheme, ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import (
    Batch, Cache, Filter, FilterSources, Mix, Take, Unpack)
from fuel.transformers.sequences import BucketBatch, Chunk, Pack, Window
from fuel.transformers.shuffling import ShuffleBuffer

SIZE = ConstantScheme(3)


def sequences(first, count):
    """Return examples of sequences of different lengths."""
    return {'s': [[first + number] * (1 + number % 3)
                  for number in range(count)]}


def endless(**how):
    """Return a mixture without end, of data in order and of batches."""
    return Mix([
        DataStream(IterableDataset(sequences(0, 7))),
        Unpack(DataStream(IndexableDataset(sequences(100, 5)),
                          iteration_scheme=ShuffledScheme(5, 2)))],
        [2, 1], stop='forever', seed=1, **how)


def is_odd(example):
    """Tell whether an example is kept."""
    return example[0][0] % 2 == 1


# Stages that read on before they deliver what they have read.
STAGES = {
    'ShuffleBuffer': lambda stream: ShuffleBuffer(stream, 4, seed=1),
    'two buffers': lambda stream: ShuffleBuffer(
        ShuffleBuffer(stream, 3, seed=1), 2, seed=2),
    'buffer of draws': lambda stream: ShuffleBuffer(
        Noisy(stream), 3, seed=1),
    'buffer of parts': lambda stream: ShuffleBuffer(
        Mix([Take(stream, 5), endless(epoch_size=4)], stop='last'), 3,
        seed=1),
    'Filter': lambda stream: Filter(stream, is_odd),
    'Batch': lambda stream: Unpack(Batch(stream, SIZE)),
    'Cache': lambda stream: Unpack(Cache(Batch(stream, SIZE),
                                         ConstantScheme(2))),
    'BucketBatch': lambda stream: Unpack(BucketBatch(
        stream, 3, length_source='s', pool_size=4)),
    'Chunk': lambda stream: Chunk(stream, 2),
    'Window': lambda stream: FilterSources(
        Window(1, 2, 1, True, stream), ('s',)),
    'Pack': lambda stream: FilterSources(Unpack(Pack(
        Batch(stream, SIZE), 4, batch_size=2, window=2)), ('s',)),
}
# Stages that read a part of an epoch of them.
PARTS = {
    'Take': lambda stream: Take(stream, 5),
    'Mix': lambda stream: Mix(
        [stream, DataStream(IterableDataset(sequences(200, 3)))],
        stop='first', seed=2),
    'Take of Mix': lambda stream: Take(Mix(
        [stream, DataStream(IterableDataset(sequences(200, 3)))],
        stop='forever', seed=2), 5),
}


def check(stage, part, **how):
    """Save at each step of two epochs, and go on to a third elsewhere."""
    assert_resumes(lambda: PARTS[part](STAGES[stage](endless(**how))))


@pytest.mark.parametrize('part', PARTS)
def test_part_of_a_shuffled_endless_mixture_resumes_in_later_epochs(part):
    """They repeat no example that the buffer held when the state was saved."""
    check('ShuffleBuffer', part)


@pytest.mark.parametrize('stage', list(STAGES)[1:])
def test_part_of_any_stage_over_an_endless_mixture_resumes(stage):
    """The stream below stands where it stood, also if nothing is read."""
    check(stage, 'Take')


@pytest.mark.full
@pytest.mark.parametrize('stage', STAGES)
@pytest.mark.parametrize('part', PARTS)
@pytest.mark.parametrize('size', [None, 4, 7])
def test_part_of_any_stage_over_epochs_of_a_mixture_resumes(
        stage, part, size):
    """The long form: epochs of the mixture may end within the part."""
    check(stage, part, epoch_size=size)
