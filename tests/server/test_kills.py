"""Processes are killed at random moments, and no batch is lost or repeated.

What counts are the batches handed out up to a saved state and those after
restoring it.
"""
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from support import killing
from support.kill_pipelines import KINDS, NUM_BATCHES, SOURCES, build, write
from support.waiting import wait_until

from fuel.exceptions import WorkerError
from fuel.server import Server
from fuel.streams import ServerDataStream
from fuel.transformers import MultiProcessing

SEED = int(os.environ.get('FUEL_TEST_SEED', '0')) or random.SystemRandom(
    ).randrange(2 ** 32)
NUM_EPOCHS = 3

# Each of four tests kills once at each of its four places, and with --full 50
# times.
CASES = [pytest.param(number, id=str(number), marks=(
    [] if number < 4 else pytest.mark.full)) for number in range(50)]

pytestmark = pytest.mark.timeout(60)


def choose(number, places):
    """Return the place and count of one kill, and say which."""
    rng = random.Random(SEED + number)
    place = places[number % len(places)]
    count = rng.randrange(2, 16)
    print(f'FUEL_TEST_SEED={SEED}: {place}, {count}')  # noqa: T201
    return place, count


def kind_of(number):
    """Return the kind of pipeline of a case, which the seed shifts: a place
    has another kind in another run."""
    return KINDS[(SEED + number) % len(KINDS)]


def expected(path):
    """Return what all epochs give, as `killing.consume` notes it."""
    stream = build(path)
    return [killing.noted(batch) for _ in range(NUM_EPOCHS)
            for batch in stream.get_epoch_iterator()]


def free_port():
    """Return a port that nobody listens on."""
    with Server(build(''), port=0) as free:
        return free.port


def run(script, *arguments):
    """Run a script that can import the tests' helpers."""
    return subprocess.Popen(
        [sys.executable, '-c', textwrap.dedent(script),
         *map(str, arguments)],
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)})


@pytest.mark.parametrize('number', CASES)
def test_killed_worker_loses_nothing(number, tmp_path):
    """It is killed inside send, receive, slot copy or state; then a new stream
    begins."""
    place, count = choose(number, [
        'channel send', 'channel receive', 'slot copy', 'state delta'])
    path, data = str(tmp_path / 'saved'), write(kind_of(number), tmp_path)
    disarm = killing.arm(place, count, spare=os.getpid())
    try:
        for attempt in range(20):
            with MultiProcessing(build(data), 5,
                                 start_method='fork') as stream:
                try:
                    killing.consume(stream, path, NUM_EPOCHS)
                    break
                except WorkerError as error:
                    assert 'SIGKILL' in str(error)  # noqa: PT017
            if attempt == 2:
                disarm()
    finally:
        disarm()
    assert expected(data) == json.loads(Path(path).read_text())['seen']
    assert multiprocessing.active_children() == []


CONSUMER = """
    import os, sys
    from support import killing
    from fuel.streams import ServerDataStream
    from fuel.transformers import MultiProcessing
    from support.kill_pipelines import SOURCES, build
    if __name__ == '__main__':
        path, port, epochs, place, count, kind, data = sys.argv[1:]
        if place:
            killing.arm(place, int(count), only=os.getpid())
        if int(port):
            stream = ServerDataStream(SOURCES[kind], port=int(port))
        else:
            stream = MultiProcessing(build(data), 5)
        with stream:
            killing.consume(stream, path, int(epochs))
"""


def consume_with_kills(path, port, place, count, kind, data):
    """Run a consumer until it is done; kill it the first times."""
    kills = 0
    for attempt in range(10):
        process = run(CONSUMER, path, port, NUM_EPOCHS,
                      place if attempt < 2 else '', count, kind, data)
        code = process.wait(60)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        kills += 1
    else:
        pytest.fail('the consumer does not come to an end')
    return kills


@pytest.mark.parametrize('number', CASES)
def test_killed_consumer_loses_nothing(number, tmp_path):
    """The consumer of a worker is killed inside receive, send, lend, or saving
    its state."""
    place, count = choose(number, [
        'channel receive', 'channel send', 'lease', 'save'])
    path, kind = str(tmp_path / 'saved'), kind_of(number)
    data = write(kind, tmp_path)
    consume_with_kills(path, 0, place, count, kind, data)
    assert expected(data) == json.loads(Path(path).read_text())['seen']


@pytest.mark.parametrize('number', CASES)
def test_killed_client_loses_nothing(number, tmp_path):
    """The server goes on, and makes what was lost once more."""
    place, count = choose(
        number, ['client receive', 'client send', 'client count', 'save'])
    path, kind = str(tmp_path / 'saved'), kind_of(number)
    data = write(kind, tmp_path)
    with Server(build(data), port=0) as server:
        consume_with_kills(path, server.port, place, count, kind, data)
    # A client killed before it saved anything left an epoch behind, so the
    # order is that of later ones.
    seen = json.loads(Path(path).read_text())['seen']
    assert len(seen) == NUM_BATCHES * NUM_EPOCHS, [t for t, _ in seen]
    every = rows_of(expected(data)[:NUM_BATCHES])
    for start in range(0, len(seen), NUM_BATCHES):
        assert every == rows_of(seen[start:start + NUM_BATCHES])


def rows_of(seen):
    """Return the checksums of rows of some batches, sorted."""
    return sorted(row for rows, _ in seen for row in rows)


SERVER = """
    import sys
    from support import killing
    from fuel.server import start_server
    from support.kill_pipelines import build
    if __name__ == '__main__':
        port, place, count, data = sys.argv[1:]
        if place:
            killing.arm(place, int(count))
        start_server(build(data), port=int(port))
"""


class Supervisor(threading.Thread):
    """Starts a server, and again whenever it was killed."""

    def __init__(self, port, place, count, data):
        super().__init__()
        self.arguments = port, place, count, data
        self.stopped = False
        self.kills = 0
        self.process = run(SERVER, *self.arguments)

    def run(self):
        """Watch over the server."""
        port, place, count, data = self.arguments
        while self.process.wait() == -signal.SIGKILL and not self.stopped:
            self.kills += 1
            self.process = run(
                SERVER, port, place if self.kills < 2 else '', count, data)

    def stop(self):
        """End the server."""
        self.stopped = True
        self.process.kill()
        self.join()


@pytest.mark.parametrize('number', CASES)
def test_killed_server_loses_nothing(number, tmp_path):
    """A restarted one continues from the clients' states."""
    place, count = choose(number, [
        'server send', 'server receive', 'slot copy', 'state delta'])
    kind = kind_of(number)
    data = write(kind, tmp_path)
    port = free_port()
    supervisor = Supervisor(port, place, count, data)
    supervisor.start()
    seen = []
    try:
        with ServerDataStream(SOURCES[kind], port=port) as stream:
            for _ in range(NUM_EPOCHS):
                seen.extend(map(killing.noted, stream.get_epoch_iterator()))
    finally:
        supervisor.stop()
    assert expected(data) == seen
    assert supervisor.kills


LONG_SERVER = """
    import sys
    from fuel.datasets import IndexableDataset
    from fuel.schemes import ShuffledScheme
    from fuel.server import start_server
    from fuel.streams import DataStream
    if __name__ == '__main__':
        start_server(DataStream(
            IndexableDataset(list(range(600))),
            iteration_scheme=ShuffledScheme(600, 4)), port=int(sys.argv[1]))
"""


@pytest.mark.parametrize('number', CASES[:2] + CASES[5:16])
def test_server_killed_twice_gives_its_clients_each_batch_once(number):
    """The second kill may come when only some of the clients are back."""
    gap = random.Random(SEED + number).uniform(0.2, 1.5)
    print(f'FUEL_TEST_SEED={SEED}: {gap:.2f} s')  # noqa: T201
    port = free_port()
    server = run(LONG_SERVER, port)
    seen = [], []
    begun = threading.Barrier(3)

    def consume(mine):
        with ServerDataStream(('data',), port=port) as stream:
            for place, (batch,) in enumerate(stream.get_epoch_iterator()):
                mine.extend(batch)
                if place == 5:
                    begun.wait(30)
                time.sleep(0.01)

    clients = [threading.Thread(target=consume, args=(mine,), daemon=True)
               for mine in seen]
    try:
        for client in clients:
            client.start()
        begun.wait(30)
        for wait in (gap, 0):
            server.kill()
            server.wait()
            server = run(LONG_SERVER, port)
            time.sleep(wait)
        for client in clients:
            client.join(40)
            assert not client.is_alive()
    finally:
        server.kill()
        server.wait()
    assert list(range(600)) == sorted(seen[0] + seen[1])


SAVING_CLIENT = """
    import json, os, sys, time
    from support import killing
    from fuel.streams import ServerDataStream
    if __name__ == '__main__':
        path, port = sys.argv[1], int(sys.argv[2])
        seen = []
        with ServerDataStream(('data',), port=port) as stream:
            if os.path.exists(path):
                with open(path) as file:
                    saved = json.load(file)
                seen = saved['seen']
                stream.load_state_dict(saved['state'])
            for batch, in stream.get_epoch_iterator():
                seen.extend(map(int, batch))
                time.sleep(0.01)
                killing.save(path, {'seen': seen,
                                    'state': stream.state_dict()})
        killing.save(path + '.done', seen)
"""


@pytest.mark.timeout(120)
@pytest.mark.parametrize('number', [
    pytest.param(number, id=str(number), marks=(
        [] if number < 2 else pytest.mark.full)) for number in range(50)])
def test_server_and_clients_killed_at_any_time_lose_and_repeat_nothing(
        number, tmp_path):
    """All are started again; the clients from their saved states."""
    rng = random.Random(SEED + number)
    print(f'FUEL_TEST_SEED={SEED}')  # noqa: T201
    port = free_port()
    paths = [str(tmp_path / name) for name in 'ab']
    processes = [run(LONG_SERVER, port)] + [
        run(SAVING_CLIENT, path, port) for path in paths]
    try:
        # Before that, a restart is that of one that never began.
        wait_until(lambda: all(map(os.path.exists, paths)), seconds=60)
        for _ in range(rng.randint(1, 5)):
            time.sleep(rng.uniform(0.05, 1))
            for place in rng.choice([[0], [1], [2], [0, 1], [1, 2, 0]]):
                if place and os.path.exists(paths[place - 1] + '.done'):
                    continue
                processes[place].kill()
                processes[place].wait()
                processes[place] = (
                    run(SAVING_CLIENT, paths[place - 1], port) if place
                    else run(LONG_SERVER, port))
        for process in processes[1:]:
            assert process.wait(90) == 0
    finally:
        for process in processes:
            process.kill()
            process.wait()
    seen = [number for path in paths for number in
            json.loads(Path(path + '.done').read_text())]
    assert list(range(600)) == sorted(seen)
