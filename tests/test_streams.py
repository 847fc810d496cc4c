"""Data streams and their epoch iterators."""
import collections.abc
import gc
import json
import pickle
import random
import threading
import weakref
from copy import copy as shallow_copy

import numpy
import pytest

from fuel import streams
from fuel.datasets import Dataset, IndexableDataset, IterableDataset
from fuel.exceptions import StateMismatchError
from fuel.iterator import DataIterator
from fuel.schemes import (
    BatchScheme,
    ConstantScheme,
    SequentialExampleScheme,
    SequentialScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
)
from fuel.streams import AbstractDataStream, DataStream
from fuel.transformers import Cast, Mapping, Transformer
from fuel.transformers.multithreading import MultiThreading

ROWS = numpy.arange(20).reshape(10, 2)


def rows_stream(scheme=None):
    """Return a stream over ten rows."""
    dataset = IndexableDataset({'rows': ROWS, 'number': list(range(10))})
    return DataStream(dataset, iteration_scheme=scheme or ShuffledScheme(
        10, 3))


def plain(epoch):
    """Return the data of an epoch as lists that compare."""
    return [[numpy.asarray(part).tolist() for part in data]
            for data in epoch]


class Empty(AbstractDataStream):
    """A stream without data."""

    def get_data(self, request=None):
        return super().get_data(request)


class Loud(Dataset):
    """A data set with a state, which notes what is done to it.

    Each state is a list: its number, and how often it was read.
    """

    provides_sources = ('data',)
    example_iteration_scheme = None

    def __init__(self, length=3):
        self.log = []
        self.length = length
        super().__init__()

    def open(self):
        state = [sum(entry[0] == 'open' for entry in self.log), 0]
        self.log.append(('open', state[0]))
        return state

    def next_epoch(self, state):
        self.log.append(('next', state[0]))
        return [state[0], 0]

    def reset(self, state):
        self.log.append(('reset', state[0]))
        return [state[0], 0]

    def close(self, state):
        self.log.append(('close', state[0]))

    def get_data(self, state=None, request=None):
        if state[1] == self.length:
            raise StopIteration
        state[1] += 1
        return (state[1],)


# The epoch iterator

def test_data_iterator_can_be_built_over_nothing():
    """It is an iterator by the standard library's account."""
    assert isinstance(DataIterator(None), collections.abc.Iterator)


def test_data_iterator_without_its_init_raises():
    """A subclass that forgot ``super().__init__`` is told so."""
    class Forgetful(DataIterator):
        def __init__(self):
            pass

    with pytest.raises(TypeError, match='Forgetful has no epoch .*super'):
        next(Forgetful())


def test_data_iterator_over_any_object_with_get_data():
    """A stream need not be derived from anything."""
    class Stub:
        sources = ('a', 'b')

        def get_data(self, request=None):
            return request, -request

    iterator = DataIterator(Stub(), iter([1, 2]))
    assert [(1, -1), (2, -2)] == list(iterator)
    assert [{'a': 3, 'b': -3}] == list(
        DataIterator(Stub(), iter([3]), as_dict=True))


def test_data_iterator_stays_finished():
    """After the end there is nothing more."""
    epoch = DataStream(Loud()).get_epoch_iterator()
    assert 3 == len(list(epoch))
    assert [] == list(epoch)


def test_data_iterator_error_names_the_stage():
    """An error says in which stage and at which item it was raised."""
    class Broken(Dataset):
        provides_sources = ('x',)

        def get_data(self, state=None, request=None):
            if request == [2]:
                raise RuntimeError('no such row')
            return (request,)

    stream = DataStream(Broken(), iteration_scheme=SequentialScheme(4, 1))
    epoch = stream.get_epoch_iterator()
    assert [([0],), ([1],)] == [next(epoch), next(epoch)]
    with pytest.raises(RuntimeError, match='no such row') as caught:
        next(epoch)
    assert ['for the request [2]', 'in stage DataStream, item 2 of the epoch'
            ] == caught.value.__notes__
    assert ([3],) == next(epoch)


@pytest.mark.parametrize('as_dict', [False, True])
def test_epoch_iterator_as_dict(as_dict):
    """On request data come as a dict from source names."""
    stream = DataStream(IterableDataset({'x': [1, 2], 'y': 'ab'}))
    epoch = stream.get_epoch_iterator(as_dict=as_dict)
    expected = {'x': 1, 'y': 'a'} if as_dict else (1, 'a')
    assert expected == next(epoch)


@pytest.mark.parametrize('sources', [('x', 'y', 'z'), ('x', 'x')])
def test_epoch_iterator_as_dict_loses_nothing(sources):
    """A dict that would lack a source is refused."""
    stream = DataStream(IterableDataset({'x': [1], 'y': 'a'}))
    stream.sources = sources
    with pytest.raises(ValueError, match='gave 2 items for the'):
        next(stream.get_epoch_iterator(as_dict=True))


@pytest.mark.parametrize('stage', [None, MultiThreading])
def test_source_that_a_data_set_gives_twice_is_once_in_a_dict(stage):
    """Both are the same data, also behind workers that pass them on."""
    dataset = IndexableDataset({'x': [1, 2], 'y': [3, 4]},
                               sources=('x', 'y', 'x'))
    stream = DataStream(dataset, batch_size=2)
    if stage is not None:
        stream = stage(stream)
    assert [([1, 2], [3, 4], [1, 2])] == list(stream)
    assert [{'x': [1, 2], 'y': [3, 4]}] == list(
        stream.get_epoch_iterator(as_dict=True))


def test_name_that_may_stand_for_two_sources_is_not_made_a_key():
    """A function may change one of both, a stream may rename a source, and a
    data set may have two sources of one name."""
    dataset = IndexableDataset({'x': [1, 2], 'y': [3, 4]},
                               sources=('x', 'x'))
    changed = Mapping(DataStream(dataset, batch_size=2),
                      lambda data: (data[0], data[1][::-1]))
    renamed = DataStream(IndexableDataset({'x': [1, 2], 'y': [3, 4]}),
                         batch_size=2)
    renamed.sources = ('x', 'x')
    dataset = IndexableDataset({'x': [1, 2], 'y': [3, 4]})
    dataset.provides_sources = ('x', 'x')
    for stream in (changed, renamed, DataStream(dataset, batch_size=2)):
        with pytest.raises(ValueError, match=(
                'one item for each source, and the names of the sources must '
                'differ')):
            next(stream.get_epoch_iterator(as_dict=True))


def test_iterate_epochs_never_ends():
    """It reads epoch after epoch, each of them whole."""
    stream = DataStream(IterableDataset({'x': [1, 2]}))
    epochs = stream.iterate_epochs()
    assert [[(1,), (2,)]] * 3 == [list(next(epochs)) for _ in range(3)]
    assert {'x': 1} == next(next(stream.iterate_epochs(as_dict=True)))


# Streams

def test_abstract_stream_produces_examples():
    """The scheme decides; without one, whoever built the stream."""
    with pytest.raises(ValueError, match='set produces_examples'):
        Empty().produces_examples  # noqa: B018
    with pytest.raises(ValueError, match='cannot be set'):
        Empty(SequentialScheme(3, 2)).produces_examples = True
    stream = Empty()
    stream.produces_examples = False
    assert stream.produces_examples is False
    assert Empty(SequentialExampleScheme(3)).produces_examples is True


def test_abstract_stream_cannot_be_built():
    """A class with a misspelt method is abstract, too."""
    class Misspelt(AbstractDataStream):
        def get_epoch_iterater(self, as_dict=False):
            return iter([])

    with pytest.raises(TypeError, match=(
            'AbstractDataStream is abstract: derive a class from it that '
            'implements get_data or get_epoch_iterator$')):
        AbstractDataStream()
    with pytest.raises(TypeError, match="mean that by 'get_epoch_iterater'"):
        Misspelt(None)


def test_abstract_stream_subclass_may_fix_produces_examples():
    """A plain class attribute overrides the property."""
    class Examples(Empty):
        produces_examples = True

    assert Examples().produces_examples is True


def test_stream_subclass_that_skips_every_init():
    """Nothing relies on a base's constructor having run."""
    class Bare(AbstractDataStream):
        sources = ('n',)

        def __init__(self):
            self.left = 3

        def get_data(self, request=None):
            if not self.left:
                raise StopIteration
            self.left -= 1
            return (self.left,)

    assert [(2,), (1,), (0,)] == list(Bare().get_epoch_iterator())


def test_data_stream_sources_follow_the_dataset_until_assigned():
    """`sources` may be assigned, and stays what it is, a list too."""
    stream = rows_stream()
    assert ('rows', 'number') == stream.sources
    stream.sources = ['a', 'b']
    assert ['a', 'b'] == stream.sources


@pytest.mark.parametrize('scheme, expected', [
    (SequentialExampleScheme(2), ('height', 'width')),
    (SequentialScheme(2, 1), ('batch', 'height', 'width'))])
def test_data_stream_axis_labels(scheme, expected):
    """Labels come from the data set; examples have no batch axis."""
    labels = {'x': ('batch', 'height', 'width'), 'y': 'batch', 'z': None}
    dataset = IndexableDataset({'x': [1, 2]}, axis_labels=labels)
    stream = DataStream(dataset, iteration_scheme=scheme)
    assert {'x': expected, 'y': 'batch', 'z': None} == stream.axis_labels
    stream.axis_labels['x'] = None
    assert ('batch', 'height', 'width') == labels['x']


@pytest.mark.parametrize('labels', ['', (), [], 0, False])
def test_axis_labels_that_are_false_are_none(labels):
    """Streams, data sets and stages, and a stream that is a data set of
    another, treat them so."""
    class Old(AbstractDataStream):
        provides_sources = sources = ('x',)
        produces_examples = False
        num_examples = 4

        def __init__(self):
            super().__init__(axis_labels=labels)

        def do_nothing(self, state=None):
            """Return no state."""

        next_epoch = reset = close = open = do_nothing

        def get_data(self, state=None, request=None):
            return (numpy.array(request),)

        def get_epoch_iterator(self, **kwargs):
            return iter(())

    class Older(Old):
        axis_labels = labels

        def __init__(self):
            """Leave the labels to the class."""

    for dataset in Old(), IndexableDataset({'x': [1, 2]}, axis_labels=labels):
        assert dataset.axis_labels is None
    for dataset in Old(), Older():
        stream = Cast(DataStream(
            dataset, iteration_scheme=SequentialScheme(4, 2)), 'float32',
            axis_labels=labels)
        assert stream.data_stream.axis_labels is None
        assert stream.axis_labels is None
        assert [[0, 1], [2, 3]] == [x.tolist() for x, in stream]


def test_dict_of_axis_labels_may_be_filled_later():
    """The attribute is the dict that was passed; while it is empty, stages
    have none."""
    labels = {}
    dataset = IndexableDataset({'x': numpy.ones((4, 2))}, axis_labels=labels)
    assert dataset.axis_labels is labels
    assert DataStream(dataset, batch_size=2).axis_labels is None
    labels['x'] = ('batch', 'feature')
    stream = DataStream(dataset, batch_size=2)
    assert {'x': ('batch', 'feature')} == stream.axis_labels
    labels = {}
    stage = Cast(stream, 'float32', axis_labels=labels)
    labels['x'] = ('batch', 'feature')
    assert stage.axis_labels is labels


def test_axis_labels_that_are_a_string_are_refused():
    """The text says what they are, of whatever class."""
    text = r"axis_labels of {} must be a dict from .*, got 'batch'"
    with pytest.raises(TypeError, match=text.format('IndexableDataset')):
        IndexableDataset({'x': [1, 2]}, axis_labels='batch')
    dataset = IndexableDataset({'x': [1, 2]})
    stream = DataStream(dataset, batch_size=2)
    with pytest.raises(TypeError, match=text.format('Cast')):
        Cast(stream, 'float32', axis_labels='batch')
    dataset.axis_labels = 'batch'
    with pytest.raises(TypeError, match=text.format('IndexableDataset')):
        DataStream(dataset, batch_size=2)


def test_data_stream_of_no_scheme_produces_examples():
    """A data set that takes no requests gives example after example."""
    assert DataStream(IterableDataset([1])).produces_examples is True


def test_data_stream_over_what_only_looks_like_a_dataset():
    """A data set need not be derived from Dataset."""
    class Stub:
        sources = ('n',)
        axis_labels = None

        def open(self):
            return iter([1, 2])

        def next_epoch(self, state):
            return iter([3])

        def get_data(self, state, request):
            return (next(state),)

    stream = DataStream(Stub())
    assert [[(1,), (2,)], [(3,)], [(3,)]] == [
        list(stream.get_epoch_iterator()) for _ in range(3)]
    stream.close()


@pytest.mark.parametrize('make, expected', [
    (lambda: rows_stream(), 4),
    (lambda: rows_stream(SequentialExampleScheme(10)), 10),
    (lambda: DataStream(IterableDataset([1, 2])), 2)])
def test_stream_length_is_the_length_of_an_epoch(make, expected):
    """`len` works where the number of batches is known."""
    stream = make()
    assert expected == len(stream)
    assert expected == len(list(stream.get_epoch_iterator()))


@pytest.mark.parametrize('stream', [
    DataStream(IterableDataset(iter([1]))),
    DataStream(IndexableDataset([1]), iteration_scheme=SequentialScheme(
        iter([0]), 1)),
    Empty()])
def test_stream_of_unknown_length(stream):
    """Otherwise it is an error; and a stream is always true."""
    with pytest.raises(TypeError, match='not known'):
        len(stream)
    assert stream


def test_empty_stream_is_true():
    """`if data_stream:` asks whether there is one."""
    stream = rows_stream(SequentialScheme(0, 2))
    assert 0 == len(stream)
    assert stream
    assert [] == list(stream.get_epoch_iterator())


def test_stream_is_a_context_manager():
    """Leaving the block closes the data set's state."""
    dataset = Loud()
    with DataStream(dataset) as stream:
        next(stream.get_epoch_iterator())
    assert [('open', 0), ('close', 0)] == dataset.log
    assert [(1,), (2,), (3,)] == list(stream.get_epoch_iterator())


def test_streams_module_has_no_other_names():
    """A misspelt name is an error as in any module."""
    with pytest.raises(AttributeError, match='DataStraem'):
        streams.DataStraem  # noqa: B018


@pytest.mark.parametrize('dataset', ['abc', numpy.zeros(3), None])
def test_data_stream_over_no_dataset_raises(dataset):
    """Arrays are to be put into a data set first."""
    with pytest.raises(TypeError, match='into an IndexableDataset'):
        DataStream(dataset)


def test_data_stream_with_a_scheme_that_gives_a_list_raises():
    """The scheme is named."""
    class Lists(BatchScheme):
        def get_request_iterator(self):
            return [[0]]

    with pytest.raises(TypeError, match='of Lists must return an iterator'):
        rows_stream(Lists(10, 3)).get_epoch_iterator()


def test_get_data_directly():
    """A stream may be asked without an iterator."""
    stream = rows_stream()
    assert [[0, 1]] == stream.get_data([0])[0].tolist()
    copy = pickle.loads(pickle.dumps(stream))
    assert [[0, 1]] == copy.get_data([0])[0].tolist()
    with pytest.raises(NotImplementedError, match='get_data'):
        Empty().get_data()


# Use of the data set's state

def test_first_epoch_uses_the_state_of_the_constructor():
    """Later epochs call `next_epoch` with the state of the one before."""
    dataset = Loud()
    stream = DataStream(dataset)
    for _ in range(3):
        assert [(1,), (2,), (3,)] == list(stream.get_epoch_iterator())
    assert [('open', 0), ('next', 0), ('next', 0)] == dataset.log


def test_abandoned_epoch_leaves_its_state_to_the_next():
    """An iterator that is gone counts as left."""
    dataset = Loud()
    stream = DataStream(dataset)
    next(stream.get_epoch_iterator())
    assert [(1,), (2,), (3,)] == list(stream.get_epoch_iterator())
    assert [('open', 0), ('next', 0)] == dataset.log


def test_second_iterator_beside_a_living_one_opens_its_own_state():
    """Two epochs at once do not read from one state."""
    dataset = Loud()
    stream = DataStream(dataset)
    first = stream.get_epoch_iterator()
    assert (1,) == next(first)
    second = stream.get_epoch_iterator()
    assert [(1,), (2,), (3,)] == list(second)
    assert [(2,), (3,)] == list(first)
    assert [('open', 0), ('open', 1)] == dataset.log
    # Both are finished: one state goes on, the other is closed.
    list(stream.get_epoch_iterator())
    assert [('close', 0), ('next', 1)] == dataset.log[2:]


def test_a_state_shared_by_epochs_is_not_closed_before_it_is_used():
    """A data set may return one and the same state from each ``open()``."""
    class Shared(Loud):
        state = None

        def open(self):
            if self.state is None:
                self.state = super().open()
            return self.state

    dataset = Shared()
    stream = DataStream(dataset)
    first, second = [stream.get_epoch_iterator() for _ in range(2)]
    for epoch in (first, second):
        list(epoch)
    stream.get_epoch_iterator()
    assert [('open', 0), ('next', 0)] == dataset.log


def test_reset_makes_the_state_fresh_again():
    """The next epoch takes the state that `reset` returned."""
    dataset = Loud()
    stream = DataStream(dataset)
    next(stream.get_epoch_iterator())
    stream.reset()
    assert [(1,), (2,), (3,)] == list(stream.get_epoch_iterator())
    assert [('open', 0), ('reset', 0)] == dataset.log


def test_next_epoch_may_be_called_directly():
    """The manual lists it among the methods of a stream."""
    dataset = Loud()
    stream = DataStream(dataset)
    next(stream.get_epoch_iterator())
    stream.next_epoch()
    assert [('open', 0), ('next', 0)] == dataset.log
    assert (1,) == stream.get_data()


def test_close_twice_closes_once():
    """Closing again does nothing to a state."""
    dataset = Loud()
    stream = DataStream(dataset)
    epoch = stream.get_epoch_iterator()
    next(epoch)
    stream.close()
    stream.close()
    assert [('open', 0), ('close', 0)] == dataset.log


# Several iterators

class Pulling(Transformer):
    """A user's stage, written against `child_epoch_iterator`."""

    def __init__(self, data_stream):
        super().__init__(data_stream, data_stream.produces_examples)

    def get_data(self, request=None):
        return next(self.child_epoch_iterator)

    def get_leftover(self):
        return None


def test_interleaved_iterators_do_not_disturb_each_other():
    """Two epochs of one pipeline, in turns, are both whole."""
    stream = Pulling(Pulling(rows_stream()))
    same = Pulling(Pulling(rows_stream()))
    expected = [plain(same.get_epoch_iterator()) for _ in range(2)]
    epochs = [stream.get_epoch_iterator() for _ in range(2)]
    seen = [[], []]
    for _ in range(4):
        for place, epoch in enumerate(epochs):
            seen[place] += plain([next(epoch)])
    assert expected == seen


def test_iterators_in_threads_do_not_disturb_each_other():
    """Two epochs of one pipeline in two threads are both whole."""
    stream = Pulling(Pulling(DataStream(
        IndexableDataset(list(range(2000))),
        iteration_scheme=ShuffledScheme(2000, 3))))
    epochs = [stream.get_epoch_iterator() for _ in range(4)]
    seen = [[] for _ in epochs]

    def read(place):
        for data, in epochs[place]:
            seen[place] += data

    threads = [threading.Thread(target=read, args=(place,))
               for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(sorted(part) == list(range(2000)) for part in seen)
    assert seen[0] != seen[1]


def test_abandoned_pipeline_epoch_reaches_the_dataset():
    """Dropping the last stage's iterator leaves the data set's epoch too."""
    dataset = Loud()
    stream = Pulling(Pulling(DataStream(dataset)))
    for _ in range(3):
        next(stream.get_epoch_iterator())
    assert [('open', 0), ('next', 0), ('next', 0)] == dataset.log


def test_last_attributes_stay_visible():
    """Other tools read `child_epoch_iterator` off the stream."""
    stream = Pulling(rows_stream())
    epoch = stream.get_epoch_iterator()
    assert isinstance(stream.child_epoch_iterator, DataIterator)
    list(epoch)
    assert isinstance(stream.child_epoch_iterator, DataIterator)


@pytest.mark.parametrize('steps', [0, 1, 3])
def test_streams_are_freed_with_their_last_reference(steps):
    """No cycle keeps a stream and its data alive."""
    class Watched(IndexableDataset):
        pass

    dataset = Watched([1, 2, 3])
    stream = Pulling(DataStream(
        dataset, iteration_scheme=ShuffledScheme(3, 2)))
    epoch = stream.get_epoch_iterator()
    for _ in range(steps):
        next(epoch, None)
    gc.collect()
    gc.disable()
    try:
        freed = []
        weakref.finalize(dataset, freed.append, True)
        del stream, epoch, dataset
        assert [True] == freed
    finally:
        gc.enable()


# Examples read several at a time

@pytest.mark.parametrize('scheme', [
    lambda: SequentialExampleScheme(200),
    lambda: SequentialExampleScheme(list(range(199, 0, -3))),
    lambda: ShuffledExampleScheme(200)])
@pytest.mark.parametrize('shape', [(200,), (200, 3), (200, 2, 40000)])
def test_examples_read_ahead_are_those_of_single_requests(scheme, shape):
    """Reading ahead changes neither values nor ownership."""
    data = numpy.arange(numpy.prod(shape), dtype='u4').reshape(shape)
    dataset = IndexableDataset({'x': data, 'n': list(range(200))})
    before = data.copy() if data.nbytes < 1e6 else None
    epoch = DataStream(
        dataset, iteration_scheme=scheme()).get_epoch_iterator()
    kept = []
    for request in scheme().get_request_iterator():
        row, number = next(epoch)
        assert request == number
        assert numpy.array_equal(data[request], row)
        if row.ndim:
            kept.append(row)
            row[...] = 7
    assert [] == list(epoch)
    assert all((row == 7).all() for row in kept)
    if before is not None:
        assert numpy.array_equal(before, data)


@pytest.mark.parametrize('step', [0, 1, 2, 63, 64, 65, 66, 199, 200, 201])
def test_examples_read_ahead_do_not_count_before_they_are_handed_out(step):
    """A state and a pickle hold what was handed out."""
    stream = rows_stream(ShuffledExampleScheme(list(range(10)) * 20))
    epoch = stream.get_epoch_iterator()
    for _ in range(min(step, 200)):
        next(epoch)
    if step == 201:
        assert next(epoch, None) is None
    restored = rows_stream(ShuffledExampleScheme(list(range(10)) * 20))
    restored.load_state_dict(json.loads(json.dumps(stream.state_dict())))
    copy = pickle.loads(pickle.dumps(epoch))
    rest = plain(epoch)
    assert 200 - min(step, 200) == len(rest)
    assert rest == plain(copy)
    after = plain(stream.get_epoch_iterator())
    taken_up = plain(restored.get_epoch_iterator())
    if step == 201:
        assert after == taken_up
    else:
        assert rest == taken_up
        assert after == plain(restored.get_epoch_iterator())


def test_examples_before_a_bad_index_come_out():
    """The bad request raises when it is its turn, and those after it go on.
    """
    dataset = IndexableDataset(numpy.arange(5))
    epoch = DataStream(dataset, iteration_scheme=SequentialExampleScheme(
        [0, 1, 2, 9, 4])).get_epoch_iterator()
    assert [0, 1, 2] == [next(epoch)[0] for _ in range(3)]
    with pytest.raises(ValueError, match='only 5 examples'):
        next(epoch)
    assert 4 == next(epoch)[0]


def test_overriding_get_data_sees_each_request():
    """A subclass's `get_data` gets the requests of the scheme, one by one."""
    class Noting(IndexableDataset):
        requests = ()

        def get_data(self, state=None, request=None):
            self.requests += (request,)
            return super().get_data(state, request)

    dataset = Noting(numpy.arange(5))
    list(DataStream(dataset, iteration_scheme=SequentialExampleScheme(
        5)).get_epoch_iterator())
    assert (0, 1, 2, 3, 4) == dataset.requests


# State

def test_state_before_and_after_any_epoch():
    """Not started, finished, and loaded but not gone on: all have a state.
    """
    stream, other = rows_stream(), rows_stream()
    assert 'not started' == stream.state_dict()['epoch']
    list(stream.get_epoch_iterator())
    state = stream.state_dict()
    assert 'finished' == state['epoch']
    other.load_state_dict(state)
    assert state == other.state_dict()
    assert plain(stream.get_epoch_iterator()) == plain(
        other.get_epoch_iterator())


def test_state_of_an_iterator_over_other_requests_is_refused():
    """The scheme knows nothing of requests that somebody else chose."""
    stream = rows_stream()
    epoch = DataIterator(stream, iter([[3], [1], [2]]))
    next(epoch)
    with pytest.raises(TypeError, match='passed to DataIterator cannot be'):
        epoch.state_dict()
    copy = pickle.loads(pickle.dumps(DataIterator(
        stream, SequentialScheme(4, 2).get_request_iterator())))
    assert [[0, 1], [2, 3]] == [data[1] for data in plain(copy)]
    other = rows_stream()
    next(other.get_epoch_iterator())
    stream.load_state_dict(other.state_dict())
    with pytest.raises(TypeError, match='passed to DataIterator cannot be'):
        DataIterator(stream, iter([[3]]))
    assert 3 == len(list(stream.get_epoch_iterator()))


def test_state_of_an_abandoned_epoch_is_its_position():
    """After a `break` the state is that of the iterator made last."""
    stream, other = Pulling(rows_stream()), Pulling(rows_stream())
    seen = []
    for data in stream.get_epoch_iterator():
        seen += plain([data])
        if len(seen) == 2:
            break
    other.load_state_dict(stream.state_dict())
    seen += plain(other.get_epoch_iterator())
    assert plain(Pulling(rows_stream()).get_epoch_iterator()) == seen


def test_state_of_each_iterator_is_its_own():
    """An iterator tells its own position, whatever was made after it."""
    stream = Pulling(rows_stream())
    first = stream.get_epoch_iterator()
    next(first)
    second = stream.get_epoch_iterator()
    next(second)
    other = Pulling(rows_stream())
    other.load_state_dict(first.state_dict())
    assert plain(first) == plain(other.get_epoch_iterator())
    assert 1 == stream.state_dict()['position']


def test_loading_a_state_does_not_disturb_running_epochs():
    """Only the next iterator takes the state up."""
    stream = rows_stream()
    epoch = stream.get_epoch_iterator()
    next(epoch)
    state = stream.state_dict()
    next(epoch)
    stream.load_state_dict(state)
    assert 2 == len(list(epoch))
    assert 3 == len(list(stream.get_epoch_iterator()))


@pytest.mark.parametrize('protocol', range(pickle.HIGHEST_PROTOCOL + 1))
def test_stream_and_iterator_pickle_together(protocol):
    """They stay a pair, as other tools pickle them in mid-epoch."""
    stream = Pulling(rows_stream())
    epoch = stream.get_epoch_iterator()
    next(epoch)
    copied, copy = pickle.loads(pickle.dumps((stream, epoch), protocol))
    assert copy.data_stream is copied
    assert plain(epoch) == plain(copy)
    assert plain(stream.get_epoch_iterator()) == plain(
        copied.get_epoch_iterator())


def test_stream_pickled_alone_starts_an_epoch():
    """It keeps the generator, not the position."""
    stream = Pulling(rows_stream())
    epoch = stream.get_epoch_iterator()
    next(epoch)
    copy = pickle.loads(pickle.dumps(stream))
    assert plain(stream.get_epoch_iterator()) == plain(
        copy.get_epoch_iterator())


def test_a_shallow_copy_of_a_stream_has_a_position_of_its_own():
    """The epochs of a copy are not taken for those of the stream."""
    stream = rows_stream(SequentialScheme(10, 3))
    first = stream.get_epoch_iterator()
    next(first)
    twin = shallow_copy(stream)
    second = twin.get_epoch_iterator()
    next(second), next(second)
    assert 1 == stream.state_dict()['position']
    assert 2 == twin.state_dict()['position']


def test_stream_pickled_after_loading_keeps_the_state():
    """A loaded state is kept until the next iterator."""
    stream = rows_stream()
    epoch = stream.get_epoch_iterator()
    next(epoch)
    other = rows_stream()
    other.load_state_dict(stream.state_dict())
    copy = pickle.loads(pickle.dumps(other))
    assert plain(epoch) == plain(copy.get_epoch_iterator())


@pytest.mark.parametrize('change, text', [
    (lambda: Pulling(rows_stream()), 'class was'),
    (lambda: rows_stream(ShuffledScheme(10, 4)),
     'scheme batch_size was 3, but here it is 4'),
    (lambda: rows_stream(ShuffledScheme(9, 3)),
     'scheme num_examples was 10, but here it is 9'),
    (lambda: rows_stream(SequentialScheme(10, 3)), 'scheme was'),
    (lambda: DataStream(IndexableDataset({'number': list(range(10))}),
                        iteration_scheme=ShuffledScheme(10, 3)),
     'sources was'),
    (lambda: DataStream(IndexableDataset(
        {'rows': [1], 'number': [2]}),
        iteration_scheme=ShuffledScheme(list(range(10)), 3)),
     'data set num_examples was 10, but here it is 1'),
    (lambda: rows_stream(ShuffledScheme(10, 3, rng=random.Random(1))),
     'scheme rng was .*RandomState.*, but here it is .random.Random'),
])
def test_state_of_another_pipeline_is_refused(change, text):
    """A stream that differs names the difference and stays as it was."""
    stream = rows_stream()
    next(stream.get_epoch_iterator())
    other = change()
    before = other.state_dict()
    with pytest.raises(StateMismatchError, match=text):
        other.load_state_dict(stream.state_dict())
    assert before == other.state_dict()


@pytest.mark.parametrize('rng, text', [
    (random.Random(1), 'rng was .*PCG64.*, but here it is .random.Random'),
    (numpy.random.Generator(numpy.random.MT19937(1)), 'here it is .*MT19937'),
    (None, 'here it is None')])
def test_state_of_a_stage_with_another_generator_is_refused(rng, text):
    """Nothing is taken up, not even by the streams that the stage reads."""
    def build(rng):
        stage = Pulling(rows_stream())
        stage.rng = rng
        return stage

    stage = build(numpy.random.default_rng(1))
    next(stage.get_epoch_iterator())
    other = build(rng)
    before = other.state_dict()
    with pytest.raises(StateMismatchError, match=text):
        other.load_state_dict(stage.state_dict())
    assert before == other.state_dict()


@pytest.mark.parametrize('state, text', [
    ({'format': 99}, 'has format 99'),
    ({}, 'dict that state_dict.. returned, with the field .format., got dict'),
    (None, 'got NoneType')])
def test_state_of_another_format_is_refused(state, text):
    """A state of a later version, or none at all, is not guessed at."""
    with pytest.raises(StateMismatchError, match=text):
        rows_stream().load_state_dict(state)


def test_state_with_a_users_scheme_without_hooks():
    """`state_dict` names scheme and hooks; pickling works."""
    class Own(BatchScheme):
        def get_request_iterator(self):
            return iter([[0], [1], [2]])

    stream = rows_stream(Own(10, 3))
    epoch = stream.get_epoch_iterator()
    next(epoch)
    with pytest.raises(TypeError, match='Own .*state_dict.. and load_state'):
        stream.state_dict()


class WithHooks(Loud):
    """A user's data set that tells its position."""

    def get_position(self, state):
        return list(state)

    def open_at(self, position):
        return list(position)


def test_state_with_a_users_dataset():
    """`state_dict` names data set and hooks; with them it goes on there."""
    stream = DataStream(Loud())
    next(stream.get_epoch_iterator())
    with pytest.raises(TypeError, match='Loud .*get_position.state. and op'):
        stream.state_dict()
    stream, other = DataStream(WithHooks()), DataStream(WithHooks())
    next(stream.get_epoch_iterator())
    other.load_state_dict(json.loads(json.dumps(stream.state_dict())))
    assert [(2,), (3,)] == list(other.get_epoch_iterator())
    assert [(1,), (2,), (3,)] == list(other.get_epoch_iterator())


def test_state_of_no_epoch_loaded_later_begins_with_a_fresh_data_set():
    """The next epoch of the data set may differ from the first one."""
    class Endless(WithHooks):
        def next_epoch(self, state):
            return state

    stream = DataStream(Endless(), iteration_scheme=ConstantScheme(1, 2))
    state = stream.state_dict()
    first = list(stream.get_epoch_iterator())
    stream.load_state_dict(state)
    assert first == list(stream.get_epoch_iterator())


def test_state_with_a_users_stage_that_overrides_get_data():
    """The data that `get_data` keeps are unknown: the stage must save them."""
    class Silent(Pulling):
        def get_data(self, request=None):
            return next(self.child_epoch_iterator)

    stream = Silent(rows_stream())
    epoch = stream.get_epoch_iterator()
    next(epoch)
    with pytest.raises(TypeError, match='stage Silent .*get_leftover'):
        stream.state_dict()
    assert 3 == len(list(epoch))


def test_state_with_a_users_stage_that_makes_its_own_iterator():
    """A generator cannot tell its position."""
    class Own(Pulling):
        def get_epoch_iterator(self, **kwargs):
            return (data for data in self.data_stream.get_epoch_iterator())

    stream = Own(rows_stream())
    assert 'not started' == stream.state_dict()['epoch']
    assert 4 == len(list(stream.get_epoch_iterator()))
    with pytest.raises(TypeError, match='Own overrides get_epoch_iterator'):
        stream.state_dict()


def test_state_after_an_error_goes_on_behind_the_bad_request():
    """A request that failed is not made again."""
    def build():
        return DataStream(
            IndexableDataset(numpy.arange(4)),
            iteration_scheme=SequentialScheme([0, 9, 2, 3], 1))

    stream = build()
    epoch = stream.get_epoch_iterator()
    next(epoch)
    with pytest.raises(ValueError, match='only 4 examples'):
        next(epoch)
    other = build()
    other.load_state_dict(stream.state_dict())
    assert [[[2]], [[3]]] == plain(other.get_epoch_iterator())


def test_state_is_small_whatever_the_number_of_examples():
    """Counts and a generator, for a million examples too."""
    stream = DataStream(IndexableDataset(range(10 ** 6)),
                        iteration_scheme=ShuffledScheme(10 ** 6, 100))
    epoch = stream.get_epoch_iterator()
    for _ in range(10):
        next(epoch)
    assert len(json.dumps(stream.state_dict())) < 10000
    assert len(pickle.dumps((stream, epoch))) < 16000
