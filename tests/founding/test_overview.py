"""The older overview of Fuel, point by point: what its words mean.

The same parts, and the same arrows between them, as its drawing has.
"""
import numpy
import pytest

from fuel.datasets import Dataset, IndexableDataset, IterableDataset
from fuel.iterator import DataIterator
from fuel.schemes import (
    ConstantScheme,
    IterationScheme,
    SequentialScheme,
    ShuffledScheme,
)
from fuel.streams import AbstractDataStream, DataStream
from fuel.transformers import (
    Batch,
    Cache,
    Mapping,
    Padding,
    SortMapping,
    Transformer,
    Unpack,
)


class Recording(Dataset):
    """A data set that records what is called."""

    provides_sources = ('number',)

    def __init__(self):
        super().__init__()
        self.calls = []

    def open(self):
        self.calls.append('open')
        return {'place': 0}

    def close(self, state):
        self.calls.append('close')

    def get_data(self, state=None, request=None):
        self.calls.append(('get_data', request))
        state['place'] += 1
        return (request,)


def test_data_set_is_an_argument_of_a_stream_which_gets_data_from_it():
    """By requests of the scheme, and with the state that the set opened."""
    dataset = Recording()
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(3, 2))
    assert [([0, 1],), ([2],)] == list(stream.get_epoch_iterator())
    assert ['open', ('get_data', [0, 1]), ('get_data', [2])] == dataset.calls


def test_data_set_may_be_created_while_it_is_read():
    """Drawn from a distribution, say."""
    class Normal(Dataset):
        provides_sources = ('draw',)

        def get_data(self, state=None, request=None):
            return (numpy.random.RandomState(request).normal(size=3),)

    stream = DataStream(Normal(), iteration_scheme=SequentialScheme(4, 2))
    first, second = (draw.tolist() for draw, in stream.get_epoch_iterator())
    assert first != second


def test_data_sets_are_stateless():
    """Several streams iterate over one at a time, each with its state."""
    dataset = IterableDataset(['a', 'b', 'c'])
    streams = [DataStream(dataset) for _ in range(2)]
    epochs = [stream.get_epoch_iterator() for stream in streams]
    assert ('a',) == next(epochs[0])
    assert [('a',), ('b',)] == [next(epochs[1]), next(epochs[1])]
    assert ('b',) == next(epochs[0])
    assert not {'position', 'state'} & set(vars(dataset))


def test_state_is_managed_by_the_stream():
    """It opens one, and closes it for the next epoch."""
    dataset = Recording()
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(2, 2))
    for _ in range(2):
        list(stream.get_epoch_iterator())
    assert ['open', ('get_data', [0, 1]), 'close', 'open',
            ('get_data', [0, 1])] == dataset.calls


def test_stream_returns_a_data_iterator():
    """One for each epoch."""
    stream = DataStream(IndexableDataset([1, 2]),
                        iteration_scheme=SequentialScheme(2, 1))
    epoch = stream.get_epoch_iterator()
    assert isinstance(epoch, DataIterator)
    assert epoch is iter(epoch)
    assert [([1],), ([2],)] == list(epoch)
    with pytest.raises(StopIteration):
        next(epoch)


def test_scheme_is_optional():
    """Data that can only be read in order need no scheme."""
    assert DataStream(IterableDataset([1])).iteration_scheme is None
    assert [(1,)] == list(DataStream(
        IterableDataset([1])).get_epoch_iterator())


def test_stream_wrapper_is_a_stream():
    """It takes a stream in the place of a data set."""
    stream = Mapping(DataStream(IterableDataset([1, 2])), lambda data: data)
    assert isinstance(stream, Transformer)
    assert isinstance(stream, AbstractDataStream)
    assert [(1,), (2,)] == list(
        Mapping(stream, lambda data: data).get_epoch_iterator())


def test_chain_of_wrappers_batches_sentences_of_similar_length():
    """The example of the overview: groups of sentences are read, sorted by
    length, grouped into minibatches and padded."""
    rng = numpy.random.RandomState(0)
    sentences = [list(range(1, 1 + n)) for n in rng.permutation(12)]
    stream = DataStream(IterableDataset({'words': sentences}))
    stream = Batch(stream, ConstantScheme(6))
    stream = Mapping(stream, SortMapping(lambda data: len(data[0])))
    stream = Padding(Cache(stream, ConstantScheme(3)))
    batches = list(stream.get_epoch_iterator(as_dict=True))
    assert 4 == len(batches)
    lengths = []
    for batch in batches:
        assert {'words', 'words_mask'} == set(batch)
        assert batch['words'].shape == batch['words_mask'].shape
        found = batch['words_mask'].sum(1).astype(int).tolist()
        assert max(found) == batch['words'].shape[1]
        assert sorted(found) == found
        lengths += found
    assert list(range(12)) == sorted(lengths)
    assert lengths[:6] == sorted(map(len, sentences[:6]))


@pytest.mark.parametrize('scheme, requests', [
    (ConstantScheme(3, num_examples=7), [3, 3, 1]),
    (ShuffledScheme(4, 2, rng=numpy.random.RandomState(0)),
     [[2, 3], [1, 0]]),
])
def test_scheme_returns_request_iterators(scheme, requests):
    """Of batch sizes, or of indices; each is an epoch of requests."""
    assert isinstance(scheme, IterationScheme)
    iterator = scheme.get_request_iterator()
    assert iterator is iter(iterator)
    assert requests == list(iterator)


def test_data_iterator_uses_a_request_iterator():
    """The iterator gets the data of each request from the stream."""
    stream = DataStream(IndexableDataset([5, 6, 7]))
    stream.produces_examples = False
    assert [([7, 5],), ([6],)] == list(
        DataIterator(stream, iter([[2, 0], [1]])))


def test_data_iterator_does_without_requests():
    """It asks the stream until that stops."""
    stream = Unpack(Batch(DataStream(IterableDataset([1, 2, 3])),
                          ConstantScheme(2)))
    epoch = stream.get_epoch_iterator()
    assert epoch.request_iterator is None
    assert [1, 2, 3] == [number for number, in epoch]
