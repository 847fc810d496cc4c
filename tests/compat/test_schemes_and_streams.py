"""Schemes, streams, iterators and the server, as programs written for Fuel
0.2.0 use them."""
import collections.abc
import pickle

import numpy
import pytest
import zmq
from numpy.testing import assert_array_equal

import fuel
from fuel.datasets import IndexableDataset, IterableDataset
from fuel.exceptions import ServerError
from fuel.iterator import DataIterator
from fuel.schemes import (
    BatchScheme,
    ConcatenatedScheme,
    ConstantScheme,
    IndexScheme,
    IterationScheme,
    SequentialExampleScheme,
    SequentialScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
    cross_validation,
)
from fuel.server import Server, recv_arrays, send_arrays
from fuel.streams import AbstractDataStream, DataStream, ServerDataStream
from fuel.transformers import Batch, Flatten, Unpack


def requests(scheme):
    """Return the requests of an epoch."""
    return list(scheme.get_request_iterator())


def pairs(count=6, **kwargs):
    """Return a data set of two sources."""
    return IndexableDataset({
        'x': numpy.arange(2 * count).reshape(count, 2),
        'y': numpy.arange(count)}, **kwargs)


# Schemes.

def test_constant_scheme_gives_sizes():
    """So many times, up to a number of examples, or without end."""
    assert [3, 3] == requests(ConstantScheme(3, times=2))
    assert [3, 3, 1] == requests(ConstantScheme(3, num_examples=7))
    assert [3, 3] == requests(ConstantScheme(3, num_examples=6))
    endless = ConstantScheme(3).get_request_iterator()
    assert [3] * 50 == [next(endless) for _ in range(50)]
    with pytest.raises(ValueError):
        ConstantScheme(3, num_examples=6, times=2)
    assert [] == requests(ConstantScheme(3, times=0))
    assert [] == requests(ConstantScheme(3, num_examples=0))


@pytest.mark.parametrize('examples, order', [
    (5, [0, 1, 2, 3, 4]), ([4, 1, 1, 0], [4, 1, 1, 0]),
    (range(2, 5), [2, 3, 4]), (range(7)[::-1], [6, 5, 4, 3, 2, 1, 0])],
    ids=repr)
def test_sequential_schemes_keep_the_order_given(examples, order):
    """Batches are lists, with a short one at the end."""
    assert order == requests(SequentialExampleScheme(examples))
    batches = requests(SequentialScheme(examples, 2))
    assert [order[place:place + 2]
            for place in range(0, len(order), 2)] == batches
    assert all(type(batch) is list for batch in batches)
    assert all(type(index) is int for batch in batches for index in batch)


def test_shuffled_schemes_give_the_order_of_the_manual():
    """Under the default seed, anew in each epoch, alike for two schemes."""
    assert [7, 2, 1, 6, 0, 4, 3, 5] == requests(ShuffledExampleScheme(8))
    assert [[7, 2, 1, 6], [0, 4, 3, 5]] == requests(ShuffledScheme(8, 4))
    one, two = ShuffledScheme(50, 8), ShuffledScheme(50, 8)
    first, second = requests(one), requests(one)
    assert first != second
    assert [first, second] == [requests(two), requests(two)]


@pytest.mark.parametrize('examples', [40, list(range(7, 90, 3)), range(33)])
def test_shuffled_order_is_that_of_shuffling_a_list(examples):
    """`rng.shuffle` of the indices as a Python list."""
    rng = numpy.random.RandomState(5)
    scheme = ShuffledExampleScheme(
        examples, rng=numpy.random.RandomState(5))
    for _ in range(3):
        expected = list(range(examples) if isinstance(examples, int)
                        else examples)
        rng.shuffle(expected)
        assert expected == requests(scheme)


def test_shuffled_arguments_go_by_keyword():
    """`rng`, and `sorted_indices` for batches."""
    rng = numpy.random.RandomState(3)
    scheme = ShuffledScheme(10, 4, rng=rng, sorted_indices=True)
    assert scheme.rng is rng
    assert all(batch == sorted(batch) for batch in requests(scheme))
    with pytest.raises(TypeError):
        ShuffledScheme(10, 4, True)
    with pytest.raises(TypeError):
        ShuffledExampleScheme(10, rng)


def test_default_seed_that_is_assigned_counts_for_schemes_made_later():
    """Each scheme has a generator of its own."""
    fuel.config.default_seed = 5
    scheme = ShuffledExampleScheme(20)
    expected = list(range(20))
    numpy.random.RandomState(5).shuffle(expected)
    assert expected == requests(scheme)
    assert isinstance(scheme.rng, numpy.random.RandomState)
    assert scheme.rng is not ShuffledExampleScheme(20).rng


def test_concatenated_scheme_joins_schemes_of_one_kind():
    """Examples or batches, not both."""
    scheme = ConcatenatedScheme(schemes=[
        SequentialScheme(3, 2), SequentialScheme([5, 4], 1)])
    assert [[0, 1], [2], [5], [4]] == requests(scheme)
    assert scheme.requests_examples is False
    assert ConcatenatedScheme(
        [SequentialExampleScheme(2)]).requests_examples is True
    with pytest.raises(ValueError):
        ConcatenatedScheme([SequentialScheme(3, 2),
                            SequentialExampleScheme(3)])


def test_cross_validation_gives_pairs_of_schemes():
    """Borders at n * i // k; training order is before, then after."""
    folds = list(cross_validation(SequentialExampleScheme, 10, 3,
                                  strict=False))
    assert [3, 3, 4] == [size for _, _, size in folds]
    assert [[0, 1, 2], [3, 4, 5], [6, 7, 8, 9]] == [
        requests(valid) for _, valid, _ in folds]
    assert [0, 1, 2, 6, 7, 8, 9] == requests(folds[1][0])
    assert requests(folds[1][0]) == requests(folds[1][0])
    (train, valid), *_ = cross_validation(
        SequentialScheme, 8, 4, batch_size=4)
    assert [[2, 3, 4, 5], [6, 7]] == requests(train)
    assert [[0, 1]] == requests(valid)


def test_cross_validation_complains_at_the_first_next():
    """It is a generator."""
    folds = cross_validation(SequentialExampleScheme, 10, 3)
    with pytest.raises(ValueError):
        next(folds)


@pytest.mark.parametrize('scheme', [
    SequentialScheme(9, 2), ShuffledScheme(9, 2), ConstantScheme(2, 9),
    SequentialExampleScheme(9), ShuffledExampleScheme(range(9)),
    ConcatenatedScheme([SequentialScheme(3, 2), ShuffledScheme(6, 2)])])
@pytest.mark.parametrize('protocol', range(pickle.HIGHEST_PROTOCOL + 1))
def test_request_iterators_pickle_in_the_middle(scheme, protocol):
    """With any protocol."""
    iterator = scheme.get_request_iterator()
    next(iterator)
    again = pickle.loads(pickle.dumps(iterator, protocol))
    assert list(iterator) == list(again)


def test_abstract_schemes_keep_their_arguments():
    """Tools read them off a stream's scheme."""
    class Batches(BatchScheme):
        def get_request_iterator(self):
            return super().get_request_iterator()

    class Single(IndexScheme):
        def get_request_iterator(self):
            return super().get_request_iterator()

    batches, single = Batches([3, 1], 2), Single(4)
    assert ([3, 1], 2, 2) == (
        batches.indices, batches.batch_size, batches.num_examples)
    assert list(range(4)) == list(single.indices)
    for scheme in (batches, single):
        with pytest.raises(NotImplementedError):
            scheme.get_request_iterator()


@pytest.mark.parametrize('cls, arguments', [
    (IterationScheme, ()), (BatchScheme, (4, 2)), (IndexScheme, (4,)),
    (AbstractDataStream, ())])
def test_abstract_class_cannot_be_built(cls, arguments):
    """A class whose method has a slip in its name is abstract, too."""
    class Slip(cls):
        def get_request_iterater(self):
            return iter([])

        def get_dat(self, request=None):
            return ()

    for abstract in (cls, Slip):
        with pytest.raises(TypeError):
            abstract(*arguments)


# Streams.

def test_data_iterator_is_an_iterator_of_nothing_too():
    """It can be built over None."""
    assert isinstance(DataIterator(None), collections.abc.Iterator)
    assert iter(DataIterator(None)) is not None


def test_abstract_stream_takes_the_scheme_first():
    """The scheme alone decides whether the stream produces examples."""
    scheme = SequentialExampleScheme(3)
    class Stream(AbstractDataStream):
        def get_data(self, request=None):
            return ()

    stream = Stream(scheme)
    assert stream.iteration_scheme is scheme
    assert stream.produces_examples is True
    with pytest.raises(ValueError):
        stream.produces_examples = False
    bare = Stream()
    with pytest.raises(ValueError):
        bare.produces_examples
    bare.produces_examples = False
    assert bare.produces_examples is False
    assert bare.axis_labels is None


def test_produces_examples_may_be_a_class_attribute():
    """A subclass overrides the property by a plain value."""
    class Mine(AbstractDataStream):
        produces_examples = True

        def get_data(self, request=None):
            return ()

    assert Mine().produces_examples is True
    assert Mine(SequentialScheme(2, 1)).produces_examples is True


def test_data_stream_sources_can_be_assigned():
    """People hide labels so."""
    stream = DataStream(pairs(), iteration_scheme=SequentialScheme(6, 3))
    stream.sources = ('a', 'b')
    assert ('a', 'b') == stream.sources
    assert {'a', 'b'} == set(next(stream.get_epoch_iterator(as_dict=True)))
    stream.sources = ('x',)
    assert ['x'] == list(next(stream.get_epoch_iterator(as_dict=True)))


def test_data_stream_copies_the_labels_without_batch_for_examples():
    """Those of the data set stay as they are."""
    labels = {'x': ('batch', 'feature'), 'y': 'batch'}
    dataset = pairs(axis_labels=labels)
    batches = DataStream(dataset, iteration_scheme=SequentialScheme(6, 3))
    assert labels == batches.axis_labels
    examples = DataStream(dataset,
                          iteration_scheme=SequentialExampleScheme(6))
    assert ('feature',) == examples.axis_labels['x']
    assert ('batch', 'feature') == dataset.axis_labels['x']


def test_labels_that_are_none_are_carried_by_stages():
    """Flatten, Batch and Unpack."""
    dataset = pairs(axis_labels={'x': None, 'y': ('batch',)})
    stream = Flatten(DataStream(
        dataset, iteration_scheme=SequentialScheme(6, 3)),
        which_sources=('x',))
    assert stream.axis_labels['x'] is None
    examples = Unpack(stream)
    assert examples.axis_labels['x'] is None
    again = Batch(examples, ConstantScheme(2))
    assert again.axis_labels['x'] is None
    assert ('batch',) == again.axis_labels['y']


class OnlyLooksLikeADataset:
    """The interface of a data set in the manual, without a base class."""

    sources = ('x',)
    axis_labels = None

    def __init__(self):
        self.calls = []

    def open(self):
        """Count the calls."""
        self.calls.append('open')
        return len(self.calls)

    def next_epoch(self, state):
        """Count the calls."""
        self.calls.append('next_epoch')
        return self.open()

    def reset(self, state):
        """Count the calls."""
        self.calls.append('reset')
        return self.open()

    def close(self, state):
        """Count the calls."""
        self.calls.append('close')

    def get_data(self, state=None, request=None):
        """Return the request."""
        return (request,)


def test_stream_opens_at_once_and_switches_from_the_second_epoch_on():
    """The constructor opens the first state; `reset` makes it fresh."""
    dataset = OnlyLooksLikeADataset()
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(4, 2))
    assert ['open'] == dataset.calls
    expected = [([0, 1],), ([2, 3],)]
    assert expected == list(stream.get_epoch_iterator())
    assert 'next_epoch' not in dataset.calls
    assert expected == list(stream.get_epoch_iterator())
    assert 1 == dataset.calls.count('next_epoch')
    stream.reset()
    assert expected == list(stream.get_epoch_iterator())
    assert 1 == dataset.calls.count('next_epoch')
    stream.close()


def test_default_stream_applies_the_default_transformers():
    """Those of the class or of the data set, replaced at any time."""
    dataset = pairs()
    dataset.default_transformers = ((Flatten, [], {}),)
    stream = DataStream.default_stream(
        dataset, iteration_scheme=SequentialScheme(6, 3))
    assert isinstance(stream, Flatten)
    assert isinstance(dataset.apply_default_transformers(stream), Flatten)


def test_iterate_epochs_gives_fresh_iterators():
    """Each is a whole epoch."""
    stream = DataStream(IterableDataset([1, 2]))
    epochs = stream.iterate_epochs(as_dict=True)
    for _ in range(3):
        assert [{'data': 1}, {'data': 2}] == list(next(epochs))


def test_tools_find_the_scheme_through_the_stages():
    """They walk down `data_stream`, and read the scheme's arguments."""
    stream = Flatten(Flatten(DataStream(
        pairs(), iteration_scheme=ShuffledScheme(6, 4))))
    while hasattr(stream, 'data_stream'):
        stream = stream.data_stream
    scheme = stream.iteration_scheme
    assert (6, 4, list(range(6))) == (
        scheme.num_examples, scheme.batch_size, list(scheme.indices))


# The server.

def test_server_stream_needs_two_arguments_and_connects_late():
    """Nothing listens, and yet it is built, pickled, and pickled again."""
    stream = ServerDataStream(('a', 'b'), False, 'localhost', 1, 3)
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(stream))))
    assert (('a', 'b'), False, 'localhost', 1, 3) == (
        again.sources, again.produces_examples, again.host, again.port,
        again.hwm)
    with pytest.raises(ValueError):
        stream.get_data([0, 1])
    assert 5557 == ServerDataStream(('a',), True).port
    assert stream.connected is False


def test_server_stream_says_whether_it_is_connected():
    """As the attribute of that name did."""
    stream = DataStream(pairs(), iteration_scheme=SequentialScheme(6, 4))
    with Server(stream, 0) as server:
        client = ServerDataStream(
            ('features', 'targets'), False, port=server.port)
        seen = [client.connected]
        client.connect()
        seen.append(client.connected)
        client.close()
        seen.append(client.connected)
    assert [False, True, False] == seen
    alone = ServerDataStream(
        ('features', 'targets'), False, port=server.port, timeout=0)
    with alone:
        with pytest.raises(ServerError):
            alone.connect()
        assert not alone.connected


def test_server_goes_on_with_the_next_epoch_after_stopiteration():
    """The client names what arrives, by position."""
    stream = DataStream(pairs(), iteration_scheme=ShuffledScheme(6, 4))
    same = DataStream(pairs(), iteration_scheme=ShuffledScheme(6, 4))
    with Server(stream, 0) as server, ServerDataStream(
            ('features', 'targets'), False, port=server.port) as client:
        for _ in range(3):
            epoch = client.get_epoch_iterator(as_dict=True)
            for x, y in same.get_epoch_iterator():
                batch = next(epoch)
                assert_array_equal(x, batch['features'])
                assert_array_equal(y, batch['targets'])
            with pytest.raises(StopIteration):
                next(epoch)
        with ServerDataStream(('one',), False, port=server.port) as other, \
                pytest.raises(ServerError, match='source'):
            next(other.get_epoch_iterator())


def test_arrays_are_sent_and_received_over_a_socket():
    """A stop message is StopIteration."""
    with zmq.Context() as context:
        left, right = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
        with left, right:
            left.bind('inproc://here')
            right.connect('inproc://here')
            arrays = [numpy.arange(6).reshape(2, 3), numpy.float32([1.5])]
            send_arrays(left, arrays)
            for sent, received in zip(
                    arrays, recv_arrays(right), strict=True):
                assert_array_equal(sent, received)
                assert sent.dtype == received.dtype
            send_arrays(left, None, stop=True)
            with pytest.raises(StopIteration):
                recv_arrays(right)
