"""Ctrl-C in a loop over a worker: no batch is lost, repeated or late."""
import json
import multiprocessing
import os
import threading
import time
from operator import itemgetter

import numpy
import pytest
from support.interrupting import alarms, collect
from support.process_pipelines import build
from support.waiting import wait_until

from fuel.datasets import IndexableDataset
from fuel.exceptions import WorkerError
from fuel.schemes import (
    ConstantScheme, SequentialScheme, ShuffledScheme)
from fuel.streams import DataStream
from fuel.transformers import Mapping, MultiProcessing
from fuel.transport.channel import Channel
from fuel.workers.team import RemoteEpoch
from fuel.workers.worker import Worker

pytestmark = [
    pytest.mark.timeout(60),
    # In what the interpreter calls by itself, nobody can catch it.
    pytest.mark.filterwarnings(
        'ignore::pytest.PytestUnraisableExceptionWarning')]


def numbered(num_batches):
    """Return a stream whose batches are large enough for slots."""
    return DataStream(
        IndexableDataset({'x': numpy.ones((num_batches, 5000), 'float32'),
                          'y': numpy.arange(num_batches)}),
        iteration_scheme=SequentialScheme(num_batches, 1))


def numbers_of(epoch):
    """Return an iterator over the numbers of batches, without Python."""
    return map(int, map(itemgetter(0), map(itemgetter(1), epoch)))


@pytest.mark.parametrize('num_workers', [1, 2])
def test_ctrl_c_at_any_moment(num_workers):
    """Each batch comes once, in order, and the state knows which did."""
    # Not here: Ctrl-C in the middle of a fork leaves locks of Python's own.
    process = multiprocessing.get_context('fork').Process(
        target=read_with_interrupts, args=(num_workers,))
    process.start()
    process.join()
    assert process.exitcode == 0


def read_with_interrupts(num_workers):
    """Read two epochs."""
    with MultiProcessing(numbered(700), num_workers=num_workers,
                         start_method='fork') as stream:
        for seed in range(2):
            epoch = iter(stream.get_epoch_iterator())

            def check(seen, epoch=epoch):
                assert epoch.state_dict()['position'] == len(seen)

            seen = collect(numbers_of(epoch), check, seed)
            assert seen == list(range(700))


class Interrupting:
    """Raises KeyboardInterrupt after, or before, a call of a method."""

    def __init__(self, monkeypatch, owner, name, before, call):
        self.method = getattr(owner, name)
        self.before = before
        self.call = call
        self.calls = 0
        self.process = os.getpid()
        monkeypatch.setattr(
            owner, name, lambda *args, **kwargs: self.run(*args, **kwargs))

    def run(self, *args, **kwargs):
        """Stand for the method."""
        self.calls += os.getpid() == self.process
        if self.calls != self.call or os.getpid() != self.process:
            return self.method(*args, **kwargs)
        if not self.before:
            self.method(*args, **kwargs)
        raise KeyboardInterrupt


PLACES = [(Channel, '_split'), (Worker, '_load'), (Worker, '_ask_for_more'),
          (Worker, 'receive'), (MultiProcessing, 'get_data')]


@pytest.mark.parametrize('before', [True, False])
@pytest.mark.parametrize('call', [1, 3])
@pytest.mark.parametrize(('owner', 'name'), PLACES)
def test_ctrl_c_in_each_step(monkeypatch, owner, name, before, call):
    """Ctrl-C in any step, also of the first batch, loses no batch."""
    expected, found = build(), []
    # One at a time, so that messages do not arrive together.
    with MultiProcessing(build(), max_store=1,
                         start_method='fork') as stream:
        for _ in range(2):
            interrupts = 0
            Interrupting(monkeypatch, owner, name, before, call)
            epoch = stream.get_epoch_iterator()
            while True:
                try:
                    found.extend(epoch)
                except KeyboardInterrupt:
                    interrupts += 1
                else:
                    break
            assert interrupts == 1
            monkeypatch.undo()
            wanted = list(expected.get_epoch_iterator())
            assert len(found) == len(wanted)
            for batch, other in zip(found, wanted, strict=True):
                for part, other_part in zip(batch, other, strict=True):
                    numpy.testing.assert_array_equal(part, other_part)
            found.clear()


@pytest.mark.parametrize('before', [True, False])
@pytest.mark.parametrize('num_workers', [1, 2])
@pytest.mark.parametrize(('owner', 'name'), [
    (RemoteEpoch, 'open'), (Worker, 'start'), (Worker, '_handle')])
def test_state_is_known_after_ctrl_c_at_the_start(
        monkeypatch, owner, name, before, num_workers):
    """Its first answer may be lost."""
    def build_shuffled():
        return DataStream(
            IndexableDataset(list(range(20))), iteration_scheme=ShuffledScheme(
                20, 4, rng=numpy.random.RandomState(2)))

    expected = [list(batch) for batch, in build_shuffled()]
    with MultiProcessing(build_shuffled(), num_workers=num_workers,
                         start_method='fork') as stream:
        Interrupting(monkeypatch, owner, name, before, 1)
        epoch = None
        with pytest.raises(KeyboardInterrupt):
            epoch = stream.get_epoch_iterator()
            next(epoch)
        monkeypatch.undo()
        state = json.loads(json.dumps(stream.state_dict()))
        if epoch is None:
            epoch = iter(stream)
        assert expected == [list(batch) for batch, in epoch]
        with build_shuffled() as restored:
            restored.load_state_dict(state)
            assert expected == [list(batch) for batch, in restored]


def test_state_is_an_error_if_no_worker_starts_after_ctrl_c(monkeypatch):
    """The stream is closed all the same."""
    def refuse(*args):
        raise BlockingIOError('no more processes')

    with MultiProcessing(numbered(4), start_method='fork') as stream:
        Interrupting(monkeypatch, RemoteEpoch, 'open', True, 1)
        with pytest.raises(KeyboardInterrupt):
            next(stream.get_epoch_iterator())
        monkeypatch.setattr(Worker, 'start', refuse)
        with pytest.raises(BlockingIOError, match='no more processes'):
            stream.state_dict()
        stream.close()
        assert not stream.worker_pids
        with pytest.raises(BlockingIOError, match='no more processes'):
            stream.state_dict()


def wait(data):
    """Take longer than the test."""
    time.sleep(50)
    return data


def test_ctrl_c_while_waiting_keeps_the_worker():
    """Nothing was under way, so there is nothing to take up."""
    stream = Mapping(numbered(3), wait)
    with MultiProcessing(stream, start_method='fork') as ahead:
        epoch = ahead.get_epoch_iterator()
        pids = ahead.worker_pids
        for _ in range(3):
            with alarms() as interrupt_in:
                interrupt_in(0.3)
                with pytest.raises(KeyboardInterrupt):
                    next(epoch)
        assert ahead.worker_pids == pids


def test_ctrl_c_where_no_position_is_known(monkeypatch):
    """The epoch cannot go on, and the error says why."""
    class Scheme(ConstantScheme):
        def get_request_iterator(self):
            return iter([[0], [1], [2]])

    stream = DataStream(IndexableDataset(numpy.arange(3)),
                        iteration_scheme=Scheme(1))
    with MultiProcessing(stream, start_method='fork') as ahead:
        epoch = ahead.get_epoch_iterator()
        next(epoch)
        Interrupting(monkeypatch, Worker, '_load', True, 1)
        with pytest.raises(KeyboardInterrupt):
            next(epoch)
        monkeypatch.undo()
        with pytest.raises(TypeError, match='Scheme cannot be saved') as told:
            next(epoch)
        assert any('given up' in note for note in told.value.__notes__)
        assert len(list(ahead.get_epoch_iterator())) == 3


def fail_at_second(data):
    """Fail for one batch."""
    if data[1][0] == 1:
        raise LookupError('the second')
    return data


def test_error_that_ctrl_c_hid_comes_again(monkeypatch):
    """An error that was raised is over; one that was not is raised."""
    stream = Mapping(numbered(4), fail_at_second)
    with MultiProcessing(stream, start_method='fork') as ahead:
        epoch = ahead.get_epoch_iterator()
        numbers = [int(next(epoch)[1][0])]
        Interrupting(monkeypatch, Worker, '_ask_for_more', False, 1)
        with pytest.raises(KeyboardInterrupt):
            next(epoch)
        monkeypatch.undo()
        with pytest.raises(LookupError, match='the second'):
            next(epoch)
        numbers.extend(int(batch[1][0]) for batch in epoch)
        assert numbers == [0, 2, 3]


def test_get_data_without_an_iterator():
    """Nobody says that the data came, so they count as handed out."""
    with MultiProcessing(numbered(3), start_method='fork') as ahead:
        assert [int(ahead.get_data()[1][0]) for _ in range(3)] == [0, 1, 2]


def test_close_ends_the_wait_of_another_thread():
    """The wait soon ends with an error; then the stream works again."""
    stream = Mapping(numbered(3), wait)
    with MultiProcessing(stream, start_method='fork') as ahead:
        told = []

        def read():
            with pytest.raises(WorkerError, match='by another thread') as one:
                next(ahead.get_epoch_iterator())
            told.append(one)

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        wait_until(lambda: (session := vars(ahead).get('session'))
                   and session.is_asked)
        ahead.close()
        reader.join(20)
        assert told
        stream.mapping = tuple
        assert len(list(ahead.get_epoch_iterator())) == 3
