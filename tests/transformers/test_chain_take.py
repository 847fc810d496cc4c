"""Streams one after the other, and the first items of one."""
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import pipelines

from fuel.datasets import IterableDataset
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream
from fuel.transformers import Chain, Filter, MultiProcessing, Rename, Take


def numbers(*values):
    """Return a stream of examples."""
    return DataStream(IterableDataset({'a': list(values)}))


@given(st.lists(st.lists(st.integers(), max_size=4), min_size=1, max_size=4))
def test_chain_gives_what_its_streams_give(parts):
    """It does in each epoch, empty ones included."""
    chain = Chain([numbers(*part) for part in parts])
    expected = [(value,) for part in parts for value in part]
    for _ in range(2):
        assert expected == list(chain.get_epoch_iterator())
    assert len(expected) == len(chain)
    assert ('a',) == chain.sources


def test_chain_of_batches_keeps_their_labels_and_length():
    """They are those of the first stream."""
    chain = Chain([pipelines.batches(SequentialScheme(5, 2)),
                   pipelines.batches()])
    assert ('batch', 'height', 'width') == chain.axis_labels['x']
    assert not chain.produces_examples
    assert 3 + 4 == len(chain) == len(list(chain.get_epoch_iterator()))


def test_chain_of_unknown_length_has_none():
    """One stream is enough."""
    unknown = Filter(numbers(1, 2), bool)
    with pytest.raises(TypeError, match='length of an epoch'):
        len(Chain([numbers(1), unknown]))


@pytest.mark.parametrize('make, text', [
    (lambda: Chain([]), 'at least one stream'),
    (lambda: Chain([numbers(1), Rename(numbers(1), {'a': 'b'})]),
     'same sources'),
    (lambda: Chain([numbers(1), pipelines.batches()]),
     'examples, batches'),
])
def test_chain_refuses_streams_that_do_not_fit(make, text):
    """The error says what to do."""
    with pytest.raises(ValueError, match=text):
        make()


def test_chain_and_take_refuse_requests():
    """They are read in order."""
    for stage in (Chain([numbers(1)]), Take(numbers(1), 1)):
        with pytest.raises(ValueError, match='takes no requests'):
            stage.get_data([0])


def test_chain_goes_on_behind_an_error():
    """The error is of the stream whose turn it is."""
    def check(example):
        if example[0] == 2:
            raise ValueError('two')
        return True

    epoch = Chain([Filter(numbers(1, 2, 3), check),
                   numbers(4)]).get_epoch_iterator()
    assert (1,) == next(epoch)
    with pytest.raises(ValueError, match='two'):
        next(epoch)
    assert [(3,), (4,)] == list(epoch)


@given(st.integers(0, 9), st.integers(0, 9))
def test_take_gives_the_first_items_of_each_epoch(count, length):
    """It gives all if there are fewer."""
    stream = Take(numbers(*range(length)), count)
    for _ in range(2):
        assert [(n,) for n in range(min(count, length))] == list(
            stream.get_epoch_iterator())
    assert min(count, length) == len(stream)


def test_take_checks_its_count():
    """It must be a number from 0 on."""
    with pytest.raises(ValueError, match='count'):
        Take(numbers(1), -1)
    with pytest.raises(TypeError, match='count'):
        Take(numbers(1), 1.5)
    with pytest.raises(TypeError, match='length of an epoch'):
        len(Take(Filter(numbers(1), bool), 1))


def test_chain_and_take_run_in_a_worker():
    """They are one stage of several."""
    with MultiProcessing(Take(Chain([numbers(1, 2), numbers(3)]), 2),
                         start_method='fork') as stream:
        for _ in range(2):
            assert [(1,), (2,)] == list(stream.get_epoch_iterator())
