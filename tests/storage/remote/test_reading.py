"""Data sets of remote files have the values of local ones."""
import asyncio
import pickle
import re
import sys
import threading

import fsspec
import h5py
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.waiting import wait_until

import fuel
from fuel import config
from fuel.datasets import H5PYDataset
from fuel.schemes import (BlockShuffledScheme, SequentialExampleScheme,
                          SequentialScheme, ShuffledExampleScheme,
                          ShuffledScheme)
from fuel.storage.file_bytes import raw_file_at
from fuel.remote.location import RemotePath
from fuel.streams import DataStream
from fuel.utils.extras import how_to_install

from .conftest import NUM_EXAMPLES, check_batch, make_file, read_epoch

SCHEMES = {
    'sequential': lambda: SequentialScheme(NUM_EXAMPLES, 64),
    'full shuffle': lambda: ShuffledScheme(NUM_EXAMPLES, 64),
    'hierarchical': lambda: BlockShuffledScheme(
        NUM_EXAMPLES, 64, block_size=64, window=3),
    'one batch': lambda: SequentialScheme(NUM_EXAMPLES, NUM_EXAMPLES)}


@pytest.mark.parametrize('budget', ['disk', 'little disk', 'memory',
                                    'little memory'])
@pytest.mark.parametrize('scheme', [
    pytest.param('sequential', marks=pytest.mark.full), 'full shuffle',
    'hierarchical', pytest.param('one batch', marks=pytest.mark.full)])
def test_epochs_have_the_values_of_the_file(url, data, scheme, budget):
    """Values are equal wherever the bytes are kept, and however few are
    kept."""
    if 'memory' in budget:
        config.remote_cache_path = 'off'
    if 'little' in budget:
        config.remote_cache_bytes = config.remote_memory_bytes = 100_000
        config.chunk_cache_bytes = 50_000
    dataset = H5PYDataset(url, ('train',))
    stream = DataStream(dataset, iteration_scheme=SCHEMES[scheme]())
    for _ in range(2):
        assert list(range(NUM_EXAMPLES)) == sorted(read_epoch(stream, data))


@pytest.mark.parametrize('scheme', [SequentialExampleScheme,
                                    ShuffledExampleScheme])
def test_single_examples_are_those_of_the_file(url, data, scheme):
    """Single examples are fetched in groups."""
    dataset = H5PYDataset(url, ('train',), sources=('gzip', 'number'))
    seen = []
    for row, number in DataStream(dataset, iteration_scheme=scheme(
            NUM_EXAMPLES)).get_epoch_iterator():
        assert (data['gzip'][number] == row).all()
        seen.append(number)
    assert list(range(NUM_EXAMPLES)) == sorted(seen)


@given(request=st.one_of(
    st.integers(0, NUM_EXAMPLES - 1),
    st.lists(st.integers(0, NUM_EXAMPLES - 1), min_size=1, max_size=40),
    st.tuples(st.integers(0, 299), st.integers(1, 300)).map(
        lambda ends: slice(ends[0], ends[0] + ends[1]))),
    memory=st.sampled_from([0, 30_000, 1 << 28]))
def test_any_request_has_the_values_of_the_file(tmp_path_factory, request,
                                                memory):
    """The values do not depend on the amount of memory."""
    path = tmp_path_factory.getbasetemp() / 'any.hdf5'
    if not path.exists():
        make_file(path)
    filesystem = fsspec.filesystem('memory')
    if not filesystem.exists('/any/train.hdf5'):
        filesystem.pipe('/any/train.hdf5', path.read_bytes())
    config.remote_cache_path = 'off'
    config.remote_memory_bytes = memory
    remote = H5PYDataset('memory://any/train.hdf5', ('train',))
    local = H5PYDataset(path, ('train',))
    for one, other in zip(local.get_data(None, request),
                          remote.get_data(None, request), strict=True):
        assert one.dtype == other.dtype
        if one.dtype == object:
            assert one.shape == other.shape
            assert all(map(numpy.array_equal, one.ravel(), other.ravel()))
        else:
            assert numpy.array_equal(one, other)


def test_sources_go_through_the_readers_of_local_files(url):
    """HDF5 reads the index, not the batches."""
    dataset = H5PYDataset(url, ('train',))
    kinds = {source: each.reader.layout.reader for source, each in zip(
        dataset.sources, dataset.open_sources(), strict=True)}
    assert {'plain': 'mapped', 'chunked': 'mapped', 'tiled': 'mapped',
            'big': 'mapped', 'number': 'mapped', 'gzip': 'decoded',
            'scale': 'decoded', 'ragged': 'ragged'} == kinds


def test_whole_data_set_is_loaded_into_memory(url, data):
    """The data are loaded in portions; each is fetched once."""
    dataset = H5PYDataset(url, ('train',), load_in_memory=True)
    check_batch(data, dataset.sources, dataset.get_data(
        None, slice(0, NUM_EXAMPLES)))


def test_second_epoch_asks_for_the_state_alone(server, url, data):
    """The cache has all of it."""
    dataset = H5PYDataset(url, ('train',))
    stream = DataStream(dataset, iteration_scheme=ShuffledScheme(
        NUM_EXAMPLES, 64))
    read_epoch(stream, data)
    count = len(server.log)
    read_epoch(stream, data)
    assert [(0, 0)] == [
        (first, last) for _, first, last, _ in server.log[count:]]
    # A new data set asks whether the file is what it was.
    again = H5PYDataset(url, ('train',))
    read_epoch(DataStream(again, iteration_scheme=ShuffledScheme(
        NUM_EXAMPLES, 64)), data)
    assert {(0, 0), (0, 65535)} >= {
        (first, last) for _, first, last, _ in server.log[count:]}


def test_nothing_is_fetched_twice_in_an_epoch(folder, server, url, data):
    """Near ranges are fetched in one request."""
    dataset = H5PYDataset(url, ('train',))
    read_epoch(DataStream(dataset, iteration_scheme=ShuffledScheme(
        NUM_EXAMPLES, 64)), data)
    size = (folder / 'train.hdf5').stat().st_size
    assert server.served_bytes() < 1.1 * size + 2 ** 17
    assert len(server.log) < 40


def test_whole_chunks_of_a_batch_are_asked_for_at_once(folder, server):
    """The chunks are asked for before the first one has come."""
    rows = numpy.random.RandomState(0).randint(
        0, 255, (40, 1 << 19)).astype('uint8')
    config.remote_memory_bytes, config.remote_cache_path = 1 << 20, 'off'
    with h5py.File(folder / 'chunks.hdf5', 'w') as file:
        file.create_dataset('x', data=rows, chunks=(1, 1 << 19))
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 40)}})
    dataset = H5PYDataset(server.url('chunks.hdf5'), ('train',))
    dataset.open()
    dataset.open_sources()
    arrived, gate = threading.Semaphore(0), threading.Event()

    def wait(handler):
        arrived.release()
        gate.wait(10)
        return False

    server.plan = [wait] * 4
    result = []
    thread = threading.Thread(target=lambda: result.append(
        dataset.get_data(None, [3, 30, 12, 20])))
    thread.start()
    try:
        for _ in range(4):
            assert arrived.acquire(timeout=10)
    finally:
        gate.set()
        thread.join()
    assert (rows[[3, 30, 12, 20]] == result[0][0]).all()


def test_next_requests_of_an_epoch_are_fetched_before_they_are_made(
        server, url, data):
    """They are fetched in order; a slow consumer waits for none of them."""
    dataset = H5PYDataset(url, ('train',), sources=('chunked', 'number'))
    epoch = DataStream(dataset, iteration_scheme=SequentialScheme(
        NUM_EXAMPLES, 64)).get_epoch_iterator()
    next(epoch)
    raw = dataset._access.current.raw
    assert raw.counts.requests
    for _ in range(1000):
        if raw.counts.nbytes > NUM_EXAMPLES * 300:
            break
        threading.Event().wait(.01)
    count = len(server.log)
    for _ in epoch:
        pass
    assert count == len(server.log)


def test_compressed_bytes_are_fetched_beyond_what_is_decoded_ahead(
        folder, server):
    """Chunks are decoded as far as their cache has room, bytes further."""
    rows = numpy.random.RandomState(0).randint(
        0, 255, (30, 1 << 18)).astype('uint8')
    with h5py.File(folder / 'gzip.hdf5', 'w') as file:
        file.create_dataset('x', data=rows, chunks=(1, 1 << 18),
                            compression='gzip', compression_opts=1)
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 30)}})
    with H5PYDataset(server.url('gzip.hdf5'), ('train',),
                     cache_bytes=1 << 20) as dataset:
        epoch = DataStream(dataset, iteration_scheme=SequentialScheme(
            30, 1)).get_epoch_iterator()
        next(epoch)
        size = (folder / 'gzip.hdf5').stat().st_size
        wait_until(lambda: server.served_bytes() > .9 * size)
        assert (rows[1:] == numpy.concatenate([
            batch[0] for batch in epoch])).all()


def test_rows_of_many_batches_are_fetched_together(folder, server):
    """Rows of one batch of a block shuffle are far from each other."""
    config.remote_cache_path, config.remote_memory_bytes = 'off', 4 << 20
    rows = numpy.random.RandomState(0).randint(
        0, 255, (3000, 4096)).astype('uint8')
    with h5py.File(folder / 'plain.hdf5', 'w') as file:
        file['x'] = rows
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 3000)}})
    with H5PYDataset(server.url('plain.hdf5'), ('train',)) as dataset:
        stream = DataStream(dataset, iteration_scheme=BlockShuffledScheme(
            3000, 16, block_size=128, window=2))
        seen = numpy.concatenate([
            batch for batch, in stream.get_epoch_iterator()])
    assert (numpy.sort(rows[:, :8].copy().view('u8'), axis=0)
            == numpy.sort(seen[:, :8].copy().view('u8'), axis=0)).all()
    # The batches are 188, each of 13 requests by itself.
    assert len(server.log) < 188


@pytest.mark.parametrize('rank', [None, 1])
def test_examples_are_fetched_in_groups_before_they_are_asked_for(
        folder, server, rank):
    """A rank's examples are grouped too, although they are not adjacent."""
    rows = numpy.random.RandomState(0).randint(
        0, 255, (640, 1 << 13)).astype('uint8')
    with h5py.File(folder / 'examples.hdf5', 'w') as file:
        file['x'] = rows
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 640)}})
    size = (folder / 'examples.hdf5').stat().st_size
    with H5PYDataset(server.url('examples.hdf5'), ('train',)) as dataset:
        stream = DataStream(
            dataset, iteration_scheme=SequentialExampleScheme(640))
        if rank is not None:
            stream = stream.shard(rank, 2)
        epoch = stream.get_epoch_iterator()
        next(epoch)
        wait_until(lambda: server.served_bytes() > .9 * size)
        expected = rows[1:] if rank is None else rows[3::2]
        assert (expected == numpy.stack([row for row, in epoch])).all()


def test_several_threads_read_one_data_set(url, data):
    """Each reads its own epoch."""
    config.remote_cache_path, config.remote_memory_bytes = 'off', 100_000
    dataset = H5PYDataset(url, ('train',))
    found, errors = [], []

    def read(seed):
        try:
            found.append(sorted(read_epoch(DataStream(
                dataset, iteration_scheme=ShuffledScheme(
                    NUM_EXAMPLES, 50, rng=numpy.random.RandomState(seed))),
                data)))
        except Exception as error:  # noqa: BLE001 (shown below)
            errors.append(error)

    threads = [threading.Thread(target=read, args=[seed])
               for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == errors
    assert [list(range(NUM_EXAMPLES))] * 4 == found


def test_pickle_opens_the_file_again(url, data):
    """The pickle holds the URL."""
    dataset = pickle.loads(pickle.dumps(H5PYDataset(url, ('train',))))
    assert url == dataset.path
    check_batch(data, dataset.sources, dataset.get_data(None, [7, 3]))


def test_source_that_is_here_for_a_moment_is_fetched_again(folder, server):
    """All of it came when the file was opened, and left when another source
    was read, since the budget is less."""
    rows = numpy.arange(1, 1001, dtype='i4').reshape(-1, 100)
    with h5py.File(folder / 'rows.hdf5', 'w') as file:
        file['plain'] = rows
        file.create_dataset('gzip', data=rows, chunks=(5, 100),
                            compression='gzip')
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': dict.fromkeys(file, (0, 10))})
    config.remote_cache_path, config.remote_memory_bytes = 'off', 4096
    dataset = H5PYDataset(server.url('rows.hdf5'), ('train',))
    for request in ([5, 4], [9], list(range(10))):
        for part in dataset.get_data(None, request):
            assert (rows[request] == part).all()


def test_memory_of_bytes_keeps_to_its_budget(url, data):
    """Bytes that are being read count; they may exceed the budget so long."""
    config.remote_cache_path, config.remote_memory_bytes = 'off', 200_000
    file = raw_file_at(RemotePath(url))
    for address in range(0, file.size - 50_000, 50_000):
        file.read(address, 50_000)
        assert file._transfers.resident.used_bytes <= 200_000
    assert file.counts.requests > 1


def test_file_system_of_fsspec_is_read(folder, data):
    """Any will do; here one in memory."""
    filesystem = fsspec.filesystem('memory')
    filesystem.pipe('/some/train.hdf5',
                    (folder / 'train.hdf5').read_bytes())
    dataset = H5PYDataset('memory://some/train.hdf5', ('train',))
    assert 'memory://some/train.hdf5' == dataset.path
    read_epoch(DataStream(dataset, iteration_scheme=ShuffledScheme(
        NUM_EXAMPLES, 64)), data)


def test_contiguous_source_has_blocks_of_what_a_request_fetches(url):
    """A hierarchical shuffle suits it as well."""
    dataset = H5PYDataset(url, ('train',), sources=('plain',))
    scheme = BlockShuffledScheme.aligned(dataset, 64)
    assert 1 == len({*dataset.chunk_of_examples()})
    assert NUM_EXAMPLES == sum(map(len, scheme.get_request_iterator()))


@pytest.mark.parametrize('arguments, error, text', [
    ({'driver': 'core'}, ValueError, 'local files'),
    ({'storage_options': 3}, TypeError, 'must be a dict')])
def test_arguments_that_do_not_fit_a_url_are_refused(
        url, arguments, error, text):
    """The error names the arguments that would fit."""
    with pytest.raises(error, match=text):
        H5PYDataset(url, ('train',), **arguments)


def test_options_of_a_local_file_are_refused(folder, data):
    """A local file has no file system to give them to."""
    with pytest.raises(ValueError, match='storage_options are for URLs'):
        H5PYDataset(folder / 'train.hdf5', ('train',),
                    storage_options={'anon': True})
    with pytest.raises(AttributeError, match='is a local file'):
        H5PYDataset(folder / 'train.hdf5', ('train',)).storage_options = {}


@pytest.mark.timeout(60)
def test_file_is_read_and_closed_within_a_task(url, data):
    """A notebook reads so: from Python 3.14 on, a thread is in one task."""
    async def read():
        dataset = H5PYDataset(url, ('train',), load_in_memory=True)
        return dataset.num_examples, asyncio.current_task()

    async def main():
        task = asyncio.ensure_future(read())
        found = await task
        assert task is found[1]
        return found[0]

    assert NUM_EXAMPLES == asyncio.run(main())


def test_unknown_protocol_is_an_error_that_says_so():
    """The error comes before any request."""
    with pytest.raises(ValueError, match='nonsense://a/b.hdf5: fsspec knows'):
        H5PYDataset('nonsense://a/b.hdf5', ('train',))


@pytest.mark.parametrize('url, package, command', [
    ('http://localhost:9/x.tar', 'fsspec', how_to_install('remote')),
    ('s3://bucket/train.bin', 's3fs', how_to_install('remote')),
    ('gs://bucket/folder', 'gcsfs', 'run pip install gcsfs'),
    ('hf://datasets/a/b/x.h5', 'huggingface_hub',
     'run pip install huggingface_hub'),
    ('abfs://bucket/x.zarr', 'adlfs', 'run pip install adlfs')])
def test_missing_package_of_a_file_system_is_named(
        url, package, command, monkeypatch):
    """With the URL that was passed, no other, and the command."""
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError) as caught:
        fuel.load(url)
    text = str(caught.value)
    assert re.match(f'{url}[: ]', text) and text.endswith(command)
    assert package in text


def test_unknown_protocol_names_the_url_that_was_passed():
    """Not that of a file that is looked for in a folder."""
    with pytest.raises(ValueError, match='^nonsense://a/b: fsspec knows'):
        fuel.load('nonsense://a/b')
