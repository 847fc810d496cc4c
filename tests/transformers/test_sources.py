"""FilterSources and Rename."""
import logging
from contextlib import nullcontext

import pytest

from fuel.datasets import IterableDataset
from fuel.streams import DataStream
from fuel.transformers import FilterSources, Rename


def triples():
    """Return a stream of three sources."""
    return DataStream(IterableDataset(
        {'a': [1, 2], 'b': [3, 4], 'c': [5, 6]},
        axis_labels={'a': ('batch', 'x'), 'b': ('batch',), 'c': None}))


# FilterSources

@pytest.mark.parametrize('sources', [
    ('a', 'c'), ('c', 'a'), ['c', 'a'], {'a', 'c'}])
def test_filter_sources_keeps_the_order_of_the_stream(sources):
    """Names in another order give a warning."""
    with pytest.warns(UserWarning, match=(
            r"in the order of its stream, \('a', 'c'\), not in that of "
            r"\('c', 'a'\)")) if tuple(sources) == ('c', 'a') and not (
                isinstance(sources, set)) else nullcontext():
        stream = FilterSources(triples(), sources=sources)
    assert ('a', 'c') == stream.sources
    assert [(1, 5), (2, 6)] == list(stream.get_epoch_iterator())


def test_filter_sources_returns_tuples():
    """It returns tuples."""
    stream = FilterSources(triples(), sources=('b',))
    assert (3,) == next(stream.get_epoch_iterator())
    assert isinstance(next(stream.get_epoch_iterator()), tuple)
    assert {'b': 3} == next(stream.get_epoch_iterator(as_dict=True))


def test_filter_sources_unknown_name_raises():
    """The error has the nearest match."""
    stream = Rename(triples(), {'a': 'features'})
    with pytest.raises(ValueError, match="did you mean 'features'"):
        FilterSources(stream, sources=('feature',))


def test_filter_sources_string_raises():
    """'ab' is not ('a', 'b')."""
    with pytest.raises(ValueError, match=r"sources must be .*\('ab',\)"):
        FilterSources(triples(), sources='ab')


def test_filter_sources_keeps_the_labels_that_are_left():
    """Those of the others would be in the way."""
    stream = FilterSources(triples(), sources=('a', 'c'))
    assert {'a': ('x',), 'c': None} == stream.axis_labels


def test_filter_sources_may_be_renamed():
    """Names that are assigned change nothing about what is kept."""
    stream = FilterSources(triples(), sources=('b',))
    stream.sources = ('beta',)
    assert {'beta': 3} == next(stream.get_epoch_iterator(as_dict=True))


# Rename

@pytest.mark.parametrize('names, expected', [
    ({'a': 'x'}, ('x', 'b', 'c')),
    ({'a': 'b', 'b': 'a'}, ('b', 'a', 'c')),
    ({'a': 'b', 'b': 'c', 'c': 'a'}, ('b', 'c', 'a')),
    ({'a': 'a'}, ('a', 'b', 'c')),
    ({}, ('a', 'b', 'c'))])
def test_rename_changes_names_alone(names, expected):
    """Swaps are fine; the data stay where they are."""
    stream = Rename(triples(), names)
    assert expected == stream.sources
    assert (1, 3, 5) == next(stream.get_epoch_iterator())
    assert dict(zip(expected, (1, 3, 5), strict=True)) == next(
        stream.get_epoch_iterator(as_dict=True))


@pytest.mark.parametrize('names', [
    {'a': 'b'}, {'a': 'x', 'b': 'x'}, {'a': 'b', 'b': 'c'}])
@pytest.mark.parametrize('mode', ['raise', 'ignore', 'warn'])
def test_rename_two_sources_to_one_name_raises(names, mode):
    """No source may hide another."""
    with pytest.raises(KeyError, match='would both be called'):
        Rename(triples(), names, on_non_existent=mode)


def test_rename_missing_source_raises():
    """The default raises an error with the nearest match."""
    with pytest.raises(KeyError, match='the stream has no such source'):
        Rename(triples(), {'d': 'e'})


def test_rename_missing_source_is_ignored():
    """Its new name may be that of another source."""
    stream = Rename(triples(), {'d': 'a', 'b': 'x'},
                    on_non_existent='ignore')
    assert ('a', 'x', 'c') == stream.sources


def test_rename_missing_source_is_warned_about(caplog):
    """The log has one warning."""
    with caplog.at_level(logging.WARNING):
        stream = Rename(triples(), {'d': 'a'}, on_non_existent='warn')
    assert ('a', 'b', 'c') == stream.sources
    message, = caplog.messages
    assert message.startswith(
        "the source 'd', to be renamed to 'a', does not exist")


def test_rename_unknown_mode_raises():
    """Only three are known."""
    with pytest.raises(ValueError, match="got 'complain'"):
        Rename(triples(), {}, on_non_existent='complain')


def test_rename_renames_labels():
    """They follow their source."""
    stream = Rename(triples(), {'a': 'b', 'b': 'a'})
    assert {'b': ('x',), 'a': (), 'c': None} == stream.axis_labels
