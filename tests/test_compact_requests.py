"""Requests travel as arrays where only Fuel's own code reads them, and are
lists wherever a user's code may look."""
import pickle

import h5py
import numpy
import pytest

from fuel.datasets import H5PYDataset, IndexableDataset
from fuel.schemes import (
    BalancedScheme,
    BlockShuffledScheme,
    ComputedBlockShuffledScheme,
    ComputedShuffledScheme,
    ConcatenatedScheme,
    SequentialScheme,
    ShuffledScheme,
    WeightedScheme,
)
from fuel.streams import DataStream

SCHEMES = {
    'sequential': lambda: SequentialScheme(10, 4),
    'steps': lambda: SequentialScheme(range(9, 0, -2), 2),
    'list': lambda: SequentialScheme([3, 1, 1, 0, 2], 2),
    'shuffled': lambda: ShuffledScheme(10, 4),
    'sorted': lambda: ShuffledScheme(10, 4, sorted_indices=True),
    'shuffled list': lambda: ShuffledScheme([5, 3, 8], 2),
    'blocks': lambda: BlockShuffledScheme(10, 4, block_size=3, window=2),
    'blocks of a list': lambda: BlockShuffledScheme(
        [9, 2, 4, 7, 1], 2, block_size=2, window=2),
    'computed': lambda: ComputedShuffledScheme(10, 4, seed=1),
    'computed of a list': lambda: ComputedShuffledScheme(
        [9, 2, 4, 7, 1], 2, seed=1),
    'computed of a range': lambda: ComputedShuffledScheme(
        range(2, 9), 3, seed=1),
    'computed blocks': lambda: ComputedBlockShuffledScheme(
        10, 4, block_size=3, seed=1),
    'computed blocks of a list': lambda: ComputedBlockShuffledScheme(
        [9, 2, 4, 7, 1], 2, block_size=2, seed=1),
    'weighted': lambda: WeightedScheme(numpy.arange(10), 4),
    'balanced': lambda: BalancedScheme(numpy.arange(10) % 3, 4),
}


@pytest.fixture
def path(tmp_path):
    """Return an HDF5 file of ten examples."""
    path = str(tmp_path / 'ten.hdf5')
    with h5py.File(path, 'w') as file:
        file['x'] = numpy.arange(10) ** 2
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 10)}})
    return path


@pytest.mark.parametrize('name', SCHEMES)
def test_arrays_say_what_lists_say(name):
    """They do in the same order, by turns and by number, and after a
    pickle."""
    lists = list(SCHEMES[name]().get_request_iterator())
    requests = SCHEMES[name]().get_request_iterator()
    assert requests.next_compact() is not None
    assert next(requests) == lists[1]
    assert type(lists[1]) is list
    requests = pickle.loads(pickle.dumps(requests))
    for place, expected in enumerate(lists):
        assert list(requests.compact_at(place)) == expected
        if place >= 2:
            assert list(requests.next_compact()) == expected
    assert requests.compact_at(len(lists)) is None
    with pytest.raises(StopIteration):
        requests.next_compact()


@pytest.mark.parametrize('name', SCHEMES)
def test_streams_give_what_was_asked_for(name, path):
    """Data come from a file and from memory."""
    expected = [(numpy.array(batch) ** 2).tolist()
                for batch in SCHEMES[name]().get_request_iterator()]
    for dataset in (H5PYDataset(path, ('train',)),
                    H5PYDataset(path, ('train',), load_in_memory=True),
                    IndexableDataset({'x': numpy.arange(10) ** 2})):
        with DataStream(dataset, iteration_scheme=SCHEMES[name]()) as stream:
            assert expected == [
                batch.tolist() for batch, in stream.get_epoch_iterator()]


def test_concatenated_schemes_go_from_part_to_part(path):
    """Their iterator has no numbers."""
    scheme = ConcatenatedScheme([SequentialScheme(3, 2),
                                 SequentialScheme([9, 8], 2)])
    with DataStream(H5PYDataset(path, ('train',)),
                    iteration_scheme=scheme) as stream:
        assert [[0, 1], [4], [81, 64]] == [
            batch.tolist() for batch, in stream.get_epoch_iterator()]


class Seen:
    """Remembers the types of the requests it is given."""

    kinds: set

    def look(self, request):
        """Note what a request is."""
        vars(self).setdefault('kinds', set()).add(type(request))


class OwnGetData(Seen, H5PYDataset):
    """A user's data set that looks at requests."""

    def get_data(self, state=None, request=None):
        """Look, then read."""
        self.look(request)
        return super().get_data(state, request)


class OwnReading(Seen, H5PYDataset):
    """A user's data set that reads in its own way."""

    def _out_of_memory_get_data(self, state=None, request=None):
        self.look(request)
        return super()._out_of_memory_get_data(state, request)


class OwnInMemory(Seen, H5PYDataset):
    """The same, in memory."""

    def _in_memory_get_data(self, state=None, request=None):
        self.look(request)
        return super()._in_memory_get_data(state, request)


class OwnIndexable(Seen, IndexableDataset):
    """A user's data set in memory."""

    def get_data(self, state=None, request=None):
        """Look, then read."""
        self.look(request)
        return super().get_data(state, request)


class Squares(Seen):
    """A user's indexable."""

    def __len__(self):
        return 10

    def __getitem__(self, request):
        self.look(request)
        return numpy.array(request) ** 2


def first_batch(dataset):
    """Return the first batch of a shuffled epoch."""
    stream = DataStream(dataset, iteration_scheme=ShuffledScheme(10, 4))
    batch, = next(stream.get_epoch_iterator())
    stream.close()
    return batch.tolist()


def test_users_code_sees_lists(path):
    """It does in every place where it could look at a request."""
    expected = (numpy.array(
        next(ShuffledScheme(10, 4).get_request_iterator())) ** 2).tolist()
    squares = {'x': numpy.arange(10) ** 2}
    for dataset in (OwnGetData(path, ('train',)),
                    OwnReading(path, ('train',)),
                    OwnInMemory(path, ('train',), load_in_memory=True),
                    OwnIndexable(squares)):
        assert expected == first_batch(dataset)
        assert {list} == dataset.kinds
    squares = Squares()
    assert expected == first_batch(IndexableDataset({'x': squares}))
    assert {list} == squares.kinds


def test_a_method_of_one_data_set_sees_lists(path):
    """The method is set on the instance, not in a class."""
    kinds = []
    dataset = H5PYDataset(path, ('train',))
    read = dataset.get_data

    def get_data(state=None, request=None):
        kinds.append(type(request))
        return read(state, request)

    dataset.get_data = get_data
    first_batch(dataset)
    assert [list] == kinds


def test_fuel_itself_sees_arrays(path, monkeypatch):
    """Lists of numbers would lose the gain."""
    kinds = []
    read = H5PYDataset._read

    def look(self, positions):
        kinds.append(type(positions))
        return read(self, positions)

    def no_list(self, position):
        raise AssertionError('a list was made')

    monkeypatch.setattr(H5PYDataset, '_read', look)
    monkeypatch.setattr('fuel.schemes.requests.PermutedBatches._request',
                        no_list)
    with h5py.File(path) as handle:
        # The batches of a handle are not read by one call.
        first_batch(H5PYDataset(handle, ('train',)))
    assert [numpy.ndarray] == kinds


def test_request_at_gives_each_request_and_none_after_the_last():
    """A request can be looked up by its number; the position stays."""
    requests = SequentialScheme(5, 2).get_request_iterator()
    assert [[0, 1], [2, 3], [4], None] == [
        requests.request_at(number) for number in range(4)]
    assert 0 == requests.position
    assert [[0, 1], [2, 3], [4]] == list(requests)
