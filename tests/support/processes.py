"""Running Python in another process, with the Fuel that is tested."""
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import fuel


def environment(**variables):
    """Return this process's environment, with Fuel on the path."""
    path = [str(Path(fuel.__file__).parents[1]), os.environ.get('PYTHONPATH')]
    return {**os.environ, **variables,
            'PYTHONPATH': os.pathsep.join(filter(None, path))}


def start_python(*arguments, stdin=False, **variables):
    """Start ``python *arguments`` with further environment variables, and
    with a pipe to it if `stdin`."""
    return subprocess.Popen(
        [sys.executable, *arguments], env=environment(**variables),
        stdin=subprocess.PIPE if stdin else None,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True)


def run_python(*arguments, **variables):
    """Run ``python *arguments``; return (status, output, errors)."""
    done = subprocess.run(
        [sys.executable, *arguments], env=environment(**variables),
        capture_output=True, check=False, timeout=100)
    return done.returncode, done.stdout, done.stderr


_IN_LITTLE_MEMORY = """
import resource, sys
from fuel import datasets
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream

with open('/proc/self/status') as file:
    size, = [int(line.split()[1]) << 10 for line in file
             if line.startswith('VmData')]
limit = size + (32 << 20)
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
dataset = getattr(datasets, sys.argv[1])(sys.argv[2], **eval(sys.argv[3]))
stream = DataStream(
    dataset, iteration_scheme=ShuffledScheme(32768, 128))
epoch = stream.get_epoch_iterator()
print(len({number for _ in range(30) for number in next(epoch)[0]}))
"""


def count_in_little_memory(name, path, **arguments):
    """Read 30 shuffled batches of 128 of 32,768 examples with 32 MB of memory
    more than Python needs; return (status, output, errors).

    The output is how many different values of the first source there were.

    `name`: of the data set's class; `arguments`: of it, beside the path.
    """
    return run_python('-c', _IN_LITTLE_MEMORY, name, path, repr(arguments))


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
            # Its children may hold the pipes for ever.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
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
