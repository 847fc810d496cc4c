"""States that a signal handler asks for, whenever the signal comes."""
import json
import os
import random
import signal
import threading
import time
from contextlib import ExitStack, contextmanager

import numpy
import pytest

from fuel.datasets import IndexableDataset
from fuel.schemes import ConstantScheme, ShuffledScheme
from fuel.server import Server
from fuel.streams import DataStream, ServerDataStream
from fuel.transformers import (
    Batch, Cast, Mapping, MultiProcessing, MultiThreading, Unpack)

COUNT, SIZE = 60, 3
# Seconds that an item of the slow stage takes.
SLOW = .003
# A handler that waits for workers waits for `stall_timeout`, 600 seconds.
ends_before_a_hang = pytest.mark.timeout(120)


def slow(data):
    """Return the data, later."""
    time.sleep(SLOW)
    return data


def quick(data):
    """Return the data."""
    return data


# A state is that of a stage with this function.
quick.__qualname__ = quick.__name__ = slow.__name__


def slow_at_first(data):
    """Return the data; the first ones later."""
    time.sleep(.3 if not slow_at_first.calls else 0)
    slow_at_first.calls += 1
    return data


slow_at_first.calls = 0


def source(function=slow):
    """Return a stream of shuffled batches."""
    return Mapping(DataStream(
        IndexableDataset({'x': numpy.zeros((COUNT, 2)),
                          'y': numpy.arange(COUNT)}),
        iteration_scheme=ShuffledScheme(COUNT, SIZE, seed=5)), function)


def here(stream, stack):
    """Return stages of this process."""
    return Cast(stream, 'float32', which_sources=('x',))


def rebatched(stream, stack):
    """Return a stage that keeps examples from one batch to the next."""
    return Batch(Unpack(stream), ConstantScheme(4))


def one_worker(stream, stack):
    """Return a stream that a process makes."""
    return stack.enter_context(MultiProcessing(
        stream, start_method='fork', max_store=2))


def two_workers(stream, stack):
    """Return a stage above a stream that two processes make."""
    return Cast(stack.enter_context(MultiProcessing(
        stream, num_workers=2, start_method='fork')), 'float32',
        which_sources=('x',))


def threads(stream, stack):
    """Return a stream that threads make."""
    return stack.enter_context(MultiThreading(stream, max_store=2))


def server(stream, stack):
    """Return a stream that a server makes."""
    served = stack.enter_context(Server(stream, port=0))
    return stack.enter_context(ServerDataStream(
        ('x', 'y'), produces_examples=False, port=served.port))


MADE = [here, rebatched, one_worker, two_workers, threads, server]


@contextmanager
def handled(handler):
    """Call a handler at each SIGUSR1."""
    before = signal.signal(signal.SIGUSR1, lambda *_: handler())
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)


@contextmanager
def signals(rng, longest):
    """Send this process signals, at times drawn at random."""
    over = threading.Event()

    def send():
        while not over.wait(rng.uniform(0, longest)):
            os.kill(os.getpid(), signal.SIGUSR1)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def labels(stream):
    """Return the labels of the rest of an epoch, and of the next two."""
    return [[int(y) for _, part in stream.get_epoch_iterator() for y in part]
            for _ in range(3)]


def check_states(made, seed, num_states):
    """Take states in a handler, and go on from some of them.

    Returns: How many were taken, and the texts of the errors.
    """
    rng = random.Random(seed)
    found, errors = [], []
    position = [0, 0]
    with ExitStack() as stack:
        stream = made(source(), stack)

        def handler():
            try:
                found.append((stream.state_dict(), *position))
            except RuntimeError as error:
                errors.append(str(error))

        everything = []
        with handled(handler), signals(rng, .01):
            for epoch in range(3):
                position[:] = epoch, 0
                everything.append([])
                for _, y in stream.get_epoch_iterator():
                    # A signal may come before the count.
                    everything[-1] += y.tolist()
                    position[1] += 1
    for state, epoch, count in rng.sample(
            found, min(num_states, len(found))):
        with ExitStack() as stack:
            resumed = made(source(quick), stack)
            resumed.load_state_dict(json.loads(json.dumps(state)))
            rest = labels(resumed)
        _check_rest(everything, epoch, count, rest, made)
    return len(found), errors


def _check_rest(everything, epoch, count, rest, made):
    """See that what follows the state are the labels that followed it."""
    size = 4 if made is rebatched else SIZE
    known = sum(everything, [])
    # The loop may have been given a batch that it had not counted.
    begins = [epoch * COUNT + min(COUNT, number * size)
              for number in (count, count + 1)]
    followed = sum(rest, [])
    assert any(followed[:len(known) - begin] == known[begin:]
               for begin in begins), (epoch, count, rest[0])


@ends_before_a_hang
@pytest.mark.parametrize('made', MADE)
def test_state_in_a_handler_is_that_of_the_last_batch_or_an_error(made):
    """The signal may come at any time; the handler waits for no worker."""
    count, errors = check_states(made, 1, 6)
    assert count + len(errors) > 3
    for text in errors:
        assert 'let it set a flag' in text
    if made in (one_worker, two_workers, threads, server):
        # Such a stream waits most of the time.
        assert count


@pytest.mark.full
@ends_before_a_hang
@pytest.mark.parametrize('made', MADE)
@pytest.mark.parametrize('seed', range(10, 20))
def test_states_in_handlers_at_many_moments(made, seed):
    """The error of a refused state says what to do in a handler."""
    _, errors = check_states(made, seed, 20)
    for text in errors:
        assert 'let it set a flag' in text


@ends_before_a_hang
@pytest.mark.parametrize('made', [one_worker, threads])
def test_signal_while_workers_begin_an_epoch_hangs_nothing(made):
    """The state is not known yet; the epoch goes on."""
    slow_at_first.calls = 0
    errors, states = [], []
    with ExitStack() as stack:
        stream = made(source(slow_at_first), stack)

        def handler():
            try:
                states.append(stream.state_dict())
            except RuntimeError as error:
                errors.append(str(error))

        with handled(handler), signals(random.Random(3), .02):
            taken = [y.tolist() for _, y in stream.get_epoch_iterator()]
    assert COUNT // SIZE == len(taken)
    assert errors or states


def test_state_in_the_middle_of_a_stage_is_refused():
    """The state would have counted a batch that the program did not get."""
    streams = []

    def asking(data):
        with pytest.raises(RuntimeError, match='save in the loop'):
            streams[0].state_dict()
        with pytest.raises(RuntimeError, match='save in the loop'):
            iterators[0].state_dict()
        return data

    streams.append(Cast(source(asking), 'float32', which_sources=('x',)))
    iterators = [streams[0].get_epoch_iterator()]
    assert COUNT // SIZE == len(list(iterators[0]))
    assert streams[0].state_dict()['epoch'] == 'finished'


def test_state_while_an_epoch_begins_is_refused():
    """The scheme has drawn its order, and the stream has no epoch yet."""
    class Asking(ShuffledScheme):
        def get_request_iterator(self):
            found = super().get_request_iterator()
            with pytest.raises(RuntimeError, match='save in the loop'):
                streams[0].state_dict()
            return found

    streams = [DataStream(IndexableDataset(numpy.arange(COUNT)),
                          iteration_scheme=Asking(COUNT, SIZE, seed=5))]
    assert COUNT // SIZE == len(list(streams[0]))
