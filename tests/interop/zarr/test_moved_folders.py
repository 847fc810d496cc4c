"""Zarr stores that were named relative to a folder."""
import copy
import pickle
import shutil
from pathlib import Path

import numpy
import pytest
import zarr

from fuel.interop.zarr import ZarrDataset
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream


def write(folder, number):
    """Write a store that holds a number."""
    group = zarr.open_group(str(folder / 'data.zarr'), mode='w')
    group['x'] = numpy.full(5, number)


def numbers(dataset):
    """Return the numbers of all rows, as a set."""
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(
        dataset.num_examples, 2))
    return {number for batch, in stream.get_epoch_iterator()
            for number in batch.tolist()}


@pytest.mark.parametrize('kind', [str, Path])
def test_data_set_reads_its_own_store_from_another_folder(
        tmp_path, monkeypatch, kind):
    """It ignores the store that now has the old name, as other data sets
    do."""
    here, there = tmp_path / 'here', tmp_path / 'there'
    write(here, 1)
    write(there, 2)
    monkeypatch.chdir(here)
    path = kind('data.zarr')
    dataset = ZarrDataset(path)
    pickled, shown = pickle.dumps(dataset), repr(dataset)
    monkeypatch.chdir(there)
    for found in (dataset, pickle.loads(pickled), copy.deepcopy(dataset)):
        assert {1} == numbers(found)
        assert shown == repr(found)
    assert {2} == numbers(ZarrDataset(path))
    shutil.rmtree(here / 'data.zarr')
    write(here, 10)
    assert {10} == numbers(dataset)
