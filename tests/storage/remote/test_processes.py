"""Remote files in several processes."""
import os
import threading

import numpy
import pytest

from fuel import config
from fuel.datasets import H5PYDataset
from fuel.schemes import ShuffledScheme
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
    """With requests under way: both processes read on, exactly."""
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
    """In the order of the plain stream."""
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
