"""Random integers, against the generator whose draws they are."""
import numpy
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from fuel.kernels import draws


@given(st.integers(0, 2 ** 32 - 1),
       st.one_of(st.integers(0, 300), st.integers(0, 2 ** 32 - 2),
                 st.sampled_from([2 ** n - 1 for n in range(32)])),
       st.lists(st.integers(0, 200), min_size=1, max_size=4))
def test_draw_integers_are_those_of_randint(seed, most, counts):
    """Number and order are equal, so that the generator ends in the same
    state."""
    ours, theirs = (numpy.random.RandomState(seed) for _ in range(2))
    for count in counts:
        drawn = draws.draw_integers(ours._bit_generator, most, count)
        expected = theirs.randint(0, most + 1, count, dtype=numpy.int64)
        assert_array_equal(expected, drawn)
        assert drawn.dtype == numpy.intp
    assert_array_equal(theirs.random_sample(3), ours.random_sample(3))


def test_draw_integers_of_other_bit_generators():
    """A RandomState may stand on any of them."""
    ours, theirs = (numpy.random.RandomState(numpy.random.PCG64(3))
                    for _ in range(2))
    drawn = draws.draw_integers(ours._bit_generator, 5, 1001)
    assert_array_equal(theirs.randint(0, 6, 1001), drawn)
    assert_array_equal(theirs.randint(0, 6, 9), ours.randint(0, 6, 9))


@given(st.integers(0, 2 ** 32 - 1), st.integers(0, 700),
       st.sampled_from([numpy.random.MT19937, numpy.random.PCG64]))
def test_draw_order_is_that_of_shuffle(seed, size, kind):
    """The same swaps, and the generator stands where it would."""
    ours, theirs = (numpy.random.RandomState(kind(seed)) for _ in range(2))
    expected = list(range(size))
    theirs.shuffle(expected)
    order = draws.draw_order(ours._bit_generator, size)
    assert expected == order.tolist()
    assert order.dtype == numpy.uint32
    assert_array_equal(theirs.random_sample(3), ours.random_sample(3))


def test_draw_order_of_many():
    """More than lie in a processor's cache."""
    ours, theirs = (numpy.random.RandomState(5) for _ in range(2))
    expected = numpy.arange(3 * 10 ** 6)
    theirs.shuffle(expected)
    assert_array_equal(expected, draws.draw_order(
        ours._bit_generator, len(expected)))
    assert ours.randint(1000) == theirs.randint(1000)
