"""Zarr stores as data sets."""
import pickle
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from support.fuel_calls import calls_of_batches

import fuel
from fuel.exceptions import DamagedFileError
from fuel.interop.zarr import ZarrDataset
from fuel.schemes import BlockShuffledScheme, ShuffledScheme
from fuel.storage.grouped import Groups
from fuel.streams import DataStream
from fuel.testing import check_dataset, check_stream
from fuel.transformers import MultiProcessing

N = 23
IMAGES = numpy.random.RandomState(0).randint(0, 256, (N, 4, 3)).astype('u1')
LABELS = numpy.arange(N, dtype='>i8')


def write(folder, version=3, shards=False):
    """Write a group of two arrays and return its path."""
    path = str(folder / f'data{version}{shards}.zarr')
    group = zarr.open_group(path, mode='w', zarr_format=version)
    group.create_array('images', data=IMAGES, chunks=(5, 2, 3), **(
        {'shards': (10, 4, 3)} if shards else {}))
    group.create_array('labels', data=LABELS, chunks=(7,))
    return path


@pytest.mark.parametrize('cache_bytes', [None, 100, 0])
@pytest.mark.parametrize('version, shards', [
    (2, False), (3, False), (3, True)])
def test_rows_are_those_of_the_library(
        version, shards, cache_bytes, tmp_path):
    """Rows are equal in any order, in slices and alone, for any cache."""
    dataset = ZarrDataset(write(tmp_path, version, shards),
                          cache_bytes=cache_bytes)
    assert ('images', 'labels') == dataset.sources
    assert N == dataset.num_examples
    for rows in ([0], [22, 0, 7, 7, 14], list(range(N))[::-1],
                 slice(3, 20)):
        images, labels = dataset.get_data(None, rows)
        assert labels.dtype.isnative
        assert (IMAGES[rows] == images).all()
        assert (LABELS[rows] == labels).all()
    image, label = dataset.get_data(None, 12)
    assert (IMAGES[12] == image).all()
    assert 12 == label
    dataset.close(None)


@given(st.lists(st.integers(0, N - 1), min_size=1, max_size=40),
       st.integers(1, N), st.sampled_from([0, 60, 10 ** 6]))
def test_any_rows_of_any_chunks_are_right(rows, size, cache_bytes):
    """Rows are right with a cache of any size."""
    array = zarr.create_array({}, data=IMAGES, chunks=(size, 4, 3))
    images, = ZarrDataset(array, cache_bytes=cache_bytes).get_data(None, rows)
    assert (IMAGES[rows] == images).all()


@pytest.mark.parametrize('cache_bytes', [None, 100])
def test_data_set_keeps_the_promises_of_data_sets(
        cache_bytes, tmp_path, another_process):
    """The promises are about states, pickles, ownership, threads and
    processes."""
    build = partial(ZarrDataset, write(tmp_path), cache_bytes=cache_bytes)
    check_dataset(build, another_process=another_process)


def test_epoch_resumes_and_runs_in_workers(tmp_path):
    """Chunks are decoded in whichever process reads them."""
    path = write(tmp_path)

    def stream():
        return DataStream(ZarrDataset(path),
                          iteration_scheme=ShuffledScheme(N, 4))

    def read(epoch):
        return [labels.tolist() for _, labels in epoch]

    whole = read(stream().get_epoch_iterator())
    with MultiProcessing(stream(), num_workers=2) as parallel:
        assert whole == read(parallel.get_epoch_iterator())
    check_stream(stream, another_process=False)


def test_array_is_one_source(tmp_path):
    """Splits are given as those of NumPy's files."""
    array = zarr.create_array(
        str(tmp_path / 'array.zarr'), data=LABELS, chunks=(4,))
    for store in (array, str(tmp_path / 'array.zarr')):
        dataset = ZarrDataset(store, ('test',), {'test': [22, 3]})
        assert ('data',) == dataset.sources
        assert [22, 3] == dataset.get_data(None, slice(0, 2))[0].tolist()


def test_names_of_dimensions_are_labels(tmp_path):
    """The store has the names."""
    group = zarr.open_group(str(tmp_path / 'data.zarr'), mode='w')
    group.create_array('x', data=IMAGES[..., 0], chunks=(5, 4),
                       dimension_names=('batch', 'feature'))
    group.create_array('y', data=LABELS, chunks=(5,))
    dataset = ZarrDataset(group)
    assert {'x': ('batch', 'feature')} == dataset.axis_labels
    assert ZarrDataset(group, axis_labels=None).axis_labels is None


def test_pickle_holds_the_path(tmp_path):
    """The pickle holds no decoded rows."""
    dataset = ZarrDataset(write(tmp_path))
    dataset.get_data(None, list(range(N)))
    text = pickle.dumps(dataset)
    assert len(text) < 2000
    assert 7 == pickle.loads(text).get_data(None, 7)[1]


def test_damaged_chunk_is_reported_when_it_is_read(tmp_path):
    """The others are read."""
    path = write(tmp_path, 2)
    (tmp_path / 'data2False.zarr' / 'labels' / '2').write_bytes(b'damage')
    dataset = ZarrDataset(path, sources=('labels',))
    dataset.get_data(None, [0, 22])
    with pytest.raises(DamagedFileError, match="'labels': chunks 2"):
        dataset.get_data(None, [15])


def test_wrong_stores_are_refused(tmp_path):
    """The error names what is wrong."""
    with pytest.raises(FileNotFoundError):
        ZarrDataset(str(tmp_path / 'missing.zarr'))
    with pytest.raises(ValueError, match='no arrays'):
        ZarrDataset(zarr.open_group({}, mode='w'))
    group = zarr.open_group({}, mode='w')
    group.create_array('a', data=LABELS, chunks=(4,))
    group.create_array('b', data=LABELS[:3], chunks=(4,))
    with pytest.raises(ValueError, match='a: 23, b: 3'):
        ZarrDataset(group)


def test_store_with_coordinates_is_opened_by_its_sources(tmp_path):
    """Stores of xarray have arrays of other lengths, and scalars, too."""
    path = str(tmp_path / 'data.zarr')
    group = zarr.open_group(path, mode='w')
    group['image'] = numpy.arange(60.).reshape(5, 4, 3)
    group['label'] = numpy.arange(5)
    group['x'] = numpy.arange(4)
    group['y'] = numpy.arange(3)
    group['time'] = numpy.arange(5)
    group.create_array('place', shape=(), dtype='i8')
    with pytest.raises(ValueError, match='image: 5, label: 5, time: 5, x: 4'):
        ZarrDataset(path)
    dataset = pickle.loads(pickle.dumps(ZarrDataset(
        path, sources=('image', 'label'))))
    assert ('image', 'label', 'time') == dataset.provides_sources
    image, label = dataset.get_data(None, [4, 0])
    assert ((2, 4, 3), [4, 0]) == (image.shape, label.tolist())
    assert ('x',) == ZarrDataset(path, sources=('x',)).provides_sources
    with pytest.raises(ValueError, match='label: 5, x: 4'):
        ZarrDataset(path, sources=('label', 'x'))


def test_arrays_that_are_read_share_the_cache_by_bytes():
    """Unread arrays take no memory."""
    class Store(zarr.storage.MemoryStore):
        count = 0

        async def get(self, key, *args, **kwargs):
            Store.count += 'large/c' in key
            return await super().get(key, *args, **kwargs)

    group = zarr.open_group(Store(), mode='w')
    for name in ('large', 'a', 'b', 'c', 'd'):
        group.create_array(name, data=numpy.arange(100.), chunks=(10,))
    dataset = ZarrDataset(group, sources=('large',), cache_bytes=900)
    Store.count = 0
    for row in numpy.random.RandomState(0).permutation(100).tolist() * 2:
        assert [row] == dataset.get_data(None, [row])[0].tolist()
    assert Store.count == 10


@pytest.mark.parametrize('version, shards', [
    (2, False), (3, False), (3, True)])
def test_stores_are_recognised(version, shards, tmp_path):
    """The content of the folder decides. The arguments of the class work, as
    do shuffling and resuming."""
    path = write(tmp_path, version, shards)
    dataset = fuel.load(path)
    assert isinstance(dataset, ZarrDataset)
    assert 'ZarrDataset' in str(dataset)
    part = fuel.load(path, 'test', sources=('labels',),
                     splits={'test': (20, N)}, cache_bytes=0)
    assert LABELS[20:].tolist() == part.get_data(
        None, slice(0, 3))[0].tolist()

    def shuffled():
        return DataStream(fuel.load(path), iteration_scheme=ShuffledScheme(
            N, 4, seed=1))
    epoch = shuffled().get_epoch_iterator()
    first = [next(epoch)[1] for _ in range(2)]
    resumed = shuffled()
    resumed.load_state_dict(epoch.state_dict())
    rest = [(images, labels) for images, labels in
            resumed.get_epoch_iterator()]
    for images, labels in rest:
        assert numpy.array_equal(IMAGES[labels], images)
    assert LABELS.tolist() == sorted(numpy.concatenate(
        [*first, *(labels for _, labels in rest)]).tolist())


def test_batches_that_are_remembered_call_no_python(tmp_path):
    """They are read as those of contiguous HDF5."""
    dataset = ZarrDataset(write(tmp_path))
    assert [] == calls_of_batches(dataset, [IMAGES, LABELS], 3)


def test_chunks_are_decoded_once_by_threads_at_once(tmp_path, monkeypatch):
    """Outside of locks: two chunks are decoded at the same time."""
    both = threading.Barrier(2, timeout=30)
    dataset = ZarrDataset(write(tmp_path), sources=('images',))
    decoded = []
    real = Groups.decode

    def decode(groups, number):
        decoded.append(number)
        if number < 2:
            both.wait()
        return real(groups, number)

    monkeypatch.setattr(Groups, 'decode', decode)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda row: dataset.get_data(None, [row])[0],
                              [0, 5, 1, 6]))
    assert numpy.array_equal(IMAGES[[0, 5, 1, 6]], numpy.concatenate(found))
    assert [0, 1] == sorted(decoded)


def test_array_without_rows_has_no_examples():
    """Such an array is made before its rows are appended."""
    group = zarr.open_group({}, mode='w')
    group.create_array('x', shape=(0, 3), chunks=(2, 3), dtype='f4')
    dataset = ZarrDataset(group)
    assert 0 == dataset.num_examples
    assert (0, 3) == dataset.read_stored('x').shape


@pytest.mark.parametrize('shards, rows', [(False, 5), (True, 10)])
def test_aligned_blocks_are_the_chunks(shards, rows, tmp_path):
    """Those that are decoded at once, each once in an epoch."""
    dataset = ZarrDataset(write(tmp_path, 3, shards), sources=('images',),
                          cache_bytes=4 * 12 * rows)
    expected = numpy.arange(N) // rows
    assert expected.tolist() == dataset.chunk_of_examples().tolist()
    stream = DataStream(dataset, iteration_scheme=BlockShuffledScheme.aligned(
        dataset, 4, window=2))
    assert N == sum(len(images) for images, in stream.get_epoch_iterator())
    assert len({*expected}) == dataset.readers['images'].store.num_decoded


def test_store_that_is_gone_is_said_to_be(tmp_path):
    """The error comes before it is opened, and while it is read."""
    with pytest.raises(FileNotFoundError, match=(
            'there is no Zarr store .*none.zarr.*looked in')):
        ZarrDataset(str(tmp_path / 'none.zarr'))
    dataset = ZarrDataset(write(tmp_path))
    shutil.rmtree(tmp_path / 'data3False.zarr')
    with pytest.raises(DamagedFileError, match='was deleted or renamed'):
        dataset[:]
