"""Schemes whose shuffled order is computed, not stored."""
import pickle
import tracemalloc

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel.datasets import IndexableDataset
from fuel.schemes import ComputedShuffledExampleScheme, ComputedShuffledScheme
from fuel.streams import DataStream


@given(st.integers(0, 500), st.integers(1, 50), st.integers(0, 9))
def test_computed_shuffle_visits_each_example_once(size, batch_size, seed):
    """An epoch is a permutation, cut into batches."""
    scheme = ComputedShuffledScheme(size, batch_size, seed=seed)
    batches = list(scheme.get_request_iterator())
    assert sorted(sum(batches, [])) == list(range(size))
    assert all(len(batch) == batch_size for batch in batches[:-1])
    examples = ComputedShuffledExampleScheme(size, seed=seed)
    assert list(examples.get_request_iterator()) == sum(batches, [])


@pytest.mark.parametrize('size', [100, 70_000])
def test_computed_shuffle_of_given_indices_visits_these(size):
    """The order is that of a number of examples."""
    indices = [3 * place + 1 for place in range(size)]
    places, named = (sum(ComputedShuffledScheme(
        examples, 1000).get_request_iterator(), [])
        for examples in (size, indices))
    assert [indices[place] for place in places] == named


def test_computed_shuffle_differs_by_seed_and_epoch_only():
    """Two schemes made alike agree, epoch by epoch."""
    first, second = (ComputedShuffledScheme(90_000, 100, seed=5)
                     for _ in range(2))
    epochs = [list(first.get_request_iterator()) for _ in range(3)]
    assert epochs == [list(second.get_request_iterator()) for _ in range(3)]
    assert epochs[0] != epochs[1] != epochs[2]
    other = ComputedShuffledScheme(90_000, 100, seed=6)
    assert list(other.get_request_iterator()) != epochs[0]


def test_computed_shuffle_of_a_trillion_takes_no_memory():
    """An epoch starts, skips ahead and is pickled at the cost of a batch."""
    tracemalloc.start()
    try:
        requests = ComputedShuffledScheme(
            10 ** 12, 64).get_request_iterator()
        first = next(requests)
        requests.advance(10 ** 12 // 64 - 3)
        pickled = pickle.dumps(requests)
        last = list(requests)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()
    assert len(pickled) < 1000
    following = pickle.loads(pickled)
    assert list(following) == last
    assert len(set(first)) == 64
    assert all(0 <= index < 10 ** 12 for index in first)


@pytest.mark.parametrize('size', [40, 70_000])
def test_stream_over_a_computed_shuffle_resumes_at_each_step(size):
    """Its state is the number of the epoch and of the request."""
    def make():
        return DataStream(
            IndexableDataset(numpy.arange(size)),
            iteration_scheme=ComputedShuffledScheme(size, size // 8))

    stream = make()
    for epoch in range(2):
        expected = [batch.tolist() for batch, in stream.get_epoch_iterator()]
        other = make()
        for _ in range(epoch):
            list(other.get_epoch_iterator())
        iterator = other.get_epoch_iterator()
        for step in range(8):
            batch, = next(iterator)
            assert batch.tolist() == expected[step]
            resumed = make()
            resumed.load_state_dict(other.state_dict())
            assert [batch.tolist() for batch, in
                    resumed.get_epoch_iterator()] == expected[step + 1:]


@pytest.mark.parametrize('arguments, error, text', [
    ({'examples': iter([1]), 'batch_size': 1}, TypeError, 'list.examples'),
    ({'examples': 4, 'batch_size': 1, 'seed': -1}, ValueError, 'seed'),
    ({'examples': 4, 'batch_size': 1, 'seed': True}, TypeError, 'seed'),
    ({'examples': 4, 'batch_size': 1, 'seed': .5}, TypeError, 'integer'),
    ({'examples': 4, 'batch_size': 0}, ValueError, 'batch_size'),
])
def test_computed_shuffle_bad_arguments_are_named(arguments, error, text):
    """The constructor raises the error, not the first batch."""
    with pytest.raises(error, match=text):
        ComputedShuffledScheme(**arguments)


@pytest.mark.parametrize('epoch', [-1, 1.5, 'two', True, None])
def test_computed_shuffle_refuses_the_number_of_no_epoch(epoch):
    """A damaged state is found where it is loaded, not by the next epoch."""
    scheme = ComputedShuffledScheme(6, 2)
    with pytest.raises(ValueError, match='epoch must be a number from 0 on'):
        scheme.load_state_dict({'epoch': epoch})
    assert 0 == scheme.epoch
