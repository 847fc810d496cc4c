"""Data sets of many files of a server: they are asked for together."""
import threading

import h5py
import numpy
import pytest

import fuel
from fuel.datasets import HDF5Dataset
from fuel.storage.open_files import MOST_PLACES, open_files

NUM_FILES = 12
# Requests that the server waits for before it answers the first.
TOGETHER = 4


@pytest.fixture
def urls(folder, server):
    """Write files of one row each; return their URLs."""
    for number in range(NUM_FILES):
        with h5py.File(folder / f'{number}.hdf5', 'w') as file:
            file['x'] = numpy.full((1, 3), number, 'f4')
    return [server.url(f'{number}.hdf5') for number in range(NUM_FILES)]


def meet(count):
    """Return a fault that lets requests wait until there are so many."""
    barrier = threading.Barrier(count, timeout=15)

    def wait(handler):
        barrier.wait()
        return False

    return wait


def rows_of(dataset):
    """Return the first column of all rows."""
    batch, = dataset.get_data(None, slice(0, dataset.num_examples))
    return batch[:, 0].tolist()


@pytest.mark.parametrize('open_them', [
    lambda urls: HDF5Dataset(urls, sources={'x': 'x'}), fuel.load])
def test_files_are_opened_several_at_a_time(server, urls, open_them):
    """The files are in their order, whichever answers first."""
    server.plan = [meet(TOGETHER)] * TOGETHER
    with open_them(urls) as dataset:
        assert list(range(NUM_FILES)) == rows_of(dataset)


def test_files_are_asked_about_several_at_a_time(server, urls):
    """An epoch checks several files for changes at a time when it begins."""
    with HDF5Dataset(urls, sources={'x': 'x'}) as dataset:
        dataset.renew()
        server.log.clear()
        server.plan = [meet(TOGETHER)] * TOGETHER
        dataset.renew()
        assert NUM_FILES == len(server.log)
        assert list(range(NUM_FILES)) == rows_of(dataset)


def test_a_file_that_is_missing_is_named(folder, server, urls):
    """Other files are opened at the same time."""
    (folder / '7.hdf5').unlink()
    with pytest.raises(FileNotFoundError, match=r'7\.hdf5'):
        HDF5Dataset(urls, sources={'x': 'x'})


def test_what_is_on_disk_takes_one_request_a_file(server, urls):
    """Their index is read from the cache, once its checksum was compared."""
    with HDF5Dataset(urls, sources={'x': 'x'}) as dataset:
        rows_of(dataset)
    del dataset
    server.log.clear()
    with HDF5Dataset(urls, sources={'x': 'x'}) as dataset:
        assert list(range(NUM_FILES)) == rows_of(dataset)
    assert NUM_FILES == len(server.log)


def test_closed_files_are_forgotten(tmp_path):
    """Any number of files may be open, one after the other."""
    for number in range(3 * MOST_PLACES):
        path = tmp_path / f'{number}.hdf5'
        with h5py.File(path, 'w') as file:
            file['x'] = numpy.zeros((1, 3))
        with HDF5Dataset(path, sources={'x': 'x'}):
            assert 3 * MOST_PLACES > len(open_files._files)
    assert 2 * MOST_PLACES >= len(open_files._files)
