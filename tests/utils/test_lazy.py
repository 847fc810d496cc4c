"""Attributes that are loaded on first use and left out of pickles."""
import copy
import pickle

import pytest

from fuel.utils import do_not_pickle_attributes, lazy_property_factory


@do_not_pickle_attributes('features', 'targets')
class Numbers:
    """A class whose bulky attributes are reloaded."""

    def __init__(self):
        self.name = 'numbers'
        self.loads = 0

    def load(self):
        """Set the lazy attributes."""
        self.loads += 1
        self.features = list(range(5))
        self.targets = lambda: 3


@do_not_pickle_attributes('more')
class MoreNumbers(Numbers):
    """A decorated class of a decorated class."""

    def load(self):
        """Set all lazy attributes."""
        super().load()
        self.more = 'more'


@do_not_pickle_attributes('cache')
class Slotted:
    """A lazy attribute in a slot."""

    __slots__ = ('_cache', 'size')

    def load(self):
        """Set the lazy attribute."""
        self.cache = 'c' * self.size


@do_not_pickle_attributes('features')
class OwnState:
    """A class that pickles in its own way."""

    def __getstate__(self):
        return {'own': True}

    def load(self):
        """Set the lazy attribute."""
        self.features = 4


@do_not_pickle_attributes('extra')
class InheritsOwnState(OwnState):
    """A decorated class whose base pickles in its own way."""

    def __getstate__(self):
        return {**super().__getstate__(), 'extra': self.extra}

    def load(self):
        """Set the lazy attributes."""
        super().load()
        self.extra = 5


@do_not_pickle_attributes('unset')
class ForgetsToLoad:
    """A class whose ``load`` sets nothing."""

    def load(self):
        """Do nothing."""


def test_lazy_attribute_is_loaded_when_first_read():
    """Nothing is loaded before, and only once."""
    numbers = Numbers()
    assert 0 == numbers.loads
    assert [0, 1, 2, 3, 4] == numbers.features
    assert 3 == numbers.targets()
    assert 1 == numbers.loads


def test_lazy_attribute_may_be_assigned():
    """An assigned value, None too, is not loaded over."""
    numbers = Numbers()
    numbers.features = None
    assert numbers.features is None
    assert 0 == numbers.loads


@pytest.mark.parametrize('protocol', range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle_leaves_lazy_attributes_out_and_reloads_them(protocol):
    """Neither a lambda nor bulky data reaches the pickle."""
    numbers = MoreNumbers()
    numbers.features = b'bulky' * 1000
    assert 'more' == numbers.more
    data = pickle.dumps(numbers, protocol)
    assert len(data) < 300
    restored = pickle.loads(data)
    assert {'name': 'numbers', 'loads': 1} == vars(restored)
    assert 'more' == restored.more
    assert [0, 1, 2, 3, 4] == restored.features
    assert 2 == restored.loads


def test_pickling_does_not_change_the_object():
    """The attributes stay loaded in the object that was pickled."""
    numbers = Numbers()
    features = numbers.features
    pickle.dumps(numbers)
    copy.copy(numbers)
    assert numbers.features is features
    assert 1 == numbers.loads


def test_pickle_lazy_attribute_in_a_slot():
    """Slots are left out like other attributes."""
    slotted = Slotted()
    slotted.size = 3
    assert 'ccc' == slotted.cache
    restored = pickle.loads(pickle.dumps(slotted))
    assert not hasattr(restored, '_cache')
    assert 'ccc' == restored.cache


def test_pickle_own_getstate_is_left_alone():
    """A class that defines ``__getstate__`` decides for itself."""
    assert {'own': True} == OwnState().__getstate__()
    assert {'own': True, 'extra': 5} == InheritsOwnState().__getstate__()


def test_pickle_iterator_in_lazy_attribute_raises():
    """An iterator would lose its position."""
    numbers = Numbers()
    numbers.features = iter([1, 2])
    with pytest.raises(ValueError, match=r'Numbers\.features is an iterator'):
        pickle.dumps(numbers)


def test_lazy_attribute_that_load_forgets_raises_value_error():
    """``hasattr`` would hide an AttributeError."""
    with pytest.raises(ValueError, match=r"load\(\) did not set 'unset'"):
        hasattr(ForgetsToLoad(), 'unset')


def test_decorating_a_class_without_load_raises():
    """The decorator needs something to call."""
    with pytest.raises(ValueError, match='NoLoad has no method load'):
        @do_not_pickle_attributes('features')
        class NoLoad:
            pass


def test_lazy_property_factory_makes_a_property():
    """The value is kept under the name with an underscore."""
    class Lazy:
        value = property(*lazy_property_factory('value'))

        def load(self):
            self.value = 2

    lazy = Lazy()
    assert 2 == lazy.value == lazy._value
