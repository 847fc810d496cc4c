"""States of data sets of Zarr that were saved before 1.0.0 are taken up.

See ``tests/compat/test_states.py``. What the file has is never changed; a new
pipeline is added by running this file, with ``tests`` in ``PYTHONPATH``.
"""
from pathlib import Path

import numpy
import pytest
import zarr
from support import saved_states

from fuel.interop.zarr import ZarrDataset
from fuel.schemes import ComputedShuffledScheme
from fuel.streams import DataStream


STATES = Path(__file__).with_name('states.json')
SIZE = 24


def store(place):
    """Write a group of two arrays."""
    path = str(place.folder / 'store.zarr')
    group = zarr.open_group(path, mode='w', zarr_format=3)
    group.create_array('x', data=numpy.arange(2 * SIZE).reshape(SIZE, 2),
                       chunks=(5, 2))
    group.create_array('y', data=numpy.arange(SIZE) * 2., chunks=(7,))
    return path


def shuffled(dataset, size=4):
    """Return a stream of batches of a data set."""
    return DataStream(dataset, iteration_scheme=ComputedShuffledScheme(
        dataset.num_examples, size, seed=1))


PIPELINES = {
    'Zarr': lambda place: shuffled(ZarrDataset(store(place))),
    'Zarr, one source': lambda place: shuffled(ZarrDataset(
        store(place), sources=('y',))),
    'Zarr, split': lambda place: shuffled(ZarrDataset(
        store(place), ('train',), {
            'train': list(range(16)), 'test': list(range(16, SIZE))}), 2),
    'Zarr, rank': lambda place: shuffled(
        ZarrDataset(store(place)), 2).shard(1, 2),
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
