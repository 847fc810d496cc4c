"""Bounds of runs, and the runs that splits of rows leave."""
import numpy
import pytest
from numpy.testing import assert_array_equal
from support.runs import rows_of_runs, stretches

from fuel.datasets.run_bounds import cut_runs, find_bounds, names_in


def refuse(part, name):
    """Nothing is to be read."""
    raise AssertionError(name)


def bounds(runs, *part_rows, read=refuse, **kwargs):
    """Return bounds as a list."""
    found = find_bounds(runs, part_rows, read, **kwargs)
    assert found.dtype == numpy.intp
    return found.tolist()


def test_parts_are_runs_by_default():
    """A part without rows is a run too; 'all' is one run through all."""
    assert bounds(None, 3, 0, 2) == [0, 3, 3, 5]
    assert bounds('all', 3, 0, 2) == [0, 5]
    assert bounds(None) == [0]


def test_lengths_are_joined():
    """Each part has its own."""
    lengths = {0: numpy.array([1, 0, 2], 'uint8'), 1: [[4], [1]]}
    read = {(part, 'ep_len'): of_part for part, of_part in lengths.items()}
    assert bounds({'lengths': 'ep_len'}, 3, 5, read=lambda *asked: read[
        asked]) == [0, 1, 1, 3, 7, 8]
    assert bounds({'lengths': numpy.array([2, 1])}, 3) == [0, 2, 3]
    assert bounds({'lengths': ()}, 0) == [0]


def test_column_of_a_table():
    """A name and the number of the column."""
    table = numpy.array([[2, 9], [3, 9]])
    assert bounds({'lengths': ('seqLengths', 0)}, 5,
                  read=lambda part, name: table) == [0, 2, 5]
    assert names_in({'lengths': ('seqLengths', 0)}) == ['seqLengths']


def test_offsets_are_bounds():
    """They begin at 0 in each part."""
    read = [[0, 2, 2, 3], [0, 1]]
    assert bounds({'offsets': 'indptr'}, 3, 1,
                  read=lambda part, name: read[part]) == [0, 2, 2, 3, 4]


def test_any_of_several_ends_a_run():
    """Rows after the last end are a run."""
    columns = {'terminals': numpy.array([0., 1, 0, 0, 0, 0]),
               'timeouts': numpy.array([[0], [0], [0], [1], [0], [0]], bool)}
    assert bounds({'ends': ('terminals', 'timeouts')}, 6,
                  read=lambda part, name: columns[name]) == [0, 2, 4, 6]
    assert bounds({'ends': list(columns.values())}, 6) == [0, 2, 4, 6]
    assert bounds({'ends': 'terminals'}, 6,
                  read=lambda part, name: columns[name]) == [0, 2, 6]
    assert bounds({'ends': [False, True]}, 2) == [0, 2]
    assert bounds({'ends': numpy.zeros(0)}, 0) == [0]
    assert names_in({'ends': ('terminals', 'timeouts')}) == [
        'terminals', 'timeouts']
    assert names_in({'ends': [False, True]}) == names_in('all') == []


def test_change_of_the_number_begins_a_run():
    """Numbers need not grow, and may be names; parts may have equal ones."""
    assert bounds({'numbers': numpy.array([7, 7, 2, 3, 3])}, 5) == [
        0, 2, 3, 5]
    assert bounds({'numbers': numpy.array(['b', 'a', 'a'], object)}, 3) == [
        0, 1, 3]
    assert bounds({'numbers': 'episode'}, 2, 1,
                  read=lambda part, name: [0] * (2 - part)) == [0, 2, 3]
    assert bounds({'numbers': ()}, 0) == [0]


@pytest.mark.parametrize(('runs', 'words'), [
    ({'lengths': [2, 2]}, 'add up to 4, and there are 5 rows'),
    ({'lengths': [6, -1]}, 'run 1 has the length -1'),
    ({'lengths': [2.5, 2.5]}, 'must have integers, got float64'),
    ({'lengths': [[2, 3]]}, r'one axis, got an array of shape \(1, 2\)'),
    ({'lengths': numpy.array([2 ** 62, 2 ** 62, 5])}, 'add up to'),
    ({'offsets': [0, 4]}, r'from 0 to 5, the number of rows, got \[0, 4\]'),
    ({'offsets': [1, 5]}, r'got \[1, 5\]'),
    ({'offsets': []}, 'got none'),
    ({'offsets': [0, 4, 3, 5]}, 'run 1 begins at row 4 and ends before row 3'),
    ({'ends': [True]}, 'one value for each of the 5 rows, got 1'),
    ({'numbers': [1, 1]}, 'one value for each of the 5 rows, got 2'),
    ({'numbers': [0, 1, 1, 0, 2]}, 'run 0 comes back in row 3'),
    ({'length': [5]}, "runs must be 'all' or one of {'lengths': ...}"),
    ({'lengths': [5], 'ends': [1]}, 'runs must be'),
    ('every', 'runs must be'),
    ([5], 'runs must be')])
def test_what_says_it_wrongly_is_refused(runs, words):
    """The error says what was expected and what came."""
    with pytest.raises(ValueError, match=words):
        bounds(runs, 5)


def test_error_names_the_part():
    """The name is the caller's."""
    with pytest.raises(ValueError, match=r"'ep_len'} of demo_1: the lengths"):
        bounds({'lengths': 'ep_len'}, 2, 3, read=lambda part, name: [2],
               name_part='demo_{}'.format)


def test_all_rows_have_all_runs():
    """Runs without rows have them too."""
    whole = numpy.array([0, 0, 2, 2])
    found, numbers = cut_runs(whole, slice(0, 2))
    assert_array_equal(found, whole)
    assert_array_equal(numbers, [0, 1, 2])


def test_rows_in_another_order_do_not_follow_each_other():
    """Repeated rows and rows of two runs do not follow each other either."""
    found, numbers = cut_runs(numpy.array([0, 3, 6]), numpy.array(
        [4, 5, 0, 1, 1, 2, 3]))
    assert_array_equal(found, [0, 2, 4, 6, 7])
    assert_array_equal(numbers, [1, 0, 0, 1])


@pytest.mark.parametrize('cases', [
    300, pytest.param(3000, marks=pytest.mark.full)])
def test_random_splits_leave_the_longest_stretches(cases):
    """Splits are slices, masks and lists of rows with repetitions."""
    rng = numpy.random.RandomState(cases)
    for _ in range(cases):
        lengths = rng.randint(0, 6, rng.randint(1, 8))
        whole = numpy.concatenate([[0], numpy.cumsum(lengths)])
        count = int(whole[-1])
        if not count:
            continue
        kind = rng.randint(3)
        if kind == 0:
            start = rng.randint(count)
            order = slice(start, rng.randint(start + 1, count + 1))
            if order == slice(0, count):
                continue
        elif kind == 1:
            order = numpy.flatnonzero(rng.randint(4, size=count))
        else:
            order = rng.randint(count, size=rng.randint(1, 12))
        rows = numpy.arange(count)[order]
        found, numbers = cut_runs(whole, order)
        assert [(number, rows[begin:end].tolist()) for number, begin, end
                in zip(numbers.tolist(), found[:-1], found[1:],
                       strict=True)] == stretches(rows_of_runs(lengths), rows)
