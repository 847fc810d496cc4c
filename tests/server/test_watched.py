"""Status of a server's clients, and log of clients without keys."""
import logging
import os
import platform
import re
from collections import defaultdict
from urllib.request import urlopen

import pytest
from support.simulated_server import World

from fuel.client.measures import take_status
from fuel.datasets import IndexableDataset
from fuel.exceptions import ServerError
from fuel.server import Server
from fuel.server.status import clients_of, samples_of_server
from fuel.streams import DataStream, ServerDataStream
from fuel.wire.curve import make_keys
from fuel.wire.messages import ask_status


def numbers():
    """Return a stream of batches."""
    return DataStream(IndexableDataset(list(range(400))), batch_size=4)


def client_of(server, **options):
    """Return a client of a server."""
    return ServerDataStream(('data',), port=server.port, **options)


def test_clients_have_host_process_waits_and_whether_they_are_busy():
    """Prometheus' series and the status have them."""
    with Server(numbers(), port=0, metrics_port=0,
                metrics_host='localhost') as server:
        assert server.metrics_address.startswith('http://localhost:')
        with client_of(server, hwm=3) as client:
            next(client.get_epoch_iterator())
            page = urlopen(server.metrics_address, timeout=20).read().decode()
            status, = take_status(ask_status(server.address)).clients
    labels = f'host="{platform.node()}",pid="{os.getpid()}"'
    for name in ('batches_total', 'wait_seconds_total', 'busy', 'waiting',
                 'connected_seconds', 'lag', 'hwm'):
        line, = re.findall(rf'^fuel_server_client_{name}{{.*', page, re.M)
        assert labels in line
    assert (platform.node(), os.getpid()) == (status.host, status.pid)


def series_of(world):
    """Return some numbers of each client of a simulated server."""
    server, found = world.server, []
    for sample in samples_of_server(
            defaultdict(int),
            clients_of(server.connections.values(), server.admission.epoch),
            server.pipeline.stream):
        _, _, name = sample.name.partition('.client.')
        if name == 'batches':
            found.append({})
        if name:
            found[-1][name] = sample.value
    return [tuple(map(one.get, (
        'waiting', 'busy', 'wait.seconds', 'connected.seconds', 'batches')))
        for one in found]


def test_client_that_waits_has_the_seconds_of_the_clock():
    """It has them while its user waits, and after it got a batch."""
    world = World(None, num_batches=4, num_clients=2)
    waiting, other = world.add_client(), world.add_client()
    # The other has what is left of the epoch, and takes none.
    assert [False, True, True, True, False] == [
        one.next() for one in (waiting, other, waiting, waiting, waiting)]
    world.now += 5
    assert [(1, 0, 5, 5, 2), (0, 0, 0, 5, 1)] == series_of(world)
    # It gives one back.
    other.next()
    assert waiting.next()
    world.now += 5
    # The server hears of the third batch with the next message.
    assert (0, 0, 5, 10, 2) == series_of(world)[0]


def test_client_that_is_full_is_busy():
    """It has all batches that it may have, and waits for none."""
    world = World(None, num_batches=9, num_clients=1, hwm=3)
    client = world.add_client()
    assert client.next()
    world.now += 5
    assert [(0, 1, 0, 5, 0)] == series_of(world)
    while client.next():
        pass
    assert [(0, 0, 0, 5, 9)] == series_of(world)


def test_each_metric_has_one_line_of_help():
    """It stands before its type, as promtool wants it, and is a whole
    phrase."""
    with Server(numbers(), port=0, metrics_port=0) as server, client_of(
            server) as client:
        next(client.get_epoch_iterator())
        lines = urlopen(server.metrics_address, timeout=20).read().decode(
            ).splitlines()
    types = [number for number, line in enumerate(lines)
             if line.startswith('# TYPE')]
    assert len(types) > 30
    for number in types:
        name = lines[number].split()[2]
        text, = re.fullmatch(
            rf'# HELP {name} ([A-Z].*)', lines[number - 1]).groups()
        if not name.startswith('fuel_server_client_'):
            # The subject of the metric, once.
            group, = re.findall('^fuel_([a-z]+)', name)
            assert 1 == len(re.findall(rf'\b{group}\b', text))
            assert not re.search(r'\bit\b|[{}]', text)
    page = '\n'.join(lines)
    for name, text in (
            ('pipeline_stall_seconds_total',
             'Seconds that the consumer waited for the pipeline'),
            ('stage_stall_seconds_total',
             'Seconds that the consumer waited for the stage'),
            ('stage_work_seconds_total', 'Seconds that the stage worked'),
            ('stage_queue_size',
             'Items that the queue of the stage holds at most'),
            ('server_batches_total', 'Batches that the server made'),
            ('server_queue_items',
             'Batches that the server sent and that no user has got')):
        assert f'# HELP fuel_{name} {text}\n' in page


@pytest.mark.parametrize('has_server_keys', [True, False])
def test_keys_on_one_side_alone_are_an_error_that_says_so(
        tmp_path, caplog, has_server_keys):
    """The client's error and the server's log say so."""
    made, = make_keys(tmp_path, ['alice'])
    keys = tmp_path / 'server' if has_server_keys else None
    with Server(numbers(), port=0, curve=keys) as server:
        with (caplog.at_level(logging.WARNING),
              client_of(server, curve=None if has_server_keys else made,
                        timeout=30) as client,
              pytest.raises(ServerError, match=(
                  'it has keys, and this client has none: pass curve='
                  if has_server_keys else 'it has no keys, and this client'))):
            next(client.get_epoch_iterator())
        if has_server_keys:
            with pytest.raises(ServerError, match='pass --curve'):
                ask_status(server.address, .5)
    assert ('has no keys (curve), which' if has_server_keys
            else 'has keys (curve), which') in caplog.text
