"""Schemes that draw take a seed, those of batches leave out a short one."""
import inspect
import json
import pickle
from contextlib import nullcontext

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel import schemes
from fuel.datasets import IndexableDataset
from fuel.schemes import (
    BalancedScheme,
    BatchScheme,
    BlockShuffledScheme,
    ComputedBlockShuffledScheme,
    ComputedShuffledScheme,
    ConstantScheme,
    IterationScheme,
    SequentialScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
    WeightedScheme,
)
from fuel.streams import DataStream
from fuel.transformers import Batch
from fuel.utils.signatures import signature_of

# Schemes that draw from a generator, over a number of examples.
DRAWN = {
    'ShuffledScheme': lambda n, size, **kwargs: ShuffledScheme(
        n, size, **kwargs),
    'BlockShuffledScheme': lambda n, size, **kwargs: BlockShuffledScheme(
        n, size, block_size=3, window=2, **kwargs),
    'WeightedScheme': lambda n, size, **kwargs: WeightedScheme(
        range(n + 5), size, num_examples=n, **kwargs),
    'BalancedScheme': lambda n, size, **kwargs: BalancedScheme(
        [0, 1, 1], size, num_examples=n, **kwargs),
}

BATCHES = {
    **DRAWN,
    'SequentialScheme': SequentialScheme,
    'SequentialScheme of an array': lambda n, size, **kwargs: (
        SequentialScheme(numpy.arange(n), size, **kwargs)),
    'ShuffledScheme sorted': lambda n, size, **kwargs: ShuffledScheme(
        n, size, sorted_indices=True, **kwargs),
    'ComputedShuffledScheme': ComputedShuffledScheme,
    'ComputedBlockShuffledScheme': lambda n, size, **kwargs: (
        ComputedBlockShuffledScheme(n, size, block_size=4, **kwargs)),
}


def requests_of(scheme):
    """Return the requests of an epoch."""
    return list(scheme.get_request_iterator())


def test_every_scheme_takes_what_its_kind_takes():
    """No public scheme lacks the argument, and each is keyword-only."""
    bases = {'BatchScheme', 'BatchSizeScheme', 'IndexScheme',
             'IterationScheme', 'ShardedScheme', 'ConcatenatedScheme'}
    for name in set(schemes.__all__) - bases:
        cls = getattr(schemes, name)
        if not (inspect.isclass(cls) and issubclass(cls, IterationScheme)):
            continue
        found = signature_of(cls).parameters
        wanted = set()
        if not name.startswith(('Sequential', 'Constant')):
            wanted.add('seed')
        if issubclass(cls, BatchScheme) or name == 'ConstantScheme':
            wanted.add('drop_last')
        assert wanted <= found.keys(), name
        assert {inspect.Parameter.KEYWORD_ONLY} >= {
            found[argument].kind for argument in wanted}


@pytest.mark.parametrize('name', DRAWN)
@given(seed=st.integers(0, 2 ** 32 - 1))
def test_seed_stands_for_a_generator_that_begins_with_it(name, seed):
    """The order is that of numpy's generator, epoch by epoch."""
    made = DRAWN[name](14, 4, seed=seed)
    expected = DRAWN[name](14, 4, rng=numpy.random.RandomState(seed))
    for _ in range(2):
        assert requests_of(expected) == requests_of(made)


@given(seed=st.integers(0, 2 ** 32 - 1))
def test_seeded_shuffle_is_the_one_of_numpy(seed):
    """A list that its generator shuffles is the order."""
    order, rng = list(range(9)), numpy.random.RandomState(seed)
    rng.shuffle(order)
    assert order == requests_of(ShuffledExampleScheme(9, seed=seed))
    assert [order[:9]] == requests_of(ShuffledScheme(9, 9, seed=seed))


@pytest.mark.parametrize('make', [
    *(lambda make=make, **kwargs: make(5, 2, **kwargs)
      for make in DRAWN.values()),
    lambda **kwargs: ShuffledExampleScheme(5, **kwargs)])
@pytest.mark.parametrize('arguments, error, text', [
    ({'rng': 3}, TypeError, r'got 3 \(int\): pass seed=3 for'),
    ({'rng': numpy.int64(3)}, TypeError, 'pass seed=3 for'),
    ({'rng': 'x'}, TypeError, r"got 'x' \(str\)$"),
    ({'rng': numpy.random.RandomState(1), 'seed': 1}, ValueError,
     'pass one of them'),
    ({'seed': -1}, ValueError, 'seed must not be negative, got -1'),
    ({'seed': 2 ** 32}, ValueError, 'seed must be below'),
    ({'seed': .5}, TypeError, 'seed must be an integer, got 0.5'),
    ({'seed': True}, TypeError, 'seed must be an integer, got True')])
def test_value_that_is_not_a_seed_is_refused(make, arguments, error, text):
    """The constructor raises the error, which names the right argument."""
    with pytest.raises(error, match=text):
        make(**arguments)


def test_other_generators_that_shuffle_are_enough_to_shuffle():
    """They were for Fuel 0.2.0; others draw what these may not."""
    class Reversing:
        def shuffle(self, items):
            items.reverse()

    assert [2, 1, 0] == requests_of(ShuffledExampleScheme(3, rng=Reversing()))
    assert 3 == len(requests_of(ShuffledExampleScheme(3, rng=numpy.random)))
    with pytest.raises(TypeError, match='Reversing'):
        WeightedScheme([1], 1, rng=Reversing())


def test_seed_is_shown_and_state_says_nothing_of_it():
    """A state fits a scheme that began with another generator."""
    def stream(**kwargs):
        return DataStream(IndexableDataset(numpy.arange(9)),
                          iteration_scheme=ShuffledScheme(9, 2, **kwargs))

    assert 'seed=3' in repr(ShuffledScheme(9, 2, seed=3))
    assert 'seed' not in repr(ShuffledScheme(9, 2))
    saving = stream(seed=3)
    next(saving.get_epoch_iterator())
    for other in stream(), stream(rng=numpy.random.RandomState(8)):
        other.load_state_dict(json.loads(json.dumps(saving.state_dict())))
        resumed = [batch.tolist() for batch, in other.get_epoch_iterator()]
        assert requests_of(ShuffledScheme(9, 2, seed=3))[1:] == resumed


@pytest.mark.parametrize('name', BATCHES)
@given(num_examples=st.integers(1, 30), size=st.integers(1, 12))
def test_drop_last_leaves_out_a_short_batch(name, num_examples, size):
    """The others are those of the scheme that keeps it; so is the length."""
    whole = BATCHES[name](num_examples, size)
    dropping = BATCHES[name](num_examples, size, drop_last=True)
    for _ in range(2):
        expected = [batch for batch in requests_of(whole)
                    if len(batch) == size]
        with pytest.warns(UserWarning, match=(
                f'drop_last leaves out the only one, of {num_examples} ex'
                )) if num_examples < size else nullcontext():
            assert expected == requests_of(dropping)
        assert num_examples // size == len(expected) == dropping.num_requests
    assert 'drop_last=True' in repr(dropping)


@pytest.mark.parametrize('by', ['batch', 'example'])
@pytest.mark.parametrize('name', BATCHES)
def test_ranks_share_the_full_batches(name, by):
    """The batches of all ranks together are those of one process."""
    whole = requests_of(BATCHES[name](23, 4, drop_last=True))
    for uneven in 'uneven', 'drop', 'pad':
        shares = [BATCHES[name](23, 4, drop_last=True).shard(
            rank, 2, by, uneven) for rank in range(2)]
        found = [requests_of(share) for share in shares]
        assert [len(part) for part in found] == [
            share.num_requests for share in shares]
        if by == 'example':
            assert whole == [first + second for first, second in zip(
                *found, strict=True)]
        elif uneven == 'uneven':
            assert whole[::2] == found[0]
            assert whole[1::2] == found[1]


@pytest.mark.parametrize('name', BATCHES)
def test_dropping_epoch_resumes_at_each_step(name):
    """It resumes by state and by pickle; the next epoch is as long."""
    def stream():
        return DataStream(
            IndexableDataset(numpy.arange(40)),
            iteration_scheme=BATCHES[name](14, 4, drop_last=True))

    def rest(epoch):
        return [batch.tolist() for batch, in epoch]

    whole = stream()
    expected = [rest(whole.get_epoch_iterator()) for _ in range(2)]
    assert [3, 3] == [*map(len, expected)] and len(whole) == 3
    for steps in range(4):
        running = stream()
        epoch = running.get_epoch_iterator()
        for _ in range(steps):
            next(epoch)
        resumed = stream()
        resumed.load_state_dict(json.loads(json.dumps(running.state_dict())))
        assert expected[0][steps:] == rest(pickle.loads(pickle.dumps(epoch)))
        assert expected[0][steps:] == rest(resumed.get_epoch_iterator())
        assert expected[1] == rest(resumed.get_epoch_iterator())


def batches_left_out():
    """Yield streams of three examples, whose batch of four is left out."""
    dataset = IndexableDataset(numpy.arange(3))
    for shuffle in True, False:
        yield DataStream(
            dataset, batch_size=4, shuffle=shuffle, drop_last=True)
    yield Batch(DataStream(
        dataset, iteration_scheme=ShuffledExampleScheme(3)), ConstantScheme(
            4, num_examples=3, drop_last=True))


@pytest.mark.parametrize('stream', list(batches_left_out()))
def test_epoch_without_a_batch_warns(stream):
    """The warning is at the line that reads it; its length is known before."""
    assert 0 == len(stream)
    with pytest.warns(UserWarning, match=(
            'an epoch has no batch: .* of 3 examples, since batch_size is 4'
            )) as caught:
        assert [] == list(stream)
    assert __file__ == caught[0].filename


def test_batch_that_leaves_out_all_examples_warns():
    """The warning is at the line that makes the stage."""
    with pytest.warns(UserWarning, match='of 3 examples') as caught:
        stream = Batch(DataStream(
            IndexableDataset(numpy.arange(3)),
            iteration_scheme=ShuffledExampleScheme(3)),
            batch_size=4, drop_last=True)
    assert __file__ == caught[0].filename
    assert [] == list(stream)


@pytest.mark.parametrize('arguments, sizes', [
    ({'num_examples': 10}, [4, 4]), ({'num_examples': 8}, [4, 4]),
    ({'num_examples': 0}, []),
    ({'times': 3}, [4, 4, 4]), ({'num_examples': 10, 'times': 0}, [])])
def test_constant_scheme_leaves_out_a_smaller_size(arguments, sizes):
    """A stage that reads by the scheme gets full batches only."""
    scheme = ConstantScheme(4, **arguments, drop_last=True)
    assert sizes == requests_of(scheme)
    assert len(sizes) == scheme.num_requests
    stream = Batch(DataStream.default_stream(
        IndexableDataset(numpy.arange(30)),
        iteration_scheme=ShuffledExampleScheme(30)), scheme)
    assert sizes == [len(batch) for batch, in stream.get_epoch_iterator()]


def test_aligned_blocks_take_both():
    """The class does, too."""
    class Chunked:
        def chunk_of_examples(self, source):
            return numpy.arange(10) // 3

    scheme = BlockShuffledScheme.aligned(
        Chunked(), 4, drop_last=True, seed=6)
    assert requests_of(BlockShuffledScheme(
        10, 4, block_size=3, seed=6))[:2] == requests_of(scheme)


@pytest.mark.parametrize('make', [
    lambda n: SequentialScheme(n, 3), schemes.SequentialExampleScheme,
    lambda n: ShuffledScheme(n, 3), ShuffledExampleScheme,
    lambda n: ComputedShuffledScheme(n, 3),
    schemes.ComputedShuffledExampleScheme,
    lambda n: ComputedBlockShuffledScheme(n, 3, block_size=4),
    lambda n: BlockShuffledScheme(n, 3, block_size=4),
    lambda n: SequentialScheme(range(n), 3),
    lambda n: SequentialScheme(range(n, 0, -1), 3),
    lambda n: WeightedScheme([1, 2], 2, num_examples=n),
    lambda n: BalancedScheme([1, 2], 2, num_examples=n)])
@pytest.mark.parametrize('count', [2 ** 63, 2 ** 70])
def test_more_examples_than_integers_count_are_refused(make, count):
    """The text has the largest number; schemes in order reach it."""
    with pytest.raises(ValueError, match=(
            rf'examples must be at most {2 ** 63 - 1}.*got {count}')):
        make(count)
    scheme = SequentialScheme(2 ** 63 - 1, 2)
    assert [0, 1] == next(scheme.get_request_iterator())


def test_block_of_more_examples_than_integers_count_is_one_block():
    """Its examples are integers."""
    batch = next(BlockShuffledScheme(
        5, 5, block_size=2 ** 70).get_request_iterator())
    assert [0, 1, 2, 3, 4] == sorted(batch)
    assert all(type(one) is int for one in batch)


def test_seed_beside_shuffle_false_is_accepted():
    """One function makes the streams of training and of validation; a seed
    alone, or beside a scheme, is refused."""
    dataset = IndexableDataset(numpy.arange(9))
    assert DataStream(dataset, shuffle=False, seed=1).iteration_scheme is None
    stream = DataStream(dataset, batch_size=4, shuffle=False, seed=1)
    plain = DataStream(dataset, batch_size=4)
    for batch, expected in zip(stream, plain, strict=True):
        assert expected[0].tolist() == batch[0].tolist()
        assert plain.state_dict() == stream.state_dict()
    for kwargs in ({'batch_size': 4}, {'batch_size': 4, 'shuffle': None}, {
            'shuffle': False, 'iteration_scheme': SequentialScheme(9, 4)}):
        with pytest.raises(ValueError, match='seed=1 is that of shuffle'):
            DataStream(dataset, seed=1, **kwargs)
    with pytest.raises(TypeError, match="shuffle of DataStream .*got 'no'"):
        DataStream(dataset, shuffle='no')
