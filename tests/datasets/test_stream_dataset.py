"""A pipeline can be looked at by number."""
import pickle
import threading

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal
from support import pipelines

from fuel.datasets import (
    Categorical, H5PYDataset, HDF5Dataset, IndexableDataset, IterableDataset,
    Runs, Windows, random_split)
from fuel.schemes import BalancedScheme
from fuel.streams import DataStream
from fuel.testing import check_dataset
from fuel.transformers import (
    Cast, Filter, FilterSources, Flatten, ForceFloatX, Mapping,
    MultiProcessing, Rename, ScaleAndShift, ToDense, Unpack)
from fuel.transformers.image import RandomFixedSizeCrop
from fuel.transformers.noise import GaussianNoise


def batches(count=6):
    """Return a pipeline on batches, whose order does not matter."""
    stream = DataStream(IndexableDataset({
        'x': numpy.arange(count * 4.).reshape(count, 2, 2),
        'y': numpy.arange(count)}, axis_labels={
            'x': ('batch', 'height', 'width'), 'y': ('batch',)}),
        batch_size=4, shuffle=True)
    return Flatten(ScaleAndShift(stream, 2., 1., which_sources=('x',)),
                   which_sources=('x',))


def examples():
    """Return a pipeline on examples."""
    return Mapping(DataStream(
        IndexableDataset({'x': numpy.arange(6.), 'y': numpy.arange(6)},
                         axis_labels={'x': ('batch',), 'y': ('batch',)}),
        shuffle=True), pipelines.double, axis_labels={'x': (), 'y': ()})


@pytest.mark.parametrize('index', [0, 3, -1, slice(1, 4), [4, 0, 4], [2],
                                   numpy.array([5, 1])])
def test_item_is_what_the_pipeline_makes_of_the_example(index):
    """The index is one example, a slice, or several in any order."""
    whole = numpy.arange(24.).reshape(6, 4) * 2 + 1
    x, y = batches().as_dataset()[index]
    assert_array_equal(whole[index], x)
    assert_array_equal(numpy.arange(6)[index], y)
    x, y = examples().as_dataset()[index]
    assert_array_equal(numpy.arange(6.)[index] * 2, x)


def test_dataset_of_a_stream_is_a_data_set():
    """The data set knows its length and sources, and can be streamed."""
    for build in (batches, examples):
        data = build().as_dataset()
        assert 6 == len(data) == data.num_examples
        assert ('x', 'y') == data.sources
        with pytest.raises(IndexError, match='6 is none of them'):
            data[6]
        again = [y.tolist() for _, y in DataStream(data, batch_size=4)]
        assert ('batch',) == data.axis_labels['y']
        rows = (data[place][1] for place in range(6))
        assert [row for batch in again for row in batch] == list(rows)


@pytest.mark.parametrize('build', [batches, examples])
def test_dataset_of_a_stream_keeps_the_promises_of_data_sets(build):
    """They are the promises of every data set of Fuel."""
    check_dataset(lambda: build().as_dataset(), another_process=False)


def test_stream_stays_as_it_is():
    """Looking at examples neither advances an epoch nor draws an order."""
    stream, other = batches(), batches()
    data = stream.as_dataset()
    epoch = stream.get_epoch_iterator()
    seen = []
    for x, y in epoch:
        data[1]
        seen.append((x.tolist(), y.tolist()))
    assert seen == [(x.tolist(), y.tolist()) for x, y in other]


def test_noise_of_an_example_is_the_same_at_each_look():
    """The noise depends on the number of the example."""
    data = GaussianNoise(DataStream(IndexableDataset(
        numpy.zeros((5, 3))), shuffle=True), 1.).as_dataset()
    first = [data[place][0].tolist() for place in range(5)]
    assert first == [data[place][0].tolist()
                     for place in (4, 3, 2, 1, 0)][::-1]
    assert 5 == len({tuple(row) for row in first})


def test_pickled_and_threaded_looks_are_right():
    """Each thread gets what it asks for."""
    data = pickle.loads(pickle.dumps(batches(60).as_dataset()))
    wrong = []

    def look(rows):
        wrong.extend(row for row in rows if data[row][1] != row)

    threads = [threading.Thread(target=look, args=(range(start, 60, 3),))
               for start in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == wrong


def test_file_is_opened_again(tmp_path):
    """It is opened after it was closed."""
    with h5py.File(tmp_path / 'data.hdf5', 'w') as file:
        file['x'] = numpy.arange(8.)
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 8)}})
    for how in ({'batch_size': 3}, {'shuffle': True}):
        data = Cast(DataStream(H5PYDataset(
            tmp_path / 'data.hdf5', ('train',)), **how),
            'float32').as_dataset()
        for _ in range(2):
            assert numpy.float32(3) == data[3][0]
            assert_array_equal([7, 1], data[[7, 1]][0])
            data.close()


@pytest.mark.parametrize('build, error, text', [
    (lambda: Unpack(batches()), ValueError, 'Unpack does not make one item'),
    (lambda: Filter(examples(), pipelines.is_even), ValueError, 'Filter'),
    (lambda: MultiProcessing(batches()), ValueError, 'MultiProcessing'),
    (lambda: DataStream(IterableDataset([1])), TypeError,
     'IterableDataset is read in order'),
    (lambda: RandomFixedSizeCrop(DataStream(IndexableDataset(
        numpy.zeros((4, 3, 5, 5))), batch_size=2), (2, 2)), ValueError,
     'draws from rng')])
def test_pipeline_without_numbers_is_refused(build, error, text):
    """The error names the stage."""
    with pytest.raises(error, match=text):
        build().as_dataset()


KINDS = ('B', 'NK', 'T')


def cells(path, codes=(0, -1, 1, 1, -1, 0, 2, -1, 0, 1, 2, 1)):
    """Return a data set of codes of categories; some are missing."""
    with h5py.File(path, 'w') as file:
        file['x'] = numpy.arange(len(codes))
        file['kind/codes'] = numpy.array(codes, 'int8')
        file['kind/categories'] = KINDS
    return HDF5Dataset(path, ['x', Categorical('kind')])


def stream_of(dataset):
    """Return a stream of batches."""
    return DataStream(dataset, batch_size=4)


def add_one(data):
    """Return a part of a source that is added."""
    return (data[0] + 1,)


# Data sets over one of categories, and the name that codes then have.
HANDED_ON = {
    'windows': (lambda cells: Windows(cells, 1), 'kind'),
    'stream': (lambda cells: stream_of(cells).as_dataset(), 'kind'),
    'cast': (lambda cells: Cast(stream_of(cells), 'int64').as_dataset(),
             'kind'),
    'cast to floats': (
        lambda cells: Cast(stream_of(cells), 'float32').as_dataset(), 'kind'),
    'cast windows': (lambda cells: Cast(
        stream_of(Windows(cells, 1)), 'int64').as_dataset(), 'kind'),
    'windows of casts': (lambda cells: Windows(
        Cast(stream_of(cells), 'int64').as_dataset(), 1), 'kind'),
    'other sources': (lambda cells: ScaleAndShift(ToDense(ForceFloatX(
        stream_of(cells))), 2., 0., which_sources='x').as_dataset(), 'kind'),
    'added sources': (lambda cells: FilterSources(Mapping(
        stream_of(cells), add_one, add_sources=('y',)),
        ('kind', 'y')).as_dataset(), 'kind'),
    'names that are swapped': (lambda cells: Rename(
        stream_of(cells), {'x': 'kind', 'kind': 'x'}).as_dataset(), 'x'),
}


@pytest.mark.parametrize('kind', HANDED_ON)
def test_categories_are_handed_on(kind, tmp_path):
    """Examples whose category is missing are in no split, and not drawn."""
    below = cells(tmp_path / 'x.h5')
    build, source = HANDED_ON[kind]
    dataset = build(below)
    for one in dataset, pickle.loads(pickle.dumps(dataset)):
        assert {source: KINDS} == dict(one.categories)
    labels = dataset.read_labels(source)
    codes = below.read_labels('kind')
    assert_array_equal(codes.mask, labels.mask.ravel())
    assert_array_equal(codes.data, labels.data.ravel())
    with pytest.warns(UserWarning, match='3 of 12 labels are missing'):
        splits = random_split(dataset, {'a': .5, 'b': None}, stratify=source)
    assert numpy.flatnonzero(~codes.mask).tolist() == sorted(
        numpy.concatenate(list(splits.values())).tolist())
    with pytest.warns(UserWarning, match='3 of 12 labels are missing'):
        assert 9 == BalancedScheme(labels, 4).num_examples


@pytest.mark.parametrize('build', [
    lambda stream: ScaleAndShift(stream, 2, 0),
    lambda stream: Mapping(stream, lambda data: data),
    lambda stream: Cast(stream, 'uint8'),
    lambda stream: FilterSources(stream, ('x',)),
    lambda stream: Rename(ScaleAndShift(stream, 2, 0, which_sources='kind'),
                          {'x': 'kind', 'kind': 'x'}),
    lambda stream: type('Other', (Cast,), {})(stream, 'int64')],
    ids=['scaled', 'function', 'unsigned', 'left out', 'swapped', 'class'])
def test_numbers_that_a_stage_changes_are_not_codes(build, tmp_path):
    """A stage that may change them, or another source, has no categories."""
    stream = build(stream_of(cells(tmp_path / 'x.h5')))
    assert {} == stream.as_dataset().categories


def test_runs_and_windows_name_their_codes(tmp_path):
    """A code that is missing has no name; sources that are left out have
    none."""
    below = cells(tmp_path / 'x.h5')
    windows = Windows(below, 3, pad='edge', pad_after=1)
    assert [None, 'NK', 'NK'] == windows.category_names(
        'kind', windows[1][1]).tolist()
    runs = Runs(below, runs={'lengths': [2, 10]})
    assert {'kind': KINDS} == runs.categories
    assert {'kind': KINDS} == Windows(windows, 2).categories
    assert ['B', None] == runs.category_names('kind', runs[0][1]).tolist()
    assert runs.read_labels('kind').dtype == object
    rows = IndexableDataset({'x': numpy.arange(4)})
    assert {} == Runs(rows).categories
