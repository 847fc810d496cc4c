"""Mapping with a seed: functions that draw from the global generators."""
import pickle
import random
import sys
import threading
from types import SimpleNamespace

import numpy
import pytest
from support.process_pipelines import draw
from support.processes import start_python
from support.resuming import assert_resumes

from fuel.datasets import IndexableDataset
from fuel.schemes import ConstantScheme, SequentialExampleScheme
from fuel.server import Server
from fuel.streams import DataStream
from fuel.transformers import (
    Batch,
    Mapping,
    MultiProcessing,
    MultiThreading,
    SeededTransformer,
)


@pytest.fixture(autouse=True)
def _generators():
    """Leave the global generators as they were."""
    states = numpy.random.get_state(legacy=False), random.getstate()
    yield
    numpy.random.set_state(states[0])
    random.setstate(states[1])


def zeros(examples=False):
    """Return a stream of 8 batches of two sources, or of 16 examples."""
    dataset = IndexableDataset({'x': numpy.zeros(16), 'y': numpy.zeros(16)})
    return (DataStream(dataset, iteration_scheme=SequentialExampleScheme(16))
            if examples else DataStream(dataset, batch_size=2))


def build(**how):
    """Return a stage whose function draws of both generators."""
    return Mapping(zeros(**how), draw, seed=3)


def draw_by_name(data):
    """Return a number beside the data."""
    return {'drawn': random.random()}


def values(stream):
    """Return what was drawn in an epoch: tuples of floats."""
    return [(*normal, *uniform) for normal, uniform in stream]


def states():
    """Return the states of both generators, as something that compares."""
    state = numpy.random.get_state(legacy=False)
    return repr((state['state']['key'].tolist(), {
        **state, 'state': state['state']['pos']}, random.getstate()))


def test_draws_follow_from_seed_epoch_and_number():
    """No number comes twice, and none depends on the program."""
    stream = build()
    first, second = values(stream), values(stream)
    numbers = numpy.array([first, second])
    assert len(numpy.unique(numbers)) == numbers.size
    random.seed(5)
    numpy.random.seed(5)
    again = build()
    assert [first, second] == [values(again), values(again)]
    assert first != values(Mapping(zeros(), draw, seed=4))


def test_draws_stay_what_they_are():
    """The draws of a seed are in people's papers."""
    assert [(-0.6213396, -1.8751695, 0.4653161)] == [
        tuple(round(float(number), 7) for number in row)
        for row in values(build())[:1]]


def test_draws_resume():
    """They resume at every step, in the epoch after it as well."""
    assert_resumes(build)
    assert_resumes(lambda: build(examples=True), num_epochs=1)
    assert_resumes(lambda: Mapping(
        zeros(), draw_by_name, add_sources=('drawn',), mapping_accepts=dict,
        seed=1), num_epochs=1)


@pytest.mark.parametrize('method, num_workers', [
    ('fork', 1), ('fork', 3), ('spawn', 2)])
def test_workers_draw_what_the_stage_draws(method, num_workers):
    """Any number of workers, started by any method, draws the same."""
    with MultiProcessing(build(), num_workers=num_workers,
                         start_method=method) as stream:
        assert values(build()) == values(stream)


@pytest.mark.parametrize('ranks', [2, 3])
@pytest.mark.parametrize('examples', [False, True])
def test_ranks_draw_what_the_stage_draws(ranks, examples):
    """They draw for the items that are theirs."""
    whole = list(map(repr, build(examples=examples)))
    for rank in range(ranks):
        shared = build(examples=examples).shard(
            rank, ranks, by='batch', uneven='uneven')
        assert whole[rank::ranks] == list(map(repr, shared))


def test_rows_of_a_batch_are_refused():
    """A function of batches draws for a whole batch; where the share is
    taken, and not in a worker of a loader."""
    split = DataStream(
        IndexableDataset(numpy.arange(8)), batch_size=4).shard(
            0, 2, by='example')
    for make in (
            lambda: build().shard(0, 2, by='example'),
            lambda: Mapping(build(), list).shard(
                0, 2, by='example'),
            lambda: Mapping(split, list, seed=3)):
        with pytest.raises(NotImplementedError, match=(
                'function that draws for a batch.*split over ranks.*put '
                'Mapping before the stage that makes batches, or use '
                "by='batch'")):
            make()
    whole = list(Batch(build(examples=True), ConstantScheme(4)))
    rows = [list(Batch(build(examples=True), ConstantScheme(4)).shard(
        rank, 2, by='example')) for rank in range(2)]
    numpy.testing.assert_array_equal(
        [batch[0] for batch in whole],
        numpy.concatenate([[batch[0] for batch in part] for part in rows], 1))


@pytest.mark.parametrize('normals', [0, 1])
def test_the_program_draws_what_it_would(normals):
    """A second normal that waits to be drawn is kept as well."""
    numpy.random.seed(1)
    random.seed(1)
    for _ in range(normals):
        numpy.random.normal()
        random.gauss(0, 1)
    before = states()
    for _ in build():
        assert before == states()


def test_generators_are_put_back_after_an_error():
    """The error is that of the function."""
    def fail(data):
        draw(data)
        raise ValueError('no luck')

    before = states()
    with pytest.raises(ValueError, match='no luck'):
        next(iter(Mapping(zeros(), fail, seed=3)))
    assert before == states()


@pytest.mark.parametrize('kind', ['PCG64', 'MT19937', 'SFC64'])
def test_another_kind_of_generator_makes_no_difference(kind):
    """numpy.random may be another of NumPy's bit generators."""
    if not hasattr(numpy.random, 'set_bit_generator'):
        pytest.skip('NumPy before 1.24 has one kind only')
    expected = values(build())
    present = numpy.random.get_bit_generator()
    try:
        own = getattr(numpy.random, kind)(5)
        numpy.random.set_bit_generator(own)
        numpy.random.normal()
        before = repr(numpy.random.get_state(legacy=False))
        assert expected == values(build())
        assert own is numpy.random.get_bit_generator()
        assert before == repr(numpy.random.get_state(legacy=False))
    finally:
        numpy.random.set_bit_generator(present)


def test_a_function_may_read_another_such_stream():
    """Reading another stream does not change a function's later draws."""
    def alone(data):
        return numpy.random.normal(size=3), random.random()

    def around(data):
        first = numpy.random.normal()
        assert values(build()) == inner
        return numpy.array([first, *numpy.random.normal(size=2)]), (
            random.random())

    inner = values(build())
    expected = [repr(item) for item in Mapping(zeros(), alone, seed=1)]
    assert expected == [repr(item) for item in Mapping(
        zeros(), around, seed=1)]


def test_streams_in_two_threads_take_turns():
    """Each of them draws what it draws alone."""
    expected, found = values(build()) * 20, {}

    def read(name):
        found[name] = [row for _ in range(20) for row in values(build())]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=read, args=(name,))
                   for name in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert {0: expected, 1: expected, 2: expected} == found


def test_threads_that_share_the_generators_are_refused():
    """They are refused below any other stage, too."""
    with pytest.raises(ValueError, match='Mapping with a seed.*MultiProc'):
        MultiThreading(Mapping(build(), draw))


def test_server_in_the_program_that_draws_is_warned_of():
    """Workers that set generators of their own cause no warning."""
    server = Server(Mapping(build(), draw), port=0)
    with pytest.warns(UserWarning, match='start_server') as caught:
        server.start()
    server.stop()
    assert __file__ == caught[0].filename
    with MultiProcessing(build()) as stream, Server(stream, port=0):
        pass
    with Server(zeros(), port=0):
        pass


def test_server_that_is_the_whole_program_is_not_warned_of():
    """Nothing else draws there."""
    with start_python('-W', 'error:Mapping with a seed', '-c', """
import random
from fuel.datasets import IndexableDataset
from fuel.server import start_server
from fuel.streams import DataStream
from fuel.transformers import Mapping
start_server(Mapping(
    DataStream(IndexableDataset([1, 2]), batch_size=1),
    lambda batch: ([random.random()],), seed=3), port=0)
""") as process:
        # It would be the line before.
        shown = process.stderr.readline()
        process.kill()
        assert shown.startswith(b'Fuel server: tcp:')


def test_threads_take_what_workers_make_with_seeds():
    """The workers have generators of their own."""
    expected = values(build())
    with MultiThreading(MultiProcessing(build())) as stream:
        assert expected == values(stream)


def test_a_pure_function_has_no_seed():
    """It may be called in several threads."""
    with pytest.raises(ValueError, match='not pure: leave out pure or seed'):
        Mapping(zeros(), draw, pure=True, seed=3)


def test_a_class_of_ones_own_takes_no_seed():
    """It says what to derive the class from."""
    class Own(Mapping):
        """Somebody's."""

    with pytest.raises(TypeError, match='Own takes no seed.*Seeded'):
        Own(zeros(), draw, seed=3)


def test_what_a_mapping_with_a_seed_is():
    """It is a Mapping that takes part in everything that has a seed."""
    stage = pickle.loads(pickle.dumps(build()))
    assert isinstance(stage, Mapping)
    assert isinstance(stage, SeededTransformer)
    assert 3 == stage.seed
    assert 'Mapping' == type(stage).__name__
    assert values(build()) == values(stage)


class Counter:
    """Stands for PyTorch's generator: counts from its seed."""

    def __init__(self):
        self.place = 7

    def manual_seed(self, seed):
        """Begin anew."""
        self.place = seed

    def get_state(self):
        """Return the place."""
        return self.place

    def set_state(self, place):
        """Go to a place."""
        self.place = place

    def draw(self):
        """Return the next number."""
        self.place += 1
        return self.place


def test_generator_of_torch_is_set_and_put_back(monkeypatch):
    """PyTorch must be loaded; the real one is tested in tests/interop."""
    counter = Counter()
    monkeypatch.setitem(sys.modules, 'torch.random',
                        SimpleNamespace(default_generator=counter))

    def drawn():
        return [item[-1] for item in Mapping(
            zeros(), lambda data: (counter.draw(),), add_sources=('drawn',),
            seed=1)]

    first = drawn()
    assert 7 == counter.place
    counter.draw()
    assert first == drawn()
    assert 8 == counter.place
    assert 8 == len({*first})


@pytest.mark.parametrize('seed, text', [
    ('a', "seed must be an integer, got 'a'"),
    (1.5, r'seed must be an integer, got 1\.5'),
    (-1, 'seed must not be negative, got -1')])
def test_seed_is_an_integer(seed, text):
    """A scheme's seed is one, too; the error shows the value."""
    stream = DataStream(IndexableDataset([1, 2]), batch_size=2)
    with pytest.raises((TypeError, ValueError), match=text):
        Mapping(stream, tuple, seed=seed)
