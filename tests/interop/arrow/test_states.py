"""States of data sets of tables that were saved before 1.0.0 are taken up.

See ``tests/compat/test_states.py``. What the file has is never changed; a new
pipeline is added by running this file, with ``tests`` in ``PYTHONPATH``.
"""
from pathlib import Path

import numpy
import pyarrow
import pyarrow.parquet
import pytest
from support import saved_states

from fuel.interop.arrow import ArrowDataset
from fuel.schemes import ComputedShuffledScheme
from fuel.streams import DataStream


STATES = Path(__file__).with_name('states.json')
SIZE = 24


def table():
    """Return a table of numbers, names, lists and missing values."""
    return pyarrow.table({
        'number': numpy.arange(SIZE), 'weight': numpy.arange(SIZE) / 4,
        'name': ['abc'[row % 3] for row in range(SIZE)],
        'pair': pyarrow.array([[row, row + 1] for row in range(SIZE)],
                              pyarrow.list_(pyarrow.int64(), 2)),
        'gap': [None if row % 5 == 0 else row for row in range(SIZE)]})


def shuffled(dataset, size=4):
    """Return a stream of batches of a data set."""
    return DataStream(dataset, iteration_scheme=ComputedShuffledScheme(
        dataset.num_examples, size, seed=1))


def parquet(place, name='table.parquet'):
    """Write a table in groups of five rows."""
    path = place.folder / name
    pyarrow.parquet.write_table(table(), path, row_group_size=5)
    return str(path)


def two_files(place):
    """Write a folder of two tables."""
    folder = place.folder / 'tables'
    folder.mkdir()
    for number in range(2):
        pyarrow.parquet.write_table(
            table().slice(12 * number, 12), folder / f'{number}.parquet')
    return str(folder)


PIPELINES = {
    'Table': lambda place: shuffled(ArrowDataset(table(), masks='gap')),
    'Parquet': lambda place: shuffled(ArrowDataset(
        parquet(place), masks=['gap'])),
    'Parquet, columns': lambda place: shuffled(ArrowDataset(
        parquet(place), {'n': 'number', 'w': 'weight'})),
    'Parquet, split': lambda place: shuffled(ArrowDataset(
        parquet(place), ['number'], which_sets=('train',), splits={
            'train': list(range(16)), 'test': list(range(16, SIZE))}), 2),
    'Parquet, folder': lambda place: shuffled(ArrowDataset(
        two_files(place), ['number', 'pair'])),
    'Parquet, rank': lambda place: shuffled(ArrowDataset(
        parquet(place), ['number']), 2).shard(1, 2),
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
