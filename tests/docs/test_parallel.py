"""The programs of the pages on parallel processing run as written."""
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from support.doctest_sessions import code_blocks
from support.waiting import wait_until

from fuel.utils.lockfile import LockFile

DOCS = Path(__file__).parents[2] / 'docs'
PAGE = DOCS / 'parallel.rst'


@pytest.fixture(autouse=True)
def one_run():
    """Leave the port that the programs name to one run of the tests."""
    # A user cannot open another's file.
    user = os.getuid() if hasattr(os, 'getuid') else ''
    path = os.path.join(
        tempfile.gettempdir(), f'fuel-tests-port{user}.lock')
    with LockFile(path).held(100):
        yield


def programs(page=PAGE):
    """Return the programs on a page, by file name."""
    return {re.match(r'"""(\S+)"""', text).group(1): text
            for text in code_blocks(page.read_text('utf-8'))}


@contextmanager
def program(directory, *arguments):
    """Run one of the programs; it does not outlive the block."""
    with subprocess.Popen(
            [sys.executable, *arguments], cwd=directory, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            # Each line is written at once: clients share standard output.
            env={**os.environ, 'PYTHONUNBUFFERED': '',
                 'PYTHONPATH': os.pathsep.join(sys.path)}) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for_port(port, seconds=60):
    """Wait until nobody uses a port: the programs name it."""
    wait_until(lambda: is_free(port), f'the end of what has port {port}',
               seconds)


def is_free(port):
    """Return whether a port can be listened on."""
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(('127.0.0.1', port))
        except OSError:
            return False
    return True


@pytest.mark.timeout(110)
def test_server_and_training_run_as_separate_processes(tmp_path):
    """With the server, and without it."""
    for name, text in programs().items():
        (tmp_path / name).write_text(text)
    with program(tmp_path, 'train.py') as alone:
        output, errors = alone.communicate(timeout=60)
    assert output.startswith('Training took'), errors
    wait_for_port(5557)
    with program(tmp_path, 'server.py') as server:
        assert 'tcp://127.0.0.1:5557' in server.stderr.readline()
        with program(tmp_path, 'train.py', '-p') as parallel:
            output, errors = parallel.communicate(timeout=60)
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=20)
    assert output.startswith('Training took'), errors
    assert server.returncode == 0


def outputs_of(directory, *commands):
    """Return what the last two of some programs print, run at once."""
    wait_for_port(5559)
    with ExitStack() as running:
        started = [running.enter_context(program(
            directory, 'two_clients.py', *command)) for command in commands]
        return [process.communicate(timeout=50) for process in started[-2:]]


@pytest.mark.timeout(110)
def test_server_and_two_clients_deliver_each_example_once(tmp_path):
    """As one command, and as three programs."""
    for name, text in programs().items():
        (tmp_path / name).write_text(text)
    for commands in ([()], [('serve',), ('train',), ('train',)]):
        outputs = outputs_of(tmp_path, *commands)
        parts = [tuple(map(int, line.split())) for output, _ in outputs
                 for line in output.splitlines()]
        assert 2 == len(parts), outputs
        assert [1000, 499500] == [sum(part) for part in zip(
            *parts, strict=True)]
        assert all(count % 50 == 0 for count, _ in parts)


# Runs a client that does something after each of its checkpoints.
DRIVER = """
import os, sys
import resumable_client
from support.waiting import wait_until
save, path = resumable_client.save, sys.argv[1]
resumable_client.SECONDS = 0
def save_and(*args, **kwargs):
    save(*args, **kwargs)
    {}
resumable_client.save = save_and
resumable_client.train(path)
"""
KILLED = 'os.kill(os.getpid(), 9)'
WAITING = "wait_until(lambda: os.path.exists('b.json'))"


@pytest.mark.timeout(110)
def test_killed_client_continues_from_its_checkpoint(tmp_path):
    """The two together train on each example once in each epoch."""
    for name, text in programs().items():
        (tmp_path / name).write_text(text)
    wait_for_port(5559)
    with program(tmp_path, 'two_clients.py', 'serve'), \
            program(tmp_path, '-c', DRIVER.format(WAITING), 'a.json') as a:
        with program(tmp_path, '-c', DRIVER.format(KILLED), 'b.json') as b:
            assert b.wait(50) == -signal.SIGKILL
        with program(tmp_path, 'resumable_client.py', 'b.json') as b:
            outputs = [process.communicate(timeout=50) for process in (a, b)]
    parts = [tuple(map(int, output.split())) for output, _ in outputs]
    assert [2000, 999000] == [sum(part) for part in zip(*parts, strict=True)]


def test_page_shows_how_keys_are_made():
    """The command and the option on each side."""
    text = PAGE.read_text('utf-8')
    for part in ('fuel-server keys', '--curve', 'curve='):
        assert part in text
