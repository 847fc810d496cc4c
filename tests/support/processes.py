"""Running Python in another process, with the Fuel that is tested."""
import os
import socket
import subprocess
import sys
from pathlib import Path

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


def free_address():
    """Return an address on loopback that nobody listens at."""
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        return f'127.0.0.1:{listener.getsockname()[1]}'


def put_example(dataset, results):
    """Put the fourth example of a data set into a queue."""
    results.put(dataset.get_data(None, [3])[0])
