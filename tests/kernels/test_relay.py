"""The relay between clients and the server's own socket."""
import os
import resource
import select
import signal
import socket
import threading
import time

import pytest
from support.waiting import wait_until

from fuel.kernels.relay import Relay

pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.skipif(os.name == 'nt', reason='no server runs there')]

SHARE = 1 << 16


class World:
    """A relay, and the socket to which it connects its clients."""

    def __init__(self, path, most, budget):
        self.inner = socket.socket(socket.AF_UNIX)
        self.inner.bind(path)
        self.inner.listen()
        outer = socket.create_server(('127.0.0.1', 0))
        self.address = outer.getsockname()
        self.relay = Relay(outer.detach(), path.encode(), most, budget)
        self.thread = threading.Thread(target=self.relay.run)
        self.thread.start()
        self.made = []

    def connect(self):
        """Return both ends of a client's connection."""
        client = socket.create_connection(self.address)
        server = self.inner.accept()[0]
        self.made += [client, server]
        server.settimeout(20)
        return client, server

    def close(self):
        """Close all sockets, then the relay."""
        for end in (*self.made, self.inner):
            end.close()
        self.relay.stop()
        self.thread.join()


@pytest.fixture
def make(tmp_path):
    """Return a maker of a relay, which is stopped at the end."""
    made = []

    def make_world(most=10, budget=1 << 24):
        made.append(World(str(tmp_path / 'inner'), most, budget))
        return made[-1]

    yield make_world
    for world in made:
        world.close()


def send_until_stopped(client):
    """Return how many bytes are taken before nothing has been for a while."""
    client.settimeout(0.3)
    count = 0
    try:
        while True:
            count += client.send(bytes(1 << 16))
    except TimeoutError:
        return count


def receive(end, count):
    """Receive so many bytes."""
    while count:
        count -= len(end.recv(min(count, 1 << 16)))


def pass_on(source, target, count):
    """Send so many bytes, and wait until all of them are received."""
    sender = threading.Thread(target=source.sendall, args=(bytes(count),))
    sender.start()
    receive(target, count)
    sender.join()


def events_of(end):
    """Return the events of a socket, as `poll` has them."""
    poller = select.poll()
    poller.register(end, 0)
    return sum(events for _, events in poller.poll(0))


def test_bytes_pass_both_ways_at_their_pace(make):
    """A side that writes more than is read waits, and nothing is lost."""
    client, server = make().connect()
    data = os.urandom(1 << 22)
    for source, target in ((client, server), (server, client)):
        sender = threading.Thread(target=source.sendall, args=(data,))
        sender.start()
        parts = []
        while sum(map(len, parts)) < len(data):
            parts.append(target.recv(1 << 16))
        sender.join()
        assert b''.join(parts) == data


def test_relay_that_cannot_poll_waits(make):
    """A relay without a free descriptor sleeps, and goes on with one."""
    client, server = make().connect()
    client.sendall(b'before')
    receive(server, 6)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        begin = time.process_time()
        time.sleep(1)
        assert time.process_time() - begin < .1
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    client.sendall(b'behind')
    receive(server, 6)


def test_end_of_a_client_that_is_gone_is_read_after_all_it_sent(make):
    """The end comes after all data: the inner connection is closed last."""
    client, server = make().connect()
    count = send_until_stopped(client)
    client.close()
    assert not events_of(server)
    receive(server, count)
    assert server.recv(1) == b''
    assert not events_of(server) & select.POLLHUP


def test_end_of_the_server_is_the_end_of_the_client(make):
    """All that was sent before arrives."""
    client, server = make().connect()
    server.sendall(b'x' * 1000)
    server.close()
    receive(client, 1000)
    assert client.recv(1) == b''


def test_bytes_of_all_clients_together_are_limited(make):
    """The limit is beyond the small share of each; credit lets more
    through."""
    world = make(budget=1 << 18)
    client, server = world.connect()
    other, other_end = world.connect()
    client.settimeout(20)
    world.relay.credit(1 << 18)
    pass_on(client, server, 1 << 18)
    other.sendall(b'x' * SHARE)
    receive(other_end, SHARE)
    for _ in range(2):
        world.relay.reset()
        pass_on(client, server, 1 << 18)


def test_client_that_sends_most_for_nothing_is_cut_off(make):
    """It is if all together send too much; the others stay."""
    world = make(budget=1 << 18)
    client, server = world.connect()
    other, other_end = world.connect()
    stopped = threading.Event()

    def drain():
        while server.recv(1 << 16):
            world.relay.reset()
        stopped.set()

    thread = threading.Thread(target=drain)
    thread.start()
    client.settimeout(20)
    with pytest.raises(ConnectionError):
        while True:
            client.sendall(bytes(1 << 16))
    assert stopped.wait(20)
    thread.join()
    other.sendall(b'x')
    receive(other_end, 1)


def test_newcomer_takes_the_place_of_one_that_was_sent_nothing(make):
    """The oldest of these goes; a client that was sent something stays."""
    world = make(most=3)
    (served, served_end), (silent, silent_end), _ = (
        world.connect() for _ in range(3))
    served_end.sendall(b'x')
    receive(served, 1)
    newcomer = socket.create_connection(world.address)
    silent_end.settimeout(20)
    assert silent.recv(1) == b''
    assert silent_end.recv(1) == b''
    silent_end.close()
    newcomer_end = world.inner.accept()[0]
    world.made += [newcomer, newcomer_end]
    newcomer.sendall(b'x')
    receive(newcomer_end, 1)
    served.sendall(b'x')
    receive(served_end, 1)


def test_port_is_free_once_it_is_unbound(make):
    """Clients that are connected stay so."""
    world = make()
    client, server = world.connect()
    wait_until(world.relay.unbind)
    socket.create_server(world.address).close()
    client.sendall(b'x')
    receive(server, 1)


def test_port_is_free_although_a_forked_process_has_it(make):
    """A worker that outlives the server takes no clients in its place."""
    world = make()
    child = os.fork()
    if not child:
        signal.pause()
    try:
        wait_until(world.relay.unbind)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(world.address)
        socket.create_server(world.address).close()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
