"""Readers of an epoch: positions, changes and overrides."""
import json
import pickle

import h5py
import numpy
import pytest

from fuel.datasets import (
    H5PYDataset,
    IndexableDataset,
    IterableDataset,
    TextFile,
)
from fuel.schemes import (
    IterationScheme,
    SequentialExampleScheme,
    SequentialScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
)
from fuel.streams import DataStream
from fuel.transformers import Batch, Mapping, MultiProcessing, Unpack
from fuel.schemes import ConstantScheme

COUNT = 300


class Own(IterationScheme):
    """A user's scheme, whose requests are those of a generator."""

    requests_examples = False

    def get_request_iterator(self):
        """Return lists of two."""
        return ([2 * number, 2 * number + 1] for number in range(150))

    def state_dict(self):
        """Return nothing: all epochs are alike."""
        return {}

    def load_state_dict(self, state):
        """Take nothing up."""


class Looking(IndexableDataset):
    """A user's data set, whose get_data is called for every request."""

    def get_data(self, state=None, request=None):
        """Read as the base does."""
        return super().get_data(state, request)


@pytest.fixture
def path(tmp_path):
    """Return the path of an HDF5 file of numbers."""
    path = tmp_path / 'x.hdf5'
    with h5py.File(path, 'w') as file:
        file['x'] = numpy.arange(COUNT * 2).reshape(COUNT, 2)
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, COUNT)}})
    return path


DATASETS = {
    'arrays': lambda path: IndexableDataset(
        {'x': numpy.arange(COUNT * 2).reshape(COUNT, 2)}),
    'lists': lambda path: IndexableDataset(
        {'x': [[2 * n, 2 * n + 1] for n in range(COUNT)]}),
    'subclass': lambda path: Looking(
        {'x': numpy.arange(COUNT * 2).reshape(COUNT, 2)}),
    'file': lambda path: H5PYDataset(path, ('train',)),
    'file in memory': lambda path: H5PYDataset(
        path, ('train',), load_in_memory=True),
}

SCHEMES = {
    'shuffled': lambda: ShuffledScheme(COUNT, 7),
    'sorted': lambda: ShuffledScheme(COUNT, 7, sorted_indices=True),
    'in order': lambda: SequentialScheme(COUNT, 7),
    'indices': lambda: SequentialScheme([*range(COUNT)][::-1], 7),
    'examples': lambda: ShuffledExampleScheme(COUNT),
    'examples in order': lambda: SequentialExampleScheme(COUNT),
    'of a user': Own,
}


def values(epoch, count=None):
    """Return some of the data of an epoch as lists."""
    found = []
    for data in epoch:
        found.append(numpy.asarray(data[0]).tolist())
        if len(found) == count:
            break
    return found


@pytest.mark.parametrize('scheme', SCHEMES)
@pytest.mark.parametrize('dataset', DATASETS)
def test_requests_advanced_by_hand_are_left_out(path, dataset, scheme):
    """Every reader leaves them out, and so do states and pickles."""
    def build():
        return DataStream(DATASETS[dataset](path),
                          iteration_scheme=SCHEMES[scheme]())

    expected = values(build().get_epoch_iterator())
    stream = build()
    epoch = stream.get_epoch_iterator()
    found = values(epoch, 5)
    next(epoch.request_iterator)
    found += values(epoch, 1)
    epoch.request_iterator.advance(2)
    assert expected[:5] + expected[6:7] == found
    assert 9 == epoch.request_iterator.position
    state = json.loads(json.dumps(stream.state_dict()))
    assert (6, 9) == (state['position'], state['requested'])
    restored = build()
    restored.load_state_dict(state)
    if scheme != 'of a user':
        assert expected[9:] == values(pickle.loads(pickle.dumps(epoch)))
    assert expected[9:] == values(epoch)
    assert expected[9:] == values(restored.get_epoch_iterator())


def test_position_of_the_requests_counts_examples(path):
    """The position after five examples is five."""
    for build in DATASETS.values():
        epoch = DataStream(
            build(path), iteration_scheme=ShuffledExampleScheme(
                COUNT)).get_epoch_iterator()
        values(epoch, 5)
        assert 5 == epoch.request_iterator.position


@pytest.mark.parametrize('scheme', ['examples in order', 'in order'])
@pytest.mark.parametrize('dataset', ['arrays', 'lists', 'file in memory'])
def test_data_changed_by_their_owner_are_read_as_they_are(
        path, dataset, scheme):
    """Nothing that lies in memory is prefetched."""
    data = DATASETS[dataset](path)
    epoch = DataStream(
        data, iteration_scheme=SCHEMES[scheme]()).get_epoch_iterator()
    for number in range(20):
        size = 1 if scheme == 'examples in order' else 7
        for place in range(number * size, number * size + size):
            owned = (data.data_sources if dataset == 'file in memory'
                     else data.indexables)[0]
            owned[place][:] = [-place, -place]
        found, = next(epoch)
        assert (numpy.asarray(found) <= 0).all()


def test_arrays_replaced_by_their_owner_are_read_from_then_on():
    """Newly chosen sources are read from then on too."""
    for scheme in SequentialExampleScheme(COUNT), SequentialScheme(COUNT, 1):
        dataset = IndexableDataset({'x': numpy.arange(COUNT),
                                    'y': -numpy.arange(COUNT)})
        epoch = DataStream(
            dataset, iteration_scheme=scheme).get_epoch_iterator()
        assert (0, 0) == next(epoch)
        dataset.indexables[0] = numpy.arange(COUNT) + 1000
        assert (1001, -1) == next(epoch)
        dataset.indexables = [numpy.arange(COUNT) + 2000] * 2
        assert (2002, 2002) == next(epoch)
        dataset.sources = ('y',)
        assert (2003,) == next(epoch)


@pytest.mark.parametrize('scheme', ['examples', 'shuffled'])
@pytest.mark.parametrize('how', ['subclass', 'instance', 'class'])
@pytest.mark.parametrize('dataset', ['arrays', 'file', 'file in memory'])
def test_own_get_data_is_called_for_every_request(
        path, dataset, how, scheme, monkeypatch):
    """The first, the second and the last request are passed on alike."""
    data = DATASETS[dataset](path)
    requests = []
    base = type(data)
    original = base.get_data

    def get_data(self, state=None, request=None):
        requests.append(request)
        return original(self, state, request)

    if how == 'subclass':
        data.__class__ = type('Own', (base,), {'get_data': get_data})
    elif how == 'instance':
        data.get_data = lambda state=None, request=None: get_data(
            data, state, request)
    else:
        monkeypatch.setattr(base, 'get_data', get_data)
    values(DataStream(
        data, iteration_scheme=SCHEMES[scheme]()).get_epoch_iterator())
    assert list(SCHEMES[scheme]().get_request_iterator()) == requests


def test_pickled_iterator_of_dicts_gives_dicts():
    """An iterator in mid-epoch keeps its dicts, of examples and of batches."""
    for scheme in SequentialExampleScheme(9), SequentialScheme(9, 2):
        epoch = DataStream(
            IndexableDataset({'x': numpy.arange(9)}),
            iteration_scheme=scheme).get_epoch_iterator(as_dict=True)
        next(epoch)
        again = pickle.loads(pickle.dumps(epoch))
        assert {'x'} == next(again).keys() == next(epoch).keys()


def test_iterator_pickled_twice_goes_on_where_it_stood(tmp_path):
    """The position is kept although nothing was read between two pickles."""
    (tmp_path / 'lines').write_text('\n'.join('abcdef'))
    vocabulary = {letter: number for number, letter in enumerate(
        'abcdef', 3)} | {'<S>': 0, '</S>': 1, '<UNK>': 2}
    for dataset in (IterableDataset(list(range(9))),
                    TextFile([str(tmp_path / 'lines')], vocabulary)):
        epoch = DataStream(dataset).get_epoch_iterator()
        next(epoch)
        again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(epoch))))
        assert values(epoch) == values(again)


def fail_at_some(data):
    """Refuse two of the numbers."""
    if int(numpy.ravel(data[0])[0]) in (4, 14):
        raise OSError('unreadable')
    return data


def follow(epoch, stream):
    """Return batches, None for each that failed, and states after each."""
    found, states = [], []
    while True:
        try:
            found.append(next(epoch)[0].tolist())
        except OSError:
            found.append(None)
        except StopIteration:
            return found, states
        states.append((len(found), json.dumps(stream.state_dict())))


@pytest.mark.parametrize('wrap', [
    lambda stream: stream,
    lambda stream: MultiProcessing(stream, 3, start_method='fork')])
@pytest.mark.parametrize('build', [
    lambda wrap: Batch(wrap(Mapping(DataStream(
        IndexableDataset(numpy.arange(20)),
        iteration_scheme=SequentialExampleScheme(20)), fail_at_some)),
        ConstantScheme(3)),
    lambda wrap: Unpack(wrap(Mapping(DataStream(
        IndexableDataset(numpy.arange(20)),
        iteration_scheme=SequentialScheme(20, 2)), fail_at_some))),
    lambda wrap: Batch(wrap(Mapping(DataStream(
        IterableDataset(list(range(20)))), fail_at_some)),
        ConstantScheme(3))])
def test_failed_reads_are_skipped_by_a_restored_epoch(build, wrap):
    """Nothing fails again, also where a later stage reads what comes before
    a failed read from an older position."""
    with build(wrap) as stream:
        expected, states = follow(stream.get_epoch_iterator(), stream)
    assert 2 == expected.count(None)
    for number, state in states:
        # With workers or without, a state is the same.
        with build(lambda stream: stream) as restored:
            restored.load_state_dict(json.loads(state))
            assert expected[number:] == follow(
                restored.get_epoch_iterator(), restored)[0]
    with build(wrap) as restored:
        number, state = states[2]
        restored.load_state_dict(json.loads(state))
        assert expected[number:] == follow(
            restored.get_epoch_iterator(), restored)[0]

