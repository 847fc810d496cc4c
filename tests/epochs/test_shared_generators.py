"""Schemes and stages that draw from one generator."""
import numpy
import pytest
from support.resuming import assert_resumes

from fuel.datasets import IndexableDataset
from fuel.schemes import ConstantScheme, ShuffledExampleScheme, ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import Batch, Cache, Chain, Merge, Transformer

N = 7


class Scaled(Transformer):
    """Multiplies each item by a number that is drawn."""

    def __init__(self, data_stream, rng):
        super().__init__(data_stream, data_stream.produces_examples)
        self.rng = rng

    def transform_batch(self, batch):
        """Return the arrays, multiplied."""
        return tuple([part * self.rng.randint(1000) for part in batch])

    transform_example = transform_batch


def source(rng, scheme=ShuffledScheme):
    """Return a shuffled stream."""
    batch_size = () if scheme is ShuffledExampleScheme else (3,)
    return DataStream(IndexableDataset({'x': numpy.arange(1., N + 1)}),
                      iteration_scheme=scheme(N, *batch_size, rng=rng))


PIPELINES = {
    'stage': lambda rng: Scaled(source(rng), rng),
    'two stages': lambda rng: Scaled(Scaled(source(rng), rng), rng),
    'left-overs': lambda rng: Scaled(Cache(Scaled(source(rng), rng),
                                           ConstantScheme(2)), rng),
    'batches': lambda rng: Scaled(Batch(Scaled(
        source(rng, ShuffledExampleScheme), rng), ConstantScheme(2)), rng),
    'side by side': lambda rng: Merge(
        [Scaled(source(rng), rng), source(rng)], ('x', 'y')),
    'one after the other': lambda rng: Chain(
        [Scaled(source(rng), rng), source(rng), Scaled(source(rng), rng)]),
}


@pytest.mark.parametrize('name', PIPELINES)
def test_resumed_pipeline_draws_what_would_have_been_drawn(name):
    """The order that a resumed scheme draws again does not count."""
    assert_resumes(lambda: PIPELINES[name](numpy.random.RandomState(3)))
