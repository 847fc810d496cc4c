"""Objects that are shared by their keys."""
import sys

from fuel.utils.registry import Registry


def test_members_are_listed_while_others_are_made():
    """Another thread may make one between any two steps of Python."""
    registry = Registry()
    held = [registry.get(number, set) for number in range(3)]

    def make_another(*_):
        held.append(registry.get(len(held), set))

    before = sys.getprofile()
    sys.setprofile(make_another)
    try:
        found = registry.members()
    finally:
        sys.setprofile(before)
    assert len(held) > 3
    assert 3 <= len(found) <= len(held)
    del held[1:], found
    assert 1 == len(registry.members())
