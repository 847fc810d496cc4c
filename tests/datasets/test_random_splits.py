"""Random splits: whole, repeatable, with shares of each class."""
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel.datasets import IndexableDataset, random_split
from fuel.datasets.random_splits import held_out


@given(st.integers(2, 60), st.floats(.2, .8), st.integers(0, 5))
def test_random_split_is_a_partition(count, share, seed):
    """Every example is in one split, equal seeds give equal splits."""
    shares = {'train': None, 'test': share}
    if not 0 < round(count * share) < count:
        return
    found = random_split(count, shares, seed=seed)
    assert ['train', 'test'] == list(found)
    assert list(range(count)) == sorted(numpy.concatenate(
        list(found.values())).tolist())
    assert round(count * share) == len(found['test'])
    again = random_split(count, shares, seed=seed)
    assert all(numpy.array_equal(found[name], again[name]) for name in found)


@given(st.lists(st.sampled_from('abc'), min_size=8, max_size=60))
def test_stratified_split_has_its_share_of_each_class(classes):
    """To the nearest example."""
    if not any(round(classes.count(name) * .25) for name in 'abc'):
        return
    found = random_split(len(classes), {'train': None, 'test': .25},
                         seed=0, stratify=classes)
    for name in set(classes):
        there = sum(classes[row] == name for row in found['test'])
        assert round(classes.count(name) * .25) == there


def test_random_split_of_a_data_set():
    """By the name of a source; the default seed is that of the settings."""
    dataset = IndexableDataset({'x': numpy.arange(10),
                                'y': numpy.array([0, 1] * 5)[:, None]})
    found = random_split(dataset, {'a': .6, 'b': .4}, stratify='y')
    assert [3, 3] == numpy.bincount(dataset[found['a']][1].ravel()).tolist()
    assert {5} == {len(rows) for rows in random_split(
        dataset, {'a': .5, 'b': .5}).values()}


@pytest.mark.parametrize('examples, shares, stratify, text', [
    (10, {'a': .5, 'b': .4}, None, 'add up to 1'),
    (10, {'a': 1.5}, None, 'add up to 1'),
    (10, {'a': None, 'b': None}, None, 'add up to 1'),
    (10, {}, None, 'add up to 1'),
    (3, {'a': None, 'b': .01}, None, "'b' would be empty"),
    (3, {'a': None, 'b': .5}, [0, 1], 'one class for each of the 3'),
    (3, {'a': None, 'b': .5}, 'y', 'the data set must be given'),
    (IndexableDataset([1, 2]), {'a': None, 'b': .5}, 'y', "no source 'y'")],
    ids=['sum', 'large', 'rests', 'none', 'empty', 'classes', 'number',
         'source'])
def test_random_split_that_cannot_be(examples, shares, stratify, text):
    """The text says why."""
    with pytest.raises(ValueError, match=text):
        random_split(examples, shares, stratify=stratify)


@pytest.mark.parametrize('shares, text', [
    ([('test', .1)], r"hold out test=0.1 of 3 examples: the split 'test'"),
    ([('test', 1.5)], 'hold out test=1.5 of 3 examples: shares must'),
    ([('train', .5)], 'names of their own'),
    ([('a', .3), ('a', .3)], 'names of their own')])
def test_what_cannot_be_held_out_is_named(shares, text):
    """With what was asked for."""
    with pytest.raises(ValueError, match=text):
        held_out(3, shares, 0)


def test_held_out_examples_are_not_trained_on():
    """Without any, all are in the split 'train'."""
    found = held_out(10, [('test', .3), ('valid', .2)], seed=1)
    assert {'train': 5, 'test': 3, 'valid': 2} == {
        name: len(rows) for name, rows in found.items()}
    assert list(range(10)) == sorted(numpy.concatenate(
        list(found.values())).tolist())
    assert list(range(4)) == held_out(4, None, 0)['train'].tolist()
