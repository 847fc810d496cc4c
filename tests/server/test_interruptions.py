"""Ctrl-C, long batches and failures at the end: nobody waits for ever."""
import threading
from operator import itemgetter

import numpy
import pytest
import zmq
from support.interrupting import alarms, collect
from support.waiting import wait_until
from zmq.utils.monitor import recv_monitor_message

from fuel.datasets import IndexableDataset
from fuel.exceptions import ServerError
from fuel.schemes import SequentialScheme
from fuel.server import Server
from fuel.streams import DataStream, ServerDataStream
from fuel.transformers import Mapping
from fuel.wire import pack_header
from fuel.wire.header import VERSION
from fuel.wire.messages import ask_status

pytestmark = pytest.mark.timeout(60)

NUM_BATCHES = 300


def numbered(num_batches=NUM_BATCHES):
    """Return a stream whose batches are large enough for memory."""
    return DataStream(
        IndexableDataset({'x': numpy.ones((num_batches, 5000), 'float32'),
                          'y': numpy.arange(num_batches)}),
        iteration_scheme=SequentialScheme(num_batches, 1))


def number_of(batch):
    """Return which of the numbered batches this is."""
    return int(batch[1][0])


class Gate:
    """A stage that waits before each batch, once it is shut."""

    def __init__(self):
        self.is_open = threading.Event()
        self.is_open.set()
        self.reached = threading.Event()

    def __call__(self, data):
        if not self.is_open.is_set():
            self.reached.set()
            self.is_open.wait(50)
        return data


def test_ctrl_c_while_waiting_for_a_batch():
    """The iterator goes on as if nothing had happened."""
    gate = Gate()
    with Server(Mapping(numbered(20), gate), port=0) as server, \
            ServerDataStream(('x', 'y'), port=server.port,
                             reconnect=0) as client:
        epoch = client.get_epoch_iterator()
        seen = [number_of(next(epoch))]
        gate.is_open.clear()
        with alarms() as interrupt_in, pytest.raises(KeyboardInterrupt):
            interrupt_in(0.5)
            while True:
                seen.append(number_of(next(epoch)))
        assert gate.reached.is_set()
        gate.is_open.set()
        seen.extend(number_of(batch) for batch in epoch)
        assert seen == list(range(20))


@pytest.mark.parametrize('shared_memory', [True, False])
@pytest.mark.filterwarnings('ignore::pytest.PytestUnraisableExceptionWarning')
def test_ctrl_c_at_any_moment(shared_memory):
    """Each batch comes once and in order, no wait is without end, no lock
    stays taken; the position counts the delivered batches."""
    def check(seen):
        position = client.get_leftover()
        if position is not None:
            assert position['floor'] == len(seen)

    with Server(numbered(), port=0) as server, ServerDataStream(
            ('x', 'y'), port=server.port, reconnect=0, timeout=20,
            shared_memory=shared_memory) as client:
        epoch = client.get_epoch_iterator()
        # Of nothing but C functions.
        numbers = map(int, map(itemgetter(0), map(itemgetter(1), epoch)))
        assert collect(numbers, check, 5) == list(range(NUM_BATCHES))
    assert not [thread for thread in threading.enumerate()
                if thread.name == 'fuel-client']


def test_batches_asked_for_again_come_in_order():
    """They go out before new ones, for which they leave no room."""
    with Server(numbered(), port=0) as server, ServerDataStream(
            ('x', 'y'), port=server.port) as client:
        epoch = client.get_epoch_iterator()
        seen = []
        for place, batch in enumerate(epoch):
            seen.append(number_of(batch))
            if place % 7 == 0:
                # As after Ctrl-C.
                client.session.generation = 0
    assert seen == list(range(NUM_BATCHES))


def test_long_batch_keeps_nobody_from_an_answer():
    """Another thread stands in: for the status, for clients, for the end."""
    gate = Gate()
    server = Server(Mapping(numbered(20), gate), port=0)
    server.start()
    gate.is_open.clear()
    with ServerDataStream(('x', 'y'), port=server.port,
                          reconnect=0) as client, \
            ServerDataStream(('x', 'y'), port=server.port) as other:
        def read():
            with pytest.raises(ServerError, match='has vanished'):
                next(client.get_epoch_iterator())

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        assert gate.reached.wait(20)
        assert ask_status(server.address, timeout=20)['clients'] == 1
        other.connect()
        assert ask_status(server.address, timeout=20)['clients'] == 2
        server.stop(timeout=0.1)
        assert not gate.is_open.is_set()
        assert server.wait(0)
        reader.join(20)
        assert not reader.is_alive()
    gate.is_open.set()


def test_close_ends_the_wait_of_another_thread():
    """The wait ends soon, by an error that says so; afterwards the stream
    works again."""
    gate = Gate()
    with Server(Mapping(numbered(20), gate), port=0) as server, \
            ServerDataStream(('x', 'y'), port=server.port) as client:
        told = []

        def read():
            with pytest.raises(ServerError, match=r'closed?\b') as one:
                next(client.get_epoch_iterator())
            told.append(one)

        gate.is_open.clear()
        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        assert gate.reached.wait(20)
        client.close()
        reader.join(20)
        assert told
        gate.is_open.set()
        assert len(list(client.get_epoch_iterator())) == 20


@pytest.mark.parametrize('key', ['x', "x'y", ('x', 1)])
def test_key_error_is_quoted_once(key):
    """Its text is its argument in quotes already."""
    def fail(_):
        raise KeyError(key)

    with Server(Mapping(numbered(2), fail), port=0) as server, \
            ServerDataStream(('x', 'y'), port=server.port) as client:
        with pytest.raises(KeyError) as caught:
            next(client.get_epoch_iterator())
        assert caught.value.args == (
            key if isinstance(key, str) else str(key),)


def test_failure_to_close_ends_the_server(monkeypatch):
    """`wait` says so, and `stop` leaves no socket behind."""
    def fail():
        raise zmq.ZMQError(zmq.ETERM)

    server = Server(numbered(5), port=0)
    server.start()
    monkeypatch.setattr(server.service.listener, 'unbind', fail)
    server.stop()
    with pytest.raises(zmq.ZMQError):
        server.wait(20)


def test_question_of_somebody_gone_ends_nothing(monkeypatch):
    """A peer that asks and leaves before the answer disturbs nobody."""
    asked = threading.Event()

    def answer_late():
        asked.set()
        # The connection is cut by a thread of ZeroMQ's own.
        while recv_monitor_message(
                monitor)['event'] != zmq.EVENT_DISCONNECTED:
            pass
        return {}

    with Server(numbered(20), port=0) as server:
        monitor = server.service.listener.rejected.monitor
        monkeypatch.setattr(server.service, 'status', answer_late)
        with zmq.Context() as context, context.socket(zmq.DEALER) as asker:
            asker.linger = 0
            asker.connect(server.address)
            asker.send(pack_header({'type': 'status'}))
            assert asked.wait(20)
        with ServerDataStream(('x', 'y'), port=server.port) as client:
            assert len(list(client.get_epoch_iterator())) == 20
        assert server.wait(0) is False


def test_second_greeting_replaces_the_first():
    """Nobody stays in an epoch without a connection."""
    with Server(numbered(20), port=0) as server, zmq.Context() as context, \
            context.socket(zmq.DEALER) as twice:
        twice.linger = 0
        twice.connect(server.address)
        for name in 'ab':
            twice.send(pack_header({
                'type': 'hello', 'version': VERSION, 'client': name, 'hwm': 5,
                'sources': 2}))
            twice.recv_multipart()
            twice.send(pack_header({'type': 'join', 'join': 1}))
        wait_until(lambda: (epoch := server.service.scheduler.admission.epoch)
                   and 'b' in epoch.members)
        assert list(server.service.scheduler.admission.epoch.members) == ['b']


def test_client_whose_name_another_takes_connects_again():
    """It does not wait for batches that go to somebody else."""
    with Server(numbered(20), port=0) as server, \
            ServerDataStream(('x', 'n'), port=server.port, hwm=2,
                             stalled=20) as client, \
            zmq.Context() as context, \
            context.socket(zmq.DEALER) as other:
        epoch = client.get_epoch_iterator()
        found = [int(next(epoch)[1][0]) for _ in range(3)]
        name = client.state_dict()['leftover']['client']
        other.linger = 0
        other.connect(server.address)
        other.send(pack_header({
            'type': 'hello', 'version': VERSION, 'client': name, 'hwm': 5,
            'sources': 2}))
        other.recv_multipart()
        found += [int(numbers[0]) for _, numbers in epoch]
        assert list(range(20)) == found
