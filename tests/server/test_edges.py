"""Edge cases of servers and clients: keys, silence, closing, signals, the file
of the journal."""
import gc
import os
import pickle
import resource
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import tracemalloc

import numpy
import pytest
import zmq
from support.process_pipelines import build
from support.waiting import wait_until

from fuel.datasets import IndexableDataset
from fuel.exceptions import ServerError
from fuel.schemes import SequentialScheme
from fuel.server import Server, scheduler
from fuel.server.connections import ClientConnection, Item
from fuel.server.dispatch import ServedEpoch
from fuel.server.journal import Journal, pack
from fuel.server.ledger import Ledger
from fuel.streams import DataStream, ServerDataStream
from fuel.transformers import Mapping, Transformer
from fuel.transport.leases import Leases
from fuel.wire import (
    Limits,
    WireError,
    decode,
    encode,
    encoding,
    pack_header,
    unpack_header,
)
from fuel.wire.curve import make_keys
from fuel.wire.header import VERSION, get_field

pytestmark = pytest.mark.timeout(60)


def numbered(count=20):
    """Return a stream of batches of one number."""
    return DataStream(IndexableDataset(numpy.arange(count)),
                      iteration_scheme=SequentialScheme(count, 1))


def read_all(stream):
    """Return the numbers of one epoch."""
    return [int(batch[0]) for (batch,) in stream.get_epoch_iterator()]


def test_closed_stream_frees_its_memory_and_descriptors():
    """A closed stream keeps neither memory maps nor descriptors of sockets."""
    def count():
        gc.collect()
        with open('/proc/self/maps') as maps:
            return (sum('fuel-segment' in line for line in maps),
                    len(os.listdir('/proc/self/fd')))

    kept = []
    with Server(build(), port=0) as server:
        def cycle():
            client = ServerDataStream(('x', 'y'), port=server.port)
            for batch in client.get_epoch_iterator():
                batch[0].sum()
            del batch
            client.close()
            kept.append(client)

        for _ in range(2):
            cycle()
        before = count()
        for _ in range(6):
            cycle()
        after = count()
    assert after[0] <= before[0]
    assert after[1] <= before[1] + 2


@pytest.mark.parametrize('fault', ['port', 'keys', 'none'])
def test_server_with_keys_that_cannot_start_says_so(tmp_path, fault):
    """The error comes at once, and no thread is left."""
    make_keys(tmp_path, ['alice'])
    folder = tmp_path / 'server'
    if fault == 'keys':
        (folder / 'server.key_secret').write_text('nonsense')
    elif fault == 'none':
        folder = tmp_path / 'nowhere'
    before = threading.active_count()
    with socket.create_server(('127.0.0.1', 0)) as busy:
        port = busy.getsockname()[1] if fault == 'port' else 0
        with pytest.raises((zmq.ZMQError, OSError)):
            Server(numbered(), port=port, curve=folder).start()
    assert threading.active_count() <= before


def test_removed_key_is_refused(tmp_path):
    """Its client is disconnected, and cannot connect again; others stay."""
    _, bob = make_keys(tmp_path, ['alice', 'bob'])
    with Server(numbered(200), port=0, curve=tmp_path / 'server') as server:
        options = {'port': server.port, 'timeout': 5, 'reconnect': 3}
        with ServerDataStream(('x',), curve=tmp_path / 'alice',
                              **options) as alice, \
                ServerDataStream(('x',), curve=bob, **options) as other:
            epoch = alice.get_epoch_iterator()
            got = [int(next(epoch)[0][0])]
            other.connect()
            (tmp_path / 'server' / 'clients' / 'alice.key').unlink()
            with pytest.raises(ServerError, match='key'):
                for _ in range(200):
                    got.append(int(next(epoch)[0][0]))
                    time.sleep(0.05)
            assert len(got) < 200
            assert read_all(other)


def raw_client(context, server, name, **more):
    """Return a socket that has greeted a server."""
    raw = context.socket(zmq.DEALER)
    raw.linger = 0
    raw.connect(server.address)
    raw.send(pack_header({
        'type': 'hello', 'version': VERSION, 'client': name, 'sources': 1,
        'hwm': 10, **more}))
    raw.recv_multipart()
    return raw


@pytest.mark.parametrize('sharing', ['split', 'all'])
def test_client_that_never_reads_does_not_stall_the_others(sharing):
    """It joins, and is silent from then on."""
    with Server(numbered(), port=0, sharing=sharing,
                num_clients=2) as server, zmq.Context() as context, \
            ServerDataStream(('x',), port=server.port) as client:
        raw = raw_client(context, server, 'silent')
        raw.send(pack_header({'type': 'join', 'join': 1}))
        start = time.monotonic()
        got = read_all(client)
        assert time.monotonic() - start < 20
        assert list(range(20)) == sorted(got)
        raw.close()


def test_client_that_stops_to_answer_does_not_keep_the_last_batches(
        monkeypatch):
    """It is asked for them, and disconnected if it does not answer."""
    monkeypatch.setattr(scheduler, '_ANSWER_SECONDS', 0.5)
    with Server(numbered(), port=0, num_clients=2) as server, \
            zmq.Context() as context, \
            ServerDataStream(('x',), port=server.port) as client:
        raw = raw_client(context, server, 'silent')
        raw.send(pack_header({'type': 'join', 'join': 1}))
        epoch = client.get_epoch_iterator()
        got = [int(next(epoch)[0][0])]
        kind = ''
        while kind != 'batch':
            fields = unpack_header(raw.recv_multipart()[0])
            kind = fields['type']
        raw.send(pack_header({'type': 'handed', 'join': 1,
                              'indices': [fields['index']]}))
        got += [int(batch[0]) for (batch,) in epoch]
        raw.close()
    # That one it had.
    assert sorted({*range(20)} - {fields['index']}) == sorted(got)


# Asks on and on, and reads nothing; its own buffers are small.
HOSTILE = """
import sys, zmq
from fuel.wire import pack_header
with zmq.Context() as context, context.socket(zmq.DEALER) as peer:
    peer.linger, peer.rcvhwm, peer.rcvbuf, peer.sndhwm = 0, 1, 4096, 100
    peer.connect(sys.argv[1])
    question = pack_header({'type': 'status'})
    while True:
        peer.send(question)
"""


def test_answers_that_a_peer_does_not_read_are_dropped():
    """They would fill the server's memory; its clients go on."""
    with Server(numbered(), port=0) as server, \
            ServerDataStream(('x',), port=server.port) as client, \
            subprocess.Popen([sys.executable, '-c', HOSTILE,
                              server.address]) as peer:
        try:
            wait_until(lambda: server.counts['dropped messages'],
                       'dropping an answer', 50)
            assert peer.poll() is None
            assert list(range(20)) == read_all(client)
        finally:
            peer.kill()


def test_client_that_asks_and_does_not_read_is_disconnected():
    """Its batches go to the others."""
    with Server(numbered(), port=0) as server, zmq.Context() as context, \
            ServerDataStream(('x',), port=server.port) as client:
        with context.socket(zmq.DEALER) as raw:
            raw.linger, raw.rcvhwm, raw.rcvbuf = 0, 1, 4096
            raw.connect(server.address)
            raw.send(pack_header({
                'type': 'hello', 'version': VERSION, 'client': 'deaf',
                'sources': 1, 'hwm': 10}))
            raw.send(pack_header({'type': 'join', 'join': 1}))
            wait_until(lambda: server.counts['batches'])
            while not server.counts['dropped messages']:
                raw.send(pack_header({'type': 'stacks'}))
            assert list(range(20)) == sorted(read_all(client))


def test_refusal_in_the_middle_of_an_epoch_is_raised_at_once():
    """It does not wait until the pipeline counts as stalled."""
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.linger = 500
        port = router.bind_to_random_port('tcp://127.0.0.1')

        def serve():
            identity, _ = router.recv_multipart()
            router.send_multipart([identity, pack_header({
                'type': 'welcome', 'version': VERSION, 'run': 'r',
                'sources': ['x'], 'examples': False})])
            while b'"join"' not in (message := router.recv_multipart())[1]:
                pass
            router.send_multipart([message[0], pack_header({
                'type': 'joined', 'join': 1, 'run': 'r', 'epoch': 1,
                'start': 0})])
            router.send_multipart([message[0], pack_header({
                'type': 'refuse', 'error': 'not you'})])

        thread = threading.Thread(target=serve)
        thread.start()
        with ServerDataStream(('x',), port=port, timeout=5,
                              stalled=50) as client:
            start = time.monotonic()
            with pytest.raises(ServerError, match='not you'):
                next(client.get_epoch_iterator())
            assert time.monotonic() - start < 10
        thread.join()


def test_batch_with_another_number_of_items_is_an_error():
    """The server names it as the pipeline's mistake."""
    class Odd(Transformer):
        def get_data(self, request=None):
            (data,) = next(self.child_epoch_iterator)
            return data, data

    with Server(Odd(numbered(), produces_examples=False),
                port=0) as server, \
            ServerDataStream(('x',), port=server.port) as client:
        with pytest.raises(ValueError, match='2 items for its 1 sources'):
            next(client.get_epoch_iterator())


def test_client_refuses_a_batch_with_another_number_of_items():
    """The client itself checks a batch that the server does not check."""
    items, buffers = encode((numpy.arange(3), numpy.arange(3)))
    answers = {
        b'hello': {'type': 'welcome', 'version': VERSION, 'run': 'a',
                   'sources': ['x'], 'examples': False, 'axis_labels': None,
                   'sharing': 'split', 'probe': None},
        b'join': {'type': 'joined', 'join': 1, 'run': 'a', 'epoch': 1,
                  'start': 0, 'floor': 0, 'done': [], 'base': None,
                  'why': None}}
    batch = {'type': 'batch', 'join': 1, 'index': 0, 'items': items}

    def serve(router):
        while answers:
            identity, message = router.recv_multipart()
            for kind in [kind for kind in answers
                         if b'"type":"%b"' % kind in message]:
                router.send_multipart(
                    [identity, pack_header(answers.pop(kind))])
        router.send_multipart([identity, pack_header(batch), *buffers])

    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.linger = 500
        port = router.bind_to_random_port('tcp://127.0.0.1')
        thread = threading.Thread(target=serve, args=(router,))
        thread.start()
        with ServerDataStream(('x',), port=port) as client, \
                pytest.raises(ServerError, match=(
                    'sent an invalid message: .*2 items for 1 sources')):
            next(client.get_epoch_iterator())
        thread.join()


def test_many_empty_ragged_arrays_are_decoded_at_once():
    """Other arrays of their number take no longer."""
    arrays = [numpy.zeros(0, 'f4')] * 10 ** 6 + [numpy.ones(1, 'f4')]
    items, buffers = encode([arrays])
    start = time.process_time()
    (received,) = decode(items, [bytes(buffer) for buffer in buffers])
    assert time.process_time() - start < 5
    assert len(received) == 10 ** 6 + 1
    assert [1] == received[-1].tolist()


@pytest.mark.parametrize('width', [0, 1])
def test_more_small_ragged_arrays_than_fit_a_message_are_refused(width):
    """They are refused before any is made: each takes many times its bytes in
    the message."""
    count = 3 * 10 ** 6
    item = {'type': 'ragged', 'dtype': '|u1', 'dimensions': 1,
            'count': count}
    lengths = numpy.full(count, width, '<i8')
    tracemalloc.start()
    try:
        with pytest.raises(WireError, match=(
                'ragged arrays more than a message of its size may have')):
            decode([item], [lengths.data.cast('B'), bytes(width * count)])
        assert tracemalloc.get_traced_memory()[1] < lengths.nbytes
    finally:
        tracemalloc.stop()


def test_ragged_arrays_of_all_sources_are_counted_before_they_are_sent(
        monkeypatch):
    """They are counted in lists and arrays of objects, too; larger ones count
    for more."""
    limits = Limits(arrays=100)
    monkeypatch.setattr(encoding, 'LIMITS', limits)
    many = [numpy.zeros(0, 'u1')] * 60 + [numpy.zeros(1, 'u1')]
    objects = numpy.empty(len(many), object)
    objects[:] = many
    with pytest.raises(TypeError, match='fewer examples a batch'):
        encode([[many, 1], objects])
    items, buffers = encode([objects, many, numpy.zeros(5000, 'u1')])
    received = decode(items, [bytes(buffer) for buffer in buffers], limits)
    assert list(map(len, received)) == [61, 61, 5000]


@pytest.mark.parametrize('dtype', ['<U2', '>U2', [('a', 'i2'), ('b', 'U1')]])
def test_text_beyond_unicode_is_refused(dtype):
    """Python would fail on it when it is read."""
    items, buffers = encode([numpy.zeros(3, dtype)])
    forged = bytearray(buffers[0])
    forged[-1 if dtype == '<U2' or isinstance(dtype, list) else -4] = 0x7f
    with pytest.raises(WireError, match='Unicode'):
        decode(items, [forged])


def test_arrays_of_read_only_frames_are_writable():
    """Small and large ones."""
    for size in (5, 10 ** 6):
        items, buffers = encode([numpy.arange(size)])
        (array,) = decode(items, [bytes(buffers[0])])
        assert array.flags.writeable
        array[0] = 7


@pytest.mark.parametrize('value', [True, False])
def test_boolean_is_not_an_integer_of_a_header(value):
    """A boolean is refused, although Python counts with it."""
    with pytest.raises(WireError, match='must be of type int'):
        get_field({'index': value}, 'index', int)


def test_slots_of_a_forked_client_are_not_released():
    """The child looks at them, and nobody hears when it stops."""
    class Segment:
        memory = memoryview(bytearray(100))

        def close_descriptor(self):
            """Do nothing."""

    leases = Leases(1000)
    leases.add_segment(1, Segment())
    array = leases.lend(5, 1, [(0, 10)], lambda buffers: numpy.frombuffer(
        buffers[0], 'u1'))
    if not (child := os.fork()):
        os._exit(0)
    os.waitpid(child, 0)
    del array
    gc.collect()
    assert [(5, False)] == leases.returned()


def test_finished_stream_and_iterator_pickle():
    """They pickle together, after the end: both have a position."""
    with Server(numbered(5), port=0) as server, \
            ServerDataStream(('x',), port=server.port) as client:
        epoch = client.get_epoch_iterator()
        assert len(list(epoch)) == 5
        expected = client.state_dict()
        stream, again = pickle.loads(pickle.dumps((client, epoch)))
        assert expected == stream.state_dict() == again.state_dict()
        with pytest.raises(StopIteration):
            next(again)
        assert read_all(stream) == list(range(5))
        stream.close()


def test_slot_of_a_batch_of_an_epoch_that_was_left_is_free_again():
    """The slot is free also if the batch ends after the next epoch began."""
    with Server(build(80), port=0, hwm=2) as server, \
            ServerDataStream(('x', 'y'), port=server.port) as client:
        for _ in range(12):
            epoch = client.get_epoch_iterator()
            for _ in range(3):
                batch = next(epoch)
            del batch, epoch
        assert sum(1 for _ in client.get_epoch_iterator()) == 20
        # Those of the last batches, which the client has just released.
        assert len(server.service.scheduler.pool.used) <= 6


def test_slot_of_a_batch_that_ends_after_its_epoch_is_free_again():
    """Its client begins the next epoch while the pipeline is busy."""
    busy, gate = threading.Event(), threading.Event()

    def hold(data):
        if data[0][0, 0] == 3:
            busy.set()
            gate.wait(20)
        return data

    numbers = numpy.arange(8).repeat(1 << 15).reshape(8, -1)
    stream = Mapping(DataStream(
        IndexableDataset({'x': numbers}),
        iteration_scheme=SequentialScheme(8, 1)), hold)
    with Server(stream, port=0, hwm=1) as server, \
            ServerDataStream(('x',), port=server.port) as client:
        for cycle in range(1, 9):
            gate.clear()
            epoch = client.get_epoch_iterator()
            first = [int(next(epoch)[0][0, 0]) for _ in range(3)]
            assert [0, 1, 2] == first
            assert busy.wait(20)
            busy.clear()
            epoch = client.get_epoch_iterator()
            reader = threading.Thread(target=next, args=(epoch,))
            reader.start()
            wait_until(lambda cycle=cycle: 2 * cycle <= (
                server.service.scheduler.admission.epoch.ledger.number))
            gate.set()
            reader.join(20)
            assert 7 == sum(1 for _ in epoch)
        assert len(server.service.scheduler.pool.used) <= 4


def test_batch_that_was_delivered_meanwhile_is_freed():
    """The pipeline went back, and makes it again."""
    freed = []
    epoch = ServedEpoch(Ledger(1), freed.append)
    epoch.join(ClientConnection(b'', {'client': 'client', 'hwm': 3}, 3))
    for index in range(2):
        epoch.ledger.send('client', index)
    epoch.ledger.acknowledge('client', [0])
    items = [Item(index, {}, []) for index in range(3)]
    for item in items:
        epoch.add(item)
    assert items[:1] == freed
    assert {1: items[1]} == epoch.under_way
    assert {2: items[2]} == epoch.free


class MuteError(Exception):
    """An exception that fails to say what is wrong."""

    def __str__(self):
        raise RuntimeError('no text')


def test_error_whose_text_fails_ends_no_server():
    """The client gets it, and then the next batches."""
    def fail_first(data):
        if data[0][0] == 0:
            raise MuteError
        return data

    with Server(Mapping(numbered(3), fail_first), port=0) as server, \
            ServerDataStream(('x',), port=server.port) as client:
        epoch = client.get_epoch_iterator()
        with pytest.raises(ServerError, match='MuteError'):
            next(epoch)
        assert [1, 2] == [int(batch[0]) for (batch,) in epoch]


HOLDER = """
    import ctypes, sys
    from fuel.datasets import IndexableDataset
    from fuel.schemes import SequentialScheme
    from fuel.server import start_server
    from fuel.streams import DataStream
    from fuel.transformers import Mapping

    def hold(data):
        sys.stderr.write('held\\n')
        sys.stderr.flush()
        ctypes.PyDLL(None).sleep(40)
        return data

    start_server(Mapping(DataStream(
        IndexableDataset([1, 2]), iteration_scheme=SequentialScheme(2, 1)),
        hold), port=0)
"""


def test_sigterm_ends_a_server_whose_stage_holds_the_interpreter():
    """It ends within seconds; the handler in Python cannot run."""
    with subprocess.Popen(
            [sys.executable, '-c', textwrap.dedent(HOLDER)],
            stderr=subprocess.PIPE, text=True) as process:
        port = int(process.stderr.readline().rpartition(':')[2])

        def read():
            with pytest.raises(ServerError), ServerDataStream(
                    ('x',), port=port, reconnect=0) as client:
                next(client.get_epoch_iterator())

        reader = threading.Thread(target=read)
        reader.start()
        assert 'held' in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == -signal.SIGTERM
        reader.join()


def test_journal_that_cannot_be_written_stops_the_server(tmp_path):
    """The error names the path and the switch."""
    path = tmp_path / 'journal'
    stream = Mapping(numbered(2000), lambda data: data)
    server = Server(stream, port=0, journal=path)
    server.start()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with ServerDataStream(('x',), port=server.port, reconnect=0,
                              timeout=5) as client:
            epoch = client.get_epoch_iterator()
            next(epoch)
            resource.setrlimit(
                resource.RLIMIT_FSIZE, (path.stat().st_size + 50, hard))
            seen = []
            with pytest.raises(ServerError):
                seen.extend(epoch)
        with pytest.raises(ServerError, match='journal=False') as caught:
            server.wait(20)
        # The user got batches that were under way, all of them on record.
        assert len(seen) < 20
        assert str(path) in str(caught.value)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
        server.stop()


def test_journal_in_a_place_that_cannot_be_written_is_an_error(tmp_path):
    """The error comes when the server starts; nothing is left open."""
    (tmp_path / 'file').write_text('')
    with pytest.raises(ServerError, match='--no-journal'):
        Server(numbered(), port=0,
               journal=tmp_path / 'file' / 'journal').start()


def test_journal_of_another_server_that_runs_is_not_taken(tmp_path):
    """Two processes never write into one file."""
    script = """
        import sys
        from fuel.server.journal import Journal
        from fuel.exceptions import ServerError
        try:
            Journal(sys.argv[1])
        except ServerError as error:
            sys.exit('another server uses it' not in str(error))
        sys.exit(2)
    """
    journal = Journal(tmp_path / 'journal')
    done = subprocess.run([sys.executable, '-c', textwrap.dedent(script),
                           str(journal.path)], check=False)
    assert done.returncode == 0
    journal.close()


def some_journal(path):
    """Return the lines of a journal that can be continued."""
    journal = Journal(path)
    ledger = Ledger(1)
    ledger.begin_at(0, {'position': 0, 'text': 'x' * 50})
    journal.begin('run', ledger)
    ledger.join('one')
    for index in range(9):
        ledger.send('one', index)
        ledger.acknowledge('one', [index] if index % 3 else [])
        ledger.add_checkpoint(index + 1, [[['position'], index + 1]], True)
    ledger.lose('one', 5.)
    journal.close()
    return path.read_bytes().splitlines(keepends=True)


def test_journal_that_is_replaced_while_it_is_opened_is_not_taken(
        tmp_path, monkeypatch):
    """The lock would be on a file that is a journal no more."""
    path = tmp_path / 'journal'
    first = Journal(path)

    def lock(descriptor, flags):
        monkeypatch.undo()
        first.begin('run', Ledger(1))

    monkeypatch.setattr('fcntl.lockf', lock)
    with pytest.raises(ServerError, match='another server uses it'):
        Journal(path)
    first.close()
    Journal(path).close()


def test_journal_is_continued_as_it_was(tmp_path):
    """A journal is read the same after a torn line or a continuation."""
    path = tmp_path / 'journal'
    lines = some_journal(path)
    expected = list(Journal(path).found[1].snapshot())
    for torn in (b'', b'x', lines[-1][:-1], lines[-1][:12]):
        path.write_bytes(b''.join(lines) + torn)
        journal = Journal(path)
        run, ledger = journal.found
        assert 'run' == run
        assert expected == list(ledger.snapshot())
        journal.begin(run, ledger)
        journal.close()
        journal = Journal(path)
        assert expected == list(journal.found[1].snapshot())
        journal.close()


def test_hostile_journal_is_set_aside(tmp_path):
    """A damaged journal gives a new run, or a ledger that can be used."""
    path = tmp_path / 'journal'
    lines = some_journal(path)
    rng = numpy.random.RandomState(3)
    values = [None, -1, 2 ** 70, 'x' * 100, [], {}, True, 'one', [[1, 0]],
              [[0, 2 ** 60]], 1.5]
    kinds = ['join', 'sent', 'delivered', 'returned', 'left', 'gone', 'end',
             'base', 'checkpoint', 'account', 'proven', 'epoch', 'odd', 5,
             'lost', 'rebase']
    for _ in range(300):
        event = [kinds[rng.randint(len(kinds))], *(
            values[rng.randint(len(values))]
            for _ in range(rng.randint(0, 8)))]
        place = rng.randint(1, len(lines) + 1)
        path.write_bytes(b''.join(
            [*lines[:place], pack(event), *lines[place:]]))
        journal = Journal(path)
        # Refused, or an event that makes a ledger all the same.
        assert journal.found is None or list(journal.found[1].snapshot())
        journal.close()
    for damage in (b'\x00' * 1000, b'[' * 10 ** 5, lines[1] + lines[2],
                   b''.join([lines[0], lines[2], lines[1]])):
        path.write_bytes(damage)
        journal = Journal(path)
        assert journal.found is None
        assert (tmp_path / 'journal.old').exists()
        journal.close()


def test_journal_stays_small(tmp_path):
    """It is replaced by what still counts when it has grown."""
    path = tmp_path / 'journal'
    journal = Journal(path)
    ledger = Ledger(1)
    ledger.begin_at(0, {'position': 0})
    journal.begin('run', ledger)
    ledger.join('one')
    for index in range(20000):
        ledger.send('one', index)
        ledger.acknowledge('one', [index])
        ledger.add_checkpoint(
            index + 1, [[['position'], index + 1]], index % 20 == 0)
    assert path.stat().st_size < 200_000
    journal.close()
    ledger = Journal(path).found[1]
    assert [[0, 20000]] == ledger.delivered.ranges()
    assert ledger.checkpoints.before(20000)[0] > 19000
