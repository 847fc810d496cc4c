"""Parquet and Arrow files are opened from where the manual says."""
import pickle

import numpy
import pyarrow
import pyarrow.ipc
import pyarrow.parquet
import pytest
from support import origins
from support.range_server import serving

import fuel
from fuel import config
from fuel.exceptions import DamagedFileError
from fuel.interop.arrow import ArrowDataset
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream

TABLE = pyarrow.table({'x': origins.ROWS})


def write_arrow(path):
    """Write a table in the format for random access."""
    with pyarrow.ipc.new_file(path, TABLE.schema) as writer:
        writer.write_table(TABLE)


WRITERS = {'Parquet': lambda path: pyarrow.parquet.write_table(TABLE, path),
           'Arrow': write_arrow}


@pytest.fixture(autouse=True)
def cache(tmp_path):
    """Cache on disk in a folder of the test."""
    config.remote_cache_path = str(tmp_path / 'cache')


@pytest.mark.parametrize('name, origin, answer', origins.cells(*WRITERS))
def test_files_are_opened_from_each_origin(name, origin, answer, tmp_path):
    """Other origins are an error that says what to do."""
    origins.check_origin(tmp_path, WRITERS[name], name, origin, answer)


@pytest.fixture
def served(tmp_path):
    """Return a server with two files of several row groups."""
    folder = tmp_path / 'served'
    folder.mkdir()
    numbers = numpy.arange(4000)
    for name, rows in (('a', numbers[:2500]), ('b', numbers[2500:])):
        pyarrow.parquet.write_table(pyarrow.table({
            'x': rows, 'text': [f'row {row}' for row in rows]}),
            folder / f'{name}.parquet', row_group_size=600)
    with serving(folder) as server:
        yield server


def test_epochs_over_urls_have_all_rows(served):
    """Rows are read in any order, in another process's pickle, and again from
    the cache."""
    urls = [served.url(f'{name}.parquet') for name in 'ab']
    dataset = pickle.loads(pickle.dumps(ArrowDataset(urls)))
    for _ in range(2):
        stream = DataStream(dataset, iteration_scheme=ShuffledScheme(
            4000, 100))
        seen = []
        for x, text in stream.get_epoch_iterator():
            assert [f'row {number}' for number in x] == text.tolist()
            seen += x.tolist()
        assert list(range(4000)) == sorted(seen)


def test_remote_file_that_changes_is_an_error(served):
    """Old and new rows are never mixed."""
    config.remote_cache_path = 'off'
    config.remote_memory_bytes = config.chunk_cache_bytes = 0
    numbers = numpy.random.RandomState(0).rand(2, 200_000)

    def write(rows):
        pyarrow.parquet.write_table(
            pyarrow.table({'x': rows}), served.folder / 'c.parquet',
            row_group_size=20_000)

    write(numbers[0])
    dataset = ArrowDataset(served.url('c.parquet'))
    found, = dataset.get_data(None, [0, 199_999])
    assert numbers[0, [0, -1]].tolist() == found.tolist()
    write(numbers[1])
    with pytest.raises(DamagedFileError, match='was changed while'):
        dataset.get_data(None, [100_000])


def test_credentials_are_assigned_to_a_data_set_that_was_unpickled(served):
    """One or several files; no pickle and no repr has them."""
    served.token = 'Bearer to-ken'
    options = {'headers': {'Authorization': served.token}}
    urls = [served.url(f'{name}.parquet') + '?token=sig-nature'
            for name in 'ab']
    public = {'max_redirects': 5}
    dataset = ArrowDataset(urls, storage_options={**options, **public})
    copy = pickle.loads(pickle.dumps(dataset))
    assert public == copy.storage_options == dataset.storage_options
    with pytest.raises(PermissionError, match='assign its storage_options'):
        copy.get_data(None, [3])
    copy.storage_options = options
    assert ['row 3', 'row 3000'] == copy.get_data(
        None, [3, 3000])[1].tolist()
    for text in (pickle.dumps(copy), repr(copy), vars(copy)):
        assert 'to-ken' not in str(text)
        assert 'sig-nature' not in str(text)
    assert ArrowDataset(TABLE).storage_options is None
    with pytest.raises(AttributeError, match='no storage_options'):
        ArrowDataset(served.folder / 'a.parquet').storage_options = options


def test_missing_remote_file_says_so(served):
    """The error is that of a missing HDF5 file."""
    for load in (fuel.load, ArrowDataset):
        with pytest.raises(FileNotFoundError, match='no such file'):
            load(served.url('c.parquet'))


@pytest.mark.parametrize('data', ['a.parquet', ['a.parquet'], TABLE])
def test_storage_options_are_for_urls(data):
    """Other data refuse storage options."""
    with pytest.raises(ValueError, match='storage_options are for URLs'):
        ArrowDataset(data, storage_options={'anon': True})
