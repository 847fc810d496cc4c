"""Streams over windows and runs go on where they were, and nowhere else."""
import pickle

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal

from fuel.datasets import (
    H5PYDataset,
    HDF5Dataset,
    IndexableDataset,
    NPYDataset,
    Runs,
    Windows,
)
from fuel.exceptions import StateMismatchError
from fuel.schemes import BalancedScheme, ShuffledScheme, WeightedScheme
from fuel.server import Server
from fuel.streams import DataStream, ServerDataStream
from fuel.transformers import MultiProcessing

LENGTHS = numpy.array([9, 0, 14, 7, 10])


def rows(**kwargs):
    """Return a data set of forty rows."""
    return IndexableDataset({'x': numpy.arange(40), 'y': numpy.arange(40.)},
                            **kwargs)


def windows(dataset=None, length=3, **kwargs):
    """Return a data set of windows."""
    kwargs = {'runs': {'lengths': LENGTHS}, 'pad': 'edge', 'pad_after': 2,
              **kwargs}
    return Windows(dataset or rows(), length, **kwargs)


def stream_of(dataset, count=40):
    """Return a stream of batches."""
    return DataStream(dataset, iteration_scheme=ShuffledScheme(
        min(count, len(dataset)), 8, seed=1))


def state_of(stream):
    """Return the state after two batches."""
    iterator = stream.get_epoch_iterator()
    next(iterator), next(iterator)
    return stream.state_dict()


OTHERS = {
    'length': lambda: windows(length=4),
    'step': lambda: windows(step=2),
    'stride': lambda: windows(stride=2, pad_before=40, pad_after=40),
    'pad': lambda: windows(pad='zero'),
    'places of pads': lambda: windows(pad_after=1, pad_before=1),
    'first': lambda: windows(first={'x': 2}),
    'mask_source': lambda: windows(mask_source='real'),
    'runs': lambda: windows(runs={'lengths': [9, 14, 8, 9]}),
    'rows': lambda: windows(IndexableDataset(
        {'x': numpy.arange(80), 'y': numpy.arange(80.)}, 1, 41)),
    'sources': lambda: windows(sources=('x', 'mask')),
    'data set': lambda: windows(Windows(
        rows(), 1, runs={'lengths': LENGTHS})),
}


def test_state_fits_the_same_windows():
    """They are made anew, over the same rows, with bounds given in any way."""
    batches = list(stream_of(windows()).get_epoch_iterator())
    stream = stream_of(windows(runs={'offsets': numpy.concatenate(
        [[0], numpy.cumsum(LENGTHS)])}))
    stream.load_state_dict(state_of(stream_of(windows())))
    for got, wanted in zip(stream.get_epoch_iterator(), batches[2:],
                           strict=True):
        for part, of_wanted in zip(got, wanted, strict=True):
            assert_array_equal(part, of_wanted)


@pytest.mark.parametrize('name', OTHERS)
def test_state_of_other_windows_is_refused(name):
    """The arguments, the runs or the data set below differ."""
    stream = stream_of(OTHERS[name]())
    with pytest.raises(StateMismatchError):
        stream.load_state_dict(state_of(stream_of(windows())))


def test_refusal_advises_what_users_can_change(tmp_path):
    """If it is the data set below, only a user's own class can declare
    arguments."""
    refused = []
    for number in range(2):
        path = str(tmp_path / f'{number}.h5')
        with h5py.File(path, 'w') as file:
            file['x'] = numpy.arange(40)
        stream = stream_of(Runs(HDF5Dataset(path, ['x'], runs='all')), 1)
        refused.append(stream)
    with pytest.raises(StateMismatchError, match='data set dataset files'
                       ) as caught:
        refused[1].load_state_dict(refused[0].state_dict())
    assert 'unsaved_arguments' not in str(caught.value)


def test_state_of_dense_windows_is_refused_without():
    """Dense windows take up other rows."""
    one, other = (windows(pad=None, pad_after=0, step=2, dense=dense)
                  for dense in ((), ('x',)))
    with pytest.raises(StateMismatchError):
        stream_of(one, 20).load_state_dict(state_of(stream_of(other, 20)))


def test_state_of_another_split_is_refused(tmp_path):
    """The other split may have as many rows."""
    numpy.save(tmp_path / 'a.npy', numpy.arange(60))
    splits = {'a': (0, 40), 'b': (20, 60), 'c': numpy.arange(60)[::2]}

    def over(split):
        return stream_of(Runs(
            NPYDataset(tmp_path / 'a.npy', ('a',), {'a': splits[split]}),
            runs={'lengths': [2] * 30}), 15)

    state = state_of(over('a'))
    over('a').load_state_dict(state)
    for split in 'bc':
        with pytest.raises(StateMismatchError):
            over(split).load_state_dict(state)


def test_state_of_runs_is_refused_by_others():
    """Other runs of the same number may have other rows."""
    state = state_of(stream_of(Runs(rows(), runs={'lengths': [1] * 40})))
    other = stream_of(Runs(rows(), runs={'lengths': [2, 0] + [1] * 38}))
    with pytest.raises(StateMismatchError, match='data set rows was'):
        other.load_state_dict(state)


def test_state_of_other_inner_windows_is_refused():
    """Arguments count however deep they are."""
    def nested(length):
        inner = Windows(rows(), length, runs={'lengths': LENGTHS},
                        pad='edge', pad_after=length - 1)
        return Windows(inner, 2, sources=('x',), pad='edge', pad_after=1,
                       mask_source='real')

    one, other = map(nested, (2, 3))
    assert len(one) == len(other)
    with pytest.raises(StateMismatchError, match='dataset length'):
        stream_of(other).load_state_dict(state_of(stream_of(one)))


@pytest.mark.parametrize('scheme', [
    lambda dataset: BalancedScheme(dataset.run_numbers, 8, seed=1),
    lambda dataset: WeightedScheme(
        1 / numpy.bincount(dataset.run_numbers)[dataset.run_numbers], 8,
        seed=1)], ids=['BalancedScheme', 'WeightedScheme'])
def test_runs_are_drawn_equally_often(scheme):
    """All schemes draw runs of any length equally often."""
    dataset = windows(pad=None, pad_after=0)
    chosen = [dataset.run_numbers[index]
              for _ in range(1)
              for batch in scheme(dataset).get_request_iterator()
              for index in batch]
    assert len(dataset.run_numbers) == len(dataset)
    counts = numpy.bincount(chosen)
    assert counts[1] == 0
    assert (abs(counts[[0, 2, 3, 4]] - len(chosen) / 4) < 6).all()


def test_ranks_have_all_windows_between_them():
    """Each window is read once."""
    seen = []
    for rank in range(3):
        stream = stream_of(windows()).shard(rank, 3)
        seen += [int(x[0]) for batch in stream.get_epoch_iterator()
                 for x in batch[0]]
    assert sorted(seen) == list(range(40))


def assert_same(batches, others):
    """Check that batches are equal."""
    for batch, other in zip(batches, others, strict=True):
        for part, of_other in zip(batch, other, strict=True):
            assert freeze(part) == freeze(of_other)


def freeze(part):
    """Return arrays, and arrays of arrays, as lists."""
    return [numpy.asarray(row).tolist() for row in part]


@pytest.mark.parametrize('kind', [Runs, Windows])
def test_batches_are_made_in_other_processes(kind, tmp_path):
    """Workers, and a server, give what this process reads."""
    numpy.save(tmp_path / 'a.npy', numpy.arange(80).reshape(40, 2))
    below = NPYDataset(tmp_path / 'a.npy')
    dataset = (Runs(below, runs={'lengths': [4, 1, 5] * 4}) if kind is Runs
               else windows(below))
    expected = list(stream_of(dataset).get_epoch_iterator())
    with MultiProcessing(stream_of(dataset)) as stream:
        assert_same(expected, stream.get_epoch_iterator())
    server = Server(stream_of(dataset), port=0)
    server.start()
    client = ServerDataStream(dataset.sources, port=server.port, timeout=20)
    assert_same(expected, client.get_epoch_iterator())
    client.close()
    server.stop()


def write(path, x, ends):
    """Write an HDF5 file of rows and the ends of their runs."""
    with h5py.File(path, 'w') as file:
        file['x'], file['ends'] = x, ends
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, len(x)), 'ends': (0, len(x))}})


def test_next_epoch_reads_the_file_of_then(tmp_path):
    """Its runs must have the same bounds."""
    path, ends = tmp_path / 'a.hdf5', numpy.arange(12) % 4 == 3
    write(path, numpy.arange(12), ends)
    dataset = Windows(H5PYDataset(path, ('train',), sources=('x',)), 4,
                      runs={'ends': 'ends'})
    stream = stream_of(dataset)
    assert sorted(next(stream.get_epoch_iterator())[0][:, 0]) == [0, 4, 8]
    dataset.close(None)
    write(path, numpy.arange(12) + 100, ends)
    assert sorted(next(stream.get_epoch_iterator())[0][:, 0]) == [
        100, 104, 108]
    dataset.close(None)
    write(path, numpy.arange(12), numpy.arange(12) % 6 == 5)
    with pytest.raises(StateMismatchError, match='have other bounds than'):
        next(stream.get_epoch_iterator())


def test_file_may_be_closed_and_read_again(tmp_path):
    """The data set below, the windows, or a copy may close it."""
    path = tmp_path / 'a.hdf5'
    write(path, numpy.arange(12), numpy.zeros(12))
    below = H5PYDataset(path, ('train',), sources=('x',))
    dataset = Windows(below, 4)
    for close in (below.close, dataset.close, lambda state: None):
        close(None)
        assert_array_equal(dataset[3][0], [3, 4, 5, 6])
        copy = pickle.loads(pickle.dumps(dataset))
        assert_array_equal(copy[4][0], [4, 5, 6, 7])
