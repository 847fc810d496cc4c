"""Sums and sums of squares that lose no bit."""
from fractions import Fraction

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel.kernels.exact_sums import add_exactly, limbs_of

UNIT = Fraction(1, 2 ** 1088)


def exact(limbs, first):
    """Return the number that limbs are."""
    return sum((int(limb) << 32 * place for place, limb in enumerate(
        limbs.tolist(), first)), 0)


@pytest.mark.parametrize('dtype, elements', [
    ('float64', st.floats(allow_nan=False, allow_infinity=False)),
    ('int64', st.integers(-2 ** 63, 2 ** 63 - 1)),
    ('uint64', st.integers(0, 2 ** 64 - 1))])
@given(st.data())
def test_sums_of_any_numbers_are_those_of_fractions(dtype, elements, data):
    """A column has any exponents, signs and zeros."""
    values = data.draw(st.lists(elements, min_size=1, max_size=20))
    rows = numpy.array(values, dtype)[:, None]
    low, high = limbs_of(rows)
    fractions = [Fraction(value) for value in values]
    if low < 0:
        assert not any(fractions)
        return
    sums = numpy.zeros((1, high - low + 1), numpy.int64)
    squares = numpy.zeros((1, 2 * sums.shape[1]), numpy.int64)
    add_exactly(rows, low, sums, squares)
    assert sum(fractions) == exact(sums[0], low) * UNIT
    assert sum(fraction ** 2 for fraction in fractions) == exact(
        squares[0], 2 * low) * UNIT ** 2


def test_numbers_outside_of_the_limbs_are_refused():
    """They are not written beside the sums."""
    rows = numpy.array([[1.]])
    assert (32, 34) == limbs_of(rows)
    for first in (31, 33):
        with pytest.raises(ValueError, match='no place in the limbs'):
            add_exactly(rows, first, numpy.zeros((1, 3), numpy.int64),
                        numpy.zeros((1, 6), numpy.int64))
    for columns, count in ((2, 6), (1, 5)):
        with pytest.raises(ValueError, match='twice as many limbs'):
            add_exactly(rows, 32, numpy.zeros((1, 3), numpy.int64),
                        numpy.zeros((columns, count), numpy.int64))
