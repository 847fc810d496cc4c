"""Batches made in another process are those of the stream itself.

A worker that fails or dies reaches the consumer, epochs
are clean however they were left, pickles work, the parent makes no epoch of
its own.
"""
import gc
import json
import logging
import multiprocessing
import os
import pickle
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import suppress
from functools import partial

import numpy
import pytest
from support.process_pipelines import (
    Faulty,
    Keeper,
    Shapes,
    Unloadable,
    assert_same,
    build,
    build_bad,
    raise_unpicklable,
    raise_value_error,
    sleep_long,
)
from support.waiting import wait_until

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.epochs.stage import stage_of
from fuel.exceptions import StateMismatchError, WorkerError
from fuel.iterator import DataIterator
from fuel.schemes import SequentialExampleScheme, ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import (
    BackgroundProcess,
    Filter,
    MultiProcessing,
    MultiThreading,
    ScaleAndShift,
    Transformer,
)
from fuel.transformers.noise import GaussianNoise

pytestmark = pytest.mark.timeout(60)

METHODS = ['fork', 'spawn', 'forkserver']


@pytest.fixture
def ahead():
    """Return a maker of streams that are closed at the end."""
    made = []

    def make(stream=None, **kwargs):
        kwargs.setdefault('start_method', 'fork')
        made.append(MultiProcessing(
            build() if stream is None else stream, **kwargs))
        return made[-1]

    yield make
    for stream in made:
        stream.close()
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize('method', METHODS)
def test_epochs_equal_those_of_the_stream(ahead, method):
    """Order, values and types are equal, epoch after epoch."""
    stream, reference = ahead(start_method=method, max_store=3), build()
    for _ in range(3):
        assert_same(reference.get_epoch_iterator(),
                    stream.get_epoch_iterator())


def test_lambdas_work_under_fork(ahead):
    """Nothing is pickled where nothing has to be."""
    inner = build()
    inner.transform_any = lambda data: (data[0] * 2, data[1])
    reference = build()
    reference.transform_any = inner.transform_any
    assert_same(reference.get_epoch_iterator(),
                ahead(inner).get_epoch_iterator())


def test_unpicklable_stage_falls_back_to_fork(ahead, monkeypatch, caplog):
    """The default is spawn; a line of the log names the stage."""
    get_context = multiprocessing.get_context
    monkeypatch.setattr(multiprocessing, 'get_context',
                        lambda method=None: get_context(method or 'spawn'))
    inner = build()
    inner.function = lambda: None
    with caplog.at_level(logging.WARNING):
        batches = list(ahead(
            inner, start_method=None).get_epoch_iterator())
    assert len(batches) == 6
    assert 'the stage Noise cannot be pickled' in caplog.text
    assert 'forking instead' in caplog.text


def test_unpicklable_stage_with_spawn_is_an_error(ahead):
    """The error names the stage and the remedy."""
    inner = build()
    inner.function = lambda: None
    with pytest.raises(TypeError, match="stage Noise .*start_method='fork'"):
        ahead(inner, start_method='spawn').get_epoch_iterator()


@pytest.mark.parametrize('taken', [0, 1, 4])
@pytest.mark.parametrize('leave', ['del', 'reset', 'close', 'keep'])
def test_abandoned_epoch_leaves_a_clean_next_one(ahead, taken, leave):
    """Batches made ahead do not count."""
    stream, reference = ahead(), build()
    epoch, expected = stream.get_epoch_iterator(), (
        reference.get_epoch_iterator())
    for _ in range(taken):
        assert_same([next(expected)], [next(epoch)])
    if leave == 'reset':
        stream.reset()
        reference.reset()
    elif leave == 'close':
        stream.close()
    if leave != 'keep':
        del epoch, expected
        for _ in range(2):
            assert_same(reference.get_epoch_iterator(),
                        stream.get_epoch_iterator())
    else:
        # The noise of two epochs at once has no fixed order.
        targets = sorted(numpy.concatenate(
            [batch[1] for batch in stream.get_epoch_iterator()]))
        assert targets == list(range(24))
        assert len(list(epoch)) == 6 - taken


def test_two_epochs_at_once_do_not_disturb_each_other(ahead):
    """Both together may exceed the memory."""
    plain = build().data_stream
    stream = ahead(plain, max_store=2, max_bytes=2 << 20)
    first, second = stream.get_epoch_iterator(), stream.get_epoch_iterator()
    got = [], []
    order = random.Random(5)
    for _ in range(14):
        which = order.randrange(2)
        batch = next((first, second)[which], None)
        if batch is not None:
            got[which].append(batch)
    got[0].extend(first)
    got[1].extend(second)
    reference = build().data_stream
    for batches in got:
        assert_same(reference.get_epoch_iterator(), batches)


def test_as_dict_names_the_sources(ahead):
    """The stage hands the names on."""
    batch = next(ahead().get_epoch_iterator(as_dict=True))
    assert set(batch) == {'features', 'targets'}


def test_axis_labels_and_kind_are_handed_on(ahead):
    """They are those of the wrapped stream."""
    dataset = IterableDataset({'x': [1, 2, 3]},
                              axis_labels={'x': ('feature',)})
    stream = ahead(DataStream(dataset))
    assert stream.axis_labels == {'x': ('feature',)}
    assert stream.produces_examples
    assert stream.sources == ('x',)
    assert list(stream.get_epoch_iterator()) == [(1,), (2,), (3,)]


def test_request_is_refused(ahead):
    """Batches are made before anybody could ask for them."""
    with pytest.raises(ValueError, match='no requests.*got 4'):
        ahead().get_data(4)


@pytest.mark.parametrize('kind', [MultiProcessing, MultiThreading])
def test_requests_of_an_epoch_are_refused(kind):
    """Requests of an iterator, and of a scheme, are refused."""
    stream = kind(build())
    try:
        epoch = DataIterator(stream, iter([4]))
        with pytest.raises(ValueError, match='no requests.*got 4'):
            next(epoch)
        stream.iteration_scheme = SequentialExampleScheme(2)
        with pytest.raises(ValueError, match='no requests.*got 0'):
            next(stream.get_epoch_iterator())
    finally:
        stream.close()


@pytest.mark.parametrize('value, error', [
    (0, ValueError), (-1, ValueError), (True, TypeError), (1.5, TypeError)])
def test_max_store_is_checked(value, error):
    """The value is named."""
    with pytest.raises(error, match='max_store must be a positive integer'):
        MultiProcessing(build(), max_store=value)


@pytest.mark.parametrize('method', METHODS)
def test_exception_reaches_the_consumer(ahead, method):
    """It has its type, the stage and the worker's traceback."""
    stream = ahead(Faulty(build(), 2, raise_value_error),
                   start_method=method)
    epoch = stream.get_epoch_iterator()
    next(epoch)
    next(epoch)
    with pytest.raises(ValueError, match='something bad') as caught:
        next(epoch)
    assert 'raise_value_error' in str(caught.value.__cause__)
    assert any('in stage Faulty' in note for note in caught.value.__notes__)
    # As in this process: the batch is lost, the epoch goes on.
    assert len(list(epoch)) == 3
    assert len(list(stream.get_epoch_iterator())) == 6


@pytest.mark.parametrize('num_workers', [1, 2])
def test_error_names_the_request(ahead, num_workers):
    """The error also names every stage."""
    stream = build_bad() if num_workers == 1 else build_bad().data_stream
    epoch = ahead(stream, num_workers=num_workers).get_epoch_iterator()
    next(epoch)
    next(epoch)
    with pytest.raises(OSError, match='a bad sector') as caught:
        next(epoch)
    notes = caught.value.__notes__
    assert 'for the request [8, 9, 10, 11]' == notes[0]
    assert 'in stage DataStream' in notes[1]
    assert 'in get_data' in str(caught.value.__cause__)


@pytest.mark.parametrize('method', METHODS[1:])
def test_stream_that_does_not_load_in_the_worker_is_told(ahead, method):
    """The error has the worker's traceback, in each epoch that is begun."""
    inner = build()
    inner.something = Unloadable()
    stream = ahead(inner, start_method=method)
    for epoch in (stream.get_epoch_iterator() for _ in range(3)):
        for _ in range(2):
            with pytest.raises(ValueError, match='something bad') as caught:
                next(epoch)
        assert 'raise_value_error' in str(caught.value.__cause__)


@pytest.mark.parametrize('method', METHODS[1:])
def test_script_without_a_guard_is_told(method, tmp_path):
    """It used to wait for ever, for the worker to read the stream."""
    (tmp_path / 'script.py').write_text(textwrap.dedent(f"""
        from support.process_pipelines import build
        from fuel.transformers import MultiProcessing
        next(MultiProcessing(build(), start_method={method!r}
                             ).get_epoch_iterator())
    """))
    done = subprocess.run(
        [sys.executable, tmp_path / 'script.py'], capture_output=True,
        text=True, check=False, timeout=50,
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)})
    assert done.returncode == 1
    assert 'WorkerError' in done.stderr
    assert "under if __name__ == '__main__'" in done.stderr


@pytest.mark.parametrize('error', [EOFError, ConnectionResetError])
def test_fork_server_that_ended_is_told(ahead, monkeypatch, error):
    """Python 3.14 raises this if a script without a guard has ended it."""
    def start(process):
        raise error

    monkeypatch.setattr(
        multiprocessing.context.ForkServerProcess, 'start', start)
    with pytest.raises(WorkerError, match='the fork server ended.*__main__'):
        ahead(build(), start_method='forkserver').get_epoch_iterator()


def test_exception_that_does_not_pickle_is_told(ahead):
    """Its text and traceback arrive in an error of ours."""
    epoch = ahead(Faulty(build(), 0, raise_unpicklable)).get_epoch_iterator()
    with pytest.raises(WorkerError, match=r'UnpicklableError: odd'):
        next(epoch)


@pytest.mark.parametrize('how', [
    pytest.param(lambda: os.kill(os.getpid(), signal.SIGKILL), id='killed'),
    pytest.param(lambda: os._exit(3), id='exited'),
    pytest.param(lambda: sys.exit(4), id='sys.exit')])
def test_death_of_the_worker_reaches_the_consumer(ahead, how):
    """No wait without end; the next epoch has a new worker."""
    stream = ahead(Faulty(build(), 3, how))
    epoch = stream.get_epoch_iterator()
    with pytest.raises(WorkerError, match='worker process .* of Faulty ended'):
        list(epoch)
    with pytest.raises(WorkerError, match='worker process'):
        next(epoch)


def test_worker_killed_while_its_child_lives_is_noticed(ahead):
    """A grandchild that holds the connection open does not hide it."""
    def fork_and_die():
        if not os.fork():
            time.sleep(20)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)
    stream = ahead(Faulty(build(), 1, fork_and_die))
    before = time.monotonic()
    with pytest.raises(WorkerError, match='SIGKILL'):
        list(stream.get_epoch_iterator())
    assert time.monotonic() - before < 15


def test_killed_worker_is_followed_by_an_exact_epoch(ahead):
    """The state that was handed out is known without the worker."""
    # It must not have sent all before it is killed.
    stream, reference = ahead(max_store=1), build()
    epoch, expected = (
        stream.get_epoch_iterator(), reference.get_epoch_iterator())
    assert_same([next(expected), next(expected)], [next(epoch), next(epoch)])
    state = json.loads(json.dumps(stream.state_dict()))
    os.kill(stream.worker_pids[0], signal.SIGKILL)
    with pytest.raises(WorkerError, match='SIGKILL'):
        list(epoch)
    restored = ahead()
    restored.load_state_dict(state)
    rest = list(restored.get_epoch_iterator())
    assert len(rest) == 4
    assert_same(expected, rest)


def test_stalled_worker_is_told_with_its_stack(ahead):
    """The error comes after `timeout` seconds without a batch."""
    epoch = ahead(Faulty(build(), 1, sleep_long),
                  timeout=0.5).get_epoch_iterator()
    next(epoch)
    with pytest.raises(WorkerError, match='(?s)0.5 seconds.*sleep_long'):
        next(epoch)


@pytest.mark.parametrize('method', METHODS)
@pytest.mark.parametrize('taken', range(7))
def test_state_continues_after_what_was_handed_out(ahead, taken, method):
    """Batches made ahead do not count; the next epoch is the same, too."""
    if method != 'fork' and taken not in (0, 3, 6):
        method = 'fork'
    stream, reference = ahead(start_method=method), build()
    epoch, expected = (
        stream.get_epoch_iterator(), reference.get_epoch_iterator())
    for _ in range(taken):
        next(epoch)
        next(expected)
    time.sleep(0.05)
    state = json.loads(json.dumps(stream.state_dict()))
    restored = ahead(start_method=method)
    restored.load_state_dict(state)
    assert_same(expected, restored.get_epoch_iterator())
    for _ in range(2):
        assert_same(reference.get_epoch_iterator(),
                    restored.get_epoch_iterator())


def test_state_of_a_finished_epoch_begins_the_next(ahead):
    """StopIteration was raised: the next epoch comes."""
    stream, reference = ahead(), build()
    assert_same(reference.get_epoch_iterator(), stream.get_epoch_iterator())
    state = stream.state_dict()
    assert state['epoch'] == 'finished'
    restored = ahead()
    restored.load_state_dict(state)
    assert_same(reference.get_epoch_iterator(),
                restored.get_epoch_iterator())


@pytest.mark.parametrize('make', [
    MultiProcessing, partial(MultiProcessing, num_workers=2), MultiThreading])
def test_state_of_an_earlier_epoch_goes_back_there(make):
    """All later batches were delivered, so that the workers need no state to
    go on."""
    def build_shuffled():
        return DataStream(IndexableDataset(numpy.arange(40)),
                          iteration_scheme=ShuffledScheme(40, 7))

    with make(build_shuffled()) as stream:
        list(stream.get_epoch_iterator())
        state = json.loads(json.dumps(stream.state_dict()))
        expected = list(stream.get_epoch_iterator())
        for _ in range(2):
            list(stream.get_epoch_iterator())
        for _ in range(2):
            stream.load_state_dict(state)
            assert_same(expected, stream.get_epoch_iterator())


@pytest.mark.parametrize('make', [
    MultiProcessing, partial(MultiProcessing, num_workers=2), MultiThreading])
def test_epoch_that_ends_is_not_where_a_later_one_stands(make):
    """Two epochs are read at once."""
    with make(DataStream(
            IndexableDataset(numpy.arange(40)),
            iteration_scheme=ShuffledScheme(40, 4)), max_store=1) as stream:
        first = stream.get_epoch_iterator()
        next(first)
        second = stream.get_epoch_iterator()
        next(second)
        assert len(list(first)) == 9
        state = json.loads(json.dumps(first.state_dict()))
        assert ('finished', 0) == (state['epoch'], state['position'])
        assert len(list(second)) == 9
        stream.load_state_dict(state)
        assert len(list(stream.get_epoch_iterator())) == 10


@pytest.mark.parametrize('make', [
    MultiProcessing, partial(MultiProcessing, num_workers=2), MultiThreading])
def test_epochs_that_nobody_reads_are_left_when_a_state_is_taken_up(make):
    """Else each of them would keep the batches that were made ahead."""
    with make(DataStream(
            IndexableDataset(numpy.arange(40)),
            iteration_scheme=ShuffledScheme(40, 4)), max_store=2) as stream:
        epoch = stream.get_epoch_iterator()
        next(epoch)
        state, expected = stream.state_dict(), list(epoch)
        for _ in range(4):
            del epoch
            stream.load_state_dict(state)
            epoch = stream.get_epoch_iterator()
            assert_same(expected[:3], [next(epoch) for _ in range(3)])
        assert [1] * len(stage_of(stream).team.workers) == [
            len(worker.epochs) for worker in stage_of(stream).team.workers]


def test_epoch_of_workers_that_were_closed_is_an_error(ahead):
    """A second attempt starts no workers either."""
    stream = ahead(max_store=1)
    epoch = stream.get_epoch_iterator()
    next(epoch)
    stream.close()
    for _ in range(2):
        with pytest.raises(WorkerError, match='was closed, and with it'):
            list(epoch)
    assert stream.worker_pids == []


def test_state_of_another_pipeline_is_refused(ahead):
    """The error comes before a worker is started."""
    stream = ahead()
    next(stream.get_epoch_iterator())
    state = stream.state_dict()
    with pytest.raises(StateMismatchError, match='batch_size was 4'):
        ahead(build(batch_size=3)).load_state_dict(state)


@pytest.mark.parametrize('protocol', range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickled_iterator_goes_on(ahead, protocol):
    """It is pickled with its stream, in mid-epoch, in any protocol."""
    stream, reference = ahead(), build()
    epoch, expected = (
        stream.get_epoch_iterator(), reference.get_epoch_iterator())
    assert_same([next(expected), next(expected)], [next(epoch), next(epoch)])
    pickled = pickle.dumps((stream, epoch), protocol)
    copy, rest = pickle.loads(pickled)
    assert_same(expected, rest)
    assert_same(reference.get_epoch_iterator(), copy.get_epoch_iterator())
    copy.close()


def test_pickled_stream_starts_an_epoch(ahead):
    """The generators are those after the batch that was handed out."""
    stream, reference = ahead(), build()
    epoch, expected = (
        stream.get_epoch_iterator(), reference.get_epoch_iterator())
    next(epoch)
    next(expected)
    copy = pickle.loads(pickle.dumps(stream))
    again = pickle.loads(pickle.dumps(copy))
    del epoch, expected
    assert_same(reference.get_epoch_iterator(), copy.get_epoch_iterator())
    copy.close()
    assert len(list(again.get_epoch_iterator())) == 6
    again.close()


def test_stream_that_knows_no_position_still_works(ahead):
    """Only its state is refused; the error names the stage."""
    class Hidden(Transformer):
        def get_data(self, request=None):
            return next(self.child_epoch_iterator)

    stream = ahead(Hidden(build(), produces_examples=False))
    epoch = stream.get_epoch_iterator()
    next(epoch)
    with pytest.raises(TypeError, match='stage Hidden cannot be saved'):
        stream.state_dict()
    del epoch
    assert len(list(stream.get_epoch_iterator())) == 6


def test_batches_are_the_users_own(ahead):
    """Overwriting each changes no other and no later epoch."""
    stream, reference = ahead(max_store=2), build()
    for _ in range(3):
        for expected, actual in zip(reference.get_epoch_iterator(),
                                    stream.get_epoch_iterator(), strict=True):
            assert_same([expected], [actual])
            for data in actual:
                assert data.flags.writeable
                assert data.flags.aligned
                data[...] = -1


def test_consumer_may_keep_every_batch(ahead):
    """More than the memory holds: no deadlock, nothing overwritten."""
    stream = ahead(max_store=2, max_bytes=2 << 20)
    kept = list(stream.get_epoch_iterator())
    assert_same(build().get_epoch_iterator(), kept)
    again = list(stream.get_epoch_iterator())
    assert_same(build().get_epoch_iterator(), kept)
    assert len(again) == 6


def test_batches_outlive_the_stream():
    """Leased memory stays mapped until its arrays die."""
    stream = MultiProcessing(build(), start_method='fork')
    kept = [batch[0][1:] for batch in stream.get_epoch_iterator()]
    stream.close()
    del stream
    gc.collect()
    for (expected, _), actual in zip(
            build().get_epoch_iterator(), kept, strict=True):
        numpy.testing.assert_array_equal(expected[1:], actual)


def test_batches_too_large_for_the_memory_are_an_error(ahead):
    """It has the numbers."""
    epoch = ahead(max_bytes=100000).get_epoch_iterator()
    with pytest.raises(MemoryError, match='do not fit into the 100000 bytes'):
        next(epoch)


@pytest.mark.parametrize('keep', [
    '', 'it', 'a view', 'what it was made of'])
def test_last_stage_may_write_where_the_consumer_reads(ahead, keep):
    """Memory that the consumer keeps looking at is copied."""
    stream, reference = ahead(Keeper(build(), keep)), Keeper(build(), keep)
    for _ in range(3):
        for expected, actual in zip(reference.get_epoch_iterator(),
                                    stream.get_epoch_iterator(), strict=True):
            assert_same([expected], [actual])
            actual[0][...] = -5


def test_any_kind_of_data_takes_some_path(ahead):
    """Data are ragged, objects, bytes, empty, scalars, or in Fortran order."""
    def inner():
        return Shapes(DataStream(IndexableDataset(list(range(5))),
                                 iteration_scheme=SequentialExampleScheme(5)))
    for expected, actual in zip(
            inner().get_epoch_iterator(),
            ahead(inner()).get_epoch_iterator(), strict=True):
        for one, other in zip(expected[0], actual[0], strict=True):
            numpy.testing.assert_array_equal(one, other)
        assert expected[1] == actual[1]
        assert actual[2].shape == (0, 3)
        assert expected[3:5] == actual[3:5]
        assert type(actual[4]) is numpy.float32
        assert actual[5].flags.f_contiguous
        numpy.testing.assert_array_equal(expected[5], actual[5])


def test_many_small_batches_come_in_order(ahead):
    """They travel in the messages."""
    stream = ahead(DataStream(
        IndexableDataset(list(range(3000))),
        iteration_scheme=SequentialExampleScheme(3000)), max_store=1000)
    assert [(number,) for number in range(3000)] == list(
        stream.get_epoch_iterator())


def test_parent_makes_no_epoch_of_its_own(ahead):
    """The order and the file are not touched in this process."""
    inner = build()
    before = inner.data_stream.iteration_scheme.rng.get_state()[1].copy()
    stream = ahead(inner)
    list(stream.get_epoch_iterator())
    assert not hasattr(stream, 'child_epoch_iterator')
    numpy.testing.assert_array_equal(
        before, inner.data_stream.iteration_scheme.rng.get_state()[1])


def test_worker_starts_with_the_first_epoch_iterator(ahead):
    """Making the stream starts none."""
    stream = ahead()
    assert multiprocessing.active_children() == []
    epoch = stream.get_epoch_iterator()
    assert len(multiprocessing.active_children()) == 1
    assert len(list(epoch)) == 6


def test_stream_that_is_dropped_ends_its_worker():
    """Garbage collection leaves no process."""
    stream = MultiProcessing(build(), start_method='fork')
    epoch = stream.get_epoch_iterator()
    next(epoch)
    del stream, epoch
    gc.collect()
    assert multiprocessing.active_children() == []


def test_closing_twice_is_harmless_and_leaves_no_descriptor(ahead):
    """No process and no file descriptor is left."""
    list(ahead().get_epoch_iterator())
    gc.collect()
    before = set(os.listdir('/proc/self/fd'))
    for _ in range(3):
        stream = MultiProcessing(build(), start_method='fork')
        batch = next(stream.get_epoch_iterator())
        stream.close()
        stream.close()
        del batch
    del stream
    gc.collect()
    assert set(os.listdir('/proc/self/fd')) == before


def test_iterators_in_two_threads(ahead):
    """Each sees its whole epoch."""
    stream = ahead(build().data_stream, max_store=2)
    results = {}

    def read(name):
        results[name] = sorted(numpy.concatenate(
            [batch[1] for batch in stream.get_epoch_iterator()]))

    threads = [threading.Thread(target=read, args=(name,))
               for name in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {name: list(range(24)) for name in range(3)}


def test_stream_used_in_a_fork_of_the_consumer_gets_its_own_worker(ahead):
    """The child neither talks to the parent's worker nor ends it."""
    stream = ahead()
    epoch = stream.get_epoch_iterator()
    expected = build().get_epoch_iterator()
    first = next(epoch)
    child = multiprocessing.get_context('fork').Process(
        target=_use_in_child, args=(stream, epoch))
    child.start()
    child.join()
    assert child.exitcode == 0
    assert_same(expected, [first, *epoch])


def _use_in_child(stream, epoch):
    with pytest.raises(WorkerError, match='make a new epoch iterator'):
        next(epoch)
    assert len(list(stream.get_epoch_iterator())) == 6
    stream.close()


def _run(script, *arguments, **kwargs):
    """Start a script that can import these tests."""
    return subprocess.Popen(
        [sys.executable, '-c', textwrap.dedent(script), *arguments],
        stdout=subprocess.PIPE, text=True,
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)},
        **kwargs)


HEAD = """
    import os, signal, sys, time
    from support.process_pipelines import build
    from fuel.transformers import MultiProcessing
    def stay():
        while True:
            time.sleep(0.1)
    if __name__ == '__main__':
        stream = MultiProcessing(build(), start_method='fork')
        epoch = stream.get_epoch_iterator()
        next(epoch)
        print(*stream.worker_pids, flush=True)
"""


def _is_alive(pid):
    try:
        with open(f'/proc/{pid}/stat') as file:
            return file.read().rpartition(')')[2].split()[0] != 'Z'
    except (FileNotFoundError, ProcessLookupError):
        # The second where it is reaped between the two calls.
        return False


def _wait_for_end(pid):
    wait_until(lambda: not _is_alive(pid), 'the end of the worker')


@pytest.mark.parametrize('number', [signal.SIGKILL, signal.SIGTERM])
def test_worker_ends_with_its_parent(number):
    """A parent that ends in any way leaves no orphan."""
    process = _run(HEAD + '        stay()')
    worker = int(process.stdout.readline())
    process.send_signal(number)
    process.communicate()
    _wait_for_end(worker)


@pytest.mark.skipif(not hasattr(os, 'pidfd_open'), reason='asks Linux')
def test_stopped_worker_ends_though_its_fork_server_is_gone():
    """All processes that the server has started seem to have ended with it."""
    process = _run("""
        import os, signal
        from multiprocessing import forkserver
        from support.process_pipelines import build
        from fuel.transformers import MultiProcessing
        if __name__ == '__main__':
            stream = MultiProcessing(build(), start_method='forkserver')
            next(stream.get_epoch_iterator())
            worker, = stream.worker_pids
            os.kill(worker, signal.SIGSTOP)
            os.kill(forkserver._forkserver._forkserver_pid, signal.SIGKILL)
            print(worker, flush=True)
            stream.close()
            print('closed', flush=True)
    """)
    worker = int(process.stdout.readline())
    try:
        assert process.stdout.readline() == 'closed\n'
        _wait_for_end(worker)
    finally:
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGCONT)
        process.communicate(timeout=30)


@pytest.mark.parametrize('end', ['', 'sys.exit(3)', 'del stream',
                                 'raise RuntimeError'])
def test_interpreter_exit_leaves_no_worker(end):
    """The interpreter does not wait for a worker either."""
    process = _run(HEAD + f'        {end}', stderr=subprocess.DEVNULL)
    worker = int(process.stdout.readline())
    process.communicate(timeout=30)
    _wait_for_end(worker)


@pytest.mark.parametrize('method', METHODS)
def test_worker_ends_while_a_module_is_imported(method):
    """The collector may run in the middle of an import of what ends it."""
    process = _run("""
        import gc, sys
        from support.process_pipelines import build
        from fuel.transformers import MultiProcessing
        def leave(frame, event, argument):
            if frame.f_code.co_filename.endswith(
                    'multiprocessing/connection.py'):
                held.clear()
                gc.collect()
        if __name__ == '__main__':
            stream = MultiProcessing(build(), start_method=sys.argv[1])
            held = [stream, stream.get_epoch_iterator()]
            print(*stream.worker_pids, flush=True)
            del stream
            loaded = set(sys.modules)
            sys.settrace(leave)
            import multiprocessing.connection
            sys.settrace(None)
            held.clear()
            gc.collect()
            print(set(sys.modules) - loaded, flush=True)
            sys.stdin.read()
    """, method, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    _wait_for_end(int(process.stdout.readline()))
    assert process.communicate(timeout=30) == ('set()\n', '')


@pytest.mark.parametrize('kind', ['worker', 'workers', 'server'])
def test_daemon_thread_that_waits_at_exit_says_nothing(kind):
    """The end of the workers below the thread is not an error, and no hang."""
    process = _run("""
        import sys, threading, time
        from support.process_pipelines import Slow, build
        from fuel.server import Server
        from fuel.streams import ServerDataStream
        from fuel.transformers import MultiProcessing
        def read():
            for _ in epoch:
                got.set()
        if __name__ == '__main__':
            slow = Slow(build().data_stream)
            if sys.argv[1] == 'server':
                server = Server(slow, port=0)
                server.start()
                stream = ServerDataStream(('x', 'y'), port=server.port)
            else:
                stream = MultiProcessing(
                    slow, num_workers=1 + (sys.argv[1] == 'workers'))
            epoch = stream.get_epoch_iterator()
            got = threading.Event()
            threading.Thread(target=read, daemon=True).start()
            got.wait()
            time.sleep(0.1)
    """, kind, stderr=subprocess.PIPE)
    assert process.communicate(timeout=50) == ('', '')
    assert process.returncode == 0


def test_interrupt_reaches_the_consumer_alone():
    """Ctrl-C goes to the whole group; the worker lets the consumer decide."""
    process = _run(HEAD + """
        try:
            print('ready', flush=True)
            stay()
        except KeyboardInterrupt:
            print(len(list(epoch)), flush=True)
    """, start_new_session=True)
    worker = int(process.stdout.readline())
    assert process.stdout.readline() == 'ready\n'
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate(timeout=30)[0] == '5\n'
    _wait_for_end(worker)


def test_background_process_fills_a_queue():
    """The part as documented: main() in a process of the caller."""
    background = BackgroundProcess(build(), 3)
    process = multiprocessing.get_context('fork').Process(
        target=background.main, daemon=True)
    process.start()
    reference = build()
    for _ in range(2):
        for expected in reference.get_epoch_iterator():
            assert_same([expected], [background.get_next_data()])
        assert background.get_next_data() is StopIteration
    background.close()
    process.join(20)
    assert process.exitcode == 0


def test_background_process_without_main_is_an_error():
    """Nobody waits for a process that was never started."""
    background = BackgroundProcess(build(), 3)
    with pytest.raises(WorkerError, match='worker process'):
        background.get_next_data()
    background.close()


def seeded(num_examples=26, batch_size=4):
    """Return a stream that several workers may share."""
    dataset = IndexableDataset({
        'features': numpy.arange(num_examples * 3000, dtype='f8').reshape(
            num_examples, 3000),
        'targets': numpy.arange(num_examples)})
    stream = DataStream(dataset, iteration_scheme=ShuffledScheme(
        num_examples, batch_size))
    return ScaleAndShift(GaussianNoise(
        stream, 0.5, which_sources=('features',), seed=4), 2, 1,
        which_sources=('features',))


@pytest.mark.parametrize('num_workers', [2, 3])
def test_several_workers_give_the_same_bit_for_bit(ahead, num_workers):
    """They do epoch after epoch, also when one is left or restored."""
    stream, reference = ahead(seeded(), num_workers=num_workers), seeded()
    for _ in range(2):
        assert_same(reference.get_epoch_iterator(),
                    stream.get_epoch_iterator())
    epoch, expected = (
        stream.get_epoch_iterator(), reference.get_epoch_iterator())
    for _ in range(4):
        assert_same([next(expected)], [next(epoch)])
    state = json.loads(json.dumps(stream.state_dict()))
    for count in (1, num_workers, 2):
        restored = ahead(seeded(), num_workers=num_workers)
        if count == num_workers:
            restored.load_state_dict(state)
            rest = seeded()
            rest.load_state_dict(state)
            assert_same(rest.get_epoch_iterator(),
                        restored.get_epoch_iterator())
    del epoch, expected
    for _ in range(2):
        assert_same(reference.get_epoch_iterator(),
                    stream.get_epoch_iterator())


def test_failure_of_one_of_several_workers_arrives(ahead):
    """It arrives in its turn."""
    stream = seeded()
    stream.transform_batch = lambda data: (
        raise_value_error() if 3 in data[1] else data)
    got, failures = 0, 0
    epoch = ahead(stream, num_workers=2).get_epoch_iterator()
    while True:
        try:
            next(epoch)
            got += 1
        except StopIteration:
            break
        except ValueError as error:
            assert 'something bad' in str(error)  # noqa: PT017
            failures += 1
    assert (got, failures) == (6, 1)


@pytest.mark.parametrize('stream, text', [
    (lambda: build(), 'draws of the stage Noise depend .* seed='),
    (lambda: DataStream(IterableDataset([1, 2])), 'is read in order'),
    (lambda: Filter(seeded(), lambda _: True), 'stage Filter does not make'),
    (lambda: Shapes(seeded()), 'stage Shapes does not make')])
def test_pipelines_that_cannot_be_shared_are_refused(stream, text):
    """The error names the stage, and the remedy."""
    with pytest.raises(ValueError, match=text):
        MultiProcessing(stream(), num_workers=2)


def test_data_stream_is_not_told_to_come_behind_the_workers():
    """It reads no stream that they could make."""
    with pytest.raises(ValueError, match=(
            'DataStream over IterableDataset is read in order, so several '
            'workers cannot share it: give it an iteration scheme, or use '
            'num_workers=1$')):
        MultiProcessing(DataStream(IterableDataset([1, 2])), num_workers=2)
