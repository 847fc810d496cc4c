"""A client gets what the stream itself would give: exactly, and no wait is
without end.

Epochs have an identity, nothing that was buffered is lost, several
clients share exactly, errors arrive, the server stops and listens locally.
"""
import errno
import gc
import json
import logging
import os
import pickle
import random
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy
import pytest
import zmq
from support.process_pipelines import (
    Faulty,
    Keeper,
    assert_same,
    build,
    build_bad,
    raise_unpicklable,
    raise_value_error,
)
from support.processes import run_python
from support.waiting import wait_until

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.exceptions import ServerError
from fuel.schemes import SequentialExampleScheme, SequentialScheme
from fuel.server import Server, recv_arrays, send_arrays
from fuel.streams import DataStream, ServerDataStream
from fuel.transformers import Mapping, MultiProcessing, Transformer
from fuel.wire import WireError, pack_header
from fuel.wire.header import VERSION

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def serve():
    """Return a maker of servers that are stopped at the end."""
    made = []

    def make(stream=None, **kwargs):
        kwargs.setdefault('port', 0)
        server = Server(build() if stream is None else stream, **kwargs)
        server.start()
        made.append(server)
        return server

    yield make
    for server in made:
        server.stop()


@pytest.fixture
def connect():
    """Return a maker of clients that are closed at the end."""
    made = []

    def make(server, sources=('features', 'targets'), **kwargs):
        kwargs.setdefault('timeout', 20)
        kwargs.setdefault('reconnect', 20)
        client = ServerDataStream(sources, port=getattr(
            server, 'port', server), **kwargs)
        made.append(client)
        return client

    yield make
    for client in made:
        client.close()
    if client_threads():
        # Of clients that somebody else made, in a cycle.
        gc.collect()
    assert not client_threads()


def client_threads():
    """Return the threads of clients that run."""
    return [thread for thread in threading.enumerate()
            if thread.name == 'fuel-client']


MEMORY = pytest.mark.parametrize('shared_memory', [True, False],
                                 ids=['memory', 'frames'])


def targets_of(batches):
    """Return the targets of all batches, in order of the data set."""
    return sorted(int(number) for batch in batches for number in batch[1])


@MEMORY
def test_epochs_equal_those_of_the_stream(serve, connect, shared_memory):
    """Order, values and types are equal, epoch after epoch."""
    server, reference = serve(), build()
    client = connect(server, shared_memory=shared_memory)
    for _ in range(3):
        assert_same(reference.get_epoch_iterator(),
                    client.get_epoch_iterator())
    assert server.service.status()['local clients'] == shared_memory


def test_epochs_that_workers_make_are_served(serve, connect):
    """A state of the server is then that of the stream in the workers."""
    reference = build()
    with MultiProcessing(build(), 5, start_method='fork') as stream:
        client = connect(serve(stream))
        for _ in range(2):
            assert_same(reference.get_epoch_iterator(),
                        client.get_epoch_iterator())


@pytest.mark.parametrize('taken', [0, 1, 4])
@pytest.mark.parametrize('leave', ['del', 'reset', 'next_epoch', 'close'])
def test_abandoned_epoch_leaves_a_clean_next_one(
        serve, connect, taken, leave):
    """The rest of the old one does not come, and the order is the next one."""
    client, reference = connect(serve()), build()
    epoch, expected = (
        client.get_epoch_iterator(), reference.get_epoch_iterator())
    for _ in range(taken):
        assert_same([next(expected)], [next(epoch)])
    if leave != 'del':
        getattr(client, leave)()
        with pytest.raises(ServerError, match='left by reset'):
            next(epoch)
    del epoch, expected
    if not taken:
        # An epoch without a request never began.
        reference = build()
    for _ in range(2):
        assert_same(reference.get_epoch_iterator(),
                    client.get_epoch_iterator())


def test_reset_leaves_the_epoch_that_was_read_last(serve, connect):
    """Two iterators read one stream, whichever began first."""
    client = connect(serve())
    first, second = client.get_epoch_iterator(), client.get_epoch_iterator()
    next(second)
    next(first)
    client.reset()
    with pytest.raises(ServerError, match='left by reset'):
        next(first)
    next(second)


def test_batch_held_when_its_epoch_is_left_is_not_delivered(serve, connect):
    """Ctrl-C may come before the iterator has returned it."""
    client = connect(serve())
    epoch = client.get_epoch_iterator()
    next(epoch)
    client.session.receive(client)
    assert client.session.held is not None
    client.reset()
    with pytest.raises(ServerError, match='left by reset'):
        next(epoch)


@pytest.mark.parametrize('taken', range(7))
@MEMORY
def test_state_continues_after_what_was_handed_out(
        serve, connect, taken, shared_memory):
    """Another client of another server continues it, whatever was buffered."""
    reference = build()
    expected = reference.get_epoch_iterator()
    client = connect(serve(), shared_memory=shared_memory)
    epoch = client.get_epoch_iterator()
    for _ in range(taken):
        assert_same([next(expected)], [next(epoch)])
    state = json.loads(json.dumps(client.state_dict()))
    restored = connect(serve(), shared_memory=shared_memory)
    restored.load_state_dict(state)
    assert_same(expected, restored.get_epoch_iterator())
    for _ in range(2):
        assert_same(reference.get_epoch_iterator(),
                    restored.get_epoch_iterator())


def test_state_of_a_finished_epoch_begins_the_next(serve, connect):
    """StopIteration was raised: the order of the next epoch comes."""
    client, reference = connect(serve()), build()
    assert_same(reference.get_epoch_iterator(), client.get_epoch_iterator())
    state = json.loads(json.dumps(client.state_dict()))
    assert state['epoch'] == 'finished'
    restored = connect(serve())
    restored.load_state_dict(state)
    assert_same(reference.get_epoch_iterator(),
                restored.get_epoch_iterator())


@pytest.mark.parametrize('further', [0, 1, 3.5])
@pytest.mark.parametrize('is_new', [False, True])
def test_state_of_the_end_of_an_earlier_epoch_is_followed_by_the_next(
        serve, connect, further, is_new):
    """The same server has made more epochs for the client."""
    server, reference = serve(), build()
    client = connect(server)
    assert_same(reference.get_epoch_iterator(), client.get_epoch_iterator())
    state = json.loads(json.dumps(client.state_dict()))
    for _ in range(int(further)):
        list(client)
    if further % 1:
        epoch = client.get_epoch_iterator()
        next(epoch)
        del epoch
    for _ in range(2):
        if is_new:
            client.close()
            client = connect(server)
        client.load_state_dict(state)
        expected, epoch = iter(reference), iter(client)
        assert_same([next(expected)], [next(epoch)])
        # Once more, from within the epoch that was made again.
        within = json.loads(json.dumps(client.state_dict()))
        reference_state = reference.state_dict()
        assert_same(expected, epoch)
        assert_same(reference, client)
        client.load_state_dict(within)
        reference.load_state_dict(reference_state)
        assert_same(reference, client)
        assert_same(reference, client)
        reference = build()
        list(reference)


@pytest.mark.parametrize('protocol', range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickled_iterator_goes_on(serve, connect, protocol):
    """The first client of the server is gone."""
    server, reference = serve(), build()
    expected = reference.get_epoch_iterator()
    client = connect(server)
    epoch = client.get_epoch_iterator()
    assert_same([next(expected), next(expected)], [next(epoch), next(epoch)])
    pickled = pickle.dumps((client, epoch), protocol)
    next(epoch)
    client.close()
    copy, rest = pickle.loads(pickled)
    copy, rest = pickle.loads(pickle.dumps((copy, rest)))
    assert_same(expected, rest)
    assert_same(reference.get_epoch_iterator(), copy.get_epoch_iterator())
    copy.close()


def test_pickled_stream_starts_an_epoch(serve, connect):
    """A pickled stream also works with a server that was started again."""
    reference = build()
    expected = reference.get_epoch_iterator()
    client = connect(serve())
    epoch = client.get_epoch_iterator()
    assert_same([next(expected)], [next(epoch)])
    pickled = pickle.dumps(client)
    del expected
    server = serve()
    copy = pickle.loads(pickled)
    copy.port = server.port
    assert_same(reference.get_epoch_iterator(), copy.get_epoch_iterator())
    copy.close()


def test_nothing_but_data_connects(connect):
    """`close`, `reset`, `next_epoch`, pickling and a bad request do not."""
    client = connect(1, produces_examples=False)
    client.reset()
    client.next_epoch()
    client.close()
    pickle.loads(pickle.dumps(client))
    client.state_dict()
    epoch = client.get_epoch_iterator()
    pickle.loads(pickle.dumps(epoch))
    with pytest.raises(ValueError, match='no requests; got 3'):
        client.get_data(3)
    assert client.connected is False
    assert type(client).__module__ == 'fuel.streams'


def test_what_the_client_leaves_out_comes_from_the_server(serve, connect):
    """Kind of data and axis labels, under the client's own names."""
    dataset = IterableDataset(
        {'x': [1, 2, 3]}, axis_labels={'x': ('feature',)})
    client = connect(serve(DataStream(dataset)), ('other',))
    assert client.produces_examples is True
    assert client.axis_labels == {'other': ('feature',)}
    assert list(client.get_epoch_iterator(as_dict=True)) == [
        {'other': 1}, {'other': 2}, {'other': 3}]
    named = connect(1, ('x',), axis_labels={'x': ('mine',)},
                    produces_examples=False)
    assert named.axis_labels == {'x': ('mine',)}
    assert named.produces_examples is False


@pytest.mark.parametrize('kwargs, text', [
    ({'sources': ('one',)}, 'names 1 sources, but the server sends 2'),
    ({'produces_examples': True},
     'expects examples, but the server sends batches')])
def test_mismatch_is_an_error(serve, connect, kwargs, text):
    """The error comes with the handshake; nothing hangs."""
    with pytest.raises(ServerError, match=text):
        next(connect(serve(), **kwargs).get_epoch_iterator())


@pytest.mark.parametrize(('names', 'warns'), [
    (('targets', 'features'), True), (('x', 'features'), True),
    (('x', 'y'), False), (('features', 'targets'), False)])
def test_names_of_the_server_in_another_order_are_told(
        serve, connect, caplog, names, warns):
    """Data come in the server's order; only new names are free."""
    client = connect(serve(), names)
    with caplog.at_level(logging.WARNING):
        client.connect()
    assert ("sources ['features', 'targets'], which are named "
            f'{list(names)}' in caplog.text) == warns


def test_server_that_is_not_there_is_waited_for(serve, connect, caplog):
    """It is for `timeout` seconds; the error names address and remedy."""
    with pytest.raises(ServerError, match='no server answers at tcp://127'):
        next(connect(1, timeout=0.3).get_epoch_iterator())
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        port = taken.getsockname()[1]
    timer = threading.Timer(2.5, lambda: serve(port=port))
    timer.start()
    with caplog.at_level(logging.WARNING):
        assert len(list(connect(port).get_epoch_iterator())) == 6
    timer.join()
    assert f'waiting for a server at tcp://127.0.0.1:{port}' in caplog.text


@pytest.mark.parametrize('reconnect', [0, 0.5])
def test_server_that_vanished_is_an_error(serve, connect, reconnect):
    """The error comes after `reconnect` seconds."""
    server = serve(build(num_examples=4000))
    epoch = connect(server, reconnect=reconnect).get_epoch_iterator()
    next(epoch)
    server.stop()
    with pytest.raises(ServerError, match=f'came within {reconnect} sec'):
        list(epoch)


def test_server_started_again_continues(serve, connect):
    """It continues from the state of its client."""
    server, reference = serve(), build()
    client, expected = connect(server), reference.get_epoch_iterator()
    epoch = client.get_epoch_iterator()
    assert_same([next(expected), next(expected)], [next(epoch), next(epoch)])
    server.stop()
    serve(port=server.port)
    assert_same(expected, epoch)
    assert_same(reference.get_epoch_iterator(), client.get_epoch_iterator())


@pytest.mark.parametrize('fault, kind, text', [
    (raise_value_error, ValueError, 'something bad'),
    (raise_unpicklable, ServerError, 'UnpicklableError: odd')])
def test_exception_reaches_the_client(serve, connect, fault, kind, text):
    """It has stage and traceback; the epoch goes on, the server too."""
    client = connect(serve(Faulty(build(), 2, fault)))
    epoch = client.get_epoch_iterator()
    next(epoch)
    next(epoch)
    with pytest.raises(kind, match=text) as caught:
        next(epoch)
    assert fault.__name__ in str(caught.value.__cause__)
    assert any('in stage Faulty' in note for note in caught.value.__notes__)
    assert len(list(epoch)) == 3
    assert len(list(client.get_epoch_iterator())) == 6


def test_error_names_the_request(serve, connect):
    """The error has a note with the request."""
    epoch = connect(serve(build_bad()), ('x',)).get_epoch_iterator()
    next(epoch)
    next(epoch)
    with pytest.raises(OSError, match='a bad sector') as caught:
        next(epoch)
    assert 'for the request [8, 9, 10, 11]' == caught.value.__notes__[0]


def test_exception_at_the_start_of_an_epoch_reaches_the_client(
        serve, connect):
    """The epoch after a failed start has all batches."""
    stream = build()
    attempts = []

    def fail_once(**_):
        attempts.append(1)
        if len(attempts) == 1:
            raise ValueError('not today')
        return type(stream).get_epoch_iterator(stream)
    stream.get_epoch_iterator = fail_once
    client = connect(serve(stream))
    with pytest.raises(ValueError, match='not today'):
        next(client.get_epoch_iterator())
    assert len(list(client.get_epoch_iterator())) == 6


def test_data_that_cannot_be_sent_are_an_error(serve, connect):
    """The server goes on."""
    client = connect(serve(Mapping(build(), lambda _: ({1: 2}, 3))))
    with pytest.raises(TypeError, match='dict cannot be sent'):
        next(client.get_epoch_iterator())


def test_stalled_pipeline_is_told_with_its_stack(serve, connect):
    """The error comes after `stalled` seconds without a batch."""
    go_on = threading.Event()
    stream = Mapping(build(), lambda data: go_on.wait(20) and data)
    epoch = connect(serve(stream), stalled=0.5).get_epoch_iterator()
    with pytest.raises(ServerError, match='(?s)0.5 seconds.*go_on.wait'):
        next(epoch)
    go_on.set()


@MEMORY
def test_two_clients_share_each_epoch_exactly(serve, connect, shared_memory):
    """Each batch goes to one of them, and the end to both."""
    server = serve(build(num_examples=80).data_stream, num_clients=2)
    results = {}

    def read(name):
        client = connect(server, shared_memory=shared_memory)
        results[name] = [list(client.get_epoch_iterator())
                         for _ in range(3)]

    threads = [threading.Thread(target=read, args=(name,))
               for name in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for epoch in range(3):
        assert targets_of(
            results[0][epoch] + results[1][epoch]) == list(range(80))


def test_client_that_does_not_ask_does_not_keep_the_others(serve, connect):
    """Batches that a client has not handed out go to the one that asks."""
    server = serve(build(num_examples=80).data_stream, num_clients=1)
    first, second = connect(server), connect(server)
    one, other = first.get_epoch_iterator(), second.get_epoch_iterator()
    got = [next(one), next(other)]
    got += list(one)
    got += list(other)
    assert targets_of(got) == list(range(80))


def test_client_that_leaves_joins_the_next_epoch(serve, connect):
    """A client that leaves does not end the epoch of another one."""
    server = serve(build(num_examples=80).data_stream)
    first, second = connect(server), connect(server)
    one, other = first.get_epoch_iterator(), second.get_epoch_iterator()
    got = [next(one), next(other), next(one)]
    first.reset()
    del one
    result = []
    reader = threading.Thread(
        target=lambda: result.extend(first.get_epoch_iterator()))
    reader.start()
    got += list(other)
    assert targets_of(got) == list(range(80))
    reader.join()
    assert targets_of(result) == list(range(80))


def test_client_that_dies_leaves_its_batches_to_the_others(serve, connect):
    """Batches that the dead client handed out are not made again."""
    server = serve(build(num_examples=80).data_stream, reconnect=0.5)
    survivor = connect(server)
    epoch = survivor.get_epoch_iterator()
    got = [next(epoch)]
    process = subprocess.Popen(
        [sys.executable, '-c', textwrap.dedent("""
            import sys, time
            from fuel.streams import ServerDataStream
            client = ServerDataStream(('x', 'y'), port=int(sys.argv[1]))
            epoch = client.get_epoch_iterator()
            for _ in range(2):
                print(next(epoch)[1].tolist(), flush=True)
            time.sleep(60)
        """), str(server.port)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)})
    with process:
        lines = [process.stdout.readline() for _ in range(2)]
        wait_until(lambda: len(
            server.service.scheduler.admission.epoch.ledger.delivered) >= 3)
        process.kill()
    handed = [number for line in lines for number in json.loads(line)]
    got += list(epoch)
    assert sorted(targets_of(got) + handed) == list(range(80))


@pytest.mark.parametrize('sharing', ['all', 'rank'])
def test_other_ways_of_sharing(serve, connect, sharing):
    """Each client gets every batch, or those of its rank, for several
    epochs."""
    server = serve(build(num_examples=40), sharing=sharing, num_clients=2)
    reference = build(num_examples=40)
    clients = [connect(server, rank=rank, shared_memory=bool(rank))
               for rank in range(2)]
    for _ in range(2):
        epochs = [client.get_epoch_iterator() for client in clients]
        results = [[], []]
        threads = [threading.Thread(
            target=lambda to, epoch: to.extend(epoch), args=pair)
            for pair in zip(results, epochs, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        expected = list(reference.get_epoch_iterator())
        for rank, result in enumerate(results):
            assert_same(expected if sharing == 'all'
                        else expected[rank::2], result)


def test_all_clients_begin_each_epoch_together(serve, connect):
    """A client that comes to the second epoch late does not miss it."""
    server = serve(build(num_examples=40), sharing='all', num_clients=2)
    reference = build(num_examples=40)
    clients = [connect(server, rank=rank) for rank in range(2)]
    for _ in range(3):
        results = [[], []]

        def read(rank, results=results):
            if rank:
                wait_until(lambda: server.service.scheduler.admission.joiners)
            results[rank] += clients[rank].get_epoch_iterator()

        threads = [threading.Thread(target=read, args=(rank,))
                   for rank in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        expected = list(reference.get_epoch_iterator())
        for result in results:
            assert_same(expected, result)


def test_rank_is_checked(serve, connect):
    """The client that has none is refused."""
    server = serve(sharing='rank', num_clients=2)
    with pytest.raises(ServerError, match='the rank of this one is None'):
        next(connect(server).get_epoch_iterator())
    with pytest.raises(ValueError, match="'rank' needs num_clients"):
        Server(build(), sharing='rank')
    with pytest.raises(ValueError, match="one of .*'none'"):
        Server(build(), sharing='none')


def test_restored_client_gets_again_what_was_lost(serve, connect):
    """Handed out after the state was saved: made once more, on the same
    server, for the client that goes on."""
    server, reference = serve(), build()
    expected = reference.get_epoch_iterator()
    client = connect(server)
    epoch = client.get_epoch_iterator()
    assert_same([next(expected)], [next(epoch)])
    state = client.state_dict()
    for _ in range(3):
        next(epoch)
    del epoch
    client.close()
    restored = connect(server)
    restored.load_state_dict(state)
    assert_same(expected, restored.get_epoch_iterator())


@pytest.mark.parametrize('hwm', [(1, 10), (10, 2), (3, 3)])
def test_hwm_bounds_what_is_under_way(serve, connect, hwm):
    """The smaller of the two counts; one more waits at the server."""
    made = []
    stream = Mapping(build(num_examples=400).data_stream,
                     lambda data: made.append(1) or data)
    server = serve(stream, hwm=hwm[0])
    epoch = connect(server, hwm=hwm[1]).get_epoch_iterator()
    for handed in range(1, 5):
        next(epoch)
        wait_until(lambda: not server.service.pipeline.requests)
        assert handed <= len(made) <= handed + min(hwm) + 1
        assert len(epoch.epoch.attributes['session'].connection.queue
                   ) <= min(hwm)


@pytest.mark.parametrize('left', [1, 4])
def test_batch_made_ahead_goes_to_the_next_epoch_or_client(
        serve, connect, left):
    """Batches that wait at the server when an epoch is left are not lost."""
    server = serve(hwm=1)
    client = connect(server)
    first = client.get_epoch_iterator()
    expected = list(build().get_epoch_iterator())
    assert_same(expected[:left], [next(first) for _ in range(left)])
    # The batch that waits goes to whoever joins, the rest to both.
    other = connect(server).get_epoch_iterator()
    got = [next(other)]
    first = client.get_epoch_iterator()
    got += other
    assert_same(sorted(expected[left:], key=str), sorted(got, key=str))
    assert len(list(first)) == len(expected)


@MEMORY
def test_batches_are_the_users_own(serve, connect, shared_memory):
    """They are writable and aligned; overwriting changes nothing else."""
    client, reference = connect(
        serve(hwm=2), shared_memory=shared_memory), build()
    for _ in range(3):
        for expected, actual in zip(
                reference.get_epoch_iterator(), client.get_epoch_iterator(),
                strict=True):
            assert_same([expected], [actual])
            for data in actual:
                assert data.flags.writeable
                assert data.flags.aligned
                data[...] = -1


def test_client_may_keep_every_batch(serve, connect):
    """More than the memory holds: they become copies or frames."""
    client = connect(serve(hwm=2, max_bytes=1 << 20))
    kept = list(client.get_epoch_iterator())
    assert_same(build().get_epoch_iterator(), kept)
    client.close()
    assert_same(build().get_epoch_iterator(), kept)


@pytest.mark.parametrize('keep', [
    '', 'it', 'a view', 'what it was made of'])
def test_last_stage_may_write_where_the_client_reads(serve, connect, keep):
    """Memory that the client keeps looking at is copied."""
    client, reference = connect(serve(Keeper(build(), keep))), Keeper(
        build(), keep)
    for _ in range(3):
        for expected, actual in zip(
                reference.get_epoch_iterator(), client.get_epoch_iterator(),
                strict=True):
            assert_same([expected], [actual])
            actual[0][...] = -5


@MEMORY
def test_stage_may_use_its_array_again(serve, connect, shared_memory):
    """Batches that wait to be sent are not overwritten by later ones."""
    array = numpy.empty((1, 50000))

    def fill(data):
        array[:] = data[0][0]
        return (array,)

    stream = DataStream(IndexableDataset(numpy.arange(100.0)),
                        iteration_scheme=SequentialScheme(100, 1))
    client = connect(serve(Mapping(stream, fill)), ('x',),
                     shared_memory=shared_memory)
    for number, (batch,) in enumerate(client.get_epoch_iterator()):
        assert (batch == number).all()


def test_ragged_and_other_data_arrive(serve, connect):
    """A rectangular list arrives as an array, a ragged one as a list (issue
    277)."""
    stream = DataStream(
        IndexableDataset({'a': [[1], [2, 3]], 'b': [[1, 2], [3, 4]],
                          'c': [b'x\0', b''], 'd': ['u', 'v']}),
        iteration_scheme=SequentialScheme(2, 2))
    client = connect(serve(stream), tuple('abcd'))
    (ragged, rectangular, raw, texts), = client.get_epoch_iterator()
    assert [one.tolist() for one in ragged] == [[1], [2, 3]]
    assert rectangular.tolist() == [[1, 2], [3, 4]]
    assert raw == [b'x\0', b'']
    assert texts == ['u', 'v']


def test_stream_without_position_is_served(serve, connect):
    """Its state is smaller; an epoch that is left is clean."""
    class Hidden(Transformer):
        def get_data(self, request=None):
            return next(self.child_epoch_iterator)

    client = connect(serve(Hidden(build(), produces_examples=False)))
    epoch = client.get_epoch_iterator()
    next(epoch)
    assert client.state_dict()['leftover']['state'] is None
    del epoch
    assert len(list(client.get_epoch_iterator())) == 6


def test_state_of_a_client_that_still_reads_makes_two_of_it(
        serve, connect, caplog):
    """They share what is left of the epoch, and the server's log says so."""
    server = serve(build(num_examples=80).data_stream)
    first, second = connect(server), connect(server)
    epoch = first.get_epoch_iterator()
    got = [next(epoch)]
    second.load_state_dict(first.state_dict())
    with caplog.at_level(logging.WARNING):
        got += second.get_epoch_iterator()
    assert 'which is still in the epoch: they share' in caplog.text
    got += epoch
    assert targets_of(got) == list(range(80))


def test_two_epochs_at_once_are_two_clients(serve, connect):
    """The iterators of one stream share the epoch of the server."""
    client = connect(serve(build(num_examples=80).data_stream))
    one, other = client.get_epoch_iterator(), client.get_epoch_iterator()
    got = [next(one), next(other), *one, *other]
    assert targets_of(got) == list(range(80))


def test_server_listens_locally_and_says_where(serve):
    """The server binds to loopback by default."""
    server = serve()
    assert server.address == f'tcp://127.0.0.1:{server.port}'
    everywhere = serve(host='*')
    assert everywhere.address == f'tcp://*:{everywhere.port}'


def test_port_that_stays_busy_is_an_error(serve):
    """The error comes after two seconds, with the address and the probable
    cause."""
    server = serve()
    before = time.monotonic()
    with pytest.raises(zmq.ZMQError, match='in use') as caught:
        serve(port=server.port)
    assert time.monotonic() - before > 1.9
    text = str(caught.value)
    assert text.startswith(f'cannot listen at tcp://127.0.0.1:{server.port}: ')
    assert text.endswith(
        ': another program listens there, perhaps another server')
    assert caught.value.errno == errno.EADDRINUSE


def test_server_that_does_not_start_leaves_nothing(serve):
    """Many attempts leave no descriptors open."""
    server = serve()
    with pytest.raises(zmq.ZMQError):
        Server(build(), port=0, host='192.0.2.1').start()
    gc.collect()
    before = len(os.listdir('/proc/self/fd'))
    for _ in range(20):
        with pytest.raises(zmq.ZMQError):
            Server(build(), port=0, host='192.0.2.1').start()
        Server(build(), port=server.port)
    gc.collect()
    # Others may come and go, but not forty.
    assert len(os.listdir('/proc/self/fd')) < before + 20


def test_port_that_becomes_free_is_taken(serve):
    """A server that follows another need not wait itself."""
    server = serve()
    timer = threading.Timer(0.5, server.stop)
    timer.start()
    assert serve(port=server.port).port == server.port
    timer.join()


FOREIGN_MESSAGES = [
    [b''], [b'GET / HTTP/1.1'], [b'x'] * 40, [b'FUEL'], [b'FUEL{}'],
    [pack_header({'type': 'handed', 'join': 1, 'indices': [1]})],
    [pack_header({'type': 'hello'})],
    [pack_header({'type': 'hello', 'version': VERSION, 'client': 5,
                  'hwm': 1, 'sources': 1})],
    [pack_header({'type': 'join', 'join': -1})],
    [pack_header({'type': 'odd'})], [b'FUEL' + b'[' * 3000000]]


@pytest.mark.parametrize('name', ['dealer', 'hello'])
def test_bytes_of_a_foreign_peer_disturb_nobody(serve, connect, caplog, name):
    """They are dropped, counted and logged."""
    server = serve(build(num_examples=80))
    epoch = connect(server).get_epoch_iterator()
    next(epoch)
    rng = random.Random(3)
    with zmq.Context() as context, context.socket(zmq.DEALER) as peer:
        peer.linger = 100
        peer.connect(server.address)
        if name == 'hello':
            peer.send(pack_header({
                'type': 'hello', 'version': VERSION, 'client': 'c',
                'sources': 2, 'hwm': 3}))
            peer.recv()
        for message in FOREIGN_MESSAGES:
            peer.send_multipart(message)
        for kind in ('handed', 'give', 'join', 'leave', 'ready', 'waiting'):
            for _ in range(20):
                peer.send(pack_header({
                    'type': kind, 'join': rng.choice(
                        ['x', None, -1] if kind == 'join' else [0, 1, 2]),
                    'indices': rng.choice([[1], [[0, 9]], [[5]], 'x', None,
                                           [[0, 2 ** 50]], [{}], [None]]),
                    'release': rng.choice([[1, 'x'], [{}], 5, None]),
                    'resume': rng.choice([None, {}, 5, {
                        'run': 'x', 'epoch': 1, 'state': {}, 'index': 2,
                        'done': [[0, 5]]}]),
                    'proof': rng.choice(['', 'é', 5])}))
        # The first logged message suppresses others for a while.
        wait_until(lambda: server.counts['dropped messages'])
        with socket.create_connection(('127.0.0.1', server.port)) as raw:
            raw.sendall(rng.randbytes(1000))
        assert len(list(epoch)) == 19
    assert server.counts['dropped messages'] >= len(FOREIGN_MESSAGES)
    assert 'dropped a message' in caplog.text


def talk_http(port):
    """Ask as a web browser does."""
    with socket.create_connection(('127.0.0.1', port)) as raw:
        raw.sendall(b'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')


def talk_noise(port):
    """Begin as ZeroMQ does, and go on as nobody does."""
    with socket.create_connection(('127.0.0.1', port)) as raw:
        raw.sendall(b'\xff' + random.Random(4).randbytes(1000))


def talk_old(port):
    """Pull, as the clients of Fuel 0.2 do."""
    with zmq.Context() as context, context.socket(zmq.PULL) as old:
        old.connect(f'tcp://127.0.0.1:{port}')
        assert not old.poll(500)


@pytest.mark.parametrize('talk', [talk_http, talk_noise, talk_old])
def test_connection_of_a_stranger_is_dropped(serve, connect, caplog, talk):
    """It is counted and logged, but not line after line; clients are not
    disturbed."""
    server = serve(build(num_examples=80))
    epoch = connect(server).get_epoch_iterator()
    next(epoch)
    for _ in range(3):
        talk(server.port)
    wait_until(lambda: server.counts['dropped connections'] >= 3)
    assert len(list(epoch)) == 19
    assert 'dropped a connection' in caplog.text
    assert server.counts['dropped messages'] == 0
    with connect(server) as other:
        other.connect()
    server.stop()
    assert server.counts['dropped connections'] < 60


@pytest.mark.parametrize('resume', [
    {}, {'run': 5}, {'run': 'x', 'epoch': -1}, {'run': 'x', 'epoch': 1,
                                                'state': 5},
    {'run': 'x', 'epoch': 1, 'state': {}, 'index': 'y'},
    {'run': 'x', 'epoch': 1, 'state': {}, 'index': 2, 'done': [[5]]},
    {'run': 'x', 'epoch': 1, 'state': {}, 'index': 2, 'done': []}])
def test_position_of_a_stranger_disturbs_nobody(serve, connect, resume):
    """It is refused, and the next client is served."""
    server = serve()
    with zmq.Context() as context, context.socket(zmq.DEALER) as peer:
        peer.linger = 100
        peer.connect(server.address)
        peer.send(pack_header({
            'type': 'hello', 'version': VERSION, 'client': 'c',
            'sources': 2, 'hwm': 3}))
        peer.send(pack_header(
            {'type': 'join', 'join': 1, 'resume': resume}))
        answer = b''
        while b'"broken"' not in answer:
            assert peer.poll(10000)
            answer = peer.recv()
        assert b'"error"' in answer
    assert len(list(connect(server).get_epoch_iterator())) == 6


def test_messages_to_a_client_are_checked(connect):
    """A server that is none is an error, nothing more."""
    for message in ([b'nonsense'], [pack_header({'type': 'welcome'})],
                    [pack_header({'type': 'welcome', 'version': 99})]):
        with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
            router.linger = 500
            port = router.bind_to_random_port('tcp://127.0.0.1')

            def answer(router=router, message=message):
                identity, _ = router.recv_multipart()
                router.send_multipart([identity, *message])
            thread = threading.Thread(target=answer)
            thread.start()
            with pytest.raises(ServerError, match='not a Fuel server'):
                next(connect(port).get_epoch_iterator())
            thread.join()


def test_stopping_and_closing_leave_nothing():
    """No thread and no descriptor is left."""
    def once():
        with Server(build(), port=0) as server:
            client = ServerDataStream(('x', 'y'), port=server.port)
            assert len(list(client.get_epoch_iterator())) == 6
            batch = next(client.get_epoch_iterator())
            client.close()
            client.close()
        server.stop()
        return batch[0].sum()
    once()
    gc.collect()
    before = set(os.listdir('/proc/self/fd')), threading.active_count()
    for _ in range(3):
        once()
    gc.collect()
    assert before == (
        set(os.listdir('/proc/self/fd')), threading.active_count())


@MEMORY
def test_memory_is_shared_with_clients_that_want_it_alone(
        serve, connect, shared_memory):
    """The server makes none for others."""
    gc.collect()
    before = segments()
    server = serve(build())
    epoch = connect(server, shared_memory=shared_memory).get_epoch_iterator()
    batches = [next(epoch) for _ in range(4)]
    assert (segments() > before) == shared_memory
    assert 4 == len(batches)


def segments():
    """Return how many shared segments this process has mapped."""
    maps = Path('/proc/self/maps').read_text('utf-8')
    return sum('memfd:fuel' in line for line in maps.splitlines())


def test_port_is_known_once_the_server_listens():
    """Before that, the error says how to start it."""
    server = Server(build(), port=0)
    with pytest.raises(RuntimeError, match=r'start\(\), or use it in a with'):
        assert server.port
    with server:
        assert server.port > 0


def test_process_ends_that_does_not_stop_its_server():
    """Its threads do not keep it."""
    status, output, errors = run_python('-c', textwrap.dedent("""
        from fuel.datasets import IndexableDataset
        from fuel.server import Server
        from fuel.streams import DataStream, ServerDataStream
        server = Server(DataStream(
            IndexableDataset({'x': list(range(12))}), batch_size=2), port=0)
        server.start()
        client = ServerDataStream(('x',), port=server.port)
        print(len(list(client.get_epoch_iterator())))
        """))
    assert (status, output, errors) == (0, b'6\n', b'')


def test_client_that_is_dropped_disconnects(serve):
    """Garbage collection leaves no thread."""
    server = serve()
    client = ServerDataStream(('x', 'y'), port=server.port)
    next(client.get_epoch_iterator())
    del client
    if client_threads():
        # Of clients that somebody else made, in a cycle.
        gc.collect()
    assert not client_threads()


def test_fork_of_a_client_connects_anew(serve, connect):
    """The child does not use its parent's connection."""
    server = serve(build(num_examples=80).data_stream)
    client = connect(server)
    epoch = client.get_epoch_iterator()
    got = [next(epoch)]
    child = os.fork()
    if not child:
        os._exit(0 if len(list(client.get_epoch_iterator())) >= 0 else 1)
    got += list(epoch)
    assert os.waitpid(child, 0)[1] == 0
    assert len(targets_of(got)) <= 80


ARRAYS = [
    numpy.array(2.5), numpy.zeros((0, 3)), numpy.zeros((3, 4), order='F'),
    numpy.zeros(2, [('a', 'i4'), ('b', '>f8')]), numpy.arange(70000),
    numpy.arange(9)[::2], numpy.array(['ab'], 'S2'), numpy.ones(3, '?')]


def test_arrays_cross_a_socket_of_ones_own():
    """Any type but object is sent; the stop is a StopIteration."""
    with zmq.Context() as context, context.socket(
            zmq.PUSH) as push, context.socket(zmq.PULL) as pull:
        push.linger = pull.linger = 0
        port = push.bind_to_random_port('tcp://127.0.0.1')
        pull.connect(f'tcp://127.0.0.1:{port}')
        send_arrays(push, ARRAYS)
        for expected, actual in zip(ARRAYS, recv_arrays(pull), strict=True):
            assert expected.dtype == actual.dtype
            assert expected.shape == actual.shape
            assert expected.tobytes() == actual.tobytes()
            assert actual.flags.writeable
            assert actual.flags.aligned
        send_arrays(push, [])
        assert recv_arrays(pull) == []
        with pytest.raises(TypeError, match='cannot be sent'):
            send_arrays(push, [numpy.ones(2), object()])
        send_arrays(push, None, stop=True)
        with pytest.raises(StopIteration):
            recv_arrays(pull)
        push.send_multipart([pack_header({'type': 'arrays', 'items': [5]})])
        with pytest.raises(WireError, match='not a description'):
            recv_arrays(pull)


SERVER = """
    import sys
    from fuel.server import start_server
    from support.process_pipelines import build
    if __name__ == '__main__':
        start_server(build(80), port=int(sys.argv[1]))
"""


def start_process(script, *arguments):
    """Start a script that can import the tests' helpers."""
    return subprocess.Popen(
        [sys.executable, '-c', textwrap.dedent(script),
         *map(str, arguments)], stderr=subprocess.PIPE, text=True,
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)})


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_the_server_and_frees_its_port(connect, number):
    """One line says where it listens; the end is quick."""
    with start_process(SERVER, 0) as process:
        line = process.stderr.readline()
        assert line.startswith('Fuel server: tcp://127.0.0.1:')
        port = int(line.rpartition(':')[2])
        epoch = connect(port, reconnect=0).get_epoch_iterator()
        next(epoch)
        before = time.monotonic()
        process.send_signal(number)
        process.wait(20)
        assert time.monotonic() - before < 5
        assert process.stderr.read() == ''
        assert process.returncode == 0
        with pytest.raises(ServerError, match='has vanished'):
            list(epoch)
        with socket.socket() as again:
            again.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                             struct.pack('ii', 1, 0))
            again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            again.bind(('127.0.0.1', port))


def test_server_says_that_an_epoch_would_restart(serve, connect, caplog):
    """A pipeline that cannot give its position is told at the start."""
    class Hidden(Transformer):
        def get_data(self, request=None):
            return next(self.child_epoch_iterator)

    server = serve(Hidden(build(), produces_examples=False))
    with caplog.at_level(logging.WARNING):
        next(connect(server).get_epoch_iterator())
    assert 'will restart its epoch: the position of the stage Hidden' in (
        caplog.text)


def test_examples_come_one_by_one(serve, connect):
    """Example streams are served too."""
    stream = DataStream(IndexableDataset(list(range(50))),
                        iteration_scheme=SequentialExampleScheme(50))
    client = connect(serve(stream), ('n',), produces_examples=True)
    assert list(client.get_epoch_iterator()) == [(n,) for n in range(50)]


def test_busy_is_not_dead(serve, connect):
    """A stage that holds the interpreter for seconds is waited for."""
    import re
    pattern = re.compile('(a+)+$')

    def hold(data):
        # Calls that give nobody else the interpreter, longer and longer.
        while hold.longest < 1.2:
            started = time.monotonic()
            pattern.match('a' * hold.length + 'b')
            hold.longest = time.monotonic() - started
            hold.length += 1
        return data
    hold.longest, hold.length = 0, 20
    client = connect(serve(Mapping(build(8).data_stream, hold)),
                     reconnect=0)
    assert len(list(client.get_epoch_iterator())) == 2
    assert hold.longest > 1
