"""Schemes and stages that draw from one generator, and streams that share a
scheme."""
import json
from itertools import islice

import numpy
import pytest
from support import random_orders
from support.random_lives import in_another_process, rows_of
from support.random_orders import MOST, build
from support.resuming import assert_resumes

from fuel.datasets import IndexableDataset
from fuel.exceptions import StateMismatchError
from fuel.schemes import (
    BatchScheme,
    ComputedShuffledScheme,
    ConcatenatedScheme,
    ConstantScheme,
    SequentialScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
)
from fuel.streams import DataStream
from fuel.transformers import (
    Batch,
    Cache,
    Chain,
    Merge,
    Mix,
    MultiProcessing,
    MultiThreading,
    Transformer,
    Unpack,
)
from fuel.transformers.shuffling import ShuffleBuffer

pytestmark = pytest.mark.filterwarnings(
    'ignore:the streams merged', 'ignore:an epoch')

N = 7


class Scaled(Transformer):
    """Multiplies each item by a number that is drawn."""

    def __init__(self, data_stream, rng):
        super().__init__(data_stream, data_stream.produces_examples)
        self.rng = rng

    def transform_batch(self, batch):
        """Return the arrays, multiplied."""
        return tuple([part * self.rng.randint(1000) for part in batch])

    transform_example = transform_batch


def source(rng, scheme=ShuffledScheme):
    """Return a shuffled stream."""
    batch_size = () if scheme is ShuffledExampleScheme else (3,)
    return DataStream(IndexableDataset({'x': numpy.arange(1., N + 1)}),
                      iteration_scheme=scheme(N, *batch_size, rng=rng))


def numbers(scheme):
    """Return a stream of numbers."""
    return DataStream(IndexableDataset({'x': numpy.arange(1., N + 1)}),
                      iteration_scheme=scheme)


def mixed(*streams, epoch_size=None):
    """Return a mixture whose streams begin anew in the middle of an epoch."""
    return Mix(streams, [3, *[1] * (len(streams) - 1)], seed=1,
               stop='first' if epoch_size is None else 'forever',
               epoch_size=epoch_size)


def shared_scheme(scheme):
    """Return a mixture of streams with the same scheme."""
    return mixed(numbers(scheme), numbers(scheme), epoch_size=5)


PIPELINES = {
    'stage': lambda rng: Scaled(source(rng), rng),
    'two stages': lambda rng: Scaled(Scaled(source(rng), rng), rng),
    'left-overs': lambda rng: Scaled(Cache(Scaled(source(rng), rng),
                                           ConstantScheme(2)), rng),
    'batches': lambda rng: Scaled(Batch(Scaled(
        source(rng, ShuffledExampleScheme), rng), ConstantScheme(2)), rng),
    'side by side': lambda rng: Merge(
        [Scaled(source(rng), rng), source(rng)], ('x', 'y')),
    'one after the other': lambda rng: Chain(
        [Scaled(source(rng), rng), source(rng), Scaled(source(rng), rng)]),
    'stage beside a scheme': lambda rng: mixed(
        Scaled(numbers(SequentialScheme(N, 3)), rng), source(rng)),
    'schemes of a mixture': lambda rng: mixed(source(rng), source(rng)),
    'within a mixture alone': lambda rng: Scaled(mixed(
        source(rng), source(rng), epoch_size=5), numpy.random.RandomState(1)),
    'scheme': lambda rng: shared_scheme(ShuffledScheme(N, 3, rng=rng)),
    'scheme that counts epochs': lambda rng: shared_scheme(
        ComputedShuffledScheme(N, 3, seed=1)),
    'scheme of several': lambda rng: shared_scheme(ConcatenatedScheme([
        ComputedShuffledScheme(N, 3, seed=1), ShuffledScheme(N, 3, rng=rng)])),
    'two generators of the same bits': lambda rng: mixed(
        *[numbers(ShuffledScheme(N, 3, rng=numpy.random.Generator(bits)))
          for bits in [numpy.random.PCG64(3)] for _ in range(2)]),
    'a generator of the bits of another': lambda rng: mixed(
        source(rng), source(numpy.random.Generator(rng._bit_generator))),
    'streams of unequal length': lambda rng: Merge(
        [numbers(SequentialScheme(4, 3)), Scaled(source(rng), rng)],
        ('x', 'y')),
    'in another process': lambda rng: Scaled(
        MultiProcessing(source(rng)), rng),
}


@pytest.mark.parametrize('name', PIPELINES)
def test_resumed_pipeline_draws_what_would_have_been_drawn(name):
    """The order that a resumed scheme draws again does not count."""
    assert_resumes(lambda: PIPELINES[name](numpy.random.RandomState(3)))


def items_of(stream):
    """Return what an epoch delivers; it may have no end."""
    return list(map(rows_of, islice(stream.get_epoch_iterator(), MOST)))


def assert_goes_on(number, jobs):
    """Assert that a random pipeline resumes from each step, or that its states
    are refused; return the number of refused states.

    `jobs`: receives a state to be restored in another process, with what has
        to come.
    """
    def make():
        return build(number, random_orders.Showing)
    try:
        stream = make()
        whole = [items_of(stream) for _ in range(3)]
    except ValueError:
        # Streams that stand beside each other differ in size.
        return 0
    refused = 0
    for epoch in range(2):
        if max(map(len, whole)) == MOST:
            break
        count = len(whole[epoch])
        # Of long epochs, not all steps.
        for step in range(0, count + 2, count // 9 or 1):
            stream = make()
            for _ in range(epoch):
                list(stream)
            iterator = iter(stream)
            list(islice(iterator, step))
            try:
                state = json.loads(json.dumps(stream.state_dict()))
            except TypeError as error:
                if 'draw from one object' not in str(error):
                    raise
                refused += 1
                continue
            rest = [whole[epoch][step:], *whole[epoch + 1:]][
                step > count:]
            restored = make()
            restored.load_state_dict(state)
            assert rest == [items_of(restored) for _ in rest], (
                number, epoch, step)
            if not (number + step) % 5:
                jobs.append(((number, 'Showing', 0, 1, 'batch', 'uneven',
                              state, len(rest)), rest))
    return refused


@pytest.mark.parametrize('numbers', [range(6), pytest.param(
    range(6, 1500), marks=[pytest.mark.full, pytest.mark.timeout(1800)])])
def test_random_pipelines_with_shared_parts_resume(numbers):
    """States are saved at each step; some are restored in a new process."""
    jobs, refused = [], 0
    for number in numbers:
        refused += assert_goes_on(number, jobs)
    answers = in_another_process([given for given, _ in jobs])
    assert answers == [expected for _, expected in jobs]
    assert len(jobs) > len(numbers)
    # Some states of few pipelines.
    assert refused < len(numbers) * 2


class Late(BatchScheme):
    """A scheme of a user that draws when the first request is read."""

    def __init__(self, *args, rng):
        super().__init__(*args)
        self.rng = rng

    def get_request_iterator(self):
        """Yield batches in an order that is drawn."""
        order = self.rng.permutation(self.num_examples).tolist()
        for start in range(0, self.num_examples, self.batch_size):
            yield order[start:start + self.batch_size]

    def state_dict(self):
        """Return nothing, since no test restores it."""
        return {}

    def load_state_dict(self, state):
        """Restore nothing."""


REFUSED = {
    'a buffer reads ahead': (
        lambda rng: Scaled(ShuffleBuffer(Unpack(Scaled(
            source(rng), rng)), 3), rng), 3,
        'the stage Scaled and the stage Scaled .*ShuffleBuffer reads ahead'),
    'a mixture goes on': (
        lambda rng: Scaled(mixed(Scaled(source(rng), rng), source(
            numpy.random.RandomState(1)), epoch_size=4), rng), 4,
        'the stage Scaled and .*Mix goes on in the next epoch'),
    'a scheme draws late': (
        lambda rng: Merge([numbers(Late(N, 3, rng=rng)), source(rng)], (
            'x', 'y')), 1,
        'the iteration scheme of DataStream and .*while its requests'),
    'a thread': (
        lambda rng: Scaled(MultiThreading(source(rng)), rng), 1,
        'the stage Scaled and the iteration scheme .*MultiThreading is betw'),
}


@pytest.mark.parametrize('name', REFUSED)
def test_states_that_would_draw_other_numbers_are_refused(name):
    """The error names both places; without a state, nothing changes."""
    make, steps, text = REFUSED[name]
    stream = make(numpy.random.RandomState(3))
    iterator = iter(stream)
    for _ in range(steps):
        next(iterator)
    list(islice(iterator, 1, None))
    if name != 'a mixture goes on':
        iterator = iter(stream)
        next(iterator)
    with pytest.raises(TypeError, match=f'{text}.*of its own'):
        stream.state_dict()


def test_state_of_streams_that_shared_is_refused_by_others():
    """They would not go on as they did."""
    def make(other):
        rng = numpy.random.RandomState(3)
        return mixed(source(rng), source(rng if other is None else other))
    stream = make(None)
    next(iter(stream))
    state = stream.state_dict()
    with pytest.raises(StateMismatchError, match='drew from the same'):
        make(numpy.random.RandomState(4)).load_state_dict(state)
    del state['crc']
    state['rng']['shared'][0]['state']['pos'] = 'far'
    with pytest.raises(StateMismatchError, match='generator is damaged'):
        make(None).load_state_dict(state)
