"""`fuel.utils`, as programs written for Fuel 0.2.0 use it."""
import os
import pickle

import numpy
import pytest

import fuel
from fuel.utils import (
    Subset,
    do_not_pickle_attributes,
    find_in_data_path,
    iterable_fancy_indexing,
    lazy_property_factory,
    remember_cwd,
)
from fuel.utils.parallel import producer_consumer


def test_remember_cwd_comes_back(tmp_path):
    """An exception in the block does not keep the new directory."""
    before = os.getcwd()
    with pytest.raises(KeyError), remember_cwd():
        os.chdir(tmp_path)
        raise KeyError
    assert before == os.getcwd()


def test_find_in_data_path_returns_the_first_or_raises_oserror(tmp_path):
    """The order of the path decides."""
    for name in ('one', 'two'):
        (tmp_path / name).mkdir()
        (tmp_path / name / 'file').write_text(name)
    fuel.config.data_path = [str(tmp_path / 'two'), str(tmp_path / 'one')]
    assert str(tmp_path / 'two' / 'file') == find_in_data_path('file')
    with pytest.raises(IOError, match='nothing.hdf5'):
        find_in_data_path('nothing.hdf5')


@pytest.mark.parametrize('given, kept', [
    ([3, 1, 3, 5], [1, 3, 5]), ([4, 2, 3], slice(2, 5, None)),
    (slice(1, 4), slice(1, 4)), (slice(None), slice(None)), ([], [])])
def test_subset_keeps_a_sorted_unique_list_or_a_slice(given, kept):
    """A list without gaps becomes a slice."""
    subset = Subset(given, 10)
    assert repr(kept) == repr(subset.list_or_slice) or kept == [] == list(
        subset.get_list_representation())
    assert isinstance(kept, list) is subset.is_list or kept == []
    assert subset.num_examples == len(numpy.arange(10)[given]) - (
        len(given) - len(set(given)) if isinstance(given, list) else 0)
    assert (subset.num_examples == 0) is subset.is_empty
    assert 10 == subset.original_num_examples


@pytest.mark.parametrize('given', [
    [-1, 2], slice(-1, 3), slice(1, -1), slice(1, 5, -1), [10],
    slice(0, 11), slice(10, 10), slice(11, None), slice(5, 3),
    slice(0, 5, 2)], ids=repr)
def test_subset_refuses_what_lies_outside(given):
    """Negative, far and reversed bounds and steps above 1 are refused."""
    with pytest.raises(ValueError):
        Subset(given, 10)


@pytest.mark.parametrize('given', [[], slice(0, 0)])
def test_subset_may_be_empty(given):
    """An empty one can be made, and indexing within it is an error."""
    subset = Subset(given, 10)
    assert subset.is_empty
    assert 0 == subset.num_examples
    with pytest.raises(ValueError):
        subset.index_within_subset(list(range(10)), slice(0, 1))


def test_subset_sum_joins_slices_and_lists():
    """Slices that meet give one, with the left one's step."""
    one, two = Subset(slice(0, 4), 9), Subset(slice(4, 7), 9)
    assert slice(0, 7, 1) == (one + two).list_or_slice
    assert slice(0, 7, 1) == (two + one).list_or_slice
    far = Subset(slice(8, 9), 9)
    assert [0, 1, 2, 3, 8] == (one + far).list_or_slice
    assert [0, 1, 2, 3, 6] == (one + Subset([0, 6], 9)).list_or_slice
    with pytest.raises(ValueError):
        one + Subset(slice(0, 4), 10)


@pytest.mark.parametrize('given, request_, expected', [
    ([1, 3, 6, 8], [2, 0], [6, 1]), ([1, 3, 6, 8], slice(1, 3), [3, 6]),
    (slice(2, 8), [3, 0], [5, 2]),
    (slice(2, 8), slice(1, 4), slice(3, 6, 1)),
    (slice(2, 8), slice(0, 5, 2), slice(2, 7, 2))])
def test_subset_translates_a_request(given, request_, expected):
    """To one on the whole."""
    assert expected == Subset(given, 10)[request_]


@pytest.mark.parametrize('given', [[1, 3, 6], slice(2, 8)])
def test_subset_of_everything_is_what_it_holds(given):
    """`slice(None)` gives `list_or_slice` itself."""
    subset = Subset(given, 10)
    assert subset.list_or_slice == subset[slice(None)]


@pytest.mark.parametrize('method, request_', [
    ('_list_request_sanity_check', []),
    ('_list_request_sanity_check', [-1]),
    ('_list_request_sanity_check', [5]),
    ('_slice_request_sanity_check', slice(5, None)),
    ('_slice_request_sanity_check', slice(0, 6)),
    ('_slice_request_sanity_check', slice(3, 3)),
    ('_slice_request_sanity_check', slice(-2, None)),
    ('_slice_request_sanity_check', slice(0, -1)),
    ('_slice_request_sanity_check', slice(0, 4, -1))], ids=repr)
def test_subset_checks_that_others_call_raise_valueerror(method, request_):
    """They are private, but called from outside."""
    with pytest.raises(ValueError):
        getattr(Subset([0, 1], 5), method)(request_, 5)
    good = [0, 4] if 'list' in method else slice(1, 5)
    assert getattr(Subset([0, 1], 5), method)(good, 5) is None


def test_subset_static_and_class_methods():
    """Each can be called without an object."""
    assert (2, 7, 1) == Subset.slice_to_numerical_args(slice(2, None), 7)
    assert [[3, 4, 5]] == Subset.sorted_fancy_indexing(
        numpy.arange(12).reshape(4, 3), [1]).tolist()
    assert [2, 0] == Subset.sorted_fancy_indexing(
        numpy.arange(4), [2, 0]).tolist()
    assert [3, 6] == Subset.subset_of(
        Subset([1, 3, 6], 9), [1, 2]).list_or_slice
    assert Subset.empty_subset(4).is_empty
    assert [2, 3] == Subset(slice(2, 4), 9).get_list_representation()
    assert Subset._is_list([1])
    assert not Subset._is_list(slice(1))


def test_subset_indexes_within_itself():
    """In the order of the request, sorted or not."""
    for sort_indices in (False, True):
        assert [60, 10] == Subset([1, 3, 6], 9).index_within_subset(
            numpy.arange(0, 90, 10), [2, 0], sort_indices=sort_indices
        ).tolist()
    assert [30, 60] == Subset([1, 3, 6], 9).index_within_subset(
        list(range(0, 90, 10)), slice(1, 3))
    assert [7, 5] == iterable_fancy_indexing([5, 6, 7], [2, 0])


@do_not_pickle_attributes('bulky', 'function')
class Lazy:
    """Two attributes that a pickle leaves out."""

    def __init__(self):
        self.load()

    def load(self):
        """Set them."""
        self.bulky = list(range(10))
        self.function = lambda: 5


@do_not_pickle_attributes('running')
class Running:
    """An attribute that would lose its place."""

    def load(self):
        """Set it."""
        self.running = iter([1, 2])


@do_not_pickle_attributes('forgotten')
class Forgetful:
    """An attribute that is never set."""

    def load(self):
        """Set nothing."""


def test_lazy_attributes_are_loaded_again():
    """After unpickling, and where nobody called `load`."""
    again = pickle.loads(pickle.dumps(Lazy()))
    assert '_bulky' not in vars(again)
    assert list(range(10)) == again.bulky
    assert 5 == again.function()
    assert list(range(10)) == Lazy.__new__(Lazy).bulky


def test_lazy_attributes_errors_are_valueerrors():
    """A class without `load`, an iterator, an attribute that is not set."""
    with pytest.raises(ValueError, match='load'):
        do_not_pickle_attributes('x')(type('Without', (), {}))
    running = Running()
    running.load()
    with pytest.raises(ValueError, match='iterator'):
        pickle.dumps(running)
    with pytest.raises(ValueError):
        Forgetful().forgotten


def test_lazy_property_factory_returns_a_pair():
    """A getter and a setter, for `property`."""
    class Mine:
        x = property(*lazy_property_factory('x'))

        def load(self):
            self.x = 5

    assert 5 == Mine().x


def produce(socket):
    """Send three numbers."""
    for number in range(3):
        socket.send_pyobj(number)


def consume(socket):
    """Return the process of the others, and their sum."""
    return sum(socket.recv_pyobj() for _ in range(3))


def test_producer_consumer_returns_what_the_consumer_returns():
    """The producer runs in another process."""
    assert 3 == producer_consumer(produce, consume)
