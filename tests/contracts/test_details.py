"""Details of epochs, data sets and schemes that no other contract reaches."""
import os
import pickle

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal

from fuel.datasets import H5PYDataset, IndexableDataset, IterableDataset
from fuel.datasets.base import Dataset
from fuel.exceptions import ServerError
from fuel.schemes import (
    ConstantScheme,
    SequentialExampleScheme,
    SequentialScheme,
    ShuffledExampleScheme,
    WeightedScheme,
)
from fuel.streams import DataStream
from fuel.transformers import Batch, Cache, Mapping, Merge
from fuel.utils.lock import get_lock, release_lock
from fuel.wire.decoding import decode
from fuel.wire.encoding import encode
from fuel.wire.header import get_field, pack_header, unpack_header


@pytest.mark.parametrize('scheme', [
    SequentialExampleScheme(300), ShuffledExampleScheme(300)])
@pytest.mark.parametrize('count', [0, 1, 5, 128, 129, 299, 300])
def test_request_iterator_stands_where_the_examples_do(scheme, count):
    """The request iterator does not run ahead with prefetched examples."""
    stream = DataStream(IndexableDataset({'x': numpy.arange(300)}),
                        iteration_scheme=scheme)
    iterator = stream.get_epoch_iterator()
    for _ in range(count):
        next(iterator)
    assert count == iterator.request_iterator.position


def test_pickled_iterator_of_dicts_gives_dicts():
    """Of a stream and of a stage, at each place."""
    stream = DataStream(IndexableDataset({'x': [1, 2], 'y': [3, 4]}),
                        iteration_scheme=SequentialScheme(2, 1))
    for each in (stream, Mapping(stream, tuple)):
        iterator = each.get_epoch_iterator(as_dict=True)
        again = pickle.loads(pickle.dumps(iterator))
        assert [{'x': [1], 'y': [3]}, {'x': [2], 'y': [4]}] == list(again)
        next(iterator)
        again = pickle.loads(pickle.dumps(iterator))
        assert [{'x': [2], 'y': [4]}] == list(again)


class Reiterable:
    """Starts anew whenever it is iterated over."""

    def __iter__(self):
        return iter(range(6))


@pytest.mark.parametrize('protocol', [2, pickle.HIGHEST_PROTOCOL])
def test_iterator_over_a_reiterable_pickles_twice_without_reading(protocol):
    """Its position is advanced when it is read, and only then."""
    stream = DataStream(IterableDataset({'x': Reiterable()}))
    iterator = stream.get_epoch_iterator()
    next(iterator)
    next(iterator)
    for _ in range(3):
        iterator = pickle.loads(pickle.dumps(iterator, protocol))
    assert [(2,), (3,), (4,), (5,)] == list(iterator)


@pytest.mark.parametrize('num_read', [0, 2])
def test_iterator_that_is_read_once_pickles_twice_without_reading(num_read):
    """Examples read before a pickle are left out of it once, not twice."""
    iterator = DataStream(IterableDataset({
        'x': iter(range(6)), 'y': iter([*range(6)])})).get_epoch_iterator()
    for _ in range(num_read):
        next(iterator)
    for _ in range(3):
        iterator = pickle.loads(pickle.dumps(iterator))
    assert [(n, n) for n in range(num_read, 6)] == list(iterator)


def test_pickled_subset_that_is_not_ascending_keeps_its_order(tmp_path):
    """Sources with separate index lists keep their pairs."""
    path = str(tmp_path / 'data.hdf5')
    with h5py.File(path, 'w') as file:
        file['x'], file['y'] = numpy.arange(10), numpy.arange(10) * 100
        file['xs'], file['ys'] = [7, 1, 4], [1, 4, 7]
        file.attrs['split'] = H5PYDataset.create_split_array({'train': {
            'x': (-1, -1, file['xs'].ref), 'y': (-1, -1, file['ys'].ref)}})
    dataset = H5PYDataset(path, ('train',))
    subsets = pickle.loads(pickle.dumps(dataset.subsets))
    assert [[1, 4, 7]] * 2 == [
        subset.get_list_representation() for subset in subsets]
    for each in (dataset, pickle.loads(pickle.dumps(dataset))):
        x, y = each.get_data(None, [0, 1, 2])
        assert ([7, 1, 4], [100, 400, 700]) == (x.tolist(), y.tolist())
        each.subsets = subsets
        x, y = each.get_data(None, [0, 1, 2])
        assert ([7, 1, 4], [100, 400, 700]) == (x.tolist(), y.tolist())


class Opened(Dataset):
    """Notes which of its states are open."""

    provides_sources = ('x',)

    def __init__(self, count):
        self.count, self.is_open = count, {}
        super().__init__()

    def open(self):
        """Return a new state."""
        state = [0]
        self.is_open[id(state)] = state
        return state

    def close(self, state):
        """Close it."""
        del self.is_open[id(state)]

    def get_data(self, state=None, request=None):
        """Count to the end, in an open state."""
        assert id(state) in self.is_open
        if state[0] == self.count:
            raise StopIteration
        state[0] += 1
        return (state[0],)


def test_state_of_a_child_stays_open_while_its_iterator_is_held():
    """The stage above ended before it; what is left can still be read."""
    short, long = Opened(1), Opened(4)
    stage = Merge([DataStream(short), DataStream(long)], ('a', 'b'))
    iterator = stage.get_epoch_iterator()
    child = stage.child_epoch_iterators[1]
    with pytest.warns(UserWarning, match='different lengths'):
        assert [(1, 1)] == list(iterator)
    assert len(long.is_open) == 1
    rest = [value for value, in child]
    assert rest == list(range(5 - len(rest), 5))
    assert len(rest) >= 2


def test_weights_that_change_later_change_no_scheme():
    """A scheme has its own."""
    weights = numpy.array([1., 0., 0.])
    scheme = WeightedScheme(weights, 4, num_examples=8)
    weights[:] = [0, 1, 0]
    assert {0} == {index for batch in scheme.get_request_iterator()
                   for index in batch}


def test_batches_of_a_cache_share_no_memory_with_what_it_read():
    """Made of one batch or of pieces of several."""
    seen = []

    def note(data):
        seen.append(data[0])
        return data

    stream = Cache(Mapping(DataStream(
        IndexableDataset({'x': numpy.arange(40.).reshape(20, 2)}),
        iteration_scheme=SequentialScheme(20, 6)), note), ConstantScheme(4))
    batches = [batch for batch, in stream.get_epoch_iterator()]
    assert_array_equal(numpy.arange(40.).reshape(20, 2),
                       numpy.concatenate(batches))
    for number, batch in enumerate(batches):
        for other in seen + batches[:number]:
            assert not numpy.shares_memory(batch, other)


def test_arrays_decoded_from_read_only_frames_are_writable():
    """As a socket delivers them."""
    items, buffers = encode([numpy.arange(6), numpy.zeros((2, 3))])
    frames = [bytes(buffer) for buffer in buffers]
    for array in decode(items, frames):
        assert array.flags.writeable
        array[...] = 5


@pytest.mark.parametrize('value', [True, False, 1.0, '1', None, [1]])
def test_field_of_a_header_that_should_be_an_integer_is_one(value):
    """JSON's true is not a number."""
    fields = unpack_header(pack_header({'type': 'x', 'count': value}))
    with pytest.raises((ServerError, ValueError), match='count'):
        get_field(fields, 'count', int)


def test_lock_is_one_lock_by_each_name_of_its_folder(tmp_path):
    """By its path, through a link, and from another working directory."""
    folder = tmp_path / 'folder'
    folder.mkdir()
    (tmp_path / 'link').symlink_to(folder)
    get_lock(str(folder))
    # In one thread a lock nests: it is released as often as it was taken.
    get_lock(str(tmp_path / 'link'))
    get_lock(os.path.relpath(folder))
    files = os.listdir(folder)
    for _ in range(3):
        release_lock()
    assert len([name for name in files if 'lock' in name]) <= 1


def test_batch_of_exactly_the_requested_size_is_whole():
    """At the end of the data too."""
    stream = Batch(DataStream(IterableDataset([1, 2, 3, 4])),
                   ConstantScheme(2), strictness=2)
    assert [([1, 2],), ([3, 4],)] == [
        (list(part),) for part, in stream.get_epoch_iterator()]
