"""States told by what changed."""
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pipelines import build, write_files

from fuel.epochs.state_delta import state_of
from fuel.epochs.state_delta import StateDelta, changed, changes
from fuel.exceptions import StateMismatchError

STATES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False).map(
        lambda number: number + 0.0)
    | st.text(max_size=3)
    | st.lists(st.integers(), max_size=3),
    lambda inner: st.dictionaries(st.sampled_from('abc'), inner)
    | st.lists(inner, max_size=3), max_leaves=10)


@given(STATES, STATES)
def test_changes_lead_from_any_state_to_any_other(old, new):
    """Changes also cross JSON, and leave the old state alone."""
    before = json.dumps(old)
    steps = json.loads(json.dumps(changes(old, new)))
    assert json.dumps(changed(old, steps), sort_keys=True) == json.dumps(
        new, sort_keys=True)
    assert json.dumps(old) == before


@pytest.mark.parametrize('steps', [
    [[['b'], 1], [['b', 'c'], 1]], [[['a', 'x', 0], 1]], [[['a', 5], 1]],
    [[['a', 'x'], 1]], [[[[]], 1]], [[['a']]], [[5, 1]], 7, [None],
    [[['a', 0, 0], 1]]], ids=range(10))
def test_damaged_changes_are_refused(steps):
    """Changes come from a peer or a file."""
    with pytest.raises(StateMismatchError, match='changes of a state do not'):
        changed({'a': [0, 1]}, steps)


@pytest.mark.parametrize('old, new, path', [
    ({'a': 1}, {'a': True}, ['a']),
    ({'a': {'b': 1.0}}, {'a': {'b': 1}}, ['a', 'b']),
    ({'a': [0, 1]}, {'a': [0, True]}, ['a']),
    ({'a': [[1]]}, {'a': [[1.0]]}, ['a'])])
def test_changes_of_the_type_alone_name_the_path(old, new, path):
    """Numbers that are equal need not be the same in JSON."""
    steps = changes(old, new)
    assert [path] == [found for found, _ in steps]
    assert json.dumps(new) == json.dumps(changed(old, steps))


def test_changes_of_a_position_are_small():
    """An unchanged part of a state is not sent again."""
    old = {'scheme': list(range(600)), 'children': [{'position': 1}]}
    new = {'scheme': list(range(600)), 'children': [{'position': 2}]}
    assert changes(old, new) == [(['children', 0, 'position'], 2)]


@pytest.mark.pipelines
def test_course_follows_every_pipeline(pipeline, tmp_path):
    """The changes found without making a state give the state."""
    write_files(tmp_path)
    iterator = build(pipeline, tmp_path).get_epoch_iterator()
    course = StateDelta(iterator)
    for _ in zip(iterator, range(6), strict=False):
        assert (json.dumps(changed(course.base, course.changes(iterator)))
                == json.dumps(state_of(iterator)))
