"""The command ``fuel-server``."""
import os
import signal
import stat
import subprocess
import sys
import textwrap

import pytest
from support.process_pipelines import build

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
def test_command_with_a_mistake_says_what_is_wrong(args, text, capsys):
    """With the exit status of a usage error."""
    with pytest.raises(SystemExit, match='2'):
        main(args)
    assert text in capsys.readouterr().err


def test_help_names_the_parts(capsys):
    """Sub-command and options."""
    with pytest.raises(SystemExit, match='0'):
        main(['--help'])
    shown = capsys.readouterr().out
    assert 'module:function' in shown
    assert 'fuel-server keys' in shown


def test_status_prints_the_statistics(capsys):
    """Batches, bytes, clients, queue, and who waits for whom."""
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
    import fuel.wire.status
    ask = fuel.wire.status.ask_status
    monkeypatch.setattr(fuel.wire.status, 'ask_status',
                        lambda address, curve: ask(address, 0.2, curve))
    assert main(['--status', 'tcp://127.0.0.1:1']) == 1
    assert 'no server answers at tcp://127.0.0.1:1' in capsys.readouterr().err


def test_keys_encrypt_and_admit(tmp_path, capsys):
    """Who has a key is served; who has none, or another, is not."""
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
    """With the command that makes them."""
    with pytest.raises(OSError, match='make them with fuel-server keys'):
        Server(build(), port=0, curve=tmp_path).start()


@pytest.mark.parametrize('launcher', [True, False])
def test_command_serves_the_users_stream(tmp_path, launcher):
    """In a process of its own, from the user's directory."""
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
