"""Schemes that draw by blocks, by weights and by classes."""
import collections
import itertools
import json
import pickle
import random

import h5py
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from fuel.datasets import H5PYDataset, IndexableDataset
from fuel.exceptions import StateMismatchError
from fuel.schemes import BalancedScheme, BlockShuffledScheme, WeightedScheme
from fuel.streams import DataStream


def flat(scheme):
    """Return the examples of an epoch."""
    return list(itertools.chain(*scheme.get_request_iterator()))


GENERATORS = [numpy.random.RandomState, numpy.random.default_rng,
              random.Random]

MAKERS = [
    lambda rng: BlockShuffledScheme(23, 4, block_size=3, window=2, rng=rng),
    lambda rng: BlockShuffledScheme(
        list(range(40, 17, -1)), 4, block_size=[5, 6, 20], window=2, rng=rng),
    lambda rng: WeightedScheme(range(23), 4, rng=rng),
    lambda rng: WeightedScheme(
        range(23), 4, num_examples=21, replacement=False, rng=rng),
    lambda rng: BalancedScheme([0, 1, 1] * 8, 5, rng=rng),
]


@given(num_examples=st.integers(0, 60), batch_size=st.integers(1, 20),
       block_size=st.integers(1, 25), window=st.integers(1, 6))
def test_block_shuffle_visits_every_example_once(
        num_examples, batch_size, block_size, window):
    """The numbers need not divide each other; only the last is smaller."""
    scheme = BlockShuffledScheme(
        num_examples, batch_size, block_size=block_size, window=window)
    for _ in range(2):
        batches = list(scheme.get_request_iterator())
        assert sorted(itertools.chain(*batches)) == list(range(num_examples))
        assert {batch_size} >= {len(batch) for batch in batches[:-1]}
        assert scheme.num_requests == len(batches)


@given(num_examples=st.integers(1, 60), block_size=st.integers(1, 25),
       window=st.integers(1, 6))
def test_block_shuffle_needs_a_block_in_one_window_only(
        num_examples, block_size, window):
    """The window's blocks are used up before the next ones are touched."""
    scheme = BlockShuffledScheme(
        num_examples, 1, block_size=block_size, window=window)
    blocks = [example // block_size for example in flat(scheme)]
    seen = []
    for block in blocks:
        if block not in seen:
            seen.append(block)
    windows = [seen.index(block) // window for block in blocks]
    assert sorted(windows) == windows


def test_block_shuffle_order_differs_between_epochs_and_seeds():
    """The same seed gives the same order; the first values are pinned."""
    first, second = (
        BlockShuffledScheme(12, 4, block_size=3, window=2) for _ in range(2))
    epochs = [flat(first) for _ in range(3)]
    assert epochs == [flat(second) for _ in range(3)]
    assert [9, 10, 7, 6, 8, 11, 5, 0, 2, 4, 1, 3] == epochs[0]
    assert len({tuple(epoch) for epoch in epochs}) == 3
    other = BlockShuffledScheme(
        12, 4, block_size=3, window=2, rng=numpy.random.RandomState(7))
    assert flat(other) != epochs[0]


def test_block_shuffle_with_one_window_is_a_full_shuffle():
    """Every example is as likely to come first."""
    firsts = collections.Counter()
    scheme = BlockShuffledScheme(6, 1, block_size=2, window=3)
    for _ in range(3000):
        firsts[next(scheme.get_request_iterator())[0]] += 1
    assert 6 == len(firsts)
    assert max(firsts.values()) < 640


@pytest.mark.parametrize('generator', GENERATORS)
@pytest.mark.parametrize('make', MAKERS)
def test_drawing_schemes_resume_at_every_step(make, generator):
    """They resume by state and by pickle, also across epochs; the state is
    JSON."""
    def stream():
        return DataStream(IndexableDataset(numpy.arange(100)),
                          iteration_scheme=make(generator(3)))

    def batches(epoch):
        return [batch.tolist() for batch, in epoch]

    whole = stream()
    length = len(whole)
    expected = [batches(whole.get_epoch_iterator()) for _ in range(2)]
    assert length == len(expected[0])
    for steps in range(length + 1):
        running = stream()
        epoch = running.get_epoch_iterator()
        for _ in range(steps):
            next(epoch)
        state = json.dumps(running.state_dict())
        assert len(state) < 20000
        copy = pickle.loads(pickle.dumps(epoch))
        assert expected[0][steps:] == batches(copy)
        resumed = stream()
        resumed.load_state_dict(json.loads(state))
        assert expected[0][steps:] == batches(resumed.get_epoch_iterator())
        assert expected[1] == batches(resumed.get_epoch_iterator())


@pytest.mark.parametrize('generator', GENERATORS)
def test_weighted_scheme_draws_in_proportion(generator):
    """Chance allows a deviation; zero weights are never drawn."""
    weights = numpy.array([0, 1, 2, 0, 7, 0])
    scheme = WeightedScheme(weights, 100, num_examples=20000,
                            rng=generator(5))
    counts = numpy.bincount(flat(scheme), minlength=6)
    assert numpy.allclose(counts, 2000 * weights, atol=300)
    assert not counts[weights == 0].any()


def test_weighted_scheme_without_replacement_draws_each_once():
    """Examples of large weight come first."""
    weights = [1e-6, 1, 0, 1, 1e6]
    firsts = set()
    for seed in range(50):
        scheme = WeightedScheme(weights, 2, num_examples=4, replacement=False,
                                rng=numpy.random.RandomState(seed))
        drawn = flat(scheme)
        assert [0, 1, 3, 4] == sorted(drawn)
        assert (4, 0) == (drawn[0], drawn[-1])
        firsts.add(drawn[1])
    assert {1, 3} == firsts


def test_weighted_draws_without_replacement_have_the_right_odds():
    """The second example is drawn from those that are left."""
    counts = collections.Counter()
    rng = numpy.random.RandomState(0)
    scheme = WeightedScheme([1, 2, 3], 2, num_examples=2, replacement=False,
                            rng=rng)
    for _ in range(6000):
        counts[tuple(flat(scheme))] += 1
    for first, second in itertools.permutations(range(3), 2):
        odds = (first + 1) / 6 * (second + 1) / (5 - first)
        assert abs(counts[first, second] - 6000 * odds) < 200


def test_examples_of_no_weight_are_never_drawn_before_tiny_ones():
    """The time of a tiny weight is as infinite as theirs."""
    scheme = WeightedScheme([0, 1e-320, 0, 1, 5e-324], 3, num_examples=3,
                            replacement=False)
    for _ in range(20):
        assert {1, 3, 4} == set(flat(scheme))


def assert_likely(counts, odds):
    """Chi-square: what happens once in ten thousand runs is refused. Seeds
    are fixed, so that it happens always or never."""
    counts, odds = numpy.asarray(counts), numpy.asarray(odds, float)
    expected = counts.sum() * odds / odds.sum()
    assert chisquare(counts, expected).pvalue > 1e-4


@pytest.mark.parametrize('generator', GENERATORS)
def test_weighted_draws_pass_a_chi_square_test(generator):
    """Draws are with replacement, and neighbours do not depend on each
    other."""
    weights = numpy.array([1., 2, 3, 4, .5])
    drawn = flat(WeightedScheme(weights, 100, num_examples=20000,
                                rng=generator(1)))
    assert_likely(numpy.bincount(drawn, minlength=5), weights)
    pairs = numpy.bincount(numpy.multiply(drawn[::2], 5) + drawn[1::2],
                           minlength=25)
    assert_likely(pairs, numpy.outer(weights, weights).ravel())


@pytest.mark.parametrize('generator', GENERATORS)
def test_draws_without_replacement_pass_a_chi_square_test(generator):
    """Whole orders of four examples, each drawn from those left."""
    weights = [1, 2, 3, 6]
    scheme = WeightedScheme(weights, 4, replacement=False, rng=generator(2))
    counts = collections.Counter(tuple(flat(scheme)) for _ in range(4000))
    orders = list(itertools.permutations(range(4)))
    odds = []
    for order in orders:
        left = [sum(weights[one] for one in order[place:])
                for place in range(4)]
        odds.append(numpy.prod([weights[one] / rest for one, rest in zip(
            order, left, strict=True)]))
    assert_likely([counts[order] for order in orders], odds)


@pytest.mark.parametrize('generator', GENERATORS)
def test_balanced_draws_pass_a_chi_square_test(generator):
    """The class at a place and its first example are both random."""
    scheme = BalancedScheme([0] * 5 + [1] * 2 + [2], 9, num_examples=9,
                            rng=generator(3))
    epochs = [flat(scheme) for _ in range(3000)]
    classes = numpy.array([0, 0, 0, 0, 0, 1, 1, 2])
    for place in 0, 4, 8:
        assert_likely(numpy.bincount(
            classes[[epoch[place] for epoch in epochs]]), [1, 1, 1])
    firsts = [next(one for one in epoch if one < 5) for epoch in epochs]
    assert_likely(numpy.bincount(firsts), numpy.ones(5))


@pytest.mark.parametrize('generator', GENERATORS)
def test_block_shuffle_passes_a_chi_square_test(generator):
    """Every example is as likely at every place; within a window every
    order is as likely as another."""
    scheme = BlockShuffledScheme(8, 3, block_size=2, window=2,
                                 rng=generator(4))
    epochs = numpy.array([flat(scheme) for _ in range(4000)])
    for place in range(8):
        assert_likely(numpy.bincount(epochs[:, place]), numpy.ones(8))
    for half in epochs[:, :4], epochs[:, 4:]:
        orders = collections.Counter(
            tuple(row) for row in half.argsort(axis=1).tolist())
        assert 24 == len(orders)
        assert_likely(list(orders.values()), numpy.ones(24))


@pytest.mark.parametrize('labels', [
    numpy.array([0] * 50 + [1] * 5 + [2] * 1),
    numpy.array([[0]] * 50 + [[1]] * 5 + [[2]] * 1, 'u1'),
    ['a'] * 50 + ['b'] * 5 + ['c']])
def test_balanced_scheme_draws_classes_equally(labels):
    """Counts differ by one at most, and a class is used up before it
    repeats."""
    scheme = BalancedScheme(labels, 7, num_examples=29)
    for _ in range(5):
        drawn = flat(scheme)
        classes = [0 if one < 50 else 1 if one < 55 else 2 for one in drawn]
        assert {9, 10} == set(collections.Counter(classes).values())
        counts = collections.Counter(drawn)
        assert max(counts[one] for one in range(50)) == 1
        assert {counts[one] for one in range(50, 55)} <= {1, 2}
    assert 3 == len(scheme.classes)
    assert 56 == sum(map(len, BalancedScheme(labels, 7)
                         .get_request_iterator()))


def test_masked_labels_are_not_drawn():
    """A warning counts them; the others are drawn as without them."""
    labels = numpy.ma.masked_less([0, -1, 1, 1, -1, 0, 1], 0)
    with pytest.warns(UserWarning, match='2 of 7 labels are missing'):
        scheme = BalancedScheme(labels, 3, num_examples=12, seed=1)
    known = numpy.flatnonzero(labels.filled(-1) >= 0)
    assert known[flat(BalancedScheme(
        labels[known].data, 3, num_examples=12, seed=1))].tolist() == (
            flat(scheme))
    assert [0, 1] == scheme.classes.tolist()
    with pytest.warns(UserWarning, match='2 of 7'):
        assert 5 == BalancedScheme(labels[:, None], 3).num_examples
    with pytest.raises(ValueError, match='all 2 labels are missing'), (
            pytest.warns(UserWarning, match='2 of 2')):
        BalancedScheme(numpy.ma.masked_all(2, int), 3)


def test_class_of_a_plain_array_may_be_called_minus_1():
    """Labels of -1 and +1 are common; `missing` says otherwise, also NaN."""
    labels = [-1, 1, 1, -1, 0]
    assert {0, 3} < set(flat(BalancedScheme(labels, 5, num_examples=15)))
    for missing, some in (-1, labels), ('', ['', 'a', 'a', '', 'b']), (
            float('nan'), [float('nan'), 1, 1, float('nan'), 0]):
        scheme = BalancedScheme(
            some, 5, num_examples=15, missing=missing)
        assert {1, 2, 4} == set(flat(scheme))
        assert 2 == len(scheme.classes)


def test_state_fits_other_missing_labels_only_where_all_are_known():
    """A state from before there was `missing` fits as well."""
    def state(**kwargs):
        stream = DataStream(IndexableDataset(numpy.arange(8)),
                            iteration_scheme=BalancedScheme(
            [-1, 0, 1, -1] * 2, 3, num_examples=8, seed=1, **kwargs))
        next(stream.get_epoch_iterator())
        return stream, stream.state_dict()

    saved, (other, _) = state()[1], state(missing=7)
    other.load_state_dict(saved)
    assert 'labels left out' not in str(saved)
    other, _ = state(missing=-1)
    with pytest.raises(StateMismatchError, match='labels left out'):
        other.load_state_dict(saved)


@pytest.mark.parametrize('make, error, text', [
    (lambda: WeightedScheme([1, -1], 2), ValueError, 'example 1 is -1'),
    (lambda: WeightedScheme([1, float('nan')], 2), ValueError, 'is nan'),
    (lambda: WeightedScheme([1, float('inf')], 2), ValueError, 'is inf'),
    (lambda: WeightedScheme([1e308, 1e308], 2), ValueError, 'finite'),
    (lambda: WeightedScheme([0, 0], 2), ValueError, 'only 0 of 2 weights'),
    (lambda: WeightedScheme([], 2), ValueError, r'shape \(0,\)'),
    (lambda: WeightedScheme([1, 0, 1], 2, replacement=False), ValueError,
     '3 different examples .* only 2 of 3'),
    (lambda: WeightedScheme([1], 0), ValueError, 'batch_size'),
    (lambda: BalancedScheme([], 2), ValueError, r'shape \(0,\)'),
    (lambda: BalancedScheme([[1, 2]], 2), ValueError, r'shape \(1, 2\)'),
    (lambda: BalancedScheme([1, 'a', None], 2), TypeError,
     'one type .*got NoneType, int, str'),
    (lambda: BlockShuffledScheme.aligned(5, 50), TypeError,
     'H5PYDataset, got int'),
    (lambda: BlockShuffledScheme(5, 2, block_size=0), ValueError,
     'block_size'),
    (lambda: BlockShuffledScheme(5, 2, block_size=2, window=0), ValueError,
     'window'),
    (lambda: BlockShuffledScheme(5, 2, block_size=[2, 2]), ValueError,
     'increasing places from 1 to 4'),
    (lambda: BlockShuffledScheme(5, 2, block_size=[5]), ValueError,
     'increasing places'),
    (lambda: BlockShuffledScheme(5, 2, block_size=[1.5]), ValueError,
     'at integers'),
    (lambda: BlockShuffledScheme(iter([1]), 2, block_size=1), TypeError,
     'list_iterator'),
    (lambda: BlockShuffledScheme(5, 2, block_size=1, rng=7), TypeError,
     r'got 7 \(int\): pass seed=7'),
])
def test_senseless_arguments_are_refused(make, error, text):
    """The error has the value, and what was expected."""
    with pytest.raises(error, match=text):
        make()


@pytest.fixture
def path(tmp_path):
    """Return the path of a file with chunks of 7 and of 3 examples."""
    target = tmp_path / 'chunks.hdf5'
    with h5py.File(target, 'w') as file:
        file.create_dataset('x', data=numpy.arange(120).reshape(60, 2),
                            chunks=(7, 2), compression='gzip')
        file.create_dataset('y', data=numpy.arange(60), chunks=(3,))
        file['z'] = numpy.arange(60)
        file.attrs['split'] = H5PYDataset.create_split_array({
            'train': dict.fromkeys('xyz', (0, 40)),
            'test': dict.fromkeys('xyz', (40, 60))})
    return target


def test_aligned_blocks_are_the_chunks_of_the_costliest_source(path):
    """A split that starts inside a chunk begins with a part of it."""
    with H5PYDataset(path, ('test',)) as dataset:
        scheme = BlockShuffledScheme.aligned(dataset, 4, window=1)
        assert [2, 9, 16] == scheme.block_size.tolist()
        epoch = flat(scheme)
        assert list(range(20)) == sorted(epoch)
        chunks = [(40 + example) // 7 for example in epoch]
        assert 4 == len([*itertools.groupby(chunks)])
        scheme = BlockShuffledScheme.aligned(dataset, 4, source='y')
        assert [2, 5, 8, 11, 14, 17] == scheme.block_size.tolist()


def test_aligned_blocks_of_scattered_examples_gather_chunks(path):
    """Examples of one chunk are one block, wherever they are."""
    with H5PYDataset(path, ('test', 'train')) as dataset:
        scheme = BlockShuffledScheme.aligned(dataset, 4, window=1)
        epoch = flat(scheme)
        assert list(range(60)) == sorted(epoch)
        rows = [example + 40 if example < 20 else example - 20
                for example in epoch]
        assert 9 == len([*itertools.groupby(rows, lambda row: row // 7)])


def test_alignment_needs_chunks(path):
    """Contiguous and unknown sources are refused."""
    with H5PYDataset(path, ('train',)) as dataset:
        with pytest.raises(ValueError, match="'z' of .* is not chunked"):
            BlockShuffledScheme.aligned(dataset, 4, source='z')
        with pytest.raises(ValueError, match="no source 'w'"):
            BlockShuffledScheme.aligned(dataset, 4, source='w')


def test_aligned_epoch_decodes_each_chunk_once(path):
    """The cache has room for the chunks of one window and of the next one."""
    with H5PYDataset(path, ('train', 'test'), sources=('x',),
                     cache_bytes=4 * 7 * 16) as dataset:
        scheme = BlockShuffledScheme.aligned(dataset, 4, window=2)
        stream = DataStream(dataset, iteration_scheme=scheme)
        for _ in stream.get_epoch_iterator():
            pass
        reader = dataset._access.open().reader(
            'x', cache_bytes=dataset.cache_bytes)
        assert 9 == reader.store.num_decoded
