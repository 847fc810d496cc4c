"""What a server says of its clients, and to those that lack keys."""
import logging
import os
import platform
import re
from urllib.request import urlopen

import pytest

from fuel.client.measures import take_status
from fuel.datasets import IndexableDataset
from fuel.exceptions import ServerError
from fuel.server import Server
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
    """In the series for Prometheus, and in the status."""
    with Server(numbers(), port=0, metrics_port=0, metrics_host='') as server:
        assert server.metrics_address.startswith('http://0.0.0.0:')
        with client_of(server, hwm=3) as client:
            next(client.get_epoch_iterator())
            page = urlopen(server.metrics_address.replace(
                '0.0.0.0', '127.0.0.1'), timeout=20).read().decode()
            status, = take_status(ask_status(server.address)).clients
    labels = f'host="{platform.node()}",pid="{os.getpid()}"'
    for name in ('batches_total', 'wait_seconds_total', 'busy', 'waiting',
                 'connected_seconds', 'lag', 'hwm'):
        line, = re.findall(rf'^fuel_server_client_{name}{{.*', page, re.M)
        assert labels in line
    assert (platform.node(), os.getpid()) == (status.host, status.pid)
    assert 0 <= status.waited < 60


def test_each_metric_has_one_line_of_help():
    """Before its type, as promtool wants it."""
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
        assert re.fullmatch(rf'# HELP {name} [A-Z].*', lines[number - 1])


@pytest.mark.parametrize('has_server_keys', [True, False])
def test_keys_on_one_side_alone_are_an_error_that_says_so(
        tmp_path, caplog, has_server_keys):
    """To the client, and in the log of the server."""
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
