"""Stages that make JAX arrays are measured as other stages are."""
import numpy
import pytest
from jax import numpy as jnp
from support.jax_pipelines import ordered, replicated
from support.measured_counts import check_counts

from fuel import profile
from fuel.datasets import IndexableDataset
from fuel.export import as_flat
from fuel.interop.jax import to_jax
from fuel.streams import DataStream
from fuel.transformers import Mapping


def of_jax(rng, stream):
    """Return a stage that makes arrays of JAX of some sources, or of all."""
    options = {}
    if rng.random() < .3:
        options['dtype'] = rng.choice(['float16', 'float32'])
    if rng.random() < .3:
        options['which_sources'] = (rng.choice(stream.sources),)
    return to_jax(stream, **options)


def by_function(rng, stream):
    """Return a stage whose function makes arrays of JAX."""
    return Mapping(stream, lambda data: tuple(map(jnp.asarray, data)))


@pytest.mark.parametrize('seeds', [range(50), *[
    pytest.param(range(first, first + 400), marks=pytest.mark.full)
    for first in range(50, 2050, 400)]], ids=str)
def test_counts_of_random_pipelines_are_those_of_arithmetic(seeds):
    """Items, examples and bytes are equal, wherever they are read or
    exported."""
    for seed in seeds:
        check_counts(seed, [of_jax, by_function])


def test_batch_of_arrays_counts_its_rows_everywhere():
    """The profile, the measurements and loggers count its rows."""
    dataset = IndexableDataset({'x': numpy.ones((1000, 3), 'float32')})
    stream = to_jax(DataStream(dataset, batch_size=100))
    assert 10 == len(list(stream))
    found = stream.measurements()
    assert [(10, 1000)] * 2 == [
        (stage.items, stage.examples) for stage in found.stages]
    assert 1000 == as_flat(found)['fuel.pipeline.examples']
    assert 1000 == profile(stream, batches=10, warm_up=0).examples


def test_array_over_several_devices_counts_its_rows_once():
    """The copies on other devices do not count."""
    stream = replicated(ordered())
    list(stream)
    assert 32 == stream.measurements().examples
