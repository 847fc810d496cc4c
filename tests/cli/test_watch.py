"""A page shows what a server does, second by second."""
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from urllib.request import urlopen

import pytest
from support.process_pipelines import build
from support.waiting import wait_until

from fuel.bin import watch
from fuel.bin.fuel_server import main
from fuel.client.measures import ServerStatus, take_status
from fuel.exceptions import ServerError
from fuel.profiling import StageMeasurements
from fuel.server import Server
from fuel.streams import ServerDataStream
from fuel.transformers import Mapping
from fuel.wire import WireError
from fuel.wire.messages import ClientStatus, ask_status

pytestmark = pytest.mark.timeout(60)


def timed(when, count=0, clients=1, pid=7, **numbers):
    """Return what a server says that has made so many batches."""
    return watch.TimedStatus(ServerStatus(
        {'address': 'tcp://127.0.0.1:5557', 'pid': pid, 'epoch': 2,
         'batches': count, 'bytes': count * 10 ** 6, 'errors': 0,
         'waits for clients': 'no', **numbers},
        [StageMeasurements(
            (0,), 'MultiProcessing', 0, '2 workers', 2, items=count,
            work_seconds=.001 * count, stall_seconds=.0005 * count,
            queue_items=3, queue_size=100),
         StageMeasurements(
             (0, 0), 'Mapping(augment)', 1, '2 workers', items=count,
             work_seconds=.015 * count, stall_seconds=.008 * count)],
        [ClientStatus(f'client{number}', number, True, when - 50., count,
                      number % 11, 10, number == 0)
         for number in range(clients)]), when)


def texts(lines):
    """Return the lines, without colours."""
    return [line.text for line in lines]


def test_page_shows_the_last_second():
    """It shows rates, shares, the slowest stage, and the clients."""
    lines = watch.page(timed(101., 250), timed(100., 150), 80)
    shown = texts(lines)
    assert shown[0].startswith('tcp://127.0.0.1:5557   pid 7')
    assert shown[2] == ('100 batches/s, 100 MB/s; the sender waits 85%, most '
                        'for Mapping(augment)')
    stage, = [line for line in lines if 'Mapping' in line.text
              and 'workers' in line.text]
    assert stage.look == watch.SLOW
    # Of two workers.
    assert ['Mapping(augment)', '2', 'workers', '100/s', '75%', '80%',
            '0%'] == stage.text.split()
    reader, = [line for line in shown if line.startswith('MultiProcessing')]
    assert reader.split()[3:] == ['100/s', '10%', '5%', '0%', '3', 'of', '100']
    since = time.strftime('%H:%M:%S', time.localtime(50.))
    assert ['client0', '0', '250', '100.0/s', '0', 'of', '10', 'waits',
            since] == shown[-1].split()


def test_first_page_shows_all_since_the_server_began():
    """There is nothing to compare with."""
    shown = texts(watch.page(timed(101., 250), None))
    assert 'Since the server began:' in shown
    assert any('Mapping(augment)' in line and '1.9 s' in line
               for line in shown)


@pytest.mark.parametrize('width, height', [(80, 24), (40, 10), (10, 5),
                                           (200, 60), (80, 14), (1, 1)])
def test_page_fits_a_terminal(width, height):
    """Long names are cut; clients that have no room are counted."""
    now, before = timed(101., 250, 30), timed(100., 150, 30)
    long = '\u4e2d' * 300
    now.status.stages[1] = StageMeasurements((0, 0), long, 300, long)
    lines = texts(watch.page(now, before, width, height))
    assert all(len(line) <= width and line.isascii() and line.isprintable()
               for line in lines)
    # The cursor is in the last line.
    assert len(lines) < max(2, height)
    if 13 < height < 39:
        assert re.fullmatch(r'and \d+ more clients', lines[-1])


def test_server_that_waits_for_clients_says_so():
    """It does so instead of showing rates."""
    shown = texts(watch.page(timed(101., **{
        'waits for clients': 'the server waits for 1 more client'}), None))
    assert 'the server waits for 1 more client' in shown


class Terminal(io.StringIO):
    """A terminal in memory."""

    def isatty(self):
        """Return that it is one."""
        return True


@pytest.mark.parametrize('kind, environment, colours, moves', [
    (Terminal, {}, True, True), (Terminal, {'NO_COLOR': '1'}, False, True),
    (Terminal, {'TERM': 'dumb'}, False, False),
    (io.StringIO, {}, False, False)])
def test_screen_draws_as_the_terminal_can(
        monkeypatch, kind, environment, colours, moves):
    """Colours and moves of the cursor are for terminals alone."""
    for name, usual in (('TERM', 'xterm'), ('NO_COLOR', '')):
        monkeypatch.setenv(name, environment.get(name, usual))
    file = kind()
    screen = watch.Screen(file)
    for _ in range(2):
        screen.show([watch.Line('head', watch.HEAD), watch.Line('text')])
    shown = file.getvalue()
    assert ('\x1b[1mhead\x1b[0m' in shown) == colours
    assert shown.count('\x1b[H') == 2 * moves
    assert ('\x1b' in shown) == moves


def test_watch_says_that_a_server_is_gone_and_back(monkeypatch, capsys):
    """The last page stays; the next server is not compared with it."""
    answers = iter([timed(100., 10), timed(101., 20), ServerError('no server'),
                    ServerError('no server'), timed(104., 5, pid=8),
                    KeyboardInterrupt()])

    def ask(*_):
        answer = next(answers)
        if isinstance(answer, BaseException):
            raise answer
        return answer.status
    monkeypatch.setattr(watch, 'ask_status', ask)
    monkeypatch.setattr(watch, 'take_status', lambda status: status)
    monkeypatch.setattr(watch, '_PAGE_SECONDS', .01)
    clock = iter([100., 101., 200.])
    monkeypatch.setattr(watch.time, 'time', lambda: next(clock))
    assert watch.watch('tcp://127.0.0.1:1') == 0
    pages = capsys.readouterr().out.split('\n\n\n')
    shown = pages[0].split('\ntcp://')
    assert len(shown) == 5
    # Since the last answer.
    assert f'No answer since {watch._clock(101.)}' in shown[1]
    assert 'no server' in shown[1]
    assert 'batches/s' not in shown[4] and 'pid 8' in shown[4]
    assert ('It did not answer from {} to {}.'.format(
        *map(watch._clock, (101., 200.)))) in shown[4]


def test_watch_without_a_server_fails(monkeypatch, capsys):
    """The status fails, too: the address may be wrong."""
    monkeypatch.setattr(watch, '_STATUS_SECONDS', .1)
    assert main(['--status', 'tcp://127.0.0.1:1', '--watch']) == 1
    assert 'no server answers at tcp://127.0.0.1:1' in capsys.readouterr().err


def test_watch_ends_with_an_interrupt(tmp_path):
    """There is no traceback; the pages have the client and the stage."""
    with Server(build(), port=0) as server, ServerDataStream(
            ('x', 'y'), port=server.port) as client:
        epoch = client.get_epoch_iterator()
        next(epoch)
        path = tmp_path / 'out'
        with path.open('w') as out, subprocess.Popen(
                [sys.executable, '-m', 'fuel.bin.fuel_server', '--status',
                 server.address, '--watch'], stdout=out,
                stderr=subprocess.PIPE, text=True,
                env={**os.environ,
                     'PYTHONPATH': os.pathsep.join(sys.path)}) as process:
            wait_until(lambda: path.read_text().count('\nclient') >= 2,
                       'two pages')
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0
            assert process.stderr.read() == ''
        shown = path.read_text()
    assert 'DataStream' in shown and 'batches/s' in shown
    assert re.search(r'\n\S+ +1 +0\.0/s +\d of 10 ', shown)


def test_json_has_all_of_the_status(capsys):
    """JSON has the stages and clients, which the plain lines leave out."""
    with Server(build(), port=0) as server, ServerDataStream(
            ('x', 'y'), port=server.port) as client:
        epoch = client.get_epoch_iterator()
        for _ in range(3):
            next(epoch)
        wait_until(lambda: [2] <= [
            one['batches'] for one
            in ask_status(server.address)['connections']], 'acknowledgements')
        assert main(['--status', server.address, '--json']) == 0
        found = json.loads(capsys.readouterr().out)
    assert found['batches'] >= 3
    stages = [stage['name'] for stage in found['stages']]
    assert 'DataStream' in stages
    assert found['stages'][0]['items'] >= 3
    one, = found['connections']
    assert 2 <= one['batches'] <= 3 and one['seconds'] > 0
    assert 0 <= one['lag'] <= one['hwm']


def test_status_tells_no_name_that_another_could_take():
    """The status shortens clients' names: a whole one gets the batches."""
    with Server(build(), port=0, metrics_port=0) as server, ServerDataStream(
            ('x', 'y'), port=server.port) as client:
        next(client.get_epoch_iterator())
        connection, = server.service.connections.values()
        told = json.dumps(ask_status(server.address))
        with urlopen(server.metrics_address) as answer:
            told += answer.read().decode()
    assert 16 == len(connection.client)
    assert connection.client not in told
    assert told.count(connection.client[:8]) > 1


def test_status_comes_while_a_batch_takes_long():
    """It has its stages, counted up to there."""
    begun, go_on = threading.Event(), threading.Event()

    def wait(batch):
        begun.set()
        assert go_on.wait(60)
        return batch
    with Server(Mapping(build(), wait), port=0) as server, ServerDataStream(
            ('x', 'y'), port=server.port) as client:
        thread = threading.Thread(target=lambda: next(
            client.get_epoch_iterator()))
        thread.start()
        try:
            assert begun.wait(20)
            status = take_status(ask_status(server.address, timeout=20))
        finally:
            go_on.set()
            thread.join()
    assert [stage.items for stage in status.stages][:2] == [0, 1]
    assert [one.batches for one in status.clients] == [0]


@pytest.mark.parametrize('change', [
    {'stages': [1]}, {'stages': [{}] * 1000}, {'stages': {}},
    {'connections': [None]}, {'connections': [{}]}, {'connections': 'x'},
    {'connections': [{}] * 20_000}, {'a\x1b[2J': 1}, {'a': '\x1b]0;x\x07'},
    {'a': []}, {'a': None}, {'a': 'x' * 2000},
    {str(number): number for number in range(200)}])
def test_hostile_status_is_an_error(change, monkeypatch, capsys):
    """It is shown neither as text nor as JSON, and moves no cursor."""
    status = {'batches': 1, 'stages': [], 'connections': [], **change}
    with pytest.raises(WireError):
        take_status(status)
    monkeypatch.setattr('fuel.wire.messages.ask_status',
                        lambda address, curve: status)
    for how in ([], ['--json']):
        assert main(['--status', 'tcp://127.0.0.1:1', *how]) == 1
    captured = capsys.readouterr()
    assert '\x1b' not in captured.out + captured.err
    assert captured.out == ''


@pytest.mark.parametrize('field, value', [
    ('seconds', -1.), ('seconds', 1), ('batches', -1), ('rank', 'x'),
    ('lag', True), ('hwm', 2 ** 70), ('client', 5), ('is_local', 1)])
def test_hostile_client_is_an_error(field, value):
    """Each field has its type and range."""
    fields = ClientStatus('one', None, True, 1., 2, 3, 4, False)._asdict()
    taken, = take_status({'connections': [fields]}).clients
    assert taken == tuple(fields.values())
    with pytest.raises(WireError):
        take_status({'connections': [{**fields, field: value}]})


def test_name_of_a_client_cannot_end_the_page():
    """The client chose the name, so the server is not to blame."""
    fields = ClientStatus('a\x1b[2J\n' * 400, None, True, 1., 2, 3, 4, False)
    taken, = take_status({'connections': [fields._asdict()]}).clients
    assert taken.client.startswith('a?[2J?a?') and len(taken.client) == 1000
