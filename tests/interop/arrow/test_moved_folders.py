"""Tables in files that were named relative to a folder."""
import copy
import pickle

import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest

from fuel.interop.arrow import ArrowDataset
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream

WRITERS = {'parquet': pyarrow.parquet.write_table,
           'feather': pyarrow.feather.write_feather}


def write(folder, kind, number):
    """Write two files that hold a number."""
    (folder / 'tables').mkdir(parents=True)
    for name in ('a', 'b'):
        WRITERS[kind](pyarrow.table({'x': [number] * 3}),
                      folder / 'tables' / f'{name}.{kind}')


def numbers(dataset):
    """Return the numbers of all rows, as a set."""
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(
        dataset.num_examples, 2))
    return {number for batch, in stream.get_epoch_iterator()
            for number in batch.tolist()}


@pytest.mark.parametrize('kind', WRITERS)
@pytest.mark.parametrize('data', [
    'tables', 'tables/a.{}', 'tables/*.{}', ['tables/a.{}', 'tables/b.{}']])
def test_data_set_reads_its_own_files_from_another_folder(
        tmp_path, monkeypatch, kind, data):
    """It ignores the file that now has the old name, as other data sets do."""
    here, there = tmp_path / 'here', tmp_path / 'there'
    write(here, kind, 1)
    write(there, kind, 2)
    monkeypatch.chdir(here)
    data = data.format(kind) if isinstance(data, str) else [
        path.format(kind) for path in data]
    dataset = ArrowDataset(data)
    pickled, shown = pickle.dumps(dataset), repr(dataset)
    state = DataStream(dataset).state_dict()
    monkeypatch.chdir(there)
    for found in (dataset, pickle.loads(pickled), copy.deepcopy(dataset)):
        assert {1} == numbers(found)
        assert shown == repr(found)
        assert state == DataStream(found).state_dict()
    assert {2} == numbers(ArrowDataset(data))
    for path in (here / 'tables').iterdir():
        path.unlink()
    (here / 'tables').rmdir()
    write(here, kind, 10)
    assert {10} == numbers(dataset)
