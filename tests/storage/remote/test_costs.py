"""Costs and blocks of remote data sets of several files."""
import h5py
import numpy
import pytest

from fuel import config
from fuel.datasets import (
    CSR, HDF5Dataset, IndexableDataset, IterableDataset, Windows)
from fuel.datasets.hdf5 import epoch_cost
from fuel.schemes import (
    BlockShuffledScheme, SequentialScheme, ShuffledScheme)
from fuel.storage.file_bytes import is_remote
from fuel.streams import DataStream
from support.layouts.cells import put_csr
from support.sparse_rows import random_csr

ROWS = 2000


@pytest.fixture
def urls(folder, server):
    """Return the URLs of two files."""
    rows = numpy.random.RandomState(1).randint(
        0, 255, (ROWS, 1000)).astype('uint8')
    for number in range(2):
        with h5py.File(folder / f'{number}.h5', 'w') as file:
            file.create_dataset('gzip', data=rows, chunks=(100, 1000),
                                compression='gzip')
            file.create_dataset('plain', data=rows)
            file['name'] = [f'row {row}' for row in range(ROWS)]
    config.remote_cache_path = 'off'
    return [server.url(f'{number}.h5') for number in range(2)]


@pytest.mark.parametrize('count', [1, 2])
@pytest.mark.parametrize('source', ['gzip', 'plain'])
def test_costs_are_those_of_the_epoch_of_several_files(urls, source, count):
    """The bytes are counted; each is fetched once where they stay."""
    dataset = HDF5Dataset(urls[:count], [source])
    num_rows = count * ROWS
    cost = epoch_cost(dataset, ShuffledScheme(num_rows, 500))
    files = dataset.readers[source].files
    assert count == len(files) and all(map(is_remote, files))
    before = sum(file.counts.nbytes for file in files)
    for _ in DataStream(dataset, iteration_scheme=ShuffledScheme(
            num_rows, 500)).get_epoch_iterator():
        pass
    fetched = sum(file.counts.nbytes for file in files) - before
    assert abs(cost.nbytes - fetched) < count * 2 ** 18
    windows = Windows(dataset, 2, stride=2)
    assert abs(cost.nbytes - epoch_cost(windows, SequentialScheme(
        len(windows), 500)).nbytes) < count * 2 ** 18


def test_what_cannot_be_counted_is_named(urls):
    """Rows of variable length are named; blocks are those of the rows beside
    them."""
    dataset = HDF5Dataset(urls, ['name', 'plain'])
    cost = epoch_cost(dataset, SequentialScheme(2 * ROWS, 500))
    assert ('name',) == cost.unknown
    assert cost.requests >= 4
    scheme = BlockShuffledScheme.aligned(dataset, 100, source='plain')
    assert 4 == scheme.num_blocks


def test_sparse_rows_of_several_files_are_counted(folder, server):
    """The chunks that the rows begin and end in count."""
    size = 0
    for number in range(2):
        matrix = random_csr(ROWS, 90, seed=number)
        with h5py.File(folder / f'sparse_{number}.h5', 'w') as file:
            put_csr(file, 'X', matrix, 500, 'gzip')
        size += (folder / f'sparse_{number}.h5').stat().st_size
    config.remote_cache_path = 'off'
    dataset = HDF5Dataset([server.url(f'sparse_{number}.h5')
                           for number in range(2)], [CSR('X')])
    cost = epoch_cost(dataset, SequentialScheme(2 * ROWS, 2 * ROWS))
    assert () == cost.unknown
    assert size / 4 < cost.nbytes <= size


def test_epoch_of_what_is_in_memory_costs_nothing():
    """There is nothing to fetch; of what is not known, it is an error."""
    rows = IndexableDataset({'x': numpy.arange(6)})
    assert (0, 0, ()) == epoch_cost(rows, SequentialScheme(6, 2))
    for dataset in (IterableDataset([1, 2]), DataStream(
            rows, iteration_scheme=SequentialScheme(6, 2)).as_dataset()):
        with pytest.raises(TypeError, match='cost of an epoch is not known'):
            epoch_cost(dataset, SequentialScheme(2, 1))
