"""Mapping and SortMapping."""
import operator
import pickle

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream
from fuel.transformers import FilterSources, Mapping, SortMapping


def pairs():
    """Return a stream over three pairs."""
    return DataStream(IterableDataset({'x': [1, 2, 3], 'y': [4, 5, 6]}))


def first(stream, **kwargs):
    """Return the first data of an epoch."""
    return next(stream.get_epoch_iterator(**kwargs))


@pytest.mark.parametrize('make', [
    list, tuple, iter, lambda data: (part for part in data)])
def test_mapping_may_return_any_sequence(make):
    """Sources can be added to a mapping that returns a list."""
    stream = Mapping(pairs(), lambda data: make([data[0] + data[1]]),
                     add_sources=('sum',))
    assert [(1, 4, 5), (2, 5, 7), (3, 6, 9)] == list(
        stream.get_epoch_iterator())
    assert {'x': 1, 'y': 4, 'sum': 5} == first(stream, as_dict=True)


def test_mapping_after_filter_sources_adds_sources():
    """Sources can be added behind FilterSources."""
    stream = Mapping(FilterSources(pairs(), ('y',)),
                     lambda data: (data[0] ** 2,), add_sources=['square'])
    assert ('y', 'square') == stream.sources
    assert (4, 16) == first(stream)


def test_mapping_of_dicts():
    """Names say what is what, in any order."""
    stream = Mapping(pairs(), lambda data: {'y': data['x'], 'x': data['y']},
                     mapping_accepts=dict)
    assert (4, 1) == first(stream)
    stream = Mapping(pairs(), lambda data: {**data, 'sum': sum(
        data.values())}, add_sources=('sum',), mapping_accepts=dict)
    assert (1, 4, 5) == first(stream)
    stream = Mapping(pairs(), lambda data: [9], add_sources=('nine',),
                     mapping_accepts=dict)
    assert (1, 4, 9) == first(stream)


def test_mapping_that_misses_a_key_raises():
    """It does not return data under other names."""
    stream = Mapping(pairs(), lambda data: {'x': 1, 'z': 2},
                     mapping_accepts=dict)
    with pytest.raises(ValueError, match=(
            "there is no 'y': return all.*add_sources.*FilterSources")):
        first(stream)


def test_mapping_that_changes_its_argument():
    """The arguments are returned unchanged beside the result."""
    class Lists(Mapping):
        def _pull(self):
            return list(super()._pull())

    def replace(data):
        data[0] = 'changed'
        return [0]

    stream = Lists(pairs(), replace, add_sources=('z',))
    assert (1, 4, 0) == first(stream)


@pytest.mark.parametrize('kind', [tuple, 'list', None])
def test_mapping_accepts_anything_else_raises(kind):
    """Only list and dict are known."""
    with pytest.raises(ValueError, match='mapping_accepts must be'):
        Mapping(pairs(), None, mapping_accepts=kind)


def test_mapping_add_sources_string_raises():
    """A name is not a tuple of names."""
    with pytest.raises(ValueError, match=r"write \('sum',\)"):
        Mapping(pairs(), None, add_sources='sum')


def test_mapping_request_raises():
    """There is nothing to ask for."""
    with pytest.raises(ValueError, match='takes no requests'):
        Mapping(pairs(), None).get_data(1)


def test_mapping_drops_axis_labels():
    """The function may change the axes."""
    stream = pairs()
    stream.axis_labels = {'x': ('feature',)}
    assert Mapping(stream, None).axis_labels is None
    labels = {'x': ('other',)}
    assert labels == Mapping(stream, None, axis_labels=labels).axis_labels


@given(st.lists(st.tuples(st.integers(0, 5), st.integers())), st.booleans())
def test_sort_mapping_sorts_like_sorted(rows, reverse):
    """Equal keys keep their order; arrays stay arrays."""
    keys = [row[0] for row in rows]
    values = [row[1] for row in rows]
    sort = SortMapping(operator.itemgetter(0), reverse=reverse)
    array, listed, objects = sort(
        (numpy.array(keys, int), tuple(values), numpy.array(values, object)))
    expected = sorted(rows, key=operator.itemgetter(0), reverse=reverse)
    assert isinstance(array, numpy.ndarray)
    assert isinstance(objects, numpy.ndarray)
    assert [row[0] for row in expected] == array.tolist()
    assert [row[1] for row in expected] == listed == objects.tolist()


def test_sort_mapping_of_ragged_batches():
    """The batch of sentences that it is made for."""
    sentences = [[1, 2, 3], [1], [1, 2]]
    dataset = IndexableDataset({'x': sentences, 'y': numpy.arange(3)})
    stream = Mapping(
        DataStream(dataset, iteration_scheme=SequentialScheme(3, 3)),
        SortMapping(lambda example: len(example[0])))
    x, y = first(stream)
    assert [[1], [1, 2], [1, 2, 3]] == x
    assert [1, 2, 0] == y.tolist()
    assert isinstance(y, numpy.ndarray)


def test_sort_mapping_of_unequal_sources_raises():
    """Nothing is cut off."""
    with pytest.raises(ValueError, match='shorter'):
        SortMapping(operator.itemgetter(0))(([1, 2], [1]))


def test_sort_mapping_pickles():
    """It pickles if its key does."""
    sort = pickle.loads(pickle.dumps(
        SortMapping(operator.itemgetter(0), reverse=True)))
    assert ([2, 1],) == sort(([1, 2],))
