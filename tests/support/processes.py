"""Running Python in another process, with the Fuel that is tested."""
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import fuel


def environment(**variables):
    """Return this process's environment, with Fuel on the path."""
    path = [str(Path(fuel.__file__).parents[1]), os.environ.get('PYTHONPATH')]
    return {**os.environ, **variables,
            'PYTHONPATH': os.pathsep.join(filter(None, path))}


def start_python(*arguments, **variables):
    """Start ``python *arguments`` with further environment variables."""
    return subprocess.Popen(
        [sys.executable, *arguments], env=environment(**variables),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def run_python(*arguments, **variables):
    """Run ``python *arguments``; return (status, output, errors)."""
    done = subprocess.run(
        [sys.executable, *arguments], env=environment(**variables),
        capture_output=True, check=False, timeout=100)
    return done.returncode, done.stdout, done.stderr


def on_small_disk(folder, options):
    """Return the beginning of a command that runs with a small disk mounted
    in a new folder; skip the test where none can be mounted.

    `options`: of ``mount -t tmpfs``, such as ``'size=1m'``.
    """
    folder.mkdir()
    private = ['unshare', '--map-root-user', '--mount', 'sh', '-c',
               f'mount -t tmpfs -o {options} tmpfs "$0" && exec "$@"',
               str(folder)]
    try:
        subprocess.run([*private, 'true'], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip('no small disk can be mounted here')
    return private


def end_together(started, timeout=200):
    """Wait for processes; return the (status, output, errors) of each."""
    try:
        ended = [process.communicate(timeout=timeout) for process in started]
    finally:
        for process in started:
            process.kill()
            process.communicate()
    return [(process.returncode, output.decode(), errors.decode())
            for process, (output, errors) in zip(started, ended, strict=True)]


def outputs(started):
    """Wait for processes that must end well; return what they print."""
    ended = end_together(started)
    for status, _, errors in ended:
        assert 0 == status, errors
    return [output for _, output, _ in ended]


def start_ranks(ranks, *arguments, **variables):
    """Start ``python *arguments`` on some ranks, as torchrun does."""
    host, port = free_address().split(':')
    return [start_python(*arguments, OMP_NUM_THREADS='1', **variables, **(
        {} if ranks == 1 else {
            'RANK': str(rank), 'LOCAL_RANK': str(rank),
            'WORLD_SIZE': str(ranks), 'MASTER_ADDR': host,
            'MASTER_PORT': port})) for rank in range(ranks)]


def free_address():
    """Return an address on loopback that nobody listens at."""
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        return f'127.0.0.1:{listener.getsockname()[1]}'


def put_example(dataset, results):
    """Put the fourth example of a data set into a queue."""
    results.put(dataset.get_data(None, [3])[0])
