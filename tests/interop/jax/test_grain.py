"""Fuel's data sets and streams in Grain, and Grain's in Fuel."""
import copy
import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import grain
import h5py
import numpy
import pytest
from support.grain_pipelines import (
    ROWS,
    Source,
    of_iterable,
    of_map,
    of_source,
)
from support.jax_pipelines import ordered, shuffled
from support.sparse_rows import SparseDataset, assert_same_rows, random_csr

from fuel.datasets import H5PYDataset, IndexableDataset, IterableDataset
from fuel.exceptions import StateMismatchError
from fuel.interop.jax import (
    GrainDataset,
    GrainIterable,
    as_iter_dataset,
    as_source,
    to_jax,
)
from fuel.schemes import ConstantScheme, SequentialScheme, ShuffledScheme
from fuel.streams import DataStream
from fuel.testing import check_dataset
from fuel.transformers import Batch, ToDense, Transformer


@pytest.fixture
def digits(tmp_path):
    """Return a data set in an HDF5 file, compressed."""
    path = tmp_path / 'digits.hdf5'
    with h5py.File(path, 'w') as file:
        file.create_dataset('rows', data=ROWS, chunks=(2, 3),
                            compression='gzip')
        file['numbers'] = numpy.arange(12)
        file.attrs['split'] = H5PYDataset.create_split_array({
            'train': {'rows': (0, 10), 'numbers': (0, 10)},
            'test': {'rows': (10, 12), 'numbers': (10, 12)}})
    return H5PYDataset(str(path), which_sets=('train',),
                       sources=('rows', 'numbers'))


def plain_epochs(build, count):
    """Return the numbers of each batch of some epochs of a stream."""
    stream = build()
    return [batch[0].tolist() for _ in range(count)
            for batch in stream.get_epoch_iterator()]


def lists(iterator):
    """Return the first source of what is left, as lists."""
    return [element[0].tolist() for element in iterator]


def test_hdf5_feeds_pipelines_of_grain(digits):
    """Grain shuffles, maps and batches them, in several threads."""
    source = as_source(digits, as_dict=True)
    assert isinstance(source, grain.sources.RandomAccessDataSource)
    dataset = grain.MapDataset.source(source).shuffle(seed=1).map(
        lambda one: {**one, 'rows': one['rows'] * 2}).batch(4)
    batches = list(dataset.to_iter_dataset(
        grain.ReadOptions(num_threads=4, prefetch_buffer_size=8)))
    numbers = numpy.concatenate([batch['numbers'] for batch in batches])
    assert list(range(10)) == sorted(numbers.tolist())
    assert numbers.tolist() != sorted(numbers.tolist())
    assert numpy.array_equal(2 * ROWS[numbers], numpy.concatenate(
        [batch['rows'] for batch in batches]))


def test_hdf5_feeds_the_data_loader_of_grain(digits):
    """The checkpoints of Grain hold the `repr` of the source."""
    def build():
        source = as_source(digits)
        return iter(grain.DataLoader(
            data_source=source, worker_count=0,
            sampler=grain.samplers.IndexSampler(
                len(source), grain.sharding.NoSharding(), shuffle=True,
                num_epochs=2, seed=5)))
    iterator = build()
    read = [next(iterator) for _ in range(13)]
    restored = build()
    restored.set_state(iterator.get_state())
    left = [int(number) for _, number in restored]
    assert left == [int(number) for _, number in iterator]
    assert sorted(2 * [*range(10)]) == sorted(
        [int(number) for _, number in read] + left)


def test_source_reads_what_grain_fetches_together_at_once():
    """One request reads them, also for the next batches."""
    class Counting(IndexableDataset):
        requests = ()

        def get_data(self, state=None, request=None):
            self.requests = (*self.requests, request)
            return super().get_data(state, request)
    counting = Counting(numpy.arange(12))
    batches = list(grain.MapDataset.source(as_source(counting)).batch(4))
    assert [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]] == lists(batches)
    assert len(counting.requests) in (3, 12)
    counting.requests = ()
    found = grain.MapDataset.source(as_source(counting))._getitems([3, 1])
    assert [3, 1] == [int(one) for one, in found]
    assert ([3, 1],) == counting.requests


def test_source_is_read_by_many_threads_and_pickled(digits):
    """Each process opens the file for itself."""
    source = as_source(digits)
    for same in (source, pickle.loads(pickle.dumps(source)),
                 copy.deepcopy(source)):
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(same.__getitem__, [*range(10)] * 5))
        assert [*range(10)] * 5 == [int(number) for _, number in found]
        same.close()
    assert repr(source) == (
        "as_source(H5PYDataset of 10 examples, sources=('rows', 'numbers'))")
    with pytest.raises(IndexError, match='no example 10'):
        source[10]


@pytest.mark.parametrize('build', [of_source, of_map, of_iterable])
def test_dataset_keeps_the_promises(build, another_process):
    """The promises are about requests, states, copies and other processes."""
    check_dataset(build, another_process=another_process)


@pytest.mark.parametrize('dataset', [
    Source(), grain.MapDataset.source(Source()),
    grain.MapDataset.source(as_source(GrainDataset(Source()), as_dict=True))],
    ids=['source', 'map', 'there and back'])
def test_sources_of_grain_are_read_by_schemes_of_fuel(dataset):
    """Requests may be an example, a list or a slice; strings stay strings."""
    read = GrainDataset(dataset)
    assert ('rows', 'numbers', 'words') == read.sources
    rows, numbers, words = read.get_data(None, [4, 0])
    assert numpy.array_equal(ROWS[[4, 0]], rows)
    assert [4, 0] == numbers.tolist()
    assert ['number 4', 'number 0'] == words
    assert 7 == read.get_data(None, 7)[1]
    stream = DataStream(read, iteration_scheme=ShuffledScheme(12, 5))
    stream = to_jax(stream, which_sources=('rows', 'numbers'))
    rows, numbers, words = next(stream.get_epoch_iterator())
    assert numpy.array_equal(ROWS[numpy.asarray(numbers)], rows)
    assert [f'number {number}' for number in numbers] == words


def test_iterable_of_grain_is_batched_and_resumed():
    """Its own state is in that of the stream, in mid-batch or not."""
    def build():
        return Batch(DataStream(of_iterable()),
                     iteration_scheme=ConstantScheme(3))
    expected = [numbers.tolist() for _, numbers
                in build().get_epoch_iterator()]
    assert sorted({*range(12)} - {5}) == sorted(sum(expected, []))
    for step in range(5):
        stream = build()
        epoch = stream.get_epoch_iterator()
        for _ in range(step):
            next(epoch)
        restored = build()
        restored.load_state_dict(json.loads(json.dumps(stream.state_dict())))
        if step < 4:
            assert expected[step:] == [
                numbers.tolist() for _, numbers
                in restored.get_epoch_iterator()]


def test_stream_has_the_batches_of_its_epochs_in_grain():
    """Every iterator begins at the same place, and each epoch has its own
    order."""
    expected = plain_epochs(shuffled, 3)
    dataset = as_iter_dataset(shuffled(), num_epochs=2)
    assert expected[:14] == lists(dataset) == lists(dataset)
    endless = iter(as_iter_dataset(shuffled(), num_epochs=None))
    assert expected == [next(endless)[0].tolist() for _ in range(21)]
    begun = shuffled()
    list(begun.get_epoch_iterator())
    assert expected[7:14] == lists(as_iter_dataset(begun))
    batch = next(iter(as_iter_dataset(ordered(), as_dict=True)))
    assert ['rows', 'numbers'] == list(batch)


@pytest.mark.parametrize('step', [0, 1, 6, 7, 8, 13, 14])
def test_state_in_grain_is_exact(step):
    """The state survives JSON and stages of Grain, in a stream built anew."""
    def build():
        return iter(as_iter_dataset(shuffled(), num_epochs=2).map(
            lambda batch: (batch[0] + 1,)))
    iterator = build()
    for _ in range(step):
        next(iterator)
    state = json.loads(json.dumps(iterator.get_state()))
    left = lists(iterator)
    assert 14 - step == len(left)
    restored = build()
    restored.set_state(state)
    assert state == restored.get_state()
    assert left == lists(restored)
    iterator.set_state(state)
    assert left == lists(iterator)


class Drawing(Transformer):
    """A user's stage, whose draws depend on those before."""

    def __init__(self, data_stream):
        super().__init__(data_stream, data_stream.produces_examples)
        self.rng = numpy.random.RandomState(3)

    def transform_batch(self, batch):
        return (batch[0] + 100 * self.rng.randint(5),)


def drawing():
    """Return a stream with a user's stage that draws random numbers."""
    return Drawing(shuffled())


@pytest.mark.parametrize('build', [shuffled, drawing])
def test_iterators_of_one_stream_do_not_disturb_each_other(build):
    """Two iterators read in turns, over the end of an epoch."""
    dataset = as_iter_dataset(build(), num_epochs=2)
    one, other = iter(dataset), iter(dataset)
    found = [[], []]
    for _ in range(5):
        found[0].append(next(one)[0].tolist())
    for first, second in zip(one, other, strict=False):
        found[0].append(first[0].tolist())
        found[1].append(second[0].tolist())
    expected = plain_epochs(build, 2)
    assert expected == found[0]
    assert expected[:9] == found[1][:9]


def test_workers_of_grain_read_each_its_part():
    """Batches keep the order of the stream, and none comes twice; states are
    exact."""
    def build():
        return as_iter_dataset(shuffled()).mp_prefetch(
            grain.MultiprocessingOptions(num_workers=2))
    expected = plain_epochs(shuffled, 1)
    iterator = iter(build())
    read = [next(iterator)[0].tolist() for _ in range(3)]
    state = iterator.get_state()
    left = lists(iterator)
    iterator.close()
    assert expected == read + left
    restored = iter(build())
    restored.set_state(state)
    assert left == lists(restored)
    restored.close()


def test_iterator_that_was_closed_is_not_read():
    """Grain's own iterators behave so."""
    iterator = iter(as_iter_dataset(shuffled()))
    next(iterator)
    iterator.close()
    with pytest.raises(ValueError, match='closed'):
        next(iterator)


@pytest.mark.parametrize('state', [
    None, {}, {'epoch': 0}, {'epoch': -1, 'stream': {}},
    {'epoch': 0, 'stream': {}}, {'epoch': '0', 'stream': {}}])
def test_damaged_states_are_refused(state):
    """Fuel's own error is raised, and nothing is lost."""
    iterator = iter(as_iter_dataset(shuffled()))
    with pytest.raises(StateMismatchError):
        iterator.set_state(state)
    assert plain_epochs(shuffled, 1) == lists(iterator)


def test_position_that_grain_does_not_take_is_refused():
    """The error names the position."""
    with pytest.raises(StateMismatchError, match=r'position \[1\]'):
        of_iterable().open_at([1])


@pytest.mark.parametrize('build, error, text', [
    (lambda: as_source(IterableDataset(iter([1]))), TypeError,
     'as_iter_dataset'),
    (lambda: as_iter_dataset(shuffled(), 0), ValueError, 'num_epochs'),
    (lambda: GrainDataset(iter([])), TypeError, '__len__ and __getitem__'),
    (lambda: GrainDataset([]), ValueError, 'list has no examples'),
    (lambda: GrainDataset([(1, 2, 3)]), ValueError, 'has 3 parts: name'),
    (lambda: GrainDataset(grain.MapDataset.range(3).to_iter_dataset()),
     TypeError, 'use GrainIterable'),
    (lambda: GrainIterable(grain.MapDataset.range(3)), TypeError,
     'use GrainDataset'),
    (lambda: GrainIterable(grain.MapDataset.range(0).to_iter_dataset()),
     ValueError, 'no elements'),
    (lambda: GrainDataset(grain.MapDataset.range(4).filter(
        lambda number: number != 2)).get_data(None, [1, 2]), ValueError,
     'filtered out'),
    (lambda: of_iterable().get_data(None, [1]), ValueError, 'in order')])
def test_invalid_use_is_refused(build, error, text):
    """Each text says what was expected and what came."""
    with pytest.raises(error, match=text):
        build()


def test_sparse_examples_are_made_dense_before():
    """Grain stacks arrays; streams of batches come as they are."""
    rows = random_csr(6, 5)
    with pytest.raises(TypeError, match=r'ToDense\(.*\.as_dataset\(\)'):
        as_source(SparseDataset(rows))[0]
    stream = DataStream(SparseDataset(rows),
                        iteration_scheme=SequentialScheme(6, 4))
    source = as_source(ToDense(stream).as_dataset())
    batch, = list(grain.MapDataset.source(source).batch(6))
    assert numpy.array_equal(rows.toarray(), batch[0])
    found = list(as_iter_dataset(stream))
    assert_same_rows(rows.toarray()[:4], found[0][0], rows)
