"""States of streams and loaders of tensors that were saved are taken up.

See ``tests/compat/test_states.py``. Those of `Loader`, which came later, were
saved just before 1.0.0. What the file has is never changed; a new pipeline is
added by running this file, with ``tests`` in ``PYTHONPATH``.
"""
from pathlib import Path

import numpy
import pytest
import torch
from support import saved_states

from fuel.datasets import IndexableDataset
from fuel.interop.torch import Loader, TorchDataset, to_torch
from fuel.schemes import ComputedShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import Cast


STATES = Path(__file__).with_name('states.json')
SIZE = 24


def batches(size=4):
    """Return a stream of batches of numbers and classes."""
    return DataStream(IndexableDataset({
        'x': numpy.arange(2. * SIZE).reshape(SIZE, 2),
        'y': numpy.arange(SIZE) % 3}),
        iteration_scheme=ComputedShuffledScheme(SIZE, size, seed=1))


class Squares(torch.utils.data.Dataset):
    """A data set of PyTorch."""

    def __len__(self):
        return SIZE

    def __getitem__(self, index):
        """Return a number and its square."""
        return torch.tensor(index), torch.tensor(index ** 2)


def loader(**arguments):
    """Return a function that builds a loader."""
    return lambda place: Loader(
        Cast(batches(), 'float32', which_sources=('x',)), **arguments)


PIPELINES = {
    'ToTorch': lambda place: to_torch(batches()),
    'ToTorch, rank': lambda place: to_torch(batches(2)).shard(1, 2),
    'TorchDataset': lambda place: DataStream(
        TorchDataset(Squares(), ('x', 'y')),
        iteration_scheme=ComputedShuffledScheme(SIZE, 4, seed=1)),
    'Loader': loader(),
    'Loader, workers': loader(num_workers=2),
}


@pytest.mark.parametrize('name', PIPELINES)
def test_orders_are_those_of_1_0(name):
    """The first and the second epoch have the recorded orders."""
    saved_states.check_orders(STATES, name, PIPELINES[name])


@pytest.mark.parametrize('name', PIPELINES)
def test_state_of_1_0_goes_on_with_the_next_item(name):
    """The pipeline that loads the state is built anew."""
    saved_states.check_rest(STATES, name, PIPELINES[name])


if __name__ == '__main__':
    saved_states.write_new(STATES, PIPELINES)
