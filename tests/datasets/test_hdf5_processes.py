"""H5PYDataset across pickles, processes, forks and threads."""
import copy
import functools
import gc
import os
import pickle
import signal
import threading
import traceback
import warnings

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal
from support.hdf5_files import write_pairs, write_ragged
from support.processes import run_python
from support.waiting import wait_until

import fuel
from fuel.datasets.hdf5 import H5PYDataset
from fuel.storage.open_files import OpenFile, open_files
from fuel.exceptions import DamagedFileError, StateMismatchError
from fuel.schemes import SequentialScheme, ShuffledScheme
from fuel.streams import DataStream
from fuel.utils import Subset

needs_fork = pytest.mark.skipif(
    not hasattr(os, 'fork'), reason='there is no fork on this platform')


@pytest.fixture
def path(tmp_path):
    """Write a file of 80 training and 20 test pairs."""
    return write_pairs(tmp_path / 'pairs.hdf5')


@pytest.fixture
def large(tmp_path):
    """Write a file with gzipped and ragged sources."""
    rng = numpy.random.RandomState(1)
    with h5py.File(tmp_path / 'large.hdf5', 'w') as file:
        file.create_dataset('packed', data=rng.randint(0, 9, (600, 40)),
                            chunks=(16, 40), compression='gzip')
        file['plain'] = rng.uniform(size=(600, 7))
        write_ragged(file, 'ragged', [numpy.full((2, 1 + row % 5), row % 250)
                                      for row in range(600)])
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': dict.fromkeys(['packed', 'plain', 'ragged'],
                                    (0, 600))})
    return str(tmp_path / 'large.hdf5')


def fingerprint(batches):
    """Return batches as something to compare."""
    return [[[numpy.asarray(row).tolist() for row in data] for data in batch]
            for batch in batches]


def run_in_child(action):
    """Run `action` in a forked child; return its exit status."""
    return wait_for(start_child(action))


def start_child(action):
    """Run `action` in a forked child; return the child's number."""
    with warnings.catch_warnings():
        # Python 3.12 and later warn wherever there is a thread.
        warnings.simplefilter('ignore', DeprecationWarning)
        child = os.fork()
    if not child:
        status = 1
        try:
            action()
            status = 0
        except BaseException:  # noqa: BLE001 (the child must not go on)
            traceback.print_exc()
        finally:
            os._exit(status)
    return child


def can_be_written(path):
    """Return whether nobody has a file open."""
    try:
        with h5py.File(path, 'r+') as file:
            file.attrs['seen'] = 1
    except OSError:
        return False
    return True


def wait_for(child):
    """Return the exit status of a child, which is ended if it hangs."""
    statuses = []

    def has_ended():
        pid, status = os.waitpid(child, os.WNOHANG)
        statuses[:] = [status]
        return pid

    try:
        wait_until(has_ended, 'the end of the child', 60)
    except AssertionError:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    return os.waitstatus_to_exitcode(statuses[0])


# --- pickles --------------------------------------------------------------

@pytest.mark.parametrize('load_in_memory', [False, True])
def test_stream_resumes_in_a_new_process(path, tmp_path, load_in_memory):
    """A stream and its iterator, pickled in mid-epoch, give the rest of
    the epoch and the next one in a new interpreter."""
    dataset = H5PYDataset(path, ('train',), subset=slice(10, 70),
                          load_in_memory=load_in_memory)
    stream = DataStream(dataset, iteration_scheme=ShuffledScheme(60, 7))
    epoch = stream.get_epoch_iterator()
    for _ in range(3):
        next(epoch)
    pickled = tmp_path / 'stream.pickle'
    pickled.write_bytes(pickle.dumps((stream, epoch)))
    assert pickled.stat().st_size < 16384
    code = ('import pathlib, pickle, sys; '
            'pickled, out = map(pathlib.Path, sys.argv[1:]); '
            'stream, epoch = pickle.loads(pickled.read_bytes()); '
            'out.write_bytes(pickle.dumps('
            '[list(epoch), list(stream.get_epoch_iterator())]))')
    status, _, errors = run_python(
        '-c', code, str(pickled), str(tmp_path / 'out'))
    assert status == 0, errors
    rest, following = pickle.loads((tmp_path / 'out').read_bytes())
    assert fingerprint(rest) == fingerprint(epoch)
    assert fingerprint(following) == fingerprint(stream.get_epoch_iterator())
    assert len(rest) == 6
    stream.close()


@pytest.mark.parametrize('protocol', range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_pickle_protocol_works(path, protocol):
    """The oldest protocols work too, and so do copies."""
    dataset = H5PYDataset(path, ('test', 'train'), load_in_memory=True)
    for again in (pickle.loads(pickle.dumps(dataset, protocol)),
                  copy.deepcopy(dataset), copy.copy(dataset)):
        assert again.num_examples == 100
        assert again.get_data(None, [0, 20])[1].tolist() == [[800], [0]]


def test_pickling_never_touches_the_file():
    """A stream over a file that is nowhere on disk survives a round trip
    of its pickle."""
    with h5py.File('nowhere.hdf5', 'w', driver='core',
                   backing_store=False) as file:
        file['x'] = numpy.arange(10)
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 10)}})
        stream = DataStream(H5PYDataset(file, ('train',)),
                            iteration_scheme=SequentialScheme(10, 5))
        epoch = stream.get_epoch_iterator()
        next(epoch)
        again, rest = pickle.loads(pickle.dumps((stream, epoch)))
        assert again.dataset.num_examples == 10
        assert again.dataset.path == 'nowhere.hdf5'
        with pytest.raises(FileNotFoundError, match='nowhere.hdf5'):
            next(rest)
        again.dataset._external_file_handle = file
        assert again.dataset.get_data(None, [3])[0].tolist() == [3]


def test_data_set_on_a_handle_is_reopened_by_path(tmp_path):
    """After unpickling the path is used; the file may still be open for
    writing in the same process."""
    with h5py.File(tmp_path / 'x.hdf5', 'w') as file:
        file['x'] = numpy.arange(10)
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 10)}})
        file.flush()
        again = pickle.loads(pickle.dumps(H5PYDataset(file, ('train',))))
        assert again._external_file_handle is None
        assert again.get_data(None, [9, 0])[0].tolist() == [9, 0]
        again.close(None)


def test_pickle_leaves_the_data_out_and_loads_them_when_read(path):
    """In memory or not, a pickle holds no examples."""
    for load_in_memory in (False, True):
        dataset = H5PYDataset(path, ('train',), load_in_memory=load_in_memory)
        dataset.get_data(None, [0])
        state = pickle.dumps(dataset)
        assert len(state) < 2000
        again = pickle.loads(state)
        if load_in_memory:
            assert again.data_sources[1].shape == (80, 1)
            assert again.source_shapes == (None, None)
        else:
            assert again.data_sources is None
        assert again.subsets[0].list_or_slice == slice(0, 80)
        assert_array_equal([[70]], again.get_data(None, [7])[1])
        again.close(None)
        dataset.close(None)


def test_unpickled_data_set_searches_the_data_path(
        path, own_home, caplog):
    """On a machine where the recorded path is gone, the file is found
    by its name in the data path."""
    state = pickle.dumps(H5PYDataset(path, ('train',)))
    os.rename(path, own_home / 'data' / 'pairs.hdf5')
    again = pickle.loads(state)
    assert again.get_data(None, [4])[1].tolist() == [[40]]
    assert again.path == path
    assert 'is gone, reading' in caplog.text
    again.close(None)
    os.remove(own_home / 'data' / 'pairs.hdf5')
    with pytest.raises(FileNotFoundError, match=r'any more.*looked in'):
        pickle.loads(state).get_data(None, [4])


def test_pickle_holds_the_original_path_not_the_cached_one(
        path, tmp_path):
    """With a local cache, the copy is read and the original is what
    the pickle remembers."""
    cache = tmp_path / 'cache'
    cache.mkdir()
    fuel.config.local_data_path = str(cache)
    dataset = H5PYDataset(path, ('train',))
    dataset.open()
    assert dataset._file_handle.filename.startswith(str(cache))
    assert dataset.path == path
    assert str(cache).encode() not in pickle.dumps(dataset)
    assert dataset.get_data(None, [4])[1].tolist() == [[40]]
    dataset.close(None)


def test_unpickled_data_set_of_another_length_raises(path):
    """A file that was replaced by one of another length is no longer the
    data set that was pickled."""
    state = pickle.dumps(H5PYDataset(path, ('train',)))
    write_pairs(path, train=70)
    with pytest.raises(StateMismatchError,
                       match='had 80 examples.*now has 70'):
        pickle.loads(state).get_data(None, [0])


@pytest.mark.parametrize('examples', [
    numpy.zeros((100, 2), 'float32'), numpy.zeros((100, 3), 'int64')])
@pytest.mark.parametrize('is_pickled', [False, True])
def test_file_of_other_types_is_refused(path, examples, is_pickled):
    """The file has as many examples, but of another type or shape."""
    dataset = H5PYDataset(path, ('train',))
    list(DataStream(dataset, batch_size=8).get_epoch_iterator())
    new = write_pairs(path + '.new')
    with h5py.File(new, 'a') as file:
        del file['features']
        file['features'] = examples
    os.replace(new, path)
    if is_pickled:
        dataset = pickle.loads(pickle.dumps(dataset))
    with pytest.raises(StateMismatchError,
                       match="int64, shape .2,., in 'features' when"):
        next(DataStream(dataset, batch_size=8).get_epoch_iterator())


# --- handles --------------------------------------------------------------

@pytest.mark.skipif(not os.path.isdir('/proc/self/fd'),
                    reason='open files are counted in /proc')
def test_epochs_leak_no_file_descriptor(path):
    """1,000 epochs, and streams given up in the middle, leave no file
    open."""
    def count_open():
        folder = '/proc/self/fd'
        with os.scandir(folder) as entries:
            return sum(os.path.realpath(entry.path) == os.path.realpath(path)
                       for entry in entries)

    dataset = H5PYDataset(path, ('train',))
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(80, 80))
    next(stream.get_epoch_iterator())
    # HDF5's handle, and two more where the file is read directly.
    once = count_open()
    assert once in (1, 3)
    for _ in range(1000):
        next(stream.get_epoch_iterator())
    assert count_open() == once
    for _ in range(50):
        abandoned = DataStream(H5PYDataset(path, ('train',)),
                               iteration_scheme=SequentialScheme(80, 8))
        next(abandoned.get_epoch_iterator())
    stream.close()
    del dataset, stream, abandoned
    gc.collect()
    assert count_open() == 0


def test_data_sets_of_one_file_share_its_handle(path, tmp_path):
    """One handle serves a process, also through another name of the
    file."""
    os.link(path, tmp_path / 'same.hdf5')
    first = H5PYDataset(path, ('train',))
    second = H5PYDataset(tmp_path / 'same.hdf5', ('test',))
    first.open()
    second.open()
    assert first._file_handle is second._file_handle
    first.close(None)
    first.close(None)
    assert second.get_data(None, [0])[1].tolist() == [[800]]
    second.close(None)


def test_replaced_file_is_opened_anew(path, tmp_path):
    """A file that took the place of another is not taken for it, while
    the old one is still read by those who have it open."""
    old = H5PYDataset(path, ('train',))
    old.open()
    os.replace(write_pairs(tmp_path / 'new.hdf5', train=50), path)
    new = H5PYDataset(path, ('train',))
    assert new.num_examples == 50
    assert old.get_data(None, [79])[1].tolist() == [[790]]
    new.open()
    assert new._file_handle is not old._file_handle
    old.close(None)
    new.close(None)


def test_handle_closed_by_hand_is_opened_again(path):
    """Closing the h5py handle behind a data set's back does no harm."""
    dataset = H5PYDataset(path, ('train',))
    dataset.open()
    dataset._file_handle.close()
    assert dataset.get_data(None, [1])[1].tolist() == [[10]]
    dataset.close(None)


def test_working_directory_may_change(path, monkeypatch, tmp_path):
    """A relative path means the directory of the time it was given."""
    monkeypatch.chdir(os.path.dirname(path))
    dataset = H5PYDataset('pairs.hdf5', ('train',))
    state = pickle.dumps(dataset)
    (tmp_path / 'elsewhere').mkdir()
    monkeypatch.chdir(tmp_path / 'elsewhere')
    for again in (dataset, pickle.loads(state)):
        assert again.path == 'pairs.hdf5'
        assert again.get_data(None, 1)[1] == 10
        again.close(None)


# --- fork and threads -----------------------------------------------------

@needs_fork
def test_forked_child_uses_a_handle_of_its_own(large):
    """Parent and children read at once, each through its own handle,
    and all get the right rows."""
    dataset = H5PYDataset(large, ('train',))
    stream = DataStream(dataset, iteration_scheme=ShuffledScheme(600, 50))
    expected = fingerprint(stream.get_epoch_iterator())
    handle = dataset._file_handle
    epochs = [stream.get_epoch_iterator() for _ in range(3)]
    states = pickle.dumps(epochs)

    def read(iterator, wanted):
        with pytest.raises(OSError, match='is not open'):
            dataset._file_handle  # noqa: B018
        assert fingerprint(iterator) == wanted
        assert dataset._file_handle is not handle

    wanted = [fingerprint(epoch) for epoch in pickle.loads(states)]
    assert wanted[0] != expected
    children = [
        start_child(functools.partial(read, epoch, rows))
        for epoch, rows in zip(epochs, wanted, strict=True)]
    assert [fingerprint(epoch) for epoch in epochs] == wanted
    assert [wait_for(child) for child in children] == [0, 0, 0]
    assert dataset._file_handle is handle
    stream.close()


@needs_fork
@pytest.mark.parametrize('cache_bytes', [None, 16 * 40 * 8 * 6])
def test_chunks_decoded_after_a_fork_are_each_process_its_own(
        large, cache_bytes):
    """Decoding in one process does not overwrite the chunks of another."""
    dataset = H5PYDataset(large, ('train',), sources=('packed',),
                          cache_bytes=cache_bytes)
    with h5py.File(large) as file:
        packed = file['packed'][...]
    orders = numpy.random.RandomState(3).permutation(600).reshape(2, 60, 5)

    def check(requests):
        for request in requests:
            assert_array_equal(
                packed[request], dataset.get_data(None, request)[0])

    dataset.get_data(None, [0])
    told, tell = os.pipe()

    def read_before_and_after_the_parent():
        os.close(tell)
        check(orders[0])
        os.read(told, 1)
        check(orders[0])

    child = start_child(read_before_and_after_the_parent)
    try:
        check(orders[1])
        check(orders[1])
    finally:
        os.close(tell)
    assert 0 == wait_for(child)
    check(orders[1])
    os.close(told)
    dataset.close(None)


@pytest.mark.parametrize('is_finished', [True, False])
def test_closed_stream_of_chunks_leaves_the_file_to_others(
        large, is_finished):
    """The file is closed although the iterator lives and reads ahead."""
    stream = DataStream(H5PYDataset(large, ('train',), sources=('packed',)),
                        iteration_scheme=ShuffledScheme(600, 16))
    epoch = stream.get_epoch_iterator()
    next(epoch)
    if is_finished:
        assert 37 == len(list(epoch))
    stream.close()
    stream.dataset.close(None)
    # Decoding in the background ends soon.
    wait_until(lambda: can_be_written(large))
    if not is_finished:
        # It was written to, and old and new rows are never mixed.
        with pytest.raises(DamagedFileError, match='while an epoch read it'):
            list(epoch)


@needs_fork
def test_forked_child_that_closes_leaves_the_parents_file_open(path):
    """A child that closes or drops its handle leaves the parent's open."""
    dataset = H5PYDataset(path, ('train',))
    dataset.open()
    handle = dataset._file_handle

    def close():
        nonlocal dataset
        dataset.get_data(None, [1])
        dataset.close(None)
        del dataset
        gc.collect()

    assert run_in_child(close) == 0
    assert dataset._file_handle is handle
    assert dataset.get_data(None, [2])[1].tolist() == [[20]]
    dataset.close(None)


@needs_fork
def test_forked_child_reads_a_file_that_is_only_in_memory():
    """An external handle without a file on disk is copied by the fork."""
    with h5py.File('nowhere.hdf5', 'w', driver='core',
                   backing_store=False) as file:
        file['x'] = numpy.arange(10)
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 10)}})
        dataset = H5PYDataset(file, ('train',))

        def read():
            assert dataset.get_data(None, [3, 1])[0].tolist() == [3, 1]

        assert run_in_child(read) == 0


@needs_fork
def test_fork_while_a_thread_opens_files_does_not_hang(path):
    """The lock of the registry is free in a child."""
    stop = threading.Event()

    def open_and_close():
        while not stop.is_set():
            open_files.get(path)

    thread = threading.Thread(target=open_and_close)
    thread.start()
    try:
        for _ in range(20):
            assert run_in_child(lambda: open_files.get(path)) == 0
    finally:
        stop.set()
        thread.join()


def test_handle_is_registered_while_no_thread_looks_through_them(path):
    """The thread would look at a set that changes."""
    with h5py.File(path) as file:
        opened = OpenFile(file, owned=False)
        thread = threading.Thread(target=open_files.add, args=[opened])
        with open_files._opening:
            thread.start()
            thread.join(0.2)
            assert thread.is_alive()
        thread.join(20)
        assert opened in open_files._at(opened.place)


def test_threads_read_at_once(large):
    """Several threads over one data set each get their own rows, while
    another one keeps closing it."""
    dataset = H5PYDataset(large, ('train',))
    schemes = [ShuffledScheme(600, 37, rng=numpy.random.RandomState(seed))
               for seed in range(4)]
    requests = [list(scheme.get_request_iterator()) for scheme in schemes]
    rows = dataset.get_data(None, slice(0, 600))
    failures = []
    stop = threading.Event()

    def read(number):
        try:
            for request in requests[number]:
                data = dataset.get_data(None, request)
                for whole, part in zip(rows, data, strict=True):
                    for index, row in zip(request, part, strict=True):
                        assert_array_equal(whole[index], row)
        except BaseException as error:  # noqa: BLE001 (told below)
            failures.append(error)

    def close():
        while not stop.wait(0.002):
            dataset.close(None)

    closing = threading.Thread(target=close)
    threads = [threading.Thread(target=read, args=(number,))
               for number in range(4)]
    for thread in [closing, *threads]:
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    closing.join()
    assert failures == []
    dataset.close(None)


def test_rows_that_another_thread_chose_are_read(path):
    """The other thread may choose them while the sources are being opened."""

    class Chosen(H5PYDataset):
        def _reader_of(self, opened, source):
            if self.num_examples == 80:
                choosing = threading.Thread(target=setattr, args=(
                    self, 'subsets', [Subset([90, 95], 100)] * 2))
                choosing.start()
                choosing.join()
            return super()._reader_of(opened, source)

    dataset = Chosen(path, ('train',))
    dataset.get_data(None, [0])
    assert dataset.num_examples == 2
    rows = dataset.get_data(None, [0, 1])
    expected = H5PYDataset(path, ('train', 'test')).get_data(None, [90, 95])
    assert fingerprint([rows]) == fingerprint([expected])
    dataset.close(None)
