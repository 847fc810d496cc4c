"""Workers draw each their own numbers from numpy.random and random."""
import random

import numpy
import pytest
from support.process_pipelines import draw

from fuel.datasets import IndexableDataset
from fuel.streams import DataStream
from fuel.transformers import Mapping, MultiProcessing
from fuel.transformers.noise import GaussianNoise
from fuel.workers.global_random import Generators, GeneratorSource

METHODS = ['fork', 'spawn', 'forkserver']


@pytest.fixture(autouse=True)
def seeded():
    """Seed the global generators, and leave them as they were."""
    states = numpy.random.get_state(legacy=False), random.getstate()
    numpy.random.seed(1)
    random.seed(2)
    yield
    numpy.random.set_state(states[0])
    random.setstate(states[1])


def zeros():
    """Return a stream of 8 batches of two sources."""
    return DataStream(IndexableDataset({
        'x': numpy.zeros(16), 'y': numpy.zeros(16)}), batch_size=2)


def build(num_workers, method='fork'):
    """Return a stream of 8 batches, drawn in workers."""
    return MultiProcessing(Mapping(zeros(), draw), num_workers=num_workers,
                           start_method=method)


def values(epoch):
    """Return what was drawn: tuples of floats."""
    return [(*normal, *uniform) for normal, uniform in epoch]


def drawn(num_workers, method='fork'):
    """Return what the workers draw in an epoch."""
    with build(num_workers, method) as stream:
        return values(stream)


@pytest.mark.parametrize('method', METHODS)
def test_several_workers_draw_each_their_own(method):
    """No number comes twice, of either generator."""
    numbers = numpy.array(drawn(3, method))
    assert len(numpy.unique(numbers)) == numbers.size


@pytest.mark.parametrize('method', METHODS)
def test_a_seed_in_the_consumer_fixes_the_draws(method):
    """The same seeds give the same draws with any start method."""
    before = numpy.random.get_state(legacy=False), random.getstate()
    found = drawn(2, method)
    after = numpy.random.get_state(legacy=False), random.getstate()
    assert before[1] == after[1]
    numpy.testing.assert_equal(before[0], after[0])
    assert found == drawn(2, 'fork')
    numpy.random.seed(3)
    others = drawn(2, method)
    assert not {row[:2] for row in found} & {row[:2] for row in others}
    # That seed was of one generator, and the other is as it was.
    assert [row[2] for row in found] == [row[2] for row in others]


@pytest.mark.parametrize('method', METHODS)
def test_one_worker_draws_what_this_process_would(method):
    """The draws are those of Fuel 0.2.0, also if nothing is inherited."""
    found = drawn(1, method)
    assert found == values(map(draw, range(8)))


def test_workers_that_are_started_anew_draw_something_new():
    """Values of a team that was closed do not come again."""
    with build(2) as stream:
        first = values(stream)
        stream.close()
        second = values(stream)
    assert not set(first) & set(second)


@pytest.mark.parametrize('kind', ['MT19937', 'PCG64', 'Philox', 'SFC64'])
def test_generators_of_any_kind_are_handed_on(kind):
    """numpy.random may be another of NumPy's bit generators."""
    if not hasattr(numpy.random, 'set_bit_generator'):
        pytest.skip('NumPy before 1.24 has one kind only')
    present = numpy.random.get_bit_generator()
    try:
        numpy.random.set_bit_generator(getattr(numpy.random, kind)(5))
        source = GeneratorSource()
        generators = [source.next() for _ in range(3)]
        expected = numpy.random.random(), random.random()
        found = []
        for one in generators:
            numpy.random.set_bit_generator(numpy.random.MT19937(1))
            one.install()
            assert Generators.here(0).numpy['bit_generator'] == kind
            found.append((numpy.random.random(), random.random()))
    finally:
        numpy.random.set_bit_generator(present)
    assert found[0] == expected
    assert len(set(sum(found, ()))) == 6


def drawn_in_words(stage, num_workers, capfd):
    """Return what the workers of a stage say while they make an epoch."""
    with MultiProcessing(stage, num_workers=num_workers,
                         start_method='spawn') as stream:
        list(stream)
    return capfd.readouterr().err


def test_draws_of_several_workers_are_told_once(capfd):
    """The log says what to use instead; a stage with a seed logs nothing."""
    said = drawn_in_words(Mapping(zeros(), draw), 3, capfd)
    assert said.count('draws from numpy.random or random') == 1
    assert 'SeededTransformer' in said
    assert not drawn_in_words(Mapping(zeros(), draw), 1, capfd)
    assert not drawn_in_words(Mapping(zeros(), draw, seed=1), 2, capfd)
    assert not drawn_in_words(GaussianNoise(zeros(), 1, seed=1), 2, capfd)
