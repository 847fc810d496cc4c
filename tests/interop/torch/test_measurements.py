"""Stages that make tensors are measured as other stages are."""
import numpy
import pytest
import torch
from support.measured_counts import check_counts
from support.torch_pipelines import ordered

from fuel import profile
from fuel.datasets import IndexableDataset
from fuel.export import as_flat
from fuel.interop.torch import to_torch
from fuel.streams import DataStream
from fuel.transformers import Mapping, MultiProcessing


def of_torch(rng, stream):
    """Return a stage that makes tensors of some sources, or of all."""
    options = {}
    if rng.random() < .3:
        options['dtype'] = rng.choice(['float64', 'float32'])
    if rng.random() < .3:
        options['which_sources'] = (rng.choice(stream.sources),)
    return to_torch(stream, **options)


def by_function(rng, stream):
    """Return a stage whose function makes tensors."""
    return Mapping(stream, lambda data: tuple(map(torch.as_tensor, data)))


@pytest.mark.parametrize('seeds', [range(150), pytest.param(
    range(150, 2150), marks=pytest.mark.full)], ids=['short', 'long'])
def test_counts_of_random_pipelines_are_those_of_arithmetic(seeds):
    """Items, examples and bytes are equal, wherever they are read or
    exported."""
    for seed in seeds:
        check_counts(seed, [of_torch, by_function])


def test_batch_of_tensors_counts_its_rows_everywhere():
    """The profile, the measurements and loggers count its rows."""
    dataset = IndexableDataset({'x': numpy.ones((1000, 3), 'float32')})
    stream = to_torch(DataStream(dataset, batch_size=100))
    assert 10 == len(list(stream))
    found = stream.measurements()
    assert [(10, 1000)] * 2 == [
        (stage.items, stage.examples) for stage in found.stages]
    assert 1000 == as_flat(found)['fuel.pipeline.examples']
    assert 1000 == profile(stream, batches=10, warm_up=0).examples


def test_tensors_over_arrays_are_not_written_anew():
    """Their memory is that of the arrays; what is cast has its own."""
    for options, written in ({}, 0), ({'dtype': 'float32'}, 60 * 4):
        stream = to_torch(ordered(), **options)
        for _ in stream:
            pass
        stage, below = stream.measurements().stages
        assert 60 * (4 if options else 8) + 20 * 8 == stage.bytes
        assert written == stage.written
        assert 60 * 8 + 20 * 8 == below.written


def test_lists_of_tensors_and_sparse_tensors_count_their_rows():
    """Ragged batches are lists of tensors."""
    stream = Mapping(ordered(), lambda data: (
        list(torch.as_tensor(data[0])), data[1]))
    list(stream)
    assert (20, 640) == (
        stream.measurements().examples, stream.measurements().stages[0].bytes)
    stream = Mapping(ordered(), lambda data: (
        torch.as_tensor(data[0]).to_sparse(), None))
    list(stream)
    assert 20 == stream.measurements().examples


def test_tensors_made_in_workers_count_their_rows():
    """The workers report them."""
    with MultiProcessing(ordered(), start_method='fork') as workers:
        stream = to_torch(workers)
        list(stream)
        assert [20] * 3 == [
            stage.examples for stage in stream.measurements().stages]
