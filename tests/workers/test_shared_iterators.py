"""One epoch iterator that several threads share."""
import random
import sys
import threading
import time
from contextlib import ExitStack

import numpy
import pytest

from fuel.datasets import IndexableDataset
from fuel.schemes import ShuffledScheme
from fuel.server import Server
from fuel.streams import DataStream, ServerDataStream
from fuel.transformers import (
    Cast, Mapping, MultiProcessing, MultiThreading)

COUNT, SIZE = 600, 2


def sometimes_late(data):
    """Return the data, now and then later."""
    if data[1][0] % 13 == 0:
        time.sleep(.001)
    return data


def failing(data):
    """Return the data, or raise an error that names them."""
    if data[1][0] % 7 == 0:
        raise ValueError(f'not {data[1][0]}')
    return data


def source(function=sometimes_late):
    """Return a stream of batches."""
    return Mapping(DataStream(
        IndexableDataset({'x': numpy.zeros((COUNT, 3)),
                          'y': numpy.arange(COUNT)}),
        iteration_scheme=ShuffledScheme(COUNT, SIZE, seed=3)), function)


def one_worker(stream, stack):
    """Return a stream that one process makes."""
    return stack.enter_context(MultiProcessing(stream, start_method='fork'))


def two_workers(stream, stack):
    """Return a stream that two processes make."""
    return stack.enter_context(MultiProcessing(
        stream, num_workers=2, start_method='fork'))


def threads(stream, stack):
    """Return a stream that threads make."""
    return stack.enter_context(MultiThreading(stream))


def server(stream, stack):
    """Return a stream that a server makes."""
    served = stack.enter_context(Server(stream, port=0))
    return stack.enter_context(ServerDataStream(
        ('x', 'y'), produces_examples=False, port=served.port))


def cast_workers(stream, stack):
    """Return a stage above a stream that a process makes."""
    return Cast(one_worker(stream, stack), 'float32', which_sources=('x',))


def share(iterator, num_threads, rng=None):
    """Read an iterator in several threads.

    Returns: The first label of each batch, and the texts of the errors.
    """
    taken, errors = [], []
    begin = threading.Barrier(num_threads)

    def read():
        begin.wait()
        while True:
            try:
                data = next(iterator)
            except StopIteration:
                return
            except ValueError as error:
                errors.append(str(error))
            except BaseException as error:
                errors.append(repr(error))
                raise
            else:
                taken.append(int(data[1][0]))

    readers = [threading.Thread(target=read) for _ in range(num_threads)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
    finally:
        sys.setswitchinterval(before)
    return taken, errors


@pytest.mark.parametrize('made', [
    one_worker, two_workers, threads, server, cast_workers])
def test_each_batch_goes_to_one_of_the_threads_that_share_an_iterator(made):
    """No batch is lost or repeated in two epochs, which then end."""
    with ExitStack() as stack:
        stream = made(source(), stack)
        plain = source()
        for _ in range(2):
            iterator = stream.get_epoch_iterator()
            taken, errors = share(iterator, 4)
            assert not errors
            assert len(taken) == COUNT // SIZE
            # Each epoch has batches of its own, by another order.
            assert sorted(int(y[0]) for _, y in plain) == sorted(taken)
        assert next(iterator, None) is None


@pytest.mark.parametrize('made', [one_worker, two_workers, threads])
def test_each_error_goes_to_one_of_the_threads_that_share_an_iterator(made):
    """The error comes in the place of its batch."""
    with ExitStack() as stack:
        stream = made(source(failing), stack)
        taken, errors = share(stream.get_epoch_iterator(), 4)
    everything = [int(y[0]) for _, y in source(sometimes_late)]
    assert sorted(taken) == sorted(y for y in everything if y % 7)
    assert sorted(errors) == sorted(
        f'not {y}' for y in everything if y % 7 == 0)


def test_state_after_batches_that_threads_shared_counts_all_of_them():
    """A stream that takes it up goes on with the others."""
    rng = random.Random(5)
    with ExitStack() as stack:
        stream = one_worker(source(), stack)
        iterator = stream.get_epoch_iterator()
        first = [int(next(iterator)[1][0]) for _ in range(rng.randint(1, 9))]
        lock, taken = threading.Lock(), []

        def read():
            for _ in range(20):
                data = next(iterator)
                with lock:
                    taken.append(int(data[1][0]))

        readers = [threading.Thread(target=read) for _ in range(4)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        state = stream.state_dict()
        other = one_worker(source(), stack)
        other.load_state_dict(state)
        rest = [int(y[0]) for _, y in other.get_epoch_iterator()]
    everything = [int(y[0]) for _, y in source()]
    assert sorted(first + taken + rest) == sorted(everything)
    assert rest == everything[len(first) + 80:]
