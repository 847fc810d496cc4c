"""For which clients an epoch waits before it begins."""
import os
import subprocess
import sys
import textwrap
import threading
import time

import numpy
import pytest
from support.simulated_server import HOLD, World
from support.waiting import wait_until

from fuel.bin.fuel_server import main
from fuel.datasets import IndexableDataset
from fuel.exceptions import ServerError
from fuel.server import Server
from fuel.streams import DataStream, ServerDataStream

COUNT = 6
EVERYTHING = list(range(COUNT))
SHARED = pytest.mark.parametrize('sharing', ['split', 'all'])


def finish_first(sharing, path=None, num_clients=2):
    """Return a world, and clients that have come to the end of epoch 1."""
    world = World(path, COUNT, sharing, num_clients)
    clients = [world.add_client(rank=rank) for rank in range(num_clients)]
    for _ in range(3 * COUNT):
        for client in clients:
            client.next()
    assert all(client.has_ended for client in clients)
    return world, *clients


def wait_of(world):
    """Return what the server says that it waits for."""
    return world.server.admission.describe_wait()


def go_on(client):
    """Return whether a client gets a batch of the next epoch."""
    if client.has_ended:
        client.next_epoch()
    return client.next()


def read_on(*clients):
    """Let clients read to the end of their epoch; return what they got."""
    for _ in range(4 * COUNT):
        for client in clients:
            client.next()
    assert all(client.has_ended for client in clients)
    return sorted(number for client in clients
                  for epoch, number in client.history
                  if epoch == client.session.epoch)


@pytest.mark.parametrize('sharing', ['split', 'all', 'rank'])
def test_first_epoch_waits_for_num_clients(sharing):
    """The server waits without a limit, and its status says so."""
    world = World(None, COUNT, sharing, num_clients=2)
    one = world.add_client(rank=0)
    assert not one.next()
    world.pass_time(10 * HOLD)
    assert not one.next()
    assert wait_of(world) == (
        'the server waits for a client of each of the ranks 1: '
        "sharing='rank', num_clients=2, and the batches of a rank are for "
        'nobody else' if sharing == 'rank' else
        'the server waits for 1 more client: num_clients=2, 1 is there')
    other = world.add_client(rank=1)
    other.next()
    assert one.next()
    assert not wait_of(world)


@SHARED
def test_later_epoch_does_not_wait_for_a_client_that_closed(sharing):
    """Two later epochs go on without the client, and without a wait."""
    world, one, other = finish_first(sharing)
    one.close()
    for _ in range(2):
        assert go_on(other)
        assert read_on(other) == EVERYTHING
    assert world.now == 0


@SHARED
def test_client_that_closes_while_another_waits_lets_it_go_on(sharing):
    """The other client goes on at once."""
    world, one, other = finish_first(sharing)
    assert not go_on(other)
    assert wait_of(world) == (
        'the server waits for 1 more client of the epoch before: '
        'num_clients=2, 1 is there')
    one.close()
    assert go_on(other)
    assert world.now == 0


@SHARED
@pytest.mark.parametrize('is_in_epoch', [True, False])
def test_killed_client_is_waited_for_as_long_as_its_successor_has(
        sharing, is_in_epoch):
    """It was killed in the epoch, or after it had come to its end."""
    if is_in_epoch:
        world = World(None, COUNT, sharing, num_clients=2)
        one, other = [world.add_client() for _ in range(2)]
        while not (one.history and other.history):
            one.next()
            other.next()
        one.kill()
        for _ in range(COUNT):
            other.next()
    else:
        world, one, other = finish_first(sharing)
        one.kill()
        assert not go_on(other)
    assert wait_of(world)
    world.pass_time(HOLD - 1)
    assert other.session.epoch < 2
    world.pass_time(2)
    while not other.has_ended and other.session.epoch < 2:
        assert other.next()
    assert go_on(other)
    assert read_on(other) == EVERYTHING
    assert other.session.epoch == 2


@pytest.mark.parametrize('kills_server', [False, True])
@pytest.mark.parametrize('has_state', [True, False])
def test_successor_of_a_client_killed_between_epochs_loses_nothing(
        tmp_path, kills_server, has_state):
    """With 'all' it would miss an epoch that had begun without it."""
    world, one, other, third = finish_first(
        'all', tmp_path / 'journal', num_clients=3)
    saved = one.save()
    one.kill()
    third.close()
    if kills_server:
        world.kill_server()
        world.start_server()
    assert not go_on(other)
    world.pass_time(HOLD / 2)
    successor = world.add_client(saved if has_state else None)
    go_on(successor)
    if kills_server or not has_state:
        # The server does not know that the third had closed its stream, or
        # which client this one follows.
        assert not successor.next()
        world.pass_time(HOLD)
    assert read_on(successor, other) == sorted(2 * EVERYTHING)
    assert 2 == successor.session.epoch == other.session.epoch


def test_client_of_two_that_does_something_else_is_waited_for():
    """With 'split' it is awaited for a while, since it can come later; with
    'all' as long as it is connected."""
    for sharing in ('split', 'all'):
        world, one, other = finish_first(sharing)
        assert not go_on(other)
        world.pass_time(HOLD - 1)
        assert not other.next()
        world.pass_time(2)
        assert other.next() == (sharing == 'split')
        go_on(one)
        assert read_on(one, other) == sorted(
            EVERYTHING * (1 if sharing == 'split' else 2))


def test_time_that_another_client_has_begins_anew_in_each_epoch():
    """A wait in an earlier epoch does not shorten the time."""
    world, one, other = finish_first('split')
    for _ in range(2):
        assert not go_on(other)
        world.pass_time(HOLD - 1)
        assert not other.next()
        go_on(one)
        assert read_on(one, other) == EVERYTHING


def test_epoch_of_ranks_waits_for_each_rank():
    """A client of another rank cannot have the batches of one that left."""
    world, one, other = finish_first('rank')
    one.close()
    assert not go_on(other)
    world.pass_time(2 * HOLD)
    assert not other.next()
    assert 'each of the ranks 0: ' in wait_of(world)
    new_client = world.add_client(rank=1)
    assert not new_client.next()
    successor = world.add_client(rank=0)
    assert successor.next()
    assert other.next()


def test_epoch_of_ranks_that_has_lost_one_says_so():
    """It does so after the time for its successor."""
    world = World(None, COUNT, 'rank', num_clients=2)
    one, other = [world.add_client(rank=rank) for rank in range(2)]
    while not (one.history and other.history):
        one.next()
        other.next()
    one.kill(received=9)
    for _ in range(COUNT):
        other.next()
    assert ('that vanished, 1 of them, for 30 more seconds'
            in wait_of(world))
    world.pass_time(HOLD + 1)
    assert 'a client of each of the ranks 0: ' in wait_of(world)
    assert not other.has_ended


# With sockets and processes.

VICTIM = textwrap.dedent("""
    import sys
    from fuel.streams import ServerDataStream
    with ServerDataStream(('x',), port=int(sys.argv[1])) as stream:
        epoch = iter(stream)
        print(len(next(epoch)[0]), flush=True)
        sys.stdin.readline()
        print(sum(len(batch) for batch, in epoch), flush=True)
    """)


def serve(**kwargs):
    """Return a server of forty batches for two clients."""
    return Server(DataStream(IndexableDataset(
        {'x': numpy.arange(400)}), batch_size=10), port=0, num_clients=2,
        **kwargs)


def start_victim(server):
    """Start a process that reads one epoch, and closes its stream."""
    return subprocess.Popen(
        [sys.executable, '-c', VICTIM, str(server.port)], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)})


@pytest.mark.timeout(60)
@pytest.mark.parametrize('is_killed', [False, True])
def test_survivor_reads_the_epochs_that_follow(is_killed):
    """The other client ended after one epoch, or was killed in it."""
    with serve(reconnect=1) as server, ServerDataStream(
            ('x',), port=server.port, stalled=30) as client, \
            start_victim(server) as victim:
        epoch = iter(client)
        got = len(next(epoch)[0]) + int(victim.stdout.readline())
        if is_killed:
            victim.kill()
        else:
            victim.stdin.write('\n')
            victim.stdin.flush()
        got += sum(len(batch) for batch, in epoch)
        if not is_killed:
            got += int(victim.stdout.readline())
            assert got == 400
        for _ in range(2):
            assert sum(len(batch) for batch, in client) == 400


@pytest.mark.timeout(60)
def test_client_that_closes_while_the_server_looks_for_it_has_left():
    """Its goodbye lies there, unread, when its connection is found cut."""
    with serve() as server, \
            ServerDataStream(('x',), port=server.port) as other, \
            ServerDataStream(('x',), port=server.port) as client:
        epochs = [iter(other), iter(client)]
        threads = [threading.Thread(target=next, args=(epoch,))
                   for epoch in epochs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        service = server.service
        ping, looks, goes_on = (
            service.ping, threading.Event(), threading.Event())

        def ping_when_closed():
            looks.set()
            goes_on.wait()
            ping()

        service.ping = ping_when_closed
        looks.wait()
        name = client.state_dict()['leftover']['client']
        client.close()
        # Nothing tells when all of it has reached the server's queue.
        time.sleep(0.1)
        goes_on.set()
        account = service.scheduler.admission.epoch.ledger.accounts[name]
        wait_until(lambda: not account.is_present)
        assert account.has_left
        assert not account.deadline


@pytest.mark.timeout(60)
def test_client_and_status_say_for_whom_the_server_waits(capsys):
    """They do not say that the pipeline is stuck."""
    why = 'the server waits for 1 more client: num_clients=2, 1 is there'
    with serve() as server:
        with ServerDataStream(('x',), port=server.port,
                              stalled=0.5) as client:
            with pytest.raises(ServerError, match=why) as info:
                next(iter(client))
            assert 'Its pipeline is at' not in str(info.value)
        describe_wait = server.service.scheduler.admission.describe_wait
        wait_until(lambda: not describe_wait())
        with ServerDataStream(('x',), port=server.port) as client:
            def read():
                with pytest.raises(ServerError, match='closed'):
                    next(iter(client))

            reader = threading.Thread(target=read)
            reader.start()
            wait_until(describe_wait)
            assert main(['--status', server.address]) == 0
            client.close()
            reader.join()
    assert f'waits for clients                {why}' in capsys.readouterr().out
