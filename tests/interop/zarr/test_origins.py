"""Zarr stores are opened from where the manual says."""
import pickle
import traceback
import warnings

import numpy
import pytest
import zarr
from support import origins
from support.range_server import serving, status

import fuel
from fuel.interop.zarr import ZarrDataset

pytestmark = pytest.mark.skipif(
    zarr.__version__.startswith('2.'),
    reason='Zarr 2 reads consolidated metadata by another function')


def write(path):
    """Write a store that a web server can show."""
    group = zarr.open_group(str(path), mode='w')
    group['x'] = numpy.array(origins.ROWS)
    with warnings.catch_warnings():
        # The format does not describe them yet.
        warnings.filterwarnings('ignore', 'Consolidated metadata')
        zarr.consolidate_metadata(str(path))


@pytest.mark.parametrize('name, origin, answer', origins.cells('Zarr'))
def test_stores_are_opened_from_each_origin(name, origin, answer, tmp_path):
    """Others are an error that says what to do."""
    origins.check_origin(tmp_path, write, name, origin, answer)


def test_array_at_a_url_is_a_data_set(tmp_path):
    """The name of an array need not say that it is a store."""
    write(tmp_path / 'a.zarr')
    with serving(tmp_path) as server:
        for open_store in (fuel.load, ZarrDataset):
            dataset = open_store(server.url('a.zarr/x'))
            assert ('data',) == dataset.sources
            assert origins.ROWS == dataset[:][0].tolist()


def test_group_without_a_list_of_arrays_says_what_to_do(tmp_path):
    """A web server does not list folders."""
    zarr.open_group(str(tmp_path / 'a.zarr'), mode='w')['x'] = numpy.arange(3)
    with serving(tmp_path) as server, pytest.raises(
            FileNotFoundError, match='zarr.consolidate_metadata'):
        fuel.load(server.url('a.zarr'))


def test_missing_store_says_so(tmp_path):
    """The error is that of other missing files."""
    with serving(tmp_path) as server:
        with pytest.raises(FileNotFoundError, match='no such file'):
            fuel.load(server.url('b.zarr'))
        with pytest.raises(FileNotFoundError, match='b.zarr'):
            ZarrDataset(server.url('b.zarr'))


def test_storage_options_are_for_urls(tmp_path):
    """Storage options are refused with a folder."""
    write(tmp_path / 'a.zarr')
    with pytest.raises(ValueError, match='storage_options are for URLs'):
        ZarrDataset(str(tmp_path / 'a.zarr'), storage_options={'anon': True})


def test_credentials_are_assigned_to_a_data_set_that_was_unpickled(tmp_path):
    """No pickle and no repr has them."""
    write(tmp_path / 'a.zarr')
    with serving(tmp_path) as server:
        server.token = 'Bearer to-ken'
        options = {'headers': {'Authorization': server.token}}
        dataset = ZarrDataset(server.url('a.zarr'), storage_options=options)
        copy = pickle.loads(pickle.dumps(dataset))
        assert {} == copy.storage_options
        with pytest.raises(OSError, match='assign its storage_options'):
            _ = copy[:]
        copy.storage_options = options
        assert origins.ROWS == copy[:][0].tolist()
        for text in (pickle.dumps(copy), repr(copy), vars(copy)):
            assert 'to-ken' not in str(text)
    for store in (tmp_path / 'a.zarr', zarr.open(str(tmp_path / 'a.zarr'))):
        assert ZarrDataset(store).storage_options is None


def test_chunk_that_a_server_does_not_give_is_an_error(tmp_path):
    """The chunk can be read once the server gives it."""
    write(tmp_path / 'a.zarr')
    with serving(tmp_path) as server:
        dataset = ZarrDataset(server.url('a.zarr'))
        server.plan = [status(500)] * 10
        with pytest.raises(OSError, match="'x': chunks 0 .* cannot be read"):
            _ = dataset[:]
        server.plan = []
        assert origins.ROWS == dataset[:][0].tolist()


def test_errors_of_a_store_show_no_secrets(tmp_path, monkeypatch):
    """Some file systems show the whole URL in their errors."""
    url = 'http://user:pass-word@127.0.0.1:1/a.zarr'

    def fail(url, **kwargs):
        raise RuntimeError(f'{url} with {kwargs} is broken')

    monkeypatch.setattr(zarr, 'open', fail)
    with pytest.raises(OSError, match='RuntimeError: .* is broken') as caught:
        ZarrDataset(url, storage_options={'key': 'secret-key'})
    shown = ''.join(traceback.format_exception(caught.value))
    assert 'pass-word' not in shown
    assert 'secret-key' not in str(caught.value)
