"""Subset against a plain list of indices, and every refused argument."""
import pickle

import h5py
import numpy
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fuel.utils import Subset

INTEGER_TYPES = ('int8', 'uint8', 'int16', '>i4', 'uint32', 'int64', 'uint64')


@st.composite
def slices(draw, num_examples):
    """Draw a legal slice, with its attributes left out at times."""
    start = draw(st.integers(0, num_examples - 1))
    stop = draw(st.integers(start, num_examples))
    return slice(draw(st.sampled_from([start, None])) if start == 0 else start,
                 draw(st.sampled_from([stop, None]))
                 if stop == num_examples else stop,
                 draw(st.sampled_from([None, 1])))


@st.composite
def subsets(draw, num_examples=None, min_size=0):
    """Draw a pair: a Subset, and the list of indices it stands for."""
    if num_examples is None:
        num_examples = draw(st.integers(1, 30))
    argument = draw(st.one_of(
        slices(num_examples),
        st.lists(st.integers(0, num_examples - 1), max_size=40)))
    if isinstance(argument, slice):
        model = list(range(num_examples))[argument]
    else:
        model = sorted(set(argument))
        kind = draw(st.sampled_from(['list', 'tuple', *INTEGER_TYPES]))
        if kind == 'tuple':
            argument = tuple(argument)
        elif kind != 'list':
            argument = numpy.array(argument, dtype=kind)
    assume(len(model) >= min_size)
    return Subset(argument, num_examples), model


@st.composite
def list_requests(draw, num_examples):
    """Draw a pair: a request in some form, and the same as a list."""
    request = draw(st.lists(
        st.integers(0, num_examples - 1), min_size=1, max_size=40))
    kind = draw(st.sampled_from(['list', 'tuple', *INTEGER_TYPES]))
    if kind == 'list':
        return request, request
    if kind == 'tuple':
        return tuple(request), request
    return numpy.array(request, dtype=kind), request


@st.composite
def slice_requests(draw, num_examples):
    """Draw a slice that selects something, with any positive step."""
    start = draw(st.integers(0, num_examples - 1))
    stop = draw(st.integers(start + 1, num_examples))
    return slice(draw(st.sampled_from([0, None])) if start == 0 else start,
                 draw(st.sampled_from([stop, None]))
                 if stop == num_examples else stop,
                 draw(st.sampled_from([None, 1, 2, 3, 50])))


@given(subsets())
def test_subset_any_argument_describes_the_same_examples_as_a_list(pair):
    """Every view of a subset agrees with the sorted list of its indices."""
    subset, model = pair
    assert model == subset.get_list_representation()
    assert len(model) == subset.num_examples
    assert subset.is_empty is (not model)
    if subset.is_list:
        assert model == subset.list_or_slice
    else:
        everything = list(range(subset.original_num_examples))
        assert model == everything[subset.list_or_slice]


@given(subsets())
def test_subset_pickled_is_the_same_subset(pair):
    """A pickle keeps the list or slice exactly."""
    subset, _ = pair
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        copy = pickle.loads(pickle.dumps(subset, protocol))
        assert subset.list_or_slice == copy.list_or_slice
        assert subset.original_num_examples == copy.original_num_examples


@given(st.data(), st.integers(1, 30))
def test_subset_sum_spans_the_union(data, num_examples):
    """Adding is the union of two sets, in either order."""
    left, left_model = data.draw(subsets(num_examples))
    right, right_model = data.draw(subsets(num_examples))
    union = sorted({*left_model, *right_model})
    assert union == (left + right).get_list_representation()
    assert union == (right + left).get_list_representation()


@given(st.data())
def test_subset_list_request_maps_each_position_in_order(data):
    """A list request gives a list in request order, repeats included."""
    subset, model = data.draw(subsets(min_size=1))
    request, positions = data.draw(list_requests(len(model)))
    expected = [model[position] for position in positions]
    result = subset[request]
    assert isinstance(result, list)
    assert {int} == set(map(type, result))
    assert expected == result
    translated = subset.translate(request)
    assert numpy.dtype(numpy.intp) == translated.dtype
    assert expected == translated.tolist()


@given(st.data())
def test_subset_slice_request_selects_what_a_list_would(data):
    """A slice of a slice is a numeric slice; of a list, a list."""
    subset, model = data.draw(subsets(min_size=1))
    request = data.draw(slice_requests(len(model)))
    result = subset[request]
    if subset.is_list:
        assert model[request] == result
    elif request == slice(None):
        assert result is subset.list_or_slice
    else:
        assert all(type(part) is int for part in
                   (result.start, result.stop, result.step))
        assert model[request] == list(
            range(subset.original_num_examples))[result]


@given(st.data())
def test_subset_integer_request_gives_one_index(data):
    """An integer of any width gives the int at that position."""
    subset, model = data.draw(subsets(min_size=1))
    position = data.draw(st.integers(0, len(model) - 1))
    for type_ in (int, numpy.uint8, numpy.int64):
        assert model[position] == subset[type_(position)]
        assert type(subset[type_(position)]) is int


@given(st.data())
def test_subset_of_subset_composes(data):
    """A subset of a subset is the composition of the two selections."""
    subset, model = data.draw(subsets(min_size=1))
    request, positions = data.draw(list_requests(len(model)))
    expected = sorted({model[position] for position in positions})
    part = Subset.subset_of(subset, request)
    assert expected == part.get_list_representation()
    assert subset.original_num_examples == part.original_num_examples


@given(st.data())
def test_subset_index_within_subset_equals_numpy(data):
    """Rows of arrays and lists equal plain indexing of the list of rows."""
    subset, model = data.draw(subsets(min_size=1))
    rows = numpy.arange(2 * subset.original_num_examples).reshape(-1, 2)
    request, positions = data.draw(list_requests(len(model)))
    sort_indices = data.draw(st.booleans())
    expected = rows[[model[position] for position in positions]]
    result = subset.index_within_subset(rows, request, sort_indices)
    numpy.testing.assert_array_equal(expected, result)
    as_list = subset.index_within_subset(rows.tolist(), request, sort_indices)
    assert expected.tolist() == as_list
    chunk = data.draw(slice_requests(len(model)))
    numpy.testing.assert_array_equal(
        rows[model][chunk], subset.index_within_subset(rows, chunk))


@pytest.fixture(scope='module')
def h5py_rows():
    """Make an HDF5 data set of 30 rows that lives in memory."""
    with h5py.File('rows.hdf5', 'w', driver='core',
                   backing_store=False) as file:
        yield file.create_dataset(
            'rows', data=numpy.arange(60).reshape(30, 2))


@given(st.data())
def test_duplicate_indices_read_from_hdf5(h5py_rows, data):
    """Repeated and unsorted indices read the right rows from disk,
    with sort_indices and without."""
    subset, model = data.draw(subsets(30, min_size=1))
    request, positions = data.draw(list_requests(len(model)))
    expected = h5py_rows[()][[model[position] for position in positions]]
    for sort_indices in (True, False):
        result = subset.index_within_subset(h5py_rows, request, sort_indices)
        numpy.testing.assert_array_equal(expected, result)
        assert result.flags.writeable
        assert result.base is None


def test_input_of_the_report_gives_its_rows(h5py_rows):
    """A shuffled list with repetitions."""
    numpy.testing.assert_array_equal(
        h5py_rows[()][[1, 1, 2]],
        Subset.sorted_fancy_indexing(h5py_rows, [1, 1, 2]))


def test_subset_sorted_fancy_indexing_one_element():
    """A list of one index is fine."""
    numpy.testing.assert_array_equal(
        [12], Subset.sorted_fancy_indexing(numpy.arange(10, 20), [2]))


def test_subset_sorted_fancy_indexing_repeated_objects_are_copies():
    """No two rows of a batch of arrays are the same memory."""
    rows = numpy.empty(3, dtype=object)
    rows[:] = [numpy.zeros(1), numpy.zeros(2), numpy.zeros(3)]
    batch = Subset.sorted_fancy_indexing(rows, [2, 1, 2])
    batch[0][:] = 7
    assert [[7, 7, 7], [0, 0], [0, 0, 0]] == [row.tolist() for row in batch]


def test_subset_requests_an_unknown_container_with_a_list():
    """Something that is indexed in its own way gets the plain request."""
    class Echo:
        def __getitem__(self, request):
            return request

    assert [5, 3, 5] == Subset(slice(1, 9), 10).index_within_subset(
        Echo(), [4, 2, 4])


@pytest.mark.parametrize('argument, expected', [
    ([0, 3, 3, 5], [0, 3, 5]),
    ([5, 3, 3, 1], [1, 3, 5]),
    ([4, 2, 3], slice(2, 5, None)),
    ([7], slice(7, 8, None)),
    ([], []),
    (range(8, 2, -1), slice(3, 9, None)),
    (range(0, 10, 3), [0, 3, 6, 9]),
    (numpy.array([9, 1], 'uint64'), [1, 9]),
    (slice(None), slice(None)),
    (slice(0, 0), slice(0, 0)),
    (slice(numpy.int8(2), 4, 1), slice(2, 4, 1)),
])
def test_subset_list_or_slice_is_normalised(argument, expected):
    """Lists are sorted, unique, and a slice where contiguous."""
    assert expected == Subset(argument, 10).list_or_slice


def test_subset_keeps_its_own_indices():
    """Changing the given array or the results changes no subset."""
    given_array = numpy.array([1, 3, 5])
    subset = Subset(given_array, 10)
    given_array[:] = 9
    subset.get_list_representation().clear()
    with pytest.raises(ValueError, match='read-only'):
        subset.translate(slice(None))[0] = 2
    assert [1, 3, 5] == subset[[0, 1, 2]] == subset.get_list_representation()


BAD_ARGUMENTS = {
    'negative index': ([-1, 2], 'element 0 is -1'),
    'index out of range': ([0, 10], 'element 1 is 10.*10 examples'),
    'boolean mask': (numpy.zeros(10, bool), 'boolean mask.*flatnonzero'),
    'boolean': ([0, True], 'element 1 is True .*flatnonzero'),
    'numpy boolean': ([numpy.True_], 'element 0 .*flatnonzero'),
    'float': ([0, 1.0], r'element 1 is 1\.0 .*integers'),
    'float array': (numpy.arange(3.), r'float64.*astype\(int\)'),
    'string': ('012', "'012'"),
    'strings': (['0'], "element 0 is '0'"),
    'None': (None, 'None'),
    'integer': (3, r'a list of integers.*got 3 \(int\)'),
    'set': ({1, 3}, r'got \{1, 3\} \(set\)'),
    'iterator': (iter([1]), 'list_iterator'),
    'two dimensions': (numpy.zeros((2, 2), int), '2 dimensions of .*ravel'),
    'no dimension': (numpy.array(3), '0 dimensions of .*ravel'),
    'nested list': ([[1]], r'element 0 is \[1\] \(list\)'),
    'huge integer': ([2 ** 70], f'element 0 is {2 ** 70}'),
    'huge uint64': (
        numpy.array([2 ** 64 - 1], 'uint64'), f'element 0 is {2 ** 64 - 1}'),
    'negative start': (slice(-1, 3), 'start must not be negative'),
    'negative stop': (slice(0, -3), 'stop must not be negative'),
    'negative step': (slice(3, 0, -1), 'step must not be negative'),
    'zero step': (slice(3, 0, 0), 'step must not be zero'),
    'step 2': (slice(0, 4, 2), 'step of 1, got.*list'),
    'stop beyond': (slice(0, 11), 'does not lie within 10'),
    'start at the end': (slice(10, 10), 'does not lie within 10'),
    'start beyond, no stop': (slice(11, None), 'does not lie within 10'),
    'start after stop': (slice(5, 3), 'does not lie within 10'),
    'float in slice': (slice(0., 3), r'start .*0\.0'),
    'boolean in slice': (slice(0, True), 'stop .*True'),
}


@pytest.mark.parametrize(
    'argument, text', BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS)
def test_subset_bad_argument_raises(argument, text):
    """An invalid subset is refused by value, with the remedy."""
    with pytest.raises(ValueError, match=text):
        Subset(argument, 10)


@pytest.mark.parametrize('total', [-1, 2.0, True, None, '3'])
def test_subset_bad_total_raises(total):
    """The number of examples is a non-negative integer."""
    with pytest.raises(ValueError, match='original_num_examples'):
        Subset([], total)


BAD_REQUESTS = {
    **{name: BAD_ARGUMENTS[name] for name in BAD_ARGUMENTS
       if name not in ('integer', 'step 2', 'string', 'set', 'None',
                       'iterator')},
    'stop beyond': (slice(0, 11), 'only 10 examples'),
    'start at the end': (slice(10, 10), 'holds no example'),
    'start beyond, no stop': (slice(11, None), 'holds no example'),
    'start after stop': (slice(5, 3), 'holds no example'),
    'empty list': ([], 'at least one index'),
    'empty array': (numpy.array([], int), 'at least one index'),
    'empty slice': (slice(0, 0), 'holds no example'),
    'integer beyond': (10, '0 <= index < 10, got 10'),
    'negative integer': (-1, '0 <= index < 10, got -1'),
    'boolean integer': (True, r'got True \(bool\)'),
    'float integer': (1., r'got 1\.0 \(float\)'),
    'string': ('012', r"got '012' \(str\)"),
    'set': ({1, 3}, r'got \{1, 3\} \(set\)'),
    'None': (None, 'got None'),
}


@pytest.mark.parametrize('subset', [
    Subset(slice(5, 15), 20), Subset(range(0, 20, 2), 20)],
    ids=['slice', 'list'])
@pytest.mark.parametrize(
    'request_, text', BAD_REQUESTS.values(), ids=BAD_REQUESTS)
def test_subset_bad_request_raises(subset, request_, text):
    """Every way of indexing refuses the same requests (with a text)."""
    with pytest.raises(ValueError, match=text):
        subset[request_]
    with pytest.raises(ValueError, match=text):
        subset.index_within_subset(numpy.arange(20), request_)


@pytest.mark.parametrize('request_', [
    [], [-1], [10], slice(-1, 2), slice(0, -2), slice(3, 1, -1),
    slice(10, 11), slice(0, 11), slice(4, 4), slice(5, 4)])
def test_subset_sanity_checks_raise(request_):
    """The checks that other code calls refuse bad requests, on the class
    and on an instance."""
    name = ('_slice_request_sanity_check' if isinstance(request_, slice)
            else '_list_request_sanity_check')
    for owner in (Subset, Subset([0], 1)):
        with pytest.raises(ValueError, match='a request'):
            getattr(owner, name)(request_, 10)


def test_subset_sanity_checks_accept_good_requests():
    """A good request passes."""
    Subset._list_request_sanity_check([9, 0, 9], 10)
    Subset._slice_request_sanity_check(slice(9, 10, 5), 10)
    Subset._slice_request_sanity_check(slice(None), 10)


def test_subset_is_list_tells_lists_from_slices():
    """Lists and arrays are lists, slices and integers are not."""
    assert [True, True, False, False] == [
        Subset._is_list(x) for x in ([], numpy.arange(2), slice(2), 3)]


def test_empty_part_of_a_subset_raises():
    """An empty list does not mean everything."""
    with pytest.raises(ValueError, match='at least one index'):
        Subset.subset_of(Subset(slice(None), 10), [])


def test_subset_of_bad_arguments_raise():
    """An integer, or a slice outside the subset, is not a part of it."""
    with pytest.raises(ValueError, match=r'got 3; .*\[3\]'):
        Subset.subset_of(Subset(slice(None), 10), 3)
    with pytest.raises(ValueError, match='50000 examples'):
        Subset.subset_of(Subset(slice(0, 50000), 60000), slice(50000, 60000))


def test_index_arrays_are_requests_like_lists():
    """Index arrays of any width give what a list gives."""
    for subset in (Subset(slice(4, 9), 10), Subset([1, 2, 5, 6, 8], 10)):
        expected = subset[[3, 0, 4]]
        for type_ in INTEGER_TYPES:
            assert expected == subset[numpy.array([3, 0, 4], type_)]


@pytest.mark.parametrize('left, right, expected', [
    (slice(0, 5), slice(3, 7), slice(0, 7, 1)),
    (slice(0, 5), slice(5, 7), slice(0, 7, 1)),
    (slice(0, 7), slice(2, 3), slice(0, 7, 1)),
    (slice(None), slice(2, 3), slice(0, 10, 1)),
    (slice(0, 2), slice(3, 5), [0, 1, 3, 4]),
    (slice(0, 2), [4, 8], [0, 1, 4, 8]),
    ([1, 8], [4, 8], [1, 4, 8]),
    ([1, 3], [2, 4], slice(1, 5, None)),
    ([], slice(2, 4), slice(2, 4, None)),
])
def test_subset_sum_has_the_documented_form(left, right, expected):
    """Slices that touch give a slice with its step, otherwise a list."""
    assert expected == (Subset(left, 10) + Subset(right, 10)).list_or_slice
    assert expected == (Subset(right, 10) + Subset(left, 10)).list_or_slice


def test_subset_sum_of_different_data_sets_raises():
    """Subsets of different data sets do not add."""
    with pytest.raises(ValueError, match='10 examples, one of 11'):
        Subset([], 10) + Subset([], 11)
    with pytest.raises(TypeError, match='unsupported operand'):
        Subset([], 10) + [1]  # noqa: RUF005


@pytest.mark.parametrize('total', [0, 10])
def test_subset_empty_has_no_examples(total):
    """An empty subset exists, but gives nothing."""
    subset = Subset.empty_subset(total)
    assert subset.is_empty
    assert 0 == subset.num_examples
    assert [] == subset.get_list_representation() == subset[slice(None)]
    with pytest.raises(ValueError, match='empty subset'):
        subset.index_within_subset(numpy.arange(10), [0])
    assert Subset(slice(0, 0), total).is_empty
    assert Subset(slice(None), 0).is_empty


def test_subset_everything_gives_the_same_object():
    """``slice(None)`` is answered with `list_or_slice` itself."""
    for subset in (Subset([1, 5], 10), Subset(slice(2, 5), 10)):
        assert subset[slice(None)] is subset.list_or_slice


def test_subset_repr_names_its_content():
    """The repr is short, also of a long list."""
    assert 'Subset(slice(2, 5, None), 10)' == repr(Subset([2, 3, 4], 10))
    assert 'Subset([1, 5], 10)' == repr(Subset([1, 5], 10))
    assert len(repr(Subset(range(0, 10 ** 6, 2), 10 ** 6))) < 99


def test_subset_pickle_names_the_public_module():
    """A pickle finds the class where users import it from."""
    assert b'fuel.utils\n' in pickle.dumps(Subset([1, 5], 9), 2)
