"""Faults are injected at named points, and taken away again."""
import os
import signal

import numpy
import pytest
from support.process_pipelines import build

from fuel.server import Server
from fuel.streams import ServerDataStream
from fuel.testing.faults import POINTS, intercept
from fuel.transformers import MultiProcessing

OF_WORKERS = ['channel send', 'channel receive', 'slot copy', 'lease',
              'state delta']
# tests/storage/remote comes to these.
OF_REMOTE_FILES = ['remote wait', 'cache write', 'cache record']
OF_SERVERS = [*sorted({*POINTS} - {*OF_WORKERS, *OF_REMOTE_FILES}),
              'slot copy', 'state delta']


def read_all(stream):
    """Return the batches of one epoch."""
    with stream:
        return [numpy.array(batch[1]) for batch in
                stream.get_epoch_iterator()]


@pytest.mark.parametrize('point', OF_WORKERS)
def test_worker_comes_to_the_point(point, tmp_path):
    """It is in the consumer, or in its worker, which is forked in the
    block."""
    def record(function, *args, **kwargs):
        (tmp_path / str(os.getpid())).touch()
        return function(*args, **kwargs)

    with intercept(point, record):
        found = read_all(MultiProcessing(build(), start_method='fork'))
    assert [] != list(tmp_path.iterdir())
    numpy.testing.assert_array_equal(read_all(build()), found)


@pytest.mark.parametrize('point', OF_SERVERS)
def test_server_or_client_comes_to_the_point(point):
    """Both are in this process."""
    calls = []

    def record(function, *args, **kwargs):
        calls.append(point)
        return function(*args, **kwargs)

    with Server(build(), port=0) as server, intercept(point, record):
        found = read_all(ServerDataStream(('x', 'y'), port=server.port))
    assert [] != calls
    numpy.testing.assert_array_equal(read_all(build()), found)
    calls.clear()
    with Server(build(), port=0) as server:
        read_all(ServerDataStream(('x', 'y'), port=server.port))
    assert [] == calls


def test_point_that_is_none_is_refused():
    """The error names those that there are."""
    with pytest.raises(ValueError, match=r"'sned': choose among \('channel"):
        with intercept('sned', print):
            pass


def test_kill_at_a_point_reaches_the_consumer(tmp_path):
    """As an error that names the worker."""
    consumer = os.getpid()

    def kill(function, *args, **kwargs):
        if os.getpid() != consumer:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **kwargs)

    with intercept('slot copy', kill):
        stream = MultiProcessing(build(), start_method='fork')
        with stream, pytest.raises(Exception, match='SIGKILL'):
            next(stream.get_epoch_iterator())
