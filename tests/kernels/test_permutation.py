"""The permutation that is computed instead of stored."""
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fuel.kernels.permutation import ROUNDS, permute, unpermute
from fuel.schemes.computed import BlockPermutation, Permutation

KEYS = st.lists(st.integers(0, 2 ** 64 - 1), min_size=ROUNDS,
                max_size=ROUNDS)


def permuted(size, keys, numbers=None):
    """Return the images of all numbers below `size`, or of some."""
    images = (numpy.arange(size) if numbers is None
              else numpy.array(numbers, dtype=numpy.int64))
    permute(images, size, keys)
    return images


def random_keys(rng):
    """Return keys drawn from a generator."""
    return rng.integers(0, 2 ** 64, ROUNDS, dtype=numpy.uint64).tolist()


@given(st.integers(1, 3000), KEYS)
def test_permutation_of_any_size_visits_each_number_once(size, keys):
    """It is a bijection, whatever the size and the keys."""
    assert set(permuted(size, keys).tolist()) == set(range(size))


@given(st.integers(1, 2 ** 62), KEYS, st.data())
def test_permutation_of_huge_size_keeps_distinct_numbers_distinct(
        size, keys, data):
    """The test samples a permutation of up to 2 ** 62 numbers."""
    numbers = data.draw(st.lists(
        st.integers(0, size - 1), unique=True, max_size=100))
    images = permuted(size, keys, numbers)
    assert len(set(images.tolist())) == len(numbers)
    assert ((0 <= images) & (images < size)).all()


@given(st.integers(1, 2 ** 62) | st.integers(1, 50), KEYS, st.data())
def test_permutation_backwards_returns_each_number(size, keys, data):
    """The two kernels undo each other, either one first."""
    numbers = data.draw(st.lists(st.integers(0, size - 1), max_size=50))
    images = permuted(size, keys, numbers)
    unpermute(images, size, keys)
    assert numbers == images.tolist()
    unpermute(images, size, keys)
    permute(images, size, keys)
    assert numbers == images.tolist()


@given(st.integers(1, 10 ** 15) | st.integers(1, 2 ** 17), st.data(),
       st.integers(0, 2 ** 70), st.integers(0, 9))
def test_places_of_computed_orders_are_those_of_their_images(
        size, data, seed, epoch):
    """Some orders are stored, some computed, some have blocks."""
    block_size = data.draw(st.integers(max(1, size // 10 ** 12), 10 ** 4))
    start = data.draw(st.integers(0, size - 1))
    for order in (Permutation(size, seed, epoch), BlockPermutation(
            size, block_size, data.draw(st.integers(1, 50)), seed, epoch)):
        images = order(start, start + 20)
        assert order.place_of(images).tolist() == list(
            range(start, min(start + 20, size)))
        assert order.positions_of(int(images[0])) == [start]


@pytest.mark.parametrize('size', [70_000, 65_536, 99_991, 10 ** 12])
def test_images_of_any_number_are_uniform_over_keys(size):
    """The places of the first, a middle and the last number are uniform."""
    rng = numpy.random.default_rng(3)
    images = numpy.array([
        permuted(size, random_keys(rng), [0, size // 3, size - 1])
        for _ in range(20_000)])
    for column in images.T:
        counts, _ = numpy.histogram(column, 50, (0, size))
        assert stats.chisquare(counts).pvalue > 1e-4
    # Two numbers move independently of each other.
    for first, second in ((0, 1), (0, 2), (1, 2)):
        table, *_ = numpy.histogram2d(
            images[:, first], images[:, second], 10, [(0, size)] * 2)
        assert stats.chi2_contingency(table)[1] > 1e-4


def test_one_permutation_looks_like_a_true_shuffle():
    """Distances of neighbours, runs and correlation are those of chance."""
    size = 200_000
    rng = numpy.random.default_rng(5)
    for _ in range(5):
        images = permuted(size, random_keys(rng))
        # The distance of neighbours is triangular, as of two draws.
        steps = numpy.abs(numpy.diff(images)[::2]) / size
        assert stats.kstest(steps, lambda x: 2 * x - x * x).pvalue > 1e-4
        moved = numpy.abs(images - numpy.arange(size)) / size
        assert stats.kstest(moved, lambda x: 2 * x - x * x).pvalue > 1e-4
        # Ascents and descents: mean (n - 1) / 2, variance (n + 1) / 12.
        ascents = (numpy.diff(images) > 0).sum()
        assert abs(ascents - (size - 1) / 2) < 4.5 * (size / 12) ** .5
        for lag in (1, 2, 3, 448, 1000):
            left, right = images[:-lag], images[lag:]
            assert abs(numpy.corrcoef(left, right)[0, 1]) < 4.5 / size ** .5


def test_fixed_points_are_as_many_as_in_a_true_shuffle():
    """Their number is Poisson distributed with mean 1."""
    rng = numpy.random.default_rng(7)
    counts = [int((permuted(1000, random_keys(rng)) == numpy.arange(
        1000)).sum()) for _ in range(3000)]
    expected = stats.poisson(1).pmf(range(6))
    expected[5] = 1 - expected[:5].sum()
    observed = numpy.bincount(numpy.minimum(counts, 5), minlength=6)
    assert stats.chisquare(observed, expected * 3000).pvalue > 1e-4


def test_odd_and_even_permutations_are_equally_frequent():
    """Half of the permutations are even, also of 9, 15 and 25 numbers."""
    rng = numpy.random.default_rng(9)
    for size in (9, 15, 25):
        even = 0
        for _ in range(2000):
            images = permuted(size, random_keys(rng))
            inversions = (images[:, None] > images)[
                numpy.triu_indices(size, 1)[0],
                numpy.triu_indices(size, 1)[1]].sum()
            even += inversions % 2 == 0
        assert abs(even - 1000) < 4.5 * 2000 ** .5 / 2


@pytest.mark.parametrize('numbers, size, keys, error', [
    (numpy.arange(3, dtype='int32'), 3, range(8), TypeError),
    (numpy.arange(6)[::2], 6, range(8), TypeError),
    (numpy.arange(4).reshape(2, 2), 4, range(8), TypeError),
    (numpy.arange(3), 2, range(8), ValueError),
    (numpy.array([-1]), 2, range(8), ValueError),
    (numpy.arange(3), 0, range(8), ValueError),
    (numpy.arange(3), 2 ** 63, range(8), ValueError),
    (numpy.arange(3), 3, range(7), ValueError),
])
def test_permute_bad_arguments_raise(numbers, size, keys, error):
    """Nothing runs on memory that is not what the kernel expects."""
    for function in (permute, unpermute):
        with pytest.raises(error):
            function(numbers, size, list(keys))
