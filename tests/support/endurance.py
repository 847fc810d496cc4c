"""A server under bursts of foreign peers, and clients that read meanwhile.

As a program, ``python -m support.endurance KIND,... SECONDS SEED`` prints
what came of it; ``encrypted`` stands for peers with a key.
"""
import collections
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from typing import NamedTuple

from fuel.exceptions import ServerError
from fuel.streams import ServerDataStream
from fuel.wire.curve import make_keys

NUM_BATCHES = 200

# Holds the interpreter for 0.4 s now and then, never twice in a row: clients
# would wait for the stage.
SERVER = f"""
import ctypes, itertools, sys
from fuel.datasets import IndexableDataset
from fuel.server import start_server
from fuel.streams import DataStream
from fuel.transformers import Mapping

library = ctypes.PyDLL(None)
calls = itertools.count()

def hold(data):
    if next(calls) % 50 == 0:
        library.usleep(400_000)
    return data

start_server(
    Mapping(DataStream(IndexableDataset({{'x': list(range({NUM_BATCHES}))}}),
                       batch_size=1, shuffle=True), hold),
    port=0, num_clients=int(sys.argv[1]), curve=sys.argv[2] or None)
"""

# The time at which they end comes when all have begun.
CLIENTS = """
import sys
from support import endurance
print('ready', flush=True)
endurance.read(*sys.argv[1:], float(input()))
"""

PEERS = """
import sys
from support import raw_peers
print('ready', flush=True)
raw_peers.disturb(*sys.argv[1:], float(input()))
"""


class Outcome(NamedTuple):
    """Results of a run.

    `batches`: how many all clients got.
    `epochs`: how often they got each batch, if each as often; else 0.
    `delay`: the longest wait for a batch (seconds).
    `growth`: of the server's memory at the most (megabytes).
    `errors`: of the clients.
    `status`: of the server's process, None if it runs.
    """

    batches: int
    epochs: int
    delay: float
    growth: float
    errors: list[str]
    status: int | None


class Reader(threading.Thread):
    """A client that reads epochs until the time is up."""

    def __init__(self, port, end, keys):
        super().__init__()
        self.port, self.end, self.keys = port, end, keys
        self.counts = collections.Counter()
        self.delay = 0.0
        self.error = ''

    def run(self):
        """Note which batches come, and the longest wait for one."""
        try:
            with ServerDataStream(('x',), port=self.port,
                                  curve=self.keys) as stream:
                while time.time() < self.end:
                    self.read_epoch(stream)
        except ServerError as error:
            self.error = str(error)

    def read_epoch(self, stream):
        """Read one epoch."""
        epoch = iter(stream)
        while True:
            # Others may be at their last batch of the epoch before.
            start = time.monotonic()
            batch = next(epoch, None)
            if self.counts:
                self.delay = max(self.delay, time.monotonic() - start)
            if batch is None:
                return
            self.counts[int(batch[0][0])] += 1
            time.sleep(0.02)


def read(port, count, keys, end):
    """Run clients as threads; print what they got."""
    readers = [Reader(int(port), end, keys or None)
               for _ in range(int(count))]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    total = sum((reader.counts for reader in readers), collections.Counter())
    json.dump([sorted(total.items()),
               max(reader.delay for reader in readers),
               [reader.error for reader in readers if reader.error]],
              sys.stdout)


def memory_of(process):
    """Return how much memory a process has, in megabytes."""
    with open(f'/proc/{process.pid}/status', encoding='utf-8') as file:
        for line in file:
            if line.startswith('VmRSS'):
                return int(line.split()[1]) / 1024
    return 0.0


def watch(server, end):
    """Return how far the memory of a server grew until a time."""
    first = most = memory_of(server)
    while time.time() < end and server.poll() is None:
        most = max(most, memory_of(server))
        time.sleep(0.02)
    return most - first


def start(script, *arguments):
    """Start a script that can import the tests' helpers."""
    return subprocess.Popen(
        [sys.executable, '-c', script, *map(str, arguments)], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)})


@contextlib.contextmanager
def serving(*arguments):
    """Yield a server's process, and its port."""
    server = start(SERVER, *arguments)
    port = server.stderr.readline().strip().rpartition(':')[2]
    # Its log must not fill the pipe.
    drain = threading.Thread(target=server.stderr.read)
    drain.start()
    try:
        yield server, port
    finally:
        server.kill()
        drain.join()
        server.communicate()


def endure(kinds, seconds, seed=0, num_processes=1, num_threads=4):
    """Return what comes of bursts of some kinds at a server."""
    with contextlib.ExitStack() as stack:
        curve = keys = ''
        if 'encrypted' in kinds:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            keys = str(make_keys(folder, ['peer'])[0])
            curve = f'{folder}/server'
        server, port = stack.enter_context(
            serving(num_processes * num_threads, curve))
        clients = [start(CLIENTS, port, num_threads, keys)
                   for _ in range(num_processes)]
        peers = start(PEERS, port, ','.join(kinds), seed, keys)
        for process in (*clients, peers):
            stack.callback(process.communicate)
            stack.callback(process.kill)
            assert process.stdout.readline(), process.stderr.read()
        end = time.time() + seconds
        for process in (*clients, peers):
            process.stdin.write(f'{end}\n')
            process.stdin.flush()
        growth = watch(server, end)
        answers = [json.loads(client.communicate(timeout=120)[0])
                   for client in clients]
        assert not peers.wait(60), peers.stderr.read()
        status = server.poll()
    total = sum((collections.Counter(dict(counts))
                 for counts, _, _ in answers), collections.Counter())
    times = {total[number] for number in range(NUM_BATCHES)}
    return Outcome(
        total.total(), times.pop() if len(times) == 1 else 0,
        max(delay for _, delay, _ in answers), growth,
        [error for _, _, errors in answers for error in errors], status)


if __name__ == '__main__':
    names, length, number = sys.argv[1:]
    print(names, length, number, endure(  # noqa: T201
        names.split(','), float(length), int(number), 5, 4), flush=True)
