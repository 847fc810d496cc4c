"""Messages arrive whole, in order, and to the last."""
import os
import signal
import subprocess
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.processes import run_python

from fuel.transport.channel import Channel, ChannelClosed, Message, Peer

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def ends():
    """Return two connected channels, which are closed afterwards."""
    ends = [Channel(end) for end in Channel.pair()]
    yield ends
    for end in ends:
        end.close()


def test_descriptors_of_which_only_some_fit_are_closed():
    """A process of its own receives them: nothing else opens files there."""
    status, out, errors = run_python('-c', """
import os, resource
from fuel.transport.channel import Channel, Message
ours, theirs = map(Channel, Channel.pair())
theirs.send(*[Message(1, number, descriptor=0) for number in range(3)])
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
taken = [os.dup(0) for _ in range(50)]
resource.setrlimit(resource.RLIMIT_NOFILE, (max(taken) + 1, hard))
os.close(taken.pop())
try:
    ours.receive(20)
except OSError as error:
    print(error)
print(os.dup(0) == max(taken) + 1)
ours.close()
theirs.close()
""")
    assert (0, b'') == (status, errors)
    assert b'ulimit -n' in out
    assert out.endswith(b'True\n')


def receive_all(channel):
    """Return messages until the other side is gone."""
    received = []
    with pytest.raises(ChannelClosed):
        while True:
            message = channel.receive(20)
            assert message is not None
            received.append(message)
    return received


@pytest.mark.parametrize('is_watched', [True, False])
def test_messages_of_a_dead_process_are_received_to_the_last(is_watched):
    """The dead process has sent more of them than one read takes."""
    ours, theirs = Channel.pair()
    child = os.fork()
    if not child:
        channel = Channel(theirs)
        for number in range(20):
            channel.send(Message(1, number, payload=bytes([number]) * 9000))
        os._exit(0)
    theirs.close()
    channel = Channel(ours)
    if is_watched:
        channel.watch(Peer(child))
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    messages = receive_all(channel)
    assert list(range(20)) == [message.epoch for message in messages]
    assert all(message.payload == bytes([message.epoch]) * 9000
               for message in messages)
    os.waitpid(child, 0)
    channel.close()


@pytest.fixture
def watching(monkeypatch, ends):
    """Return the ends of a channel, and a function that ends the process that
    one of them watches without a descriptor."""
    monkeypatch.delattr(os, 'pidfd_open', raising=False)
    child = subprocess.Popen(['sleep', '600'])
    ends[0].watch(Peer(child.pid))

    def end():
        child.kill()
        child.wait()

    yield *ends, end
    end()


def test_silence_of_a_living_process_ends_nothing(watching):
    """Nothing is received, and then something is."""
    ours, theirs, _ = watching
    assert ours.receive(1.5) is None
    assert not ours.is_cut(0)
    theirs.send(Message(1, 7))
    assert 7 == ours.receive(20).epoch
    assert [] == ours.drain()


def test_process_without_a_descriptor_is_found_dead(watching):
    """The messages that it sent come first, whoever else has its end open."""
    ours, theirs, end = watching
    theirs.send(Message(1, 7))
    end()
    assert ours.is_cut(0)
    assert [7] == [message.epoch for message in receive_all(ours)]


def test_messages_are_drained_after_the_other_side_is_gone(ends):
    """The channel is closed after the last message."""
    ours, theirs = ends
    theirs.send(Message(1, 7), Message(1, 8))
    theirs.close()
    ours.wait(20)
    assert [7, 8] == [message.epoch for message in ours.drain()]
    with pytest.raises(ChannelClosed):
        for _ in range(3):
            ours.drain()


def test_sending_ends_with_a_process_that_does_not_read(watching):
    """A sender waits for room only while the process lives."""
    ours, _, end = watching
    end()
    with pytest.raises(ChannelClosed, match='process is gone'):
        ours.send(Message(1, 7, payload=bytes(1 << 24)))


@pytest.mark.skipif(not hasattr(os, 'pidfd_open'), reason='asks Linux')
def test_processes_are_watched_by_descriptors_of_any_number(ends):
    """A program may have many files open."""
    fcntl = pytest.importorskip('fcntl')
    process = subprocess.Popen(['sleep', '600'])
    peer = Peer(process.pid)
    first = peer.descriptor
    peer.descriptor = fcntl.fcntl(first, fcntl.F_DUPFD_CLOEXEC, 1500)
    os.close(first)
    ends[0].watch(peer)
    assert not peer.is_gone()
    process.send_signal(signal.SIGSTOP)
    peer.end(0.1)
    assert process.wait(20) == -signal.SIGKILL
    assert peer.is_gone()
    peer.end(0.1)


def test_descriptor_beyond_the_limit_is_an_error(ends):
    """Later messages would get the descriptors of others."""
    resource = pytest.importorskip('resource')
    sender, receiver = ends
    reading, writing = os.pipe()
    free = os.dup(reading)
    os.close(free)
    sender.send(Message(1, 7, descriptor=reading), Message(1, 8))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
    try:
        with pytest.raises(OSError, match='as many files open as it may'):
            receiver.receive(20)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    with pytest.raises(ChannelClosed):
        receiver.receive(20)
    os.close(reading)
    os.close(writing)


def test_who_posts_waits_for_nobody(ends):
    """Messages that do not fit follow in order, before what is sent."""
    sender, receiver = ends
    for number in range(1000):
        sender.post(Message(1, number, payload=bytes(1000)))
    thread = threading.Thread(target=lambda: [
        numbers.append(receiver.receive(20).epoch) for _ in range(2002)])
    numbers = []
    thread.start()
    # A receive that times out also sends.
    assert sender.receive(1) is None
    for number in range(1000, 2000):
        sender.post(Message(1, number, payload=bytes(1000)))
    reading, writing = os.pipe()
    sender.send(Message(2, 2000, payload=bytes(1 << 20), descriptor=reading))
    sender.post(Message(1, 2001))
    thread.join(20)
    assert [*range(2002)] == numbers
    os.close(reading)
    os.close(writing)
    receiver.close()
    with pytest.raises(ChannelClosed):
        sender.post(Message(1, 7))


def test_large_messages_of_two_threads_do_not_mix(ends):
    """A message that does not fit into the connection is sent in parts."""
    sender, receiver = ends
    count, size = 10, 1 << 20

    def send(kind):
        for number in range(count):
            sender.send(Message(kind, number, payload=bytes([kind]) * size))

    threads = [threading.Thread(target=send, args=(kind,))
               for kind in (1, 2, 3)]
    for thread in threads:
        thread.start()
    numbers = {1: [], 2: [], 3: []}
    for _ in range(count * len(threads)):
        message = receiver.receive(20)
        assert message.payload == bytes([message.kind]) * size
        numbers[message.kind].append(message.epoch)
    for thread in threads:
        thread.join()
    assert [list(range(count))] * 3 == list(numbers.values())


@settings(max_examples=50)
@given(st.lists(st.tuples(st.binary(max_size=100), st.booleans(),
                          st.integers(0, 1 << 17)), max_size=12))
def test_messages_with_and_without_descriptors_arrive(kinds):
    """Each descriptor comes with the message that it was sent with."""
    ends = [Channel(end) for end in Channel.pair()]
    reading, writing = os.pipe()
    sent = [Message(number, 7, len(data), size, payload=data + bytes(size),
                    descriptor=reading if has_descriptor else None)
            for number, (data, has_descriptor, size) in enumerate(kinds)]
    sender = threading.Thread(
        target=lambda: [ends[0].send(message) for message in sent])
    sender.start()
    try:
        for message in sent:
            received = ends[1].receive(20)
            assert message[:-1] == received[:-1]
            assert (message.descriptor is None) == (
                received.descriptor is None)
            if received.descriptor is not None:
                os.write(writing, b'x')
                assert b'x' == os.read(received.descriptor, 1)
                os.close(received.descriptor)
    finally:
        sender.join()
        for end in ends:
            end.close()
        os.close(reading)
        os.close(writing)
