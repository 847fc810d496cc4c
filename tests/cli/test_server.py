"""The command ``fuel-server``."""
import os
import signal
import socket
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from support.process_pipelines import build
from support.waiting import wait_until

from fuel.bin.fuel_server import main
from fuel.exceptions import ServerError
from fuel.server import Server
from fuel.streams import ServerDataStream

pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize('args, text', [
    ([], 'either module:function or --status'),
    (['a:b', '--status', 'x'], 'either module:function or --status'),
    (['nocolon'], "expected module:function, got 'nocolon'"),
    (['no_such_module:f'], "no module 'no_such_module'"),
    (['os:no_such'], "'os' has no function 'no_such'"),
    (['os:getcwd', '--sharing', 'odd'], 'invalid choice')])
def test_command_with_a_mistake_says_what_is_wrong(args, text, capfd):
    """It exits with the status of a usage error."""
    with pytest.raises(SystemExit, match='2'):
        sys.exit(main(args))
    assert text in capfd.readouterr().err


def test_help_names_the_parts(capsys):
    """Sub-command and options."""
    with pytest.raises(SystemExit, match='0'):
        main(['--help'])
    shown = capsys.readouterr().out
    assert 'module:function' in shown
    assert 'fuel-server keys' in shown


def test_status_prints_the_statistics(capsys):
    """The status has batches, bytes, clients, queue and both waiting times."""
    with Server(build(), port=0) as server:
        with ServerDataStream(('x', 'y'), port=server.port) as client:
            epoch = client.get_epoch_iterator()
            for _ in range(3):
                next(epoch)
            assert main(['--status', server.address]) == 0
        shown = capsys.readouterr().out
    values = dict(line.rsplit(maxsplit=1) for line in shown.splitlines())
    assert int(values['batches']) >= 3
    assert int(values['bytes']) >= 3 * 4 * 6000 * 8
    assert values['clients'] == '1'
    for name in ('queue', 'epoch', 'seconds waiting on the pipeline',
                 'seconds waiting on clients'):
        float(values[name])


def test_status_without_a_server_fails(capsys, monkeypatch):
    """It does not wait long."""
    import fuel.wire.messages
    ask = fuel.wire.messages.ask_status
    monkeypatch.setattr(fuel.wire.messages, 'ask_status',
                        lambda address, curve: ask(address, 0.2, curve))
    assert main(['--status', 'tcp://127.0.0.1:1']) == 1
    assert 'no server answers at tcp://127.0.0.1:1' in capsys.readouterr().err


def test_keys_encrypt_and_admit(tmp_path, capsys):
    """Only clients with a key that the server made are served."""
    keys = tmp_path / 'keys'
    assert main(['keys', str(keys), 'one', 'two']) == 0
    assert main(['keys', str(tmp_path / 'other'), 'three']) == 0
    assert '--curve' in capsys.readouterr().out
    for path in keys.rglob('*.key_secret'):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with Server(build(), port=0, curve=keys / 'server') as server:
        for name in ('one', 'two'):
            with ServerDataStream(('x', 'y'), port=server.port,
                                  curve=keys / name) as client:
                assert len(list(client.get_epoch_iterator())) == 6
        stranger = tmp_path / 'other' / 'three'
        (stranger / 'server.key').write_bytes(
            (keys / 'one' / 'server.key').read_bytes())
        for curve in (None, stranger):
            with ServerDataStream(
                    ('x', 'y'), port=server.port, curve=curve,
                    timeout=1) as client, pytest.raises(ServerError):
                next(client.get_epoch_iterator())
    with pytest.raises(SystemExit, match='2'):
        main(['keys', str(keys), '../up'])
    with pytest.raises(SystemExit, match='2'):
        main(['keys', str(keys), 'one'])
    assert 'is taken' in capsys.readouterr().err


def test_missing_keys_are_told(tmp_path):
    """The error has the command that makes them."""
    with pytest.raises(OSError, match='make them with fuel-server keys'):
        Server(build(), port=0, curve=tmp_path).start()


@pytest.mark.parametrize('launcher', [True, False])
def test_command_serves_the_users_stream(tmp_path, launcher):
    """It serves from a process of its own, in the user's directory."""
    (tmp_path / 'mine.py').write_text(textwrap.dedent("""
        from fuel.datasets import IndexableDataset
        from fuel.schemes import SequentialScheme
        from fuel.streams import DataStream
        def build():
            return DataStream(IndexableDataset([1, 2, 3]),
                              iteration_scheme=SequentialScheme(3, 2))
    """))
    command = [sys.executable, '-m', 'fuel.bin.fuel_server']
    path = os.path.join(os.path.dirname(__file__), '..', '..', 'bin',
                        'fuel-server')
    if launcher and os.path.exists(path):
        command = [sys.executable, path]
    with subprocess.Popen(
            [*command, 'mine:build', '--port', '0'], cwd=tmp_path,
            stderr=subprocess.PIPE, text=True,
            env={**os.environ,
                 'PYTHONPATH': os.pathsep.join(sys.path)}) as process:
        line = process.stderr.readline()
        port = int(line.rpartition(':')[2])
        with ServerDataStream(('data',), port=port) as client:
            batches = [batch.tolist() for (batch,)
                       in client.get_epoch_iterator()]
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert process.stderr.read() == ''
    assert batches == [[1, 2], [3]]


CRASHING = """
    import ctypes, os
    from pathlib import Path
    from fuel.datasets import IndexableDataset
    from fuel.schemes import SequentialScheme
    from fuel.streams import DataStream
    from fuel.transformers import Mapping
    crashes = Path('crashes')
    def crash(batch):
        if batch[0][0] == 6 and len(crashes.read_text()) < {most}:
            with crashes.open('a') as file:
                file.write('x')
            ctypes.string_at(0)
        return batch
    def build():
        Path('pid').write_text(str(os.getpid()))
        stream = DataStream(IndexableDataset(list(range(20))),
                            iteration_scheme=SequentialScheme(20, 2))
        return Mapping(stream, crash)
    def fail():
        ctypes.string_at(0)
"""


@pytest.fixture
def serve(tmp_path):
    """Return a function that starts the command over what a function of a
    module of the user's builds."""
    (tmp_path / 'crashes').touch()
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    started = []

    def serve(most, *options, function='build'):
        (tmp_path / 'mine.py').write_text(
            textwrap.dedent(CRASHING.format(most=most)))
        process = subprocess.Popen(
            [sys.executable, '-m', 'fuel.bin.fuel_server', f'mine:{function}',
             '--port', str(port), '--journal', 'journal', *options],
            cwd=tmp_path, stderr=subprocess.PIPE, text=True,
            env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)})
        started.append(process)
        return process, port
    yield serve
    for process in started:
        process.kill()
        process.communicate()


def test_server_that_crashed_is_started_again_and_goes_on(serve):
    """Its client gets each batch once; a signal ends both processes."""
    process, port = serve(2)
    with ServerDataStream(('data',), port=port) as client:
        batches = [batch.tolist() for (batch,) in client.get_epoch_iterator()]
    assert [[i, i + 1] for i in range(0, 20, 2)] == batches
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    assert process.stderr.read().count('SIGSEGV ended it; it is started') == 2


def test_server_that_keeps_crashing_is_not_started_for_ever(serve):
    """The status is that of the signal."""
    process, _ = serve(0, function='fail')
    assert process.wait(50) == 128 + signal.SIGSEGV
    error = process.stderr.read()
    assert error.count('it is started again') == 5
    assert 'SIGSEGV ended it 6 times in 60 seconds' in error


def test_server_that_was_killed_is_not_started_again(serve, tmp_path):
    """The supervisor reports the signal; its status is that of the signal."""
    process, _ = serve(0)
    process.stderr.readline()
    os.kill(int((tmp_path / 'pid').read_text()), signal.SIGKILL)
    assert process.wait(20) == 128 + signal.SIGKILL
    assert 'SIGKILL ended it, which is not a crash' in process.stderr.read()


def test_server_is_not_started_again_unless_wanted(serve):
    """The crash is that of the command."""
    process, _ = serve(0, '--no-restart', function='fail')
    assert process.wait(20) == -signal.SIGSEGV
    assert 'started again' not in process.stderr.read()


def test_server_ends_with_the_command_that_supervises_it(serve, tmp_path):
    """A killed supervisor leaves no server: the port is free again."""
    process, _ = serve(0)
    process.stderr.readline()
    server = int((tmp_path / 'pid').read_text())
    assert server != process.pid
    process.kill()

    def is_gone():
        try:
            os.kill(server, 0)
        except ProcessLookupError:
            return True
        # Nobody may have waited for it yet.
        return '(zombie)' in Path(f'/proc/{server}/status').read_text()
    wait_until(is_gone, 'the end of the server')
