"""A producer in another process, alive, failing, killed or too slow."""
import multiprocessing
import os
import signal
import socket as socket_module
import subprocess
import sys

import numpy
import pytest
import zmq

from fuel.exceptions import WorkerError
from fuel.utils import parallel
from fuel.utils.parallel import producer_consumer


@pytest.fixture(autouse=True)
def nothing_left():
    """Check that no process and no open file outlives a test."""
    before = sorted(os.listdir('/proc/self/fd'))
    yield
    assert [] == multiprocessing.active_children()
    assert len(before) >= len(os.listdir('/proc/self/fd'))


def produce_numbers(socket):
    """Push ten pairs."""
    for number in range(10):
        socket.send_pyobj((str(number), number))


def consume_ten(socket):
    """Pull ten pairs."""
    return [socket.recv_pyobj() for _ in range(10)]


EXPECTED = [(str(number), number) for number in range(10)]


def test_producer_consumer_gives_what_the_consumer_returns():
    """All messages arrive in order."""
    assert EXPECTED == producer_consumer(produce_numbers, consume_ten)


def test_producer_consumer_takes_a_free_port_for_0():
    """Servers do so; both sides meet there."""
    assert EXPECTED == producer_consumer(
        produce_numbers, consume_ten, port=0)


def test_producer_consumer_runs_the_producer_in_another_process():
    """The consumer runs here, the producer does not; closures are fine."""
    def produce(socket):
        socket.send_pyobj((os.getpid(), os.getppid(), me))

    me = os.getpid()
    child, parent, told = producer_consumer(
        produce, lambda socket: socket.recv_pyobj())
    assert me == parent == told != child


def free_port():
    """Return a port that nobody listens on."""
    with socket_module.socket() as socket:
        socket.bind(('127.0.0.1', 0))
        return socket.getsockname()[1]


def addresses():
    """Return the ways to choose where the two meet."""
    return {'port': {'port': free_port()}, 'addr': {'addr': 'tcp://127.0.0.2'},
            'both': {'addr': 'tcp://127.0.0.2', 'port': free_port()}}


@pytest.mark.parametrize('which', addresses())
def test_producer_meets_the_consumer_at_the_given_address(which):
    """`addr` reaches the producer."""
    endpoints = []

    def consume(socket):
        endpoints.append(socket.getsockopt_string(zmq.LAST_ENDPOINT))
        return consume_ten(socket)

    where = addresses()[which]
    assert EXPECTED == producer_consumer(produce_numbers, consume, **where)
    address = where.get('addr', 'tcp://127.0.0.1')
    assert endpoints[0].startswith(f'{address}:')
    if 'port' in where:
        assert endpoints[0].endswith(f':{where["port"]}')


def test_producer_consumer_private_path(monkeypatch):
    """Systems without names use a folder that nobody else can open."""
    def consume(socket):
        endpoint = socket.getsockopt_string(zmq.LAST_ENDPOINT)
        folder = os.path.dirname(endpoint.removeprefix('ipc://'))
        assert endpoint != folder
        return folder, os.stat(folder).st_mode & 0o777, consume_ten(socket)

    monkeypatch.setattr(parallel, '_HAS_NAMES', False)
    folder, mode, result = producer_consumer(produce_numbers, consume)
    assert (0o700, EXPECTED) == (mode, result)
    assert not os.path.exists(folder)


def test_producer_consumer_private_name():
    """Messages of another process of the same user do not arrive."""
    def push(endpoint):
        with zmq.Context() as context, context.socket(zmq.PUSH) as socket:
            socket.linger = 1000
            socket.connect(endpoint)
            socket.send(b'stranger')

    def consume(socket):
        endpoint = socket.getsockopt_string(zmq.LAST_ENDPOINT)
        assert endpoint.startswith('ipc://@')
        stranger = multiprocessing.get_context('fork').Process(
            target=push, args=(endpoint,))
        stranger.start()
        stranger.join()
        received = consume_ten(socket)
        assert not socket.poll(100)
        return received

    assert EXPECTED == producer_consumer(produce_numbers, consume)


def test_producer_consumer_users_context_stays_open():
    """A context that was given is not ended."""
    with zmq.Context() as context:
        for _ in range(2):
            assert EXPECTED == producer_consumer(
                produce_numbers, consume_ten, context=context)
        assert not context.closed


def test_producer_consumer_many_messages_in_parts():
    """The form of the image converters: a tuple, then bytes or a buffer,
    more of them than any queue holds."""
    number = 3000

    def produce(socket):
        for i in range(number):
            socket.send_pyobj((f'{i}.JPEG', numpy.int16(i % 7)), zmq.SNDMORE)
            socket.send(numpy.full(100, i % 256, 'uint8'))

    def consume(socket):
        for i in range(number):
            assert (f'{i}.JPEG', i % 7) == socket.recv_pyobj(zmq.SNDMORE)
            assert bytes([i % 256]) * 100 == socket.recv()
        return 'all'

    assert 'all' == producer_consumer(produce, consume)


def test_producer_consumer_never_pickles():
    """An object that needs pickling is refused where it is sent."""
    def produce(socket):
        socket.send_pyobj(object())

    with pytest.raises(TypeError, match='cannot be sent') as caught:
        producer_consumer(produce, consume_ten)
    assert 'send_pyobj(object())' in caught.value.__notes__[0]


def test_producer_consumer_received_pickle_is_not_loaded(tmp_path):
    """A pickle from a stranger is only bytes."""
    import pickle

    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / 'ran'),)

    def produce(socket):
        socket.send(pickle.dumps(Bomb()))

    with pytest.raises(ValueError, match='not an encoded value'):
        producer_consumer(produce, consume_ten)
    assert not (tmp_path / 'ran').exists()


@pytest.mark.parametrize('sent', [0, 1, 10])
def test_producer_that_raises_raises_here(sent):
    """The consumer does not hang, nor is the error lost after the last
    message."""
    def produce(socket):
        for pair in EXPECTED[:sent]:
            socket.send_pyobj(pair)
        raise LookupError('not all patch images used')

    with pytest.raises(LookupError, match='not all patch') as caught:
        producer_consumer(produce, consume_ten)
    note, = caught.value.__notes__
    assert 'In the producer process:\nTraceback' in note
    assert "raise LookupError('not all patch images used')" in note


def test_producer_that_fails_after_the_consumer_is_done_raises():
    """An error in the producer's last checks raises too."""
    consumed = multiprocessing.get_context('fork').Event()

    def produce(socket):
        produce_numbers(socket)
        assert consumed.wait(30)
        raise LookupError('not all patch images used')

    def consume(socket):
        consume_ten(socket)
        consumed.set()

    with pytest.raises(LookupError, match='not all patch'):
        producer_consumer(produce, consume)


@pytest.mark.parametrize('wait', [
    lambda socket: socket.recv(),
    lambda socket: socket.recv_multipart(),
    lambda socket: socket.recv_string(),
    lambda socket: socket.recv_pyobj(),
    lambda socket: socket.recv(copy=False),
    lambda socket: socket.poll(),
], ids=['recv', 'multipart', 'string', 'pyobj', 'frame', 'poll'])
def test_killed_producer_is_noticed_in_every_way_of_waiting(wait):
    """A consumer does not wait for a producer that was killed."""
    waits = multiprocessing.get_context('fork').Event()

    def produce(socket):
        socket.send_pyobj('first')
        waits.wait(30)
        os.kill(os.getpid(), signal.SIGKILL)

    def consume(socket):
        assert 'first' == socket.recv_pyobj()
        waits.set()
        return wait(socket)

    with pytest.raises(WorkerError, match='killed by signal 9'):
        producer_consumer(produce, consume)


def test_producer_that_sends_too_little_is_noticed():
    """A consumer does not wait for more than there is."""
    def consume(socket):
        return [socket.recv_pyobj() for _ in range(11)]

    with pytest.raises(WorkerError, match='waits for more'):
        producer_consumer(produce_numbers, consume)


@pytest.mark.parametrize('code', [0, 3])
def test_producer_that_exits_is_noticed(code):
    """A producer that leaves in an unusual way is reported, too."""
    with pytest.raises(WorkerError, match=f'with exit code {code}'):
        producer_consumer(lambda socket: os._exit(code), consume_ten)
    with pytest.raises(WorkerError, match=r'sys\.exit\(code\)'):
        producer_consumer(lambda socket: sys.exit(code), consume_ten)


def test_error_that_does_not_pickle_is_told_as_text():
    """An exception of a local class comes as a WorkerError."""
    class LocalError(Exception):
        pass

    def produce(socket):
        raise LocalError('very local')

    with pytest.raises(WorkerError, match='LocalError: very local'):
        producer_consumer(produce, consume_ten)


def test_producer_consumer_failing_consumer_ends_the_producer():
    """The consumer's own error is what is raised."""
    def produce(socket):
        while True:
            socket.send_pyobj('again')

    def consume(socket):
        socket.recv_pyobj()
        raise KeyError('consumer')

    with pytest.raises(KeyError, match='consumer'):
        producer_consumer(produce, consume)


def test_producer_consumer_endless_producer_is_ended(monkeypatch):
    """A consumer that has enough returns; the rest is dropped."""
    monkeypatch.setattr(parallel, '_END_SECONDS', 0.1)

    def produce(socket):
        while True:
            socket.send_pyobj('again')

    assert 'again' == producer_consumer(
        produce, lambda socket: socket.recv_pyobj())


def test_producer_consumer_unread_messages_do_not_delay_the_end():
    """A producer that returned is not waited for."""
    assert ('0', 0) == producer_consumer(
        produce_numbers, lambda socket: socket.recv_pyobj())


def test_failing_start_is_the_error_that_is_raised(monkeypatch):
    """Cleaning up does not need a process to clean up."""
    def start(self):
        raise OSError('no more processes')

    monkeypatch.setattr(multiprocessing.get_context('fork').Process, 'start',
                        start)
    with pytest.raises(OSError, match='no more processes'):
        producer_consumer(produce_numbers, consume_ten)


def test_producer_consumer_busy_port_raises():
    """An address that cannot be bound is said, and nothing is left."""
    with socket_module.socket() as busy:
        busy.bind(('127.0.0.1', 0))
        busy.listen()
        with pytest.raises(zmq.ZMQError, match='in use'):
            producer_consumer(produce_numbers, consume_ten,
                              port=busy.getsockname()[1])


def test_producer_consumer_bounded_waits_stay_bounded():
    """Time limits that the consumer sets are its own."""
    waited = multiprocessing.get_context('fork').Event()

    def produce(socket):
        waited.wait(30)

    def consume(socket):
        assert 0 == socket.poll(10)
        socket.rcvtimeo = 10
        for flags in (0, zmq.NOBLOCK):
            with pytest.raises(zmq.Again, match='temporarily'):
                socket.recv(flags)
        waited.set()
        return 'done'

    assert 'done' == producer_consumer(produce, consume)


def test_producer_consumer_killed_consumer_takes_the_producer_along(tmp_path):
    """A producer does not outlive the process it works for, and of the
    socket nothing is left."""
    code = ('import os, signal, time\n'
            'from fuel.utils.parallel import producer_consumer\n'
            'def produce(socket):\n'
            '    socket.send_pyobj(os.getpid())\n'
            '    time.sleep(1000)\n'
            'def consume(socket):\n'
            '    print(socket.recv_pyobj(), flush=True)\n'
            '    os.kill(os.getpid(), signal.SIGKILL)\n'
            'producer_consumer(produce, consume)\n')
    # The output ends when the last process that could write to it does.
    result = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True,
        timeout=60, check=False, env={**os.environ, 'TMPDIR': str(tmp_path)})
    assert -signal.SIGKILL == result.returncode
    assert int(result.stdout) > 0
    assert [] == os.listdir(tmp_path)
