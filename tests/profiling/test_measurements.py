"""Measurements name the stage that was waited for, and their parts add up."""
import gc
import json
import multiprocessing
import os
import pickle
import random
import threading
import time
from contextlib import ExitStack, suppress

import h5py
import numpy
import pytest
from support.measured_counts import check_counts

from fuel.datasets import HDF5Dataset, IndexableDataset
from fuel.epochs.stage import stage_of
from fuel.kernels.epoch_iterator import StageMeter
from fuel.profiling import Measurements
from fuel.schemes import ConstantScheme
from fuel.server import Server
from fuel.streams import DataStream, ServerDataStream
from fuel.transformers import (
    Batch, Cast, Chain, Mapping, Merge, MultiProcessing, MultiThreading,
    Rename, Unpack)
from fuel.workers import worker

# Seconds that the slow stage takes for a batch, and others at most.
SLOW, QUICK = .006, .0003
N, SIZE = 400, 10


class Delay:
    """Takes its time in one of several ways.

    `kind`: ``'work'``, ``'sleep'``, ``'lock'``, which another thread holds,
        or ``'file'``, which is read from a pipe that is filled slowly.
    """

    def __init__(self, kind, seconds):
        self.kind, self.seconds = kind, seconds

    def __call__(self):
        """Take the time."""
        getattr(self, self.kind)()

    def work(self):
        """Compute."""
        end = time.perf_counter() + self.seconds
        while time.perf_counter() < end:
            pass

    def sleep(self):
        """Wait for nobody."""
        time.sleep(self.seconds)

    def lock(self):
        """Wait for another thread."""
        lock = threading.Lock()
        lock.acquire()
        threading.Timer(self.seconds, lock.release).start()
        with lock:
            pass

    def file(self):
        """Wait for what is read."""
        reading, writing = os.pipe()
        threading.Timer(self.seconds, os.write, (writing, b'x')).start()
        os.read(reading, 1)
        os.close(reading)
        os.close(writing)


class Slowed(IndexableDataset):
    """A data set that takes its time."""

    delay = None

    def get_data(self, state=None, request=None):
        """Return the data, later."""
        if self.delay is not None:
            self.delay()
        return super().get_data(state, request)


class Stage(Mapping):
    """A stage that takes its time."""

    def __init__(self, stream, delay, **kwargs):
        self.delay = delay
        super().__init__(stream, self.later, **kwargs)

    def later(self, data):
        """Return the data, later."""
        self.delay()
        return data


def source(delay=None):
    """Return a stream of 40 batches an epoch."""
    dataset = Slowed({'x': numpy.zeros((N, 3)), 'y': numpy.arange(N)})
    dataset.delay = delay
    return DataStream(dataset, batch_size=SIZE)


def as_it_is(data):
    """Return the data."""
    return data


class Pipeline:
    """A pipeline drawn at random, with one slow stage.

    `slow`: the path of the slow stage in the measurements; None if the
        consumer is slow.
    `seconds`: the time that it takes for a batch.
    """

    def __init__(self, rng, stack, seconds):
        self.seconds = seconds
        self.stages = [rng.choice(['stage', 'stage', 'cast', 'rebatch'])
                       for _ in range(rng.randint(1, 4))]
        self.elsewhere = rng.choice(
            [None, None, 'processes', 'threads', 'server'])
        if self.elsewhere:
            self.stages.insert(rng.randint(0, len(self.stages)), 'elsewhere')
        # Python code in another thread of this process keeps all from work.
        self.kind = rng.choice(['sleep', 'lock', 'file'] + (
            [] if self.elsewhere in ('threads', 'server') else ['work']))
        # Counted from the source.
        can_be_slow = [0, *[place for place, kind in enumerate(
            self.stages, 1) if kind == 'stage'], None]
        self.slow = rng.choice(can_be_slow)
        self.stream = source(self._delay(0, rng))
        for place, kind in enumerate(self.stages, 1):
            self._add(kind, place, rng, stack)

    def _delay(self, place, rng):
        if place == self.slow:
            return Delay(self.kind, self.seconds)
        return Delay('sleep', rng.uniform(0, QUICK))

    def _add(self, kind, place, rng, stack):
        stream = self.stream
        if kind == 'stage':
            stream = Stage(stream, self._delay(place, rng))
        elif kind == 'cast':
            stream = Cast(stream, 'float32', which_sources=('x',))
        elif kind == 'rebatch':
            stream = Batch(Unpack(stream), ConstantScheme(SIZE))
        elif self.elsewhere == 'processes':
            can_share = 'rebatch' not in self.stages[:place]
            stream = stack.enter_context(MultiProcessing(
                stream, num_workers=rng.randint(1, 2 if can_share else 1),
                start_method='fork', max_store=2))
        elif self.elsewhere == 'threads':
            stream = stack.enter_context(MultiThreading(stream, max_store=2))
        else:
            server = stack.enter_context(Server(stream, port=0))
            stream = stack.enter_context(ServerDataStream(
                ('x', 'y'), produces_examples=False, port=server.port,
                hwm=2))
        self.stream = stream

    def expected(self):
        """Return the name of the slow stage, and how many such are above."""
        if self.slow == 0:
            return 'DataStream', 0
        above = self.stages[self.slow:]
        return 'Stage(later)', above.count('stage')

    def __repr__(self):
        return (f'{self.stages} from the source, {self.elsewhere}, slow '
                f'{self.slow} by {self.kind}')


def check(seed):
    """Measure a random pipeline, and see that the slow stage is blamed.

    No work is lost, on a busy machine either.
    """
    measured = []

    def check_once(seconds):
        drawn, later, found = measure(seed, seconds)
        measured.append((drawn, found, seconds))
        check_blame(drawn, later, found)

    try_slower(check_once)
    for taken in measured:
        check_work(*taken)


def try_slower(check):
    """Call `check` with the seconds of a slow stage, up to three times.

    A busy machine keeps each stage waiting for a processor: the stage that is
    slow on purpose must take longer than that. The last failure is raised.
    """
    for seconds in SLOW, 4 * SLOW:
        with suppress(AssertionError):
            check(seconds)
            return
    check(16 * SLOW)


def measure(seed, seconds):
    """Return a random pipeline, what it took after its workers came, and all
    that it took."""
    rng = random.Random(seed)
    with ExitStack() as stack:
        drawn = Pipeline(rng, stack, seconds)
        iterator = drawn.stream.get_epoch_iterator()
        begin, in_step, count = time.perf_counter(), 0., 0
        for _ in iterator:
            count += 1
            before = time.perf_counter()
            if count == 2:
                # Of each worker one has come; their start may take longer
                # than all else, on a busy machine.
                started = drawn.stream.measurements()
            if drawn.slow is None:
                time.sleep(seconds)
            in_step += time.perf_counter() - before
        passed = time.perf_counter() - begin
        found = drawn.stream.measurements()
    assert (N // SIZE, N) == (count, found.examples)
    # All that passed is a part of somebody, and of one alone.
    assert found.seconds == pytest.approx(passed, rel=.02, abs=.002)
    assert found.seconds == pytest.approx(
        found.stall_seconds + found.consumer_seconds)
    assert found.consumer_seconds >= in_step
    assert found.stall_seconds == pytest.approx(
        sum(stage.stall_seconds for stage in found.stages), rel=1e-6)
    here = [stage for stage in found.stages if len(stage.path) == 1]
    assert found.stall_seconds == pytest.approx(sum(
        stage.work_seconds + stage.input_seconds for stage in here),
        rel=.02)
    return drawn, found - started, found


def check_work(drawn, found, seconds):
    """Check that the slow stage has worked for all the time it takes."""
    if drawn.slow is not None:
        slow = slow_stage(drawn, found)
        if 'workers' not in slow.runs_in:
            assert slow.work_seconds >= seconds * (N // SIZE - 1)


def check_blame(drawn, later, found):
    """Check that what was slow on purpose is said to be the slowest."""
    if drawn.slow is None:
        assert later.consumer_seconds > later.stall_seconds, drawn
        return
    slow = slow_stage(drawn, later)
    assert later.slowest == slow, f'{drawn}\n{found}'
    assert slow.stall_seconds > .5 * later.stall_seconds


def slow_stage(drawn, measured):
    """Return what the stage that is slow on purpose took."""
    name, place = drawn.expected()
    return [stage for stage in measured.stages if stage.name == name][place]


@pytest.mark.parametrize('seed', range(12))
def test_the_slow_stage_is_blamed(seed):
    """It runs anywhere, and anything takes its time."""
    check(seed)


@pytest.mark.full
@pytest.mark.parametrize('seed', range(100, 150))
def test_the_slow_stage_is_blamed_in_many_pipelines(seed):
    """The test is the one above, for many pipelines."""
    check(seed)


@pytest.fixture
def heard_ends(monkeypatch):
    """Let an epoch end when the last report of each worker has come, however
    late a busy machine lets it come."""
    monkeypatch.setattr(worker, 'MOMENT', 60.)


@pytest.mark.usefixtures('heard_ends')
def test_a_slow_worker_among_others_is_blamed():
    """It is one stage in one process that takes long."""
    is_over = multiprocessing.get_context('fork').Event()

    def late(data):
        # Of the second worker, which makes every other batch, the last.
        if data[1][0] == N - SIZE:
            is_over.wait(60)
        return data

    begin = time.perf_counter()

    def let_go():
        # After it was waited for longer than for all else.
        while not stage_of(workers).is_waiting:
            time.sleep(.001)
        time.sleep(1.5 * (time.perf_counter() - begin))
        is_over.set()

    stream = Cast(Mapping(source(), late), 'float32', which_sources=('x',))
    with MultiProcessing(stream, num_workers=2,
                         start_method='fork') as workers:
        iterator = workers.get_epoch_iterator()
        for _ in range(N // SIZE - 1):
            next(iterator)
        other = threading.Thread(target=let_go, daemon=True)
        other.start()
        assert [N - SIZE] == [data[1][0] for data in iterator]
        other.join()
        found = workers.measurements()
    assert 'Mapping(late)' == found.slowest.name
    assert '2 workers' == found.slowest.runs_in
    assert 40 == found.stages[1].items


@pytest.mark.usefixtures('heard_ends')
@pytest.mark.parametrize('num_workers', [2, 3])
def test_at_the_end_of_an_epoch_all_workers_have_reported(num_workers):
    """Workers that did not make the last batch have reported, too."""
    with MultiProcessing(source(), num_workers=num_workers,
                         start_method='fork') as stream:
        for number in (1, 2):
            for _ in stream:
                pass
            found = stream.measurements().stages
            assert [40 * number] * 2 == [stage.items for stage in found]
            assert 400 * number == found[1].examples


def test_an_interval_is_what_happened_since():
    """It lies between two calls; the first has none."""
    stream = source()
    iterator = stream.get_epoch_iterator()
    next(iterator)
    assert stream.measurements().interval is None
    for _ in range(5):
        next(iterator)
    found = stream.measurements()
    assert (6, 5) == (found.items, found.interval.items)
    assert 50 == found.interval.stages[0].examples
    assert 0 == stream.measurements().interval.items


def test_measurements_of_ranks_add():
    """Measurements are plain data, which ranks can send to each other."""
    streams = [source().shard(rank, 2) for rank in range(2)]
    for stream in streams:
        for _ in stream:
            pass
    one, two = (pickle.loads(pickle.dumps(stream.measurements()))
                for stream in streams)
    both = one + two
    assert isinstance(both, Measurements)
    assert N == both.examples == both.stages[0].examples
    assert both.seconds == pytest.approx(one.seconds + two.seconds)
    assert both.stages[0].work_seconds == pytest.approx(
        one.stages[0].work_seconds + two.stages[0].work_seconds)
    assert 1 == len(both.stages)
    # Of the rank's own stages, though they were made from others.
    assert both.stages[0].stall_seconds == pytest.approx(both.stall_seconds)
    assert 0 < both.stages[0].work_seconds <= both.stall_seconds
    assert json.loads(json.dumps(both.as_dict()))['examples'] == N


def test_previews_are_not_measured():
    """They are of no epoch of the stream."""
    stream = Mapping(source(), lambda data: data)
    assert str(stream.preview())
    assert [0., 0.] == [
        stage.work_seconds for stage in stream.measurements().stages]


def test_threads_that_end_keep_nothing():
    """Threads that read an epoch leave no meters behind."""
    def read():
        for _ in source():
            pass

    def count():
        gc.collect()
        return sum(type(one) is StageMeter for one in gc.get_objects())

    read()
    before = count()
    for _ in range(20):
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
    assert count() <= before


def test_sums_do_not_fall():
    """They do not, though a timed item stood for too much of the stage
    below."""
    meter = StageMeter()
    found = []
    for seconds in 1., -.25, .5, -2.:
        meter.credit(0, 0, round(seconds * 1e9))
        found.append(meter.work_seconds)
    assert [1., 1., 1.25, 1.25] == found


def test_short_items_are_counted_all_and_timed_in_part():
    """The timed ones stand for the others."""
    dataset = IndexableDataset(numpy.zeros((200000, 2)))
    stream = DataStream(dataset, batch_size=10)
    for _ in stream.get_epoch_iterator():
        pass
    stage, = stream.measurements().stages
    assert (20000, 200000, 3200000) == (
        stage.items, stage.examples, stage.bytes)
    assert 256 < stage.timed < 5000
    assert stage.work_seconds > 0


def test_a_long_item_among_short_ones_is_timed():
    """Each item that Python reads is timed on its own."""
    class Hiccups(IndexableDataset):
        def get_data(self, state=None, request=None):
            if request[0] == 150000:
                time.sleep(.2)
            return super().get_data(state, request)

    stream = DataStream(Hiccups(numpy.zeros((200000, 2))), batch_size=10)
    for _ in stream.get_epoch_iterator():
        pass
    found = stream.measurements()
    assert found.stages[0].work_seconds > .2
    assert found.stall_seconds > .2


def test_stages_that_read_several_are_measured_apart():
    """Each stream is a branch, and a stream that is read twice one stage."""
    first = Mapping(source(), as_it_is)
    chained = Chain((first, Mapping(source(Delay('sleep', .001)), as_it_is)))
    for _ in chained:
        pass
    found = chained.measurements()
    assert ['Chain', 'Mapping(as_it_is)', 'DataStream', 'Mapping(as_it_is)',
            'DataStream'] == [stage.name for stage in found.stages]
    assert [80, 40, 40, 40, 40] == [stage.items for stage in found.stages]
    assert found.slowest == found.stages[4]
    twice = Merge((first, first), ('a', 'b', 'c', 'd'))
    assert 3 == len(twice.measurements().stages)


def test_time_between_epochs_is_nobodys():
    """A program does other things there: validation, say."""
    stream = source()
    for _ in range(3):
        for _ in stream:
            pass
        time.sleep(.1)
    assert stream.measurements().seconds < .2


def test_errors_and_the_end_leave_the_counters_whole():
    """An error does not count as an item; later items are measured."""
    calls = []

    def fail(data):
        calls.append(len(calls))
        if len(calls) == 3:
            raise ValueError('no')
        return data

    stream = Mapping(source(), fail)
    iterator = stream.get_epoch_iterator()
    count = 0
    while True:
        with suppress(ValueError):
            try:
                next(iterator)
            except StopIteration:
                break
            count += 1
    found = stream.measurements()
    assert (39, 39, 40) == (count, found.items, found.stages[1].items)
    assert found.stall_seconds == pytest.approx(
        sum(stage.stall_seconds for stage in found.stages))


def test_several_epochs_at_once_in_threads():
    """A thread's frames are its own."""
    streams = [Stage(source(), Delay('sleep', .001)) for _ in range(3)]

    def read(stream):
        for _ in stream:
            pass

    threads = [threading.Thread(target=read, args=(stream,))
               for stream in streams]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for stream in streams:
        found = stream.measurements()
        assert 40 == found.items == found.stages[1].items
        assert found.slowest.name == 'Stage(later)'
        assert found.stall_seconds >= .04


def test_workers_and_their_room_are_measured():
    """A slow consumer lets them wait for room."""
    with MultiProcessing(source(), start_method='fork',
                         max_store=2) as stream:
        iterator = stream.get_epoch_iterator()
        ready = set()
        for _ in iterator:
            ready.add(stream.measurements().stages[0].queue_items)
            time.sleep(.004)
        found = stream.measurements()
    assert 2 in ready
    assert ('MultiProcessing', 2) == (
        found.stages[0].name, found.stages[0].queue_size)
    assert (40, 400) == (found.stages[1].items, found.stages[1].examples)
    assert found.stages[1].room_seconds > .02
    assert found.consumer_seconds > found.stall_seconds


def test_queue_is_empty_while_its_items_are_waited_for():
    """It is, though a worker learns some batches later what was taken."""
    def check_once(seconds):
        slow = Stage(source(), Delay('sleep', seconds))
        with MultiProcessing(slow, num_workers=1, start_method='fork',
                             max_store=10) as stream:
            ready = [stream.measurements().stages[0].queue_items
                     for _ in stream.get_epoch_iterator()]
        assert len(ready) == 40
        # An item that comes from the first of them on is waited for.
        assert sum(map(bool, ready)) < 8

    try_slower(check_once)


def test_a_fork_begins_anew():
    """The child does not count the items of its parent."""
    stream = source()
    for _ in stream:
        pass
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            before = stream.measurements().items
            for _ in stream:
                pass
            os.write(writing, f'{before} {stream.measurements().items}'
                     .encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert b'0 40' == os.read(reading, 100)
    os.close(reading)
    os.close(writing)
    assert 40 == stream.measurements().items


def test_text_of_measurements():
    """It is a table, whose first line has the stage that the consumer waited
    for."""
    stream = Stage(source(), Delay('sleep', .001))
    for _ in stream:
        pass
    lines = str(stream.measurements()).splitlines()
    assert 'the consumer waited' in lines[0]
    assert lines[0].endswith('most for Stage(later)')
    assert lines[1].split()[:3] == ['stage', 'runs', 'in']
    assert lines[3].startswith('  DataStream')


def test_what_is_read_and_decoded_is_counted(tmp_path):
    """Compressed chunks are counted once each where they fit into the
    cache."""
    values = numpy.arange(4000.).reshape(400, 10)
    path = tmp_path / 'chunks.hdf5'
    with h5py.File(path, 'w') as file:
        file.create_dataset('x', data=values, chunks=(20, 10),
                            compression='gzip')
    with HDF5Dataset(path, {'x': 'x'}) as dataset:
        stream = DataStream(dataset, batch_size=20)
        before = stream.measurements().stages[0]
        for _ in range(2):
            for _ in stream:
                pass
        found = stream.measurements().stages[0] - before
    assert (20, values.nbytes) == (found.chunks_decoded, found.bytes_decoded)
    assert 0 < found.bytes_read < 2 * path.stat().st_size
    assert 0 == found.requests == found.retries


def test_what_is_read_in_workers_is_counted(tmp_path):
    """It comes with their reports."""
    path = tmp_path / 'chunks.hdf5'
    with h5py.File(path, 'w') as file:
        file.create_dataset('x', data=numpy.zeros((400, 10)),
                            chunks=(20, 10), compression='gzip')
    with HDF5Dataset(path, {'x': 'x'}) as dataset, MultiProcessing(
            DataStream(dataset, batch_size=20),
            start_method='fork') as stream:
        for _ in stream:
            pass
        found = stream.measurements().stages
    assert [0, 20] == [stage.chunks_decoded for stage in found]


def test_examples_that_are_left_out_are_work_of_their_stages():
    """The copies that make the rest of a batch again are the same stages."""
    def fail(data):
        if (data[1] == 77).any():
            time.sleep(.02)
            raise ValueError('no')
        return data

    dataset = IndexableDataset({'x': numpy.zeros((N, 3)),
                                'y': numpy.arange(N)})
    stream = Mapping(DataStream(dataset, batch_size=SIZE, on_error='skip'),
                     fail)
    for _ in stream:
        pass
    found = stream.measurements()
    assert N - 1 == found.examples
    assert 'Mapping(fail)' == found.slowest.name
    assert found.stall_seconds == pytest.approx(
        sum(stage.stall_seconds for stage in found.stages))


def test_an_epoch_that_begins_within_another_is_measured():
    """A function of the stream itself begins it."""
    streams = []

    def peek(data):
        next(streams[0].get_epoch_iterator())
        return data

    inner = source()
    streams.append(inner)
    stream = Mapping(inner, peek)
    for _ in stream:
        pass
    found = stream.measurements()
    assert (40, 80) == (found.items, found.stages[1].items)
    assert 0 < found.seconds < 10
    assert found.seconds == pytest.approx(
        found.stall_seconds + found.consumer_seconds)


@pytest.mark.parametrize('part', [
    numpy.float32(1), numpy.zeros(()), 'text', b'bytes', None, 5,
    numpy.array([[None, 'a'], [3, 4]], object),
    numpy.array([numpy.zeros(3), None], object),
    numpy.ma.masked_array([1, 2], [True, False]),
    numpy.zeros(3, [('a', 'i4'), ('b', 'f8')]), [], [numpy.zeros(3), 'x'],
    type('csr_array', (), {})(), type('csr_array', (), {
        'data': 1, 'indices': 2, 'indptr': 3})(), {'a': 1},
    numpy.zeros((5, 4))[::-1, ::2]])
def test_items_of_any_kind_are_counted(part):
    """A stage may give any value, as a tuple or as a dict."""
    stream = Mapping(source(), lambda data: (part, part))
    assert 40 == len(list(stream))
    assert 40 == stream.measurements().items
    as_dicts = [*stream.get_epoch_iterator(as_dict=True)]
    assert 40 == len(as_dicts)
    assert 80 == stream.measurements().items


def test_workers_that_are_gone_stay_in_the_sums():
    """The sums keep the items of all earlier workers."""
    with MultiProcessing(source(), start_method='fork') as stream:
        for number in range(1, 4):
            for _ in stream:
                pass
            stream.close()
            assert 40 * number == stream.measurements().stages[1].items
        assert 1 == len(stage_of(stream).meter.reports)


def check_sums(found):
    """See that what passed is a part of the stages."""
    assert found.stall_seconds > 0
    for total in (sum(stage.stall_seconds for stage in found.stages),
                  sum(stage.work_seconds for stage in found.stages)):
        assert found.stall_seconds == pytest.approx(total, rel=.02)


def test_a_stream_that_a_function_reads_is_the_work_of_its_stage():
    """A stream that a function reads also has measurements of its own."""
    other = Stage(source(), Delay('sleep', .002))
    examples = other.get_epoch_iterator()

    def mixed(data):
        next(examples)
        return data

    stream = Cast(Mapping(Stage(source(), Delay('sleep', .0003)), mixed),
                  'float32', which_sources=('x',))
    for _ in stream:
        pass
    found, inner = stream.measurements(), other.measurements()
    check_sums(found)
    assert 'Mapping(mixed)' == found.slowest.name
    assert found.slowest.work_seconds >= 40 * .002
    check_sums(inner)
    assert (40, 'Stage(later)') == (inner.items, inner.slowest.name)
    assert inner.stall_seconds < found.slowest.work_seconds
    assert inner.seconds <= found.seconds


def test_a_stream_that_two_read_is_a_part_of_each():
    """Its waits for a consumer belong to that consumer only."""
    below = Stage(source(), Delay('sleep', .0005))
    above = Stage(below, Delay('sleep', .001))
    for _ in below:
        pass
    for _ in above:
        pass
    found = above.measurements()
    assert found.stall_seconds == pytest.approx(
        sum(stage.stall_seconds for stage in found.stages), rel=1e-6)
    assert found.slowest == found.stages[0]
    alone = below.measurements()
    assert alone.stall_seconds == pytest.approx(
        sum(stage.stall_seconds for stage in alone.stages), rel=1e-6)
    assert 80 == alone.stages[0].items


def test_an_input_that_a_stage_reads_in_a_thread_is_its_work():
    """Its frames are another thread's, and no stall of the consumer."""
    class Threaded(Mapping):
        def get_data(self, request=None):
            found = []
            thread = threading.Thread(target=lambda: found.append(
                next(self.child_epoch_iterator, None)))
            thread.start()
            thread.join()
            if found == [None]:
                raise StopIteration
            return found[0]

    stream = Threaded(Stage(source(), Delay('sleep', .001)), as_it_is)
    for _ in stream:
        pass
    found = stream.measurements()
    assert found.stall_seconds == pytest.approx(
        sum(stage.stall_seconds for stage in found.stages), rel=1e-6)
    assert found.slowest == found.stages[0]
    assert found.stages[0].work_seconds >= 40 * .001


def test_a_stage_that_reads_its_own_stream_and_forks():
    """It forks in the middle of its frames, which go on."""
    depth = []

    def again(data):
        if len(depth) < 3:
            depth.append(os.fork())
            if depth[-1] == 0:
                depth[:] = [0] * 3
                for _ in stream:
                    pass
                os._exit(0 if stream.measurements().items == 40 else 1)
            for _ in stream:
                pass
        return data

    stream = Mapping(source(), again)
    for _ in stream:
        pass
    assert [0] * 3 == [os.waitpid(pid, 0)[1] for pid in depth]
    found = stream.measurements()
    assert found.items >= 40
    assert found.stall_seconds == pytest.approx(
        sum(stage.stall_seconds for stage in found.stages), rel=1e-6)


@pytest.mark.parametrize('seeds', [range(150), pytest.param(
    range(150, 2150), marks=pytest.mark.full)], ids=['short', 'long'])
def test_counts_of_random_pipelines_are_those_of_arithmetic(seeds):
    """Items, examples and bytes are equal, wherever they are read or
    exported."""
    for seed in seeds:
        check_counts(seed)


def test_pure_stages_in_threads_count_the_rows_of_their_batches():
    """They do not count one example for each batch of the stage above."""
    kept = Rename(Cast(Rename(source(), {}), 'float32', which_sources=(
        'x',)), {})
    with MultiThreading(kept) as stream:
        for _ in stream:
            pass
        found = stream.measurements().stages
    assert [N] * 5 == [stage.examples for stage in found]
    x, y = 3 * N, N
    assert [4 * x + 8 * y] * 3 + [8 * x + 8 * y] * 2 == [
        stage.bytes for stage in found]
    # The outermost in the threads hands out what the consumer gets.
    assert [4 * x, 0] == [stage.written for stage in found[2:4]]
