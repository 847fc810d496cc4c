"""Every way to make, save, take up and end an epoch made by workers."""
import itertools
import json
import multiprocessing
import os
import pickle
import signal
import threading
import time

import numpy
import pytest
from support.pipelines import PIPELINES, write_files
from support.pipelines import build as build_pipeline
from support.process_pipelines import Slow, assert_same, build
from support.waiting import wait_until

from fuel.datasets import IndexableDataset
from fuel.epochs.stage import stage_of
from fuel.iterator import DataIterator
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream
from fuel.transformers import Mapping, Merge, MultiProcessing
from fuel.utils.sparse import is_sparse

pytestmark = pytest.mark.timeout(60)

# Pipelines that two workers can share.
WORKERS = [1, 2]


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    """Return a folder with the files of the pipelines."""
    folder = tmp_path_factory.mktemp('files')
    write_files(folder)
    return folder


@pytest.fixture
def parallel(start_method):
    """Return a maker of streams that are closed at the end."""
    made = []

    def make(stream=None, **kwargs):
        kwargs.setdefault('start_method', start_method)
        made.append(MultiProcessing(
            build() if stream is None else stream, **kwargs))
        return made[-1]

    yield make
    for stream in made:
        stream.close()
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize('num_workers', WORKERS)
@pytest.mark.parametrize('protocol', [0, 5])
def test_pickle_after_the_end_ends_and_goes_on(
        parallel, num_workers, protocol):
    """A stream pickled with its finished iterator begins the next epoch."""
    stream = parallel(build().data_stream, num_workers=num_workers)
    reference = build().data_stream
    epoch = stream.get_epoch_iterator()
    assert_same(reference.get_epoch_iterator(), epoch)
    copy, rest = pickle.loads(pickle.dumps((stream, epoch), protocol))
    assert list(rest) == []
    again = pickle.loads(pickle.dumps((copy, rest), protocol))
    assert 'finished' == copy.state_dict()['epoch']
    assert copy.state_dict() == again[0].state_dict()
    assert_same(reference.get_epoch_iterator(), copy.get_epoch_iterator())
    assert_same(reference.get_epoch_iterator(), copy.get_epoch_iterator())
    copy.close()
    again[0].close()


def test_iterator_made_by_hand_closes_and_saves(parallel):
    """DataIterator(stream) is an epoch like that of get_epoch_iterator."""
    stream, reference = parallel(), build()
    epoch, expected = DataIterator(stream), reference.get_epoch_iterator()
    assert_same([next(expected), next(expected)], [next(epoch), next(epoch)])
    state = json.loads(json.dumps(stream.state_dict()))
    restored = parallel()
    restored.load_state_dict(state)
    rest = list(expected)
    assert_same(rest, DataIterator(restored))
    assert_same(rest, epoch)
    assert_same(reference.get_epoch_iterator(), DataIterator(stream))
    assert_same(reference.get_epoch_iterator(), stream.get_epoch_iterator())
    assert stream.worker_pids
    DataIterator(stream)
    stream.close()
    assert multiprocessing.active_children() == restored_children(restored)


def restored_children(stream):
    """Return the processes that a stream may have."""
    return [process for process in multiprocessing.active_children()
            if process.pid in stream.worker_pids]


@pytest.mark.pipelines(besides=[
    name for name in PIPELINES if 'MultiProcessing' in name])
# To spawn two workers for each would take minutes, and pickles no more.
@pytest.mark.parametrize('start_method', [
    'fork', pytest.param('forkserver', marks=pytest.mark.full)])
def test_state_fits_with_and_without_workers(parallel, pipeline, files):
    """A state of the pipeline loads in its wrapper, and the reverse."""
    bare = build_pipeline(pipeline, files)
    wrapped = parallel(build_pipeline(pipeline, files))
    epochs = bare.get_epoch_iterator(), wrapped.get_epoch_iterator()
    # Endless epochs are left in the middle.
    count = len(list(itertools.islice(
        build_pipeline(pipeline, files).get_epoch_iterator(), 4)))
    for taken in range(count + 2):
        states = [json.loads(json.dumps(stream.state_dict()))
                  for stream in (bare, wrapped)]
        assert states[0] == states[1]
        if taken in (1, count + 1):
            inside, outside = (build_pipeline(pipeline, files)
                               for _ in range(2))
            outside.load_state_dict(states[1])
            around = parallel(inside)
            around.load_state_dict(states[0])
            expected = some_of(outside)
            assert expected == some_of(around)
            around.close()
        items = [next(epoch, None) for epoch in epochs]
        assert plain(items[0]) == plain(items[1])


def plain(data):
    """Return data in a form that compares, with its types."""
    if is_sparse(data):
        return 'sparse', data.shape, *map(
            plain, (data.data, data.indices, data.indptr))
    if isinstance(data, numpy.ndarray) and data.dtype.hasobject:
        return 'objects', data.shape, list(map(plain, data.flat))
    if isinstance(data, (numpy.ndarray, numpy.generic)):
        return type(data), data.dtype.str, data.shape, data.tobytes()
    if isinstance(data, (list, tuple)):
        return type(data), list(map(plain, data))
    return data


def some_of(stream):
    """Return what comes in some batches and the next epoch."""
    return [plain(item) for _ in range(2) for item in itertools.islice(
        stream.get_epoch_iterator(), 5)]


def test_state_of_a_stage_over_workers_fits_without_them(parallel):
    """The workers may be anywhere in the pipeline."""
    over, plain = Mapping(parallel(), tuple), Mapping(build(), tuple)
    epochs = over.get_epoch_iterator(), plain.get_epoch_iterator()
    for _ in range(3):
        assert_same([next(epochs[1])], [next(epochs[0])])
    assert plain.state_dict() == over.state_dict()
    restored = Mapping(build(), tuple)
    restored.load_state_dict(over.state_dict())
    assert_same(list(epochs[1]), restored.get_epoch_iterator())


def numbers(count):
    """Return a stream of batches of one number."""
    return DataStream(IndexableDataset(numpy.arange(count)),
                      iteration_scheme=SequentialScheme(count, 1))


def test_state_of_a_merge_that_ended_first_begins_the_next_epoch(parallel):
    """A child that was left in mid-epoch does not go on there."""
    def build_merge(wrap):
        return Merge([wrap(numbers(2)), wrap(numbers(5))], ('one', 'two'))
    merged = build_merge(parallel)
    # Workers are forked here, which warns too if there are threads.
    epoch = merged.get_epoch_iterator()
    with pytest.warns(UserWarning, match='length|end'):
        assert 2 == len(list(epoch))
    state = json.loads(json.dumps(merged.state_dict()))
    for wrap in (parallel, lambda stream: stream):
        restored = build_merge(wrap)
        restored.load_state_dict(state)
        first = next(restored.get_epoch_iterator())
        assert [0, 0] == [int(part[0]) for part in first]
    first = next(merged.get_epoch_iterator())
    assert [0, 0] == [int(part[0]) for part in first]


def test_state_of_a_copy_that_did_not_start_is_that_of_its_epoch(parallel):
    """A pickled stream begins the next epoch, and its state says which."""
    stream = parallel()
    epoch = stream.get_epoch_iterator()
    next(epoch)
    copy = pickle.loads(pickle.dumps(stream))
    state = json.loads(json.dumps(copy.state_dict()))
    again = pickle.loads(pickle.dumps(copy))
    restored = build()
    restored.load_state_dict(state)
    expected = list(restored.get_epoch_iterator())
    assert_same(expected, copy.get_epoch_iterator())
    assert_same(expected, again.get_epoch_iterator())
    copy.close()
    again.close()


def is_held(lock):
    """Return whether another thread has a lock."""
    if lock.acquire(blocking=False):
        lock.release()
        return False
    return True


def test_close_in_a_fork_does_not_wait_for_a_thread_of_the_parent(parallel):
    """The child has no thread that could release the stream's lock."""
    stream = parallel(Slow(build().data_stream, 1.0))
    epoch = stream.get_epoch_iterator()
    reader = threading.Thread(target=next, args=(epoch,), daemon=True)
    reader.start()
    wait_until(lambda: epoch.epoch.pending_item.is_asked)
    wait_until(lambda: is_held(stage_of(stream).lock))
    child = os.fork()
    if not child:
        signal.alarm(20)
        stream.close()
        os._exit(0 if len(list(numbers(3).get_epoch_iterator())) == 3 else 1)
    assert 0 == os.waitpid(child, 0)[1]
    reader.join(20)
    assert 5 == len(list(epoch))


class Stuck(DataStream):
    """Is pickled in a long time."""

    def __reduce__(self):
        started.set()
        time.sleep(8)
        return DataStream, (self.dataset,)


started = threading.Event()


def test_close_ends_workers_though_a_thread_is_busy_elsewhere():
    """A thread that does not wait for a batch cannot be stopped."""
    stuck = Stuck(IndexableDataset(numpy.arange(3)),
                  iteration_scheme=SequentialScheme(3, 1))
    stream = MultiProcessing(stuck, start_method='fork')
    next(stream.get_epoch_iterator())

    def hold():
        # The lock of a stream is held while an epoch of it is made.
        stream.close()
        stream.start_method = 'spawn'
        stream.get_epoch_iterator()

    other = threading.Thread(target=hold, daemon=True)
    other.start()
    started.wait(20)
    before = time.monotonic()
    stream.close()
    assert time.monotonic() - before < 10
    other.join(30)
    stream.close()
    assert multiprocessing.active_children() == []


class AsLists(Mapping):
    """Makes lists of a batch, for each by itself."""

    one_to_one = True

    def __init__(self, data_stream):
        super().__init__(data_stream, None)

    def get_data(self, request=None):
        """Do what the class says."""
        values, = next(self.child_epoch_iterator)
        return ([numpy.full((3, 2), number) for number in values],
                [[1, 2.5], 'text', (4,)])


@pytest.mark.parametrize('num_workers', WORKERS)
def test_lists_stay_lists_through_workers(parallel, num_workers):
    """Lists of arrays of one shape, which could be stacked, stay lists."""
    stream = AsLists(numbers(4))
    for batch, expected in zip(
            parallel(stream, num_workers=num_workers).get_epoch_iterator(),
            AsLists(numbers(4)).get_epoch_iterator(), strict=True):
        assert [list, list] == list(map(type, batch))
        assert expected[1] == batch[1]
        assert [list, str, tuple] == list(map(type, batch[1]))
        for one, other in zip(batch[0], expected[0], strict=True):
            assert one.flags.writeable
            numpy.testing.assert_array_equal(one, other)


class Doubled(MultiProcessing):
    """Changes what its workers made, in this process."""

    def get_data(self, request=None):
        """Return the next batch, doubled."""
        return tuple(2 * part for part in super().get_data(request))


@pytest.mark.parametrize('num_workers', WORKERS)
def test_own_get_data_of_a_subclass_is_asked(num_workers):
    """The method is called in each epoch, also in a resumed one."""
    def numbers():
        return DataStream(IndexableDataset(numpy.arange(8)), batch_size=2)

    expected = [[2 * batch.tolist()[0], 2 * batch.tolist()[1]]
                for batch, in numbers()]
    with Doubled(numbers(), num_workers=num_workers) as stream, Doubled(
            numbers(), num_workers=num_workers) as restored:
        epoch = stream.get_epoch_iterator()
        first = next(epoch)[0].tolist()
        restored.load_state_dict(json.loads(json.dumps(stream.state_dict())))
        assert expected == [first, *(part.tolist() for part, in epoch)]
        assert expected[1:] == [part.tolist() for part, in restored]
        assert expected == [part.tolist() for part, in stream]
