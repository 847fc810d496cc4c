"""Values are found where they are in a sequence."""
import numpy
from hypothesis import example, given
from hypothesis import strategies as st

from fuel.schemes.inverse import Inverse

SMALL = st.integers(-3, 9)
VALUES = st.one_of(
    st.lists(SMALL, max_size=20), st.permutations(range(9)),
    st.lists(SMALL | st.integers(-2 ** 70, 2 ** 70), max_size=9),
    st.lists(SMALL | st.sampled_from(
        ['a', (1, 2), 2., 2.5, None, [1, 2]]), max_size=9),
    st.builds(range, SMALL, SMALL, st.sampled_from([-4, -1, 1, 3])),
    st.lists(SMALL, max_size=20).map(numpy.array),
    st.lists(st.integers(0, 9), unique=True, max_size=9).map(
        lambda values: numpy.array(values, 'uint8')))


@given(VALUES, st.lists(SMALL, max_size=5))
@example([5, 0, 2 ** 64 - 1], [5])
@example([2 ** 63, -1], [-1])
@example([0, (1, 2)], [])
def test_value_is_found_at_each_of_its_positions(values, others):
    """Integers, also of NumPy, and other values."""
    inverse = Inverse(values)
    plain = values.tolist() if isinstance(values, numpy.ndarray) else (
        list(values))
    for value in [*plain, *others, 2.0, 2.5, 'b', 2 ** 70, [1, 2]]:
        assert list(inverse.find(value)) == [
            position for position, other in enumerate(plain)
            if other == value]
    for value in others:
        assert inverse.find(numpy.int64(value)) == inverse.find(value)


def test_value_is_found_in_a_range_of_any_length():
    """Nothing is searched."""
    inverse = Inverse(range(10 ** 12, 3, -7))
    assert list(inverse.find(numpy.int64(10 ** 12 - 70))) == [10]
    assert not [*inverse.find(10 ** 12 - 71), *inverse.find(.5)]
