"""The status of a server: its clients, and the stages of its pipeline."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from fuel.export.prometheus import Labels, Sample, samples_of
from fuel.server.connections import ClientConnection
from fuel.server.dispatch import ServedEpoch
from fuel.typing import StreamLike
from fuel.wire.messages import ClientStatus

# For each number of a server: its name for Prometheus, whether it grows, and a
# line of help.
_NAMES = {
    'batches': ('batches', True, 'Batches that the server made'),
    'bytes': ('bytes', True, 'Bytes of the batches that the server sent'),
    'errors': ('errors', True, 'Errors that the server met in its pipeline'),
    'epochs': ('epochs', True, 'Epochs that the server began'),
    'dropped messages': (
        'dropped.messages', True, 'Messages that the server did not take'),
    'dropped connections': (
        'dropped.connections', True,
        'Connections that the server did not take'),
    'seconds waiting on the pipeline': (
        'pipeline.wait.seconds', True,
        'Seconds that the server waited for its pipeline'),
    'seconds waiting on clients': (
        'clients.wait.seconds', True,
        'Seconds that the server waited for its clients'),
    'clients': ('clients', False, 'Clients that the server has'),
    'local clients': (
        'local.clients', False,
        'Clients on this host, to which the server lends shared memory'),
    'queue': (
        'queue.items', False,
        'Batches that the server sent and that no user has got')}

_OF_CLIENTS = {
    'batches': 'Batches that the user of the client got',
    'lag': 'Batches that were sent and that its user has not got',
    'hwm': 'How many these may be',
    'connected.seconds': 'Seconds since it connected',
    'wait.seconds': 'Seconds that its user has waited for batches',
    'waiting': 'Whether its user waits for a batch',
    'busy': 'Whether it has all batches that it may have'}


def clients_of(connections: Iterable[ClientConnection],
               epoch: ServedEpoch | None) -> Iterator[ClientStatus]:
    """Yield the status of each client. Any thread may call this."""
    for one in connections:
        member = None if epoch is None else epoch.members.get(one.client)
        yield ClientStatus(
            # Only half of the name: a peer that knows the whole name could
            # replace the client.
            one.client[:len(one.client) // 2], one.rank, one.is_local,
            one.connected(),
            one.num_delivered,
            0 if member is None else max(0, len(member.account.pending)),
            one.hwm, member is not None and member.is_waiting,
            one.host, one.pid, one.waited())


def samples_of_server(numbers: Mapping[str, object],
                      clients: Iterable[ClientStatus],
                      stream: StreamLike) -> Iterator[Sample]:
    """Yield the metrics of a server, its clients and its stages for
    Prometheus."""
    for key, (name, grows, text) in _NAMES.items():
        value = numbers[key]
        assert isinstance(value, (int, float))
        yield Sample(f'fuel.server.{name}', grows, {}, value, text)
    for one in clients:
        labels: Labels = {'client': one.client, 'host': one.host or None,
                          'pid': one.pid or None, 'rank': one.rank}
        for name, grows, value in (
                ('batches', True, one.batches), ('lag', False, one.lag),
                ('hwm', False, one.hwm),
                ('connected.seconds', False, one.seconds),
                ('wait.seconds', True, one.waited),
                ('waiting', False, int(one.is_waiting)),
                # The client has as many batches as it may have, and its user
                # receives none.
                ('busy', False, int(one.lag >= one.hwm))):
            yield Sample(f'fuel.server.client.{name}', grows, labels, value,
                         _OF_CLIENTS[name])
    yield from samples_of(stream, {})
