"""Remote files in several processes."""
import os
import random
import subprocess
import sys
import threading

import numpy
import pytest
from support import range_server as faults

from fuel import config
from fuel.datasets import H5PYDataset
from fuel.remote.location import RemotePath
from fuel.schemes import ShuffledScheme
from fuel.storage.file_bytes import raw_file_at
from fuel.streams import DataStream
from fuel.transformers import MultiProcessing

from .conftest import NUM_EXAMPLES, check_batch, read_epoch


def stream_of(url):
    """Return a stream of the file's examples."""
    return DataStream(H5PYDataset(url, ('train',)),
                      iteration_scheme=ShuffledScheme(NUM_EXAMPLES, 32))


@pytest.mark.parametrize('where', [
    'disk', 'memory', pytest.param('little memory', marks=pytest.mark.full)])
def test_fork_in_the_middle_of_an_epoch(server, url, data, where):
    """Requests are under way: both processes read on, exactly."""
    if where != 'disk':
        config.remote_cache_path = 'off'
    if where == 'little memory':
        config.remote_memory_bytes = 100_000
    server.latency = .02
    stream = stream_of(url)
    epoch = stream.get_epoch_iterator()
    first = next(epoch)
    child = os.fork()
    status = 1
    try:
        rest = list(epoch)
        for batch in rest:
            check_batch(data, stream.sources, batch)
        numbers = numpy.concatenate([
            batch[stream.sources.index('number')]
            for batch in [first, *rest]])
        assert list(range(NUM_EXAMPLES)) == sorted(numbers.tolist())
        assert list(range(NUM_EXAMPLES)) == sorted(read_epoch(stream, data))
        status = 0
    finally:
        if not child:
            os._exit(status)
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize('num_workers', [1, 2])
def test_worker_processes_read_remote_files(url, data, num_workers):
    """They keep the order of the plain stream."""
    plain = [batch[-2:] for batch in stream_of(url).get_epoch_iterator()]
    workers = MultiProcessing(stream_of(url), num_workers=num_workers)
    try:
        for expected, batch in zip(plain, workers.get_epoch_iterator(),
                                   strict=True):
            check_batch(data, workers.sources, batch)
            for one, other in zip(expected, batch[-2:], strict=True):
                assert numpy.array_equal(one, other)
    finally:
        workers.close()


def test_fork_while_another_thread_reads(server, url, data):
    """The child has none of its locks and requests."""
    server.latency = .05
    config.remote_cache_path = 'off'
    dataset = H5PYDataset(url, ('train',))
    dataset.open()
    thread = threading.Thread(target=lambda: dataset.get_data(
        None, list(range(0, NUM_EXAMPLES, 7))))
    thread.start()
    child = os.fork()
    status = 1
    try:
        check_batch(data, dataset.sources, dataset.get_data(None, [3, 599]))
        status = 0
    finally:
        if not child:
            os._exit(status)
    thread.join()
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize('where', ['disk', 'memory'])
def test_child_fetches_what_was_under_way(server, folder, where):
    """Replies to the parent's requests never come to the child."""
    if where == 'memory':
        config.remote_cache_path = 'off'
    content = numpy.random.RandomState(0).bytes(1 << 20)
    (folder / 'a').write_bytes(content)
    file = raw_file_at(RemotePath(server.url('a')))
    server.latency = .3
    assert file.request(numpy.array([0]), numpy.array([len(content)]))
    child = os.fork()
    status = 1
    try:
        assert content == file.read(0, len(content))
        status = 0
    finally:
        if not child:
            os._exit(status)
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


READER = """
import sys
from fuel import config
from fuel.datasets import H5PYDataset
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream

url, config.remote_cache_path, config.default_seed = (
    *sys.argv[1:3], int(sys.argv[3]))
stream = DataStream(H5PYDataset(url, ('train',)),
                    iteration_scheme=ShuffledScheme(int(sys.argv[4]), 32))
place = stream.sources.index('number')
for _ in range(3):
    numbers = [number for batch in stream.get_epoch_iterator()
               for number in batch[place].tolist()]
    assert sorted(numbers) == list(range(int(sys.argv[4])))
"""
FAULTS = (faults.status(500), faults.status(503, Retry_After='0'),
          faults.reset, faults.short, faults.wrong_range, faults.silent(1))


@pytest.mark.timeout(100)
@pytest.mark.parametrize('seed', [0, *[
    pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 50)]])
def test_processes_over_one_cache_and_a_faulty_server_end(
        server, url, cache, seed):
    """Four that begin at once, with an answer in five that is at fault."""
    generator = random.Random(seed)
    server.plan = [
        generator.choice(FAULTS) if generator.random() < .2 else None
        for _ in range(5000)]
    readers = [subprocess.Popen(
        [sys.executable, '-c', READER, url, cache, str(number),
         str(NUM_EXAMPLES)], stderr=subprocess.PIPE, text=True,
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)})
        for number in range(4)]
    try:
        for reader in readers:
            errors = reader.communicate(timeout=60)[1]
            assert 0 == reader.returncode, errors
    finally:
        for reader in readers:
            reader.kill()
            reader.communicate()
