"""Orders of rows: slices where they can be, since those are read fastest."""
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel.datasets.row_orders import Selection, length, same, simplify
from fuel.utils import Subset


@pytest.mark.parametrize('rows, expected', [
    ([], slice(0, 0)), ([5], slice(5, 6)), ([3, 4, 5], slice(3, 6))])
def test_consecutive_rows_are_a_slice(rows, expected):
    """Rows given as an array and as a slice give the same slice."""
    assert expected == simplify(numpy.array(rows, numpy.intp))
    assert expected == simplify(expected)


@pytest.mark.parametrize('rows', [
    [3, 5, 4, 6], [3, 3, 5], [0, 2, 4], [5, 4, 3], [0, 2, 2], [1, 1]])
def test_other_rows_keep_their_order(rows):
    """Such rows may have the first and the last of a slice."""
    assert rows == simplify(numpy.array(rows, numpy.intp)).tolist()


@given(st.lists(st.integers(0, 5), max_size=4),
       st.lists(st.integers(0, 5), max_size=4))
def test_orders_are_the_same_if_their_rows_are(first, second):
    """Each order has the length of its rows."""
    orders = [simplify(numpy.array(rows, numpy.intp))
              for rows in (first, second)]
    assert list(map(length, orders)) == [len(first), len(second)]
    assert same(*orders) == (first == second)
    found = numpy.arange(6)[orders[0]]
    assert first == found.tolist()


def test_pickled_selection_with_subsets_says_how_many_rows_there_are():
    """Pickles had the subsets of rows that a subclass assigned."""
    selection = object.__new__(Selection)
    selection.__setstate__({
        'orders': [slice(0, 3)], 'subsets': [Subset(slice(0, 3), 10)],
        'num_examples': 3, 'is_assigned': True})
    assert [10] == selection.num_rows
    assert slice(0, 3) == selection.subsets[0].list_or_slice
