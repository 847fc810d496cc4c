"""Chainer's data set abstraction, point by point."""
import os
import threading

import numpy
import pytest
from support.chainer_sets import SimpleDataset
from support.chainer_snapshots import restore, snapshot

from fuel.interop.chainer import (
    DatasetMixin,
    Iterator,
    MultiprocessIterator,
    MultithreadIterator,
    SerialIterator,
    cache_or_load_file,
    cached_download,
    concat_examples,
    dataset,
    datasets,
    get_dataset_root,
    iterators,
    set_dataset_root,
    to_device,
)

ITERATORS = [SerialIterator, MultithreadIterator, MultiprocessIterator]
SIX = SimpleDataset([0, 1, 2, 3, 4, 5])


def test_abstraction_has_three_parts():
    """Data sets, iterators, and conversion of batches."""
    assert callable(datasets.TupleDataset)
    assert callable(iterators.SerialIterator)
    assert callable(dataset.concat_examples)


# Data sets.

def test_data_set_is_a_length_and_indices():
    """The iterators need no more: a list is one, and so is an array."""
    for values in ([3, 4], numpy.array([3, 4]), SimpleDataset([3, 4])):
        assert [3, 4] == SerialIterator(values, 2, shuffle=False).next()


def test_mixin_indexes_by_integer_slice_list_and_array():
    """One example, or a list of examples."""
    assert 1 == SIX[1]
    assert [1, 2] == SIX[1:3]
    assert [4, 0] == SIX[[4, 0]]
    assert [0, 1, 2] == SIX[numpy.arange(3)]
    assert all(isinstance(SIX[index], list)
               for index in (slice(1), [0], numpy.array([0])))


def test_mixin_leaves_the_length_to_the_data_set():
    """It must be given explicitly, as the example must."""
    for method in (lambda: len(DatasetMixin()),
                   lambda: DatasetMixin().get_example(0)):
        with pytest.raises(NotImplementedError):
            method()


def test_invalid_index_is_an_index_error():
    """Of the data set's own."""
    with pytest.raises(IndexError):
        SIX[6]


def test_indexing_may_be_overridden_for_speed():
    """A data set that slices fast does so."""
    class Fast(SimpleDataset):
        def __getitem__(self, index):
            return self.values[index]

    assert range(1, 3) == Fast(range(6))[1:3]


def test_data_sets_are_stateless():
    """Several iterators go over one, and a snapshot does not hold it."""
    first, second = (SerialIterator(SIX, 4, shuffle=False) for _ in range(2))
    assert [0, 1, 2, 3] == first.next() == second.next()
    assert not any(values.size > 6 and 'generators' not in name
                   for name, values in snapshot(first).items())


# Iterators.

@pytest.mark.parametrize('kind', ITERATORS)
def test_iterator_yields_minibatches_as_lists(kind):
    """By the protocol of Python, or by a method."""
    with kind(SIX, 4, repeat=False, shuffle=False) as iterator:
        assert isinstance(iterator, Iterator)
        assert iterator is iter(iterator)
        assert [0, 1, 2, 3] == iterator.next()
        assert [4, 5] == next(iterator)
        with pytest.raises(StopIteration):
            next(iterator)


@pytest.mark.parametrize('kind', ITERATORS)
def test_iterator_says_how_far_it_is(kind):
    """2.5 sweeps in the middle of the third."""
    with kind(SIX, 3) as iterator:
        assert (3, 0, 0., None, False) == (
            iterator.batch_size, iterator.epoch, iterator.epoch_detail,
            iterator.previous_epoch_detail, iterator.is_new_epoch)
        for step in range(1, 6):
            iterator.next()
            assert (step // 2, step / 2, (step - 1) / 2, step % 2 == 0) == (
                iterator.epoch, iterator.epoch_detail,
                iterator.previous_epoch_detail, iterator.is_new_epoch)
        assert 2.5 == iterator.epoch_detail


@pytest.mark.parametrize('kind', ITERATORS)
def test_iterator_is_suspended_and_resumed(kind):
    """Only what changes is saved: not the batch size."""
    iterator = kind(SIX, 4)
    iterator.next()
    saved = snapshot(iterator)
    assert 'batch_size' not in saved
    resumed = restore(kind(SIX, 4), saved)
    assert [iterator.next() for _ in range(4)] == [
        resumed.next() for _ in range(4)]
    for each in (iterator, resumed):
        each.finalize()


def test_base_class_defines_the_interface():
    """Returning itself, and finalizing and serializing nothing."""
    class Ones(Iterator):
        def __next__(self):
            return [1]

    ones = Ones()
    assert ones is iter(ones)
    assert [1] == ones.next() == next(ones)
    assert ones.finalize() is None
    assert ones.serialize(None) is None
    with pytest.raises(NotImplementedError):
        next(Iterator())


# Conversion.

def test_arrays_are_concatenated_along_a_new_first_axis():
    """The batch dimension."""
    assert (3, 2) == concat_examples([numpy.zeros(2)] * 3).shape


def test_tuples_and_dicts_are_concatenated_part_by_part():
    """The results are a tuple and a dict again."""
    x, y = concat_examples([(numpy.zeros(2), 1), (numpy.ones(2), 2)])
    assert ((2, 2), [1, 2]) == (x.shape, y.tolist())
    named = concat_examples([{'x': numpy.zeros(2), 'y': 1}] * 2)
    assert {'x': (2, 2), 'y': (2,)} == {
        name: part.shape for name, part in named.items()}


def test_different_shapes_are_an_error_or_padded():
    """To the smallest shape that holds all contents."""
    batch = [numpy.ones((1, 2)), numpy.ones((2, 1))]
    with pytest.raises(ValueError, match='different shapes'):
        concat_examples(batch)
    assert [[[1, 1], [-1, -1]], [[1, -1], [1, -1]]] == concat_examples(
        batch, padding=-1).tolist()


def test_arrays_go_to_a_device():
    """A negative one is the host, None where they are."""
    array = numpy.arange(3)
    for device in (-1, None):
        assert array is to_device(device, array)
        assert [[0, 1, 2]] == concat_examples([array], device).tolist()
    with pytest.raises((ImportError, Exception), match='CuPy|cupy|CUDA'):
        to_device(0, array)


# Files.

def test_root_is_set_by_function_or_variable(monkeypatch, own_home):
    """The function comes first; the default is below the home directory."""
    monkeypatch.delenv('CHAINER_DATASET_ROOT', raising=False)
    assert os.path.join(str(own_home), '.chainer', 'dataset') == (
        get_dataset_root())
    monkeypatch.setenv('CHAINER_DATASET_ROOT', '/by/variable')
    assert '/by/variable' == get_dataset_root()
    set_dataset_root('/by/function')
    try:
        assert '/by/function' == get_dataset_root()
    finally:
        set_dataset_root(None)


def test_download_is_cached(tmp_path, monkeypatch):
    """The second call returns the path without downloading."""
    calls = []

    def download(folder, urls, names):
        calls.append(urls)
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, names[0]), 'w') as file:
            file.write('content')

    monkeypatch.setattr('fuel.interop.chainer.files.default_downloader',
                        download)
    set_dataset_root(str(tmp_path))
    try:
        path = cached_download('https://example.org/a')
        assert path == cached_download('https://example.org/a')
    finally:
        set_dataset_root(None)
    assert [['https://example.org/a']] == calls
    assert path.startswith(str(tmp_path))


def test_file_is_created_at_a_temporary_path_or_loaded(tmp_path):
    """Nothing is there before, and nothing half done ever has its name."""
    path = str(tmp_path / 'file')

    def creator(temporary):
        assert path != temporary
        assert not os.path.exists(temporary)
        with open(temporary, 'w') as file:
            file.write('a')
            assert not os.path.exists(path)
            file.write('b')
        return 'created'

    def loader(found):
        with open(found) as file:
            return file.read()

    assert 'created' == cache_or_load_file(path, creator, loader)
    assert 'ab' == cache_or_load_file(path, creator, loader)


def test_file_is_created_safely_by_threads_at_once(tmp_path):
    """Each returns the whole content."""
    path = str(tmp_path / 'file')
    barrier, seen = threading.Barrier(4), []

    def creator(temporary):
        with open(temporary, 'w') as file:
            file.write('whole' * 100)
        return 'whole' * 100

    def loader(found):
        with open(found) as file:
            return file.read()

    def call():
        barrier.wait()
        seen.append(cache_or_load_file(path, creator, loader))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ['whole' * 100] * 4 == seen
    assert ['file'] == os.listdir(tmp_path)
