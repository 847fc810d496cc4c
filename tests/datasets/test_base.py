"""The interface of data sets, and data sets over objects in memory."""
import itertools
import json
import pickle
from collections import Counter, OrderedDict, defaultdict
from typing import NamedTuple

import h5py
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from fuel.datasets import (
    Dataset,
    H5PYDataset,
    IndexableDataset,
    IterableDataset,
)
from fuel.interop.chainer import ChainerDataset
from fuel.interop.paddle import ProviderDataset
from fuel.schemes import SequentialExampleScheme, SequentialScheme
from fuel.streams import DataStream
from fuel.transformers import Mapping, Merge


class Random(Dataset):
    """A data set as users write them."""

    provides_sources = ('features', 'targets')

    def get_data(self, state=None, request=None):
        return self.filter_sources(([1.0] * request, [2] * request))


def test_dataset_sources_default_to_all():
    """Without a choice all sources come, in the order of the class."""
    assert ('features', 'targets') == Random().sources
    assert ([1.0], [2]) == Random().get_data(request=1)


@pytest.mark.parametrize('sources', [('targets', 'features'),
                                     ['targets', 'features'], ('targets',)])
def test_filter_sources_keeps_the_order_of_sources(sources):
    """The data come in the order of the names that were asked for."""
    dataset = Random(sources=sources)
    assert sources == dataset.sources
    data = dataset.filter_sources(('f', 't'))
    assert tuple(source[0] for source in sources) == data
    assert type(data) is tuple


@pytest.mark.parametrize('sources, text', [
    (('feature',), "there is no source 'feature': did you mean 'features'"),
    (('z',), r"available are \('features', 'targets'\)"),
    ('features', r"the string 'features': write \('features',\)"),
    ((), 'at least one source'),
])
def test_dataset_bad_sources_raise(sources, text):
    """An unknown source is refused with the nearest match."""
    with pytest.raises(ValueError, match=text):
        Random(sources=sources)


def test_dataset_without_provided_sources_raises():
    """A class must say what it provides."""
    with pytest.raises(ValueError, match='provides_sources'):
        Dataset()


def test_dataset_state_methods():
    """A data set has no state by default, and a new epoch starts afresh."""
    dataset = Random()
    assert dataset.open() is None
    assert dataset.reset(None) is None
    assert dataset.next_epoch(None) is None
    assert dataset.close(None) is None
    with pytest.raises(NotImplementedError, match='get_data'):
        Dataset.get_data(dataset)
    with dataset as same:
        assert same is dataset


def test_dataset_example_iteration_scheme():
    """The scheme may be set on the class or the object, or be missing."""
    with pytest.raises(AttributeError, match='example iteration scheme'):
        Random().example_iteration_scheme  # noqa: B018
    scheme = SequentialExampleScheme(3)

    class WithScheme(Random):
        _example_iteration_scheme = scheme

    dataset = WithScheme()
    assert dataset.example_iteration_scheme is scheme
    assert dataset.get_example_stream().iteration_scheme is scheme
    other = Random()
    other.example_iteration_scheme = scheme
    assert other.example_iteration_scheme is scheme


class Tagged:
    """A stand-in for a transformer, which notes its arguments."""

    def __init__(self, stream, *args, **kwargs):
        self.seen = (stream, args, kwargs)


def test_apply_default_transformers_wraps_in_order():
    """Each stage gets the one before it, its arguments and keywords."""
    dataset = Random()
    assert dataset.apply_default_transformers('stream') == 'stream'
    dataset.default_transformers = (
        (Tagged, [1, 2], {'a': 3}), (Tagged, [], {}))
    last = dataset.apply_default_transformers('stream')
    first = last.seen[0]
    assert ('stream', (1, 2), {'a': 3}) == first.seen


# IterableDataset

def read_all(dataset, state=None):
    """Return all examples of a data set that is read in order."""
    state = dataset.open() if state is None else state
    examples = []
    while True:
        try:
            examples.append(dataset.get_data(state))
        except StopIteration:
            return examples


def test_iterable_dataset_reads_in_order():
    """Each example has one item of each iterable."""
    dataset = IterableDataset({'x': [1, 2, 3], 'y': 'abc'})
    assert ('x', 'y') == dataset.provides_sources
    assert 3 == dataset.num_examples
    assert [(1, 'a'), (2, 'b'), (3, 'c')] == read_all(dataset)
    assert dataset.example_iteration_scheme is None


def test_iterable_dataset_state_is_an_imap():
    """The manual prints the class of the state."""
    assert 'imap' == IterableDataset([1]).open().__class__.__name__


@pytest.mark.parametrize('iterable', [
    [1, 2], (1, 2), numpy.array([1, 2]), range(1, 3), {1: 0, 2: 0}.keys()])
def test_iterable_dataset_single_iterable_is_called_data(iterable):
    """A bare iterable, an array too, becomes the source 'data'."""
    dataset = IterableDataset(iterable)
    assert ('data',) == dataset.sources
    assert [(1,), (2,)] == read_all(dataset)


def test_iterable_dataset_of_unknown_length():
    """The number of examples is NaN if the iterable has no length."""
    dataset = IterableDataset(iter([1, 2]))
    assert numpy.isnan(dataset.num_examples)


@pytest.mark.parametrize('iterables, text', [
    ({'x': [1], 'y': 3}, r"source 'y' must be an iterable, got 3 \(int\)"),
    (None, "source 'data' must be an iterable, got None"),
    ({'x': [1, 2], 'y': [1]}, 'same number of examples, got x: 2, y: 1')])
def test_iterable_dataset_bad_iterables_raise(iterables, text):
    """The error names iterables that are invalid or do not match."""
    with pytest.raises(ValueError, match=text):
        IterableDataset(iterables)


@pytest.mark.parametrize('lengths', [(3, 2), (2, 3)])
def test_iterable_dataset_of_generators_of_unequal_length_raises(lengths):
    """The error is raised when one generator ends before the others."""
    dataset = IterableDataset({
        name: (i for i in range(length))
        for name, length in zip('xy', lengths, strict=True)})
    with pytest.raises(ValueError, match=r"after 2 of them one ended before "
                                         r"another; of \('x', 'y'\)"):
        read_all(dataset)


def test_iterable_dataset_beside_an_endless_iterator_ends_with_it():
    """Examples may be numbered with ``itertools.count``."""
    dataset = IterableDataset({'n': itertools.count(5), 'x': 'ab'})
    assert [(5, 'a'), (6, 'b')] == read_all(dataset)


def test_iterable_dataset_get_data_needs_a_state_and_no_request():
    """Iterables are read in order."""
    dataset = IterableDataset([1])
    with pytest.raises(ValueError, match='reads examples in order'):
        dataset.get_data()
    with pytest.raises(ValueError, match='request 0'):
        dataset.get_data(dataset.open(), 0)


def test_iterable_dataset_over_an_iterator_read_twice_raises():
    """The second epoch over a generator is an error, not empty."""
    dataset = IterableDataset({'x': (i for i in range(3)), 'y': [1, 2, 3]})
    stream = DataStream(dataset)
    assert 3 == len(list(stream.get_epoch_iterator()))
    with pytest.raises(ValueError, match="'x' is an iterator .generator.*"
                                         'pass a list'):
        list(stream.get_epoch_iterator())


PAIR = {'x': [1, 2], 'y': [3, 4]}


def pairs():
    """Return a stream of two sources."""
    return DataStream(IndexableDataset(PAIR),
                      iteration_scheme=SequentialScheme(2, 2))


@pytest.mark.parametrize('make, argument', [
    (lambda names: IndexableDataset(PAIR, sources=names), 'sources'),
    (lambda names: Merge([pairs()], names), 'sources'),
    (lambda names: Mapping(pairs(), list, add_sources=names), 'add_sources'),
    (lambda names: ChainerDataset([(1, 2)], names), 'names'),
    (lambda names: ProviderDataset(list, names), 'names')])
def test_set_of_names_in_the_place_of_their_order_is_refused(make, argument):
    """Data would change places from one run to the next."""
    with pytest.raises(ValueError, match=f'^{argument} must .* got a set'):
        make({'x', 'y'})


def test_set_of_splits_is_refused(tmp_path):
    """Examples would have other numbers in another process."""
    path = tmp_path / 'file.hdf5'
    with h5py.File(path, 'w') as h5file:
        h5file['x'] = numpy.arange(4)
        h5file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 3)}, 'test': {'x': (3, 4)}})
    with pytest.raises(ValueError, match='which_sets must .* got a set'):
        H5PYDataset(path, {'train', 'test'})
    assert 3 == H5PYDataset(path, {'train'}).num_examples


@pytest.mark.parametrize('kind', [set, frozenset])
def test_position_in_a_set_is_not_saved(kind):
    """Another process may read it in another order."""
    words = kind(['a', 'b', 'c'])
    stream = DataStream(IterableDataset({'x': [1, 2, 3], 'word': words}))
    assert set(words) == {word for _, word in stream.get_epoch_iterator()}
    pickle.dumps(stream)
    epoch = stream.get_epoch_iterator()
    json.dumps(stream.state_dict())
    next(epoch)
    for save in (stream.state_dict, lambda: pickle.dumps(epoch)):
        with pytest.raises(TypeError, match='reads a set'):
            save()


@pytest.mark.parametrize('step', range(5))
def test_iterable_dataset_state_pickles_as_a_position(step):
    """A state goes on where it stood, with the iterables of its data set."""
    dataset = IterableDataset({'x': range(4), 'y': numpy.arange(4)})
    state = dataset.open()
    for _ in range(step):
        dataset.get_data(state)
    copy, copied_state = pickle.loads(pickle.dumps((dataset, state)))
    expected = [(i, i) for i in range(step, 4)]
    assert expected == read_all(copy, copied_state)
    assert expected == read_all(
        dataset, dataset.open_at(dataset.get_position(state)))
    assert expected == read_all(dataset, state)


@pytest.mark.parametrize('step', range(4))
def test_iterable_dataset_iterator_pickles_in_its_midst(step):
    """An iterator that pickles is not read over again."""
    dataset = IterableDataset(iter([5, 6, 7]))
    state = dataset.open()
    for _ in range(step):
        dataset.get_data(state)
    copy, copied_state = pickle.loads(pickle.dumps((dataset, state)))
    assert [(i,) for i in range(5 + step, 8)] == read_all(copy, copied_state)


def test_iterable_dataset_open_at_negative_raises():
    """A position counts from the beginning."""
    with pytest.raises(ValueError, match='must not be negative'):
        IterableDataset([1]).open_at(-1)


def test_iterable_dataset_examples_are_the_users_own():
    """Writing into an example changes neither data nor later epochs."""
    features = numpy.arange(6.).reshape(3, 2)
    rows = [[1, 2], [3, 4], [5, 6]]
    dataset = IterableDataset({'f': features, 'r': rows})
    for feature, row in read_all(dataset):
        feature[...] = -1
        row[0] = -1
    assert_array_equal(numpy.arange(6.).reshape(3, 2), features)
    assert [[1, 2], [3, 4], [5, 6]] == rows


def test_iterable_dataset_subclass_that_skips_every_init():
    """The iterators of such a subclass are read once, as others are."""
    class Skipping(IterableDataset):
        provides_sources = ('a',)

        def __init__(self):
            self.iterables = [iter([1, 2])]

    stream = DataStream(Skipping())
    assert [(1,), (2,)] == list(stream.get_epoch_iterator())
    with pytest.raises(ValueError, match='an earlier epoch has read it'):
        list(stream.get_epoch_iterator())


# Ownership of unusual examples

class Pair(tuple):
    """A tuple of a user's own class."""


class Point(NamedTuple):
    """A named tuple."""

    x: object
    y: object


@pytest.mark.parametrize('example', [
    Point(1, 2), Point([1], 2), Pair((1, [2])), OrderedDict(a=[1]),
    Counter('aab'), defaultdict(list, a=[1])], ids=repr)
@pytest.mark.parametrize('get', [
    lambda rows: IndexableDataset(rows).get_data(None, 0),
    lambda rows: next(IterableDataset(rows).open())],
    ids=['indexable', 'iterable'])
def test_examples_of_other_classes_stay_what_they_are(get, example):
    """A named tuple comes out as one, and its parts are the user's own."""
    data, = get([example])
    assert example == data
    assert type(example) is type(data)
    values = data.values() if isinstance(data, dict) else data
    for part in values:
        if isinstance(part, list):
            part.append(7)
    assert 7 not in [item for part in (
        example.values() if isinstance(example, dict) else example)
        if isinstance(part, list) for item in part]


@pytest.mark.parametrize('get', [
    lambda rows: IndexableDataset(rows).get_data(None, 1),
    lambda rows: IndexableDataset(list(rows)).get_data(None, 1),
    lambda rows: IndexableDataset(rows).get_data(None, [1])[0],
    lambda rows: IndexableDataset(rows).get_data(None, slice(1, 2))[0],
    lambda rows: list(IterableDataset(rows).open())[1]],
    ids=['indexable', 'list', 'batch', 'slice', 'iterable'])
@pytest.mark.parametrize('order', '<>')
def test_examples_that_are_records_are_the_users_own(get, order):
    """A record, which NumPy takes as a view, changes no data set."""
    rows = numpy.zeros(3, [('a', order + 'i4'), ('b', order + 'f8')])
    rows['a'] = 1, 2, 3
    record, = get(rows)
    assert 2 == record['a']
    record['a'] = 99
    assert [1, 2, 3] == rows['a'].tolist()
    assert record.dtype.isnative


# IndexableDataset

REQUESTS = st.one_of(
    st.integers(0, 9),
    st.lists(st.integers(0, 9), min_size=1, max_size=12),
    st.tuples(st.integers(0, 9), st.integers(1, 10),
              st.sampled_from([None, 1, 2, 3])).filter(
                  lambda s: s[0] < s[1]).map(lambda s: slice(*s)))


@given(REQUESTS)
def test_indexable_dataset_equals_numpy(request_):
    """Any request gives what NumPy gives, in new arrays."""
    features = numpy.arange(60).reshape(10, 2, 3)
    targets = numpy.arange(10)
    dataset = IndexableDataset({'f': features, 't': targets})
    data = dataset.get_data(None, request_)
    assert_array_equal(features[request_], data[0])
    assert_array_equal(targets[request_], data[1])
    assert not numpy.shares_memory(features, data[0])


@given(REQUESTS)
def test_indexable_dataset_of_lists_returns_lists(request_):
    """Lists stay lists; a single index gives an element."""
    rows = [[i, i + 1] for i in range(10)]
    data, = IndexableDataset(rows).get_data(None, request_)
    expected = ([rows[i] for i in request_] if isinstance(request_, list)
                else rows[request_])
    assert expected == data
    data[0] = -1
    assert rows == [[i, i + 1] for i in range(10)]


@pytest.mark.parametrize('dtype', ['i1', 'u1', 'i2', 'u4', 'i8', 'u8', '>i4'])
def test_indexable_dataset_integer_arrays_are_requests(dtype):
    """An index array of any width is as good as a list."""
    dataset = IndexableDataset({'x': numpy.arange(5), 'y': list('abcde')})
    x, y = dataset.get_data(None, numpy.array([4, 0, 4], dtype))
    assert [4, 0, 4] == x.tolist()
    assert ['e', 'a', 'e'] == y


@pytest.mark.parametrize('request_, text', [
    ([], 'at least one example, got an empty one'),
    (numpy.array([], int), 'at least one example'),
    ([5], 'element 0 is 5: there are only 5 examples'),
    ([-1], 'do not count from the end'),
    (5, 'there are only 5 examples'),
    (-1, 'do not count from the end'),
    (1.0, r'1.0 \(float\)'),
    (True, 'flatnonzero'),
    ([True, False, True, False, True], 'flatnonzero'),
    (numpy.array([True, False, True, False, True]), 'flatnonzero'),
    (numpy.array([0.0]), 'array of integers'),
    (slice(0, 6), 'there are only 5 examples'),
    (slice(-2, None), 'must not be negative'),
    (slice(3, 3), 'holds no example'),
    (slice(0, 3, 1.0), 'expected step to be an integer'),
    (slice(True, 3), 'expected start to be an integer'),
    (slice(None, None, -1), 'must not be negative'),
    ('x', r"'x' \(str\)"),
    ((0, (1,)), r'\(tuple\)'),
], ids=repr)
@pytest.mark.parametrize('indexable', [numpy.arange(5), list(range(5))],
                         ids=['array', 'list'])
def test_indexable_dataset_bad_requests_raise(indexable, request_, text):
    """A request of the wrong kind or out of range says what to do."""
    with pytest.raises(ValueError, match=text):
        IndexableDataset(indexable).get_data(None, request_)


@pytest.mark.parametrize('request_, text', [
    (-1, 'do not count from the end'), (5, 'there are only 5 examples'),
    (True, 'flatnonzero'), ([-1], 'do not count from the end'),
    (slice(0, 6), 'there are only 5 examples')], ids=repr)
def test_indexable_dataset_of_a_string_refuses_bad_requests(request_, text):
    """Requests are checked even if the data are neither array nor list."""
    with pytest.raises(ValueError, match=text):
        IndexableDataset('abcde').get_data(None, request_)


def test_indexable_dataset_get_data_needs_a_request_and_no_state():
    """There is no state to have."""
    dataset = IndexableDataset([1])
    assert dataset.open() is None
    with pytest.raises(ValueError, match='request None'):
        dataset.get_data()
    with pytest.raises(ValueError, match='state True'):
        dataset.get_data(True, [0])


@pytest.mark.parametrize('start, stop', [
    (-1, None), (None, -1), (30, 20), (60, None), (None, 51)])
def test_indexable_dataset_bad_start_and_stop_raise(start, stop):
    """A range that is not within the examples is refused."""
    with pytest.raises(ValueError, match=f'within the 50 .*start={start}'):
        IndexableDataset(list(range(50)), start=start, stop=stop)


@pytest.mark.parametrize('value', [5, None, iter([1])])
def test_indexable_dataset_of_what_has_no_indices_raises(value):
    """Something without brackets is refused by name."""
    with pytest.raises(ValueError, match="'x' must take indices"):
        IndexableDataset({'x': value})


def test_indexable_dataset_indexables_are_those_of_the_sources():
    """A subclass that reads `indexables` gets the sources asked for."""
    dataset = IndexableDataset(
        {'f': [1, 2], 't': [10, 20], 'u': [5, 6]}, sources=('t', 'f'))
    assert [[10, 20], [1, 2]] == dataset.indexables
    assert ([20], [2]) == dataset.get_data(None, [1])
    dataset.sources = ('f',)
    assert ([2],) == dataset.get_data(None, [1])
    dataset.sources = ('g',)
    with pytest.raises(ValueError, match="no source 'g'"):
        dataset.get_data(None, [1])


def test_indexable_dataset_has_an_example_stream():
    """Without a scheme of its own it visits the examples in order."""
    dataset = IndexableDataset(list('abc'))
    assert [('a',), ('b',), ('c',)] == list(
        dataset.get_example_stream().get_epoch_iterator())
    dataset.example_iteration_scheme = SequentialExampleScheme([2, 0])
    assert [('c',), ('a',)] == list(
        dataset.get_example_stream().get_epoch_iterator())


@pytest.mark.parametrize('start, stop', [
    (10, None), (None, 30), (10, 30), (0, 0), (None, None)])
@pytest.mark.parametrize('named', [True, False])
def test_indexable_dataset_start_and_stop(start, stop, named):
    """The offset applies once, and counts in `num_examples`."""
    rows = numpy.arange(50)
    dataset = IndexableDataset({'x': rows} if named else rows,
                               start=start, stop=stop)
    expected = rows[start:stop]
    assert len(expected) == dataset.num_examples
    assert (start, stop) == (dataset.start, dataset.stop)
    if len(expected):
        data, = dataset.get_data(None, list(range(len(expected))))
        assert_array_equal(expected, data)
        assert expected[-1] == dataset.get_data(None, len(expected) - 1)[0]


def test_indexable_dataset_sources_are_attributes():
    """The data can be reached under their names."""
    features = numpy.zeros((2, 2))
    dataset = IndexableDataset({'features': features, 'targets': [0, 1]})
    assert dataset.features is features
    assert [0, 1] == dataset.targets
    with pytest.raises(AttributeError, match='nonsense'):
        dataset.nonsense  # noqa: B018


def test_indexable_dataset_unequal_lengths_raise():
    """Examples pair by position, so there must be as many of each."""
    with pytest.raises(ValueError, match='got x: 2, y: 3'):
        IndexableDataset({'x': [1, 2], 'y': numpy.zeros(3)})


def test_indexable_dataset_pickles():
    """The data go with it."""
    dataset = pickle.loads(pickle.dumps(
        IndexableDataset({'x': numpy.arange(3)}, sources=('x',))))
    assert [2, 0] == dataset.get_data(None, [2, 0])[0].tolist()
    assert [0, 1, 2] == dataset.x.tolist()


def test_indexable_dataset_ragged_and_object_arrays_are_own():
    """Arrays inside lists and object arrays are copied as well."""
    ragged = [numpy.zeros(2), numpy.zeros(3)]
    boxed = numpy.empty(2, object)
    boxed[:] = [numpy.zeros(1), [numpy.zeros(2)]]
    dataset = IndexableDataset({'r': ragged, 'b': boxed})
    for request in ([0, 1], slice(0, 2), numpy.array([1, 0])):
        parts, boxes = dataset.get_data(None, request)
        for part in parts:
            part[...] = 1
        for box in boxes:
            (box[0] if isinstance(box, list) else box)[...] = 1
    dataset.get_data(None, 0)[0][...] = 1
    dataset.get_data(None, 1)[1][0][...] = 1
    assert not any(part.any() for part in ragged)
    assert not boxed[0].any()
    assert not boxed[1][0].any()


def test_indexable_dataset_over_a_memory_map(tmp_path):
    """A mapped file is read like an array, and never written to."""
    array = numpy.memmap(tmp_path / 'x', 'i4', 'w+', shape=(4, 2))
    array[...] = numpy.arange(8).reshape(4, 2)
    data, = IndexableDataset(array).get_data(None, [3, 0])
    assert type(data) is numpy.ndarray
    data[...] = -1
    row, = IndexableDataset(array).get_data(None, 1)
    row[...] = -1
    assert_array_equal(numpy.arange(8).reshape(4, 2), array)


def test_indexable_dataset_over_big_endian_data_is_native():
    """Data are returned in native byte order."""
    data = IndexableDataset(numpy.arange(4, dtype='>f4').reshape(4, 1))
    for request in ([1, 0], slice(0, 2), 1):
        assert data.get_data(None, request)[0].dtype.isnative


def test_indexable_dataset_over_other_indexables(tmp_path):
    """Anything that takes indices in brackets will do."""
    class Squares:
        def __len__(self):
            return 5

        def __getitem__(self, index):
            return operator_index(index) ** 2

    def operator_index(index):
        if not isinstance(index, int):
            raise TypeError
        return index

    dataset = IndexableDataset(Squares())
    assert [16, 1] == dataset.get_data(None, [4, 1])[0]
    assert 9 == dataset.get_data(None, 3)[0]
    with h5py.File(tmp_path / 'f.h5', 'w') as file:
        file['x'] = numpy.arange(5)
        dataset = IndexableDataset(file['x'])
        assert [1, 4] == dataset.get_data(None, [1, 4])[0].tolist()
        with pytest.raises(ValueError, match='only 5 examples'):
            dataset.get_data(None, slice(0, 9))


def test_indexable_dataset_subclass_without_init_reads():
    """Users' classes set `indexables` themselves."""
    class Own(IndexableDataset):
        provides_sources = ('x',)

        def __init__(self):
            self.indexables = [numpy.arange(4)]

    stream = DataStream(Own(), iteration_scheme=SequentialScheme(4, 3))
    assert [[0, 1, 2], [3]] == [
        x.tolist() for x, in stream.get_epoch_iterator()]
