"""H5PYDataset: splits, subsets, sources, requests, errors."""
import gc
import pathlib
import pickle

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal
from support.hdf5_files import (
    NEW_FORM,
    OLD_FORM,
    label,
    split_array,
    write_pairs,
    write_ragged,
)

from fuel.datasets.hdf5 import H5PYDataset
from fuel.datasets.row_orders import OrderedSubset
from fuel.exceptions import StateMismatchError
from fuel.schemes import SequentialScheme, ShuffledScheme
from fuel.streams import DataStream
from fuel.utils import Subset

IN_MEMORY = pytest.mark.parametrize(
    'load_in_memory', [False, True], ids=['on disk', 'in memory'])


@pytest.fixture
def path(tmp_path):
    """Write a file of 80 training and 20 test pairs."""
    return write_pairs(tmp_path / 'pairs.hdf5')


@pytest.fixture
def dataset(path):
    """Open the training set on disk."""
    with H5PYDataset(path, ('train',)) as opened:
        yield opened


def write(path, rows, form=NEW_FORM, **sources):
    """Write sources and a split attribute; the references in `rows` are
    given as lists of indices."""
    with h5py.File(path, 'w') as file:
        for name, data in sources.items():
            file[name] = data
        refs = []
        for number, (*start, indices, available) in enumerate(rows):
            ref = None
            if indices is not None:
                file[f'indices_{number}'] = numpy.array(indices)
                ref = file[f'indices_{number}'].ref
            refs.append((*start, ref, available))
        file.attrs['split'] = split_array(refs, form)
    return str(path)


# --- what a data set is made of -------------------------------------------

def test_h5pydataset_split_gives_sources_in_alphabetical_order(dataset):
    """Without `sources` they come in alphabetical order, with labels."""
    assert dataset.provides_sources == ('features', 'targets')
    assert dataset.sources == ('features', 'targets')
    assert dataset.num_examples == 80
    assert dataset.axis_labels == {'features': ('batch', 'feature'),
                                   'targets': ('batch', 'index')}
    assert dataset.data_sources is None
    assert dataset.example_iteration_scheme.num_examples == 80


@IN_MEMORY
def test_h5pydataset_sources_order_is_the_users(path, load_in_memory):
    """Targets asked for first come first, under their own name."""
    dataset = H5PYDataset(path, ('train',), sources=('targets', 'features'),
                          load_in_memory=load_in_memory)
    targets, features = dataset.get_data(None, [3])
    assert dataset.sources == ('targets', 'features')
    assert targets.tolist() == [[30]]
    assert features.tolist() == [[6, 7]]
    dataset.close(None)


@IN_MEMORY
def test_h5pydataset_sources_may_be_assigned(path, load_in_memory):
    """Data follow the names, in memory too."""
    dataset = H5PYDataset(path, ('train',), load_in_memory=load_in_memory)
    dataset.sources = ('targets', 'features')
    targets, features = dataset.get_data(None, [3])
    assert targets.tolist() == [[30]]
    assert features.tolist() == [[6, 7]]
    dataset.sources = ('targets',)
    assert len(dataset.get_data(None, 3)) == len(dataset.subsets) == 1
    dataset.close(None)


def test_h5pydataset_takes_path_likes(path):
    """A pathlib.Path is as good as a string."""
    assert H5PYDataset(pathlib.Path(path), ('test',)).num_examples == 20


def test_h5pydataset_axis_labels_argument_wins(path):
    """Axis labels given by the user replace those of the file."""
    labels = {'features': ('batch', 'x'), 'targets': ('batch', 'y')}
    dataset = H5PYDataset(path, ('train',), axis_labels=labels)
    assert dataset.axis_labels == labels
    assert dataset.default_axis_labels['features'] == ('batch', 'feature')


@pytest.mark.parametrize('form', [NEW_FORM, OLD_FORM])
def test_h5pydataset_reads_both_forms_of_the_split_attribute(
        tmp_path, form):
    """Fields of shape (1,), as NumPy writes them today from the old
    recipe, are read like scalar ones."""
    path = write(tmp_path / 'x.hdf5', [
        ('train', 'x', 0, 6, None, True), ('test', 'x', 6, 10, None, True),
        ('odd', 'x', -1, -1, [1, 3, 5], True),
        ('none', 'x', 0, 0, None, False)], form, x=numpy.arange(10))
    with h5py.File(path) as file:
        shape = file.attrs['split'].dtype['start'].shape
        assert shape == (() if form == NEW_FORM else (1,))
    for split, expected in [('train', range(6)), ('test', range(6, 10)),
                            ('odd', [1, 3, 5])]:
        dataset = H5PYDataset(path, (split,))
        data, = dataset.get_data(request=slice(0, dataset.num_examples))
        assert_array_equal(list(expected), data)


def test_create_split_array_has_scalar_fields():
    """Files written today have the same split attribute as old ones:
    seven fields, byte strings, scalar start and stop."""
    array = H5PYDataset.create_split_array({
        'train': {'b': (0, 5, None, 'first'), 'a': (0, 5)},
        'unlabelled': {'a': (5, 9, None, '')}})
    assert array.dtype.names == ('split', 'source', 'start', 'stop',
                                 'indices', 'available', 'comment')
    assert [array.dtype[name].shape for name in array.dtype.names] == [()] * 7
    assert array['split'].tolist() == [b'train'] * 2 + [b'unlabelled'] * 2
    assert array['source'].tolist() == [b'a', b'b', b'a', b'b']
    assert array['start'].tolist() == [0, 0, 5, 0]
    assert array['stop'].tolist() == [5, 5, 9, 0]
    assert array['available'].tolist() == [True, True, True, False]
    assert array['comment'].tolist() == [b'.', b'first', b'.', b'.']
    assert not any(array['indices'])


def test_create_split_array_wrong_tuple_raises_valueerror():
    """A tuple of one or five elements is refused, with its place."""
    with pytest.raises(ValueError, match=r"'x' in split 'train', got \(1,\)"):
        H5PYDataset.create_split_array({'train': {'x': (1,)}})
    with pytest.raises(ValueError, match=r'be integers, got \(0, 2\.5\)'):
        H5PYDataset.create_split_array({'train': {'x': (0, 2.5)}})


def test_static_methods_list_splits_and_sources_the_same_each_time(tmp_path):
    """Splits come in the order of the attribute, sources sorted."""
    path = write(tmp_path / 'x.hdf5', [
        ('train', 'z', 0, 3, None, True), ('train', 'a', 0, 3, None, True),
        ('extra', 'z', 3, 5, None, True), ('extra', 'a', 0, 0, None, False),
        ], z=numpy.arange(5), a=numpy.arange(5))
    with h5py.File(path) as file:
        assert H5PYDataset.get_all_splits(file) == ('train', 'extra')
        assert H5PYDataset.get_all_sources(file) == ('a', 'z')
        assert ('a', 'z') == H5PYDataset.get_provided_sources(file, 'train')
        assert ('z',) == H5PYDataset.get_provided_sources(
            file, split='extra')
        assert () == H5PYDataset.get_provided_sources(file, 'test')
        assert H5PYDataset.get_vlen_sources(file) == ()
        assert H5PYDataset.get_axis_labels(file) == {'a': ('',), 'z': ('',)}
        subset, = H5PYDataset.get_subsets(
            file, splits=('extra',), sources=('z',))
        assert isinstance(subset, Subset)
        assert subset.list_or_slice == slice(3, 5)
    assert H5PYDataset.interface_version == '0.3'


def test_provided_sources_stay_empty_once_empty(tmp_path):
    """The intersection over splits does not start again after it was
    empty; the error names the splits."""
    path = write(tmp_path / 'x.hdf5', [
        ('one', 'a', 0, 2, None, True), ('one', 'b', 0, 0, None, False),
        ('two', 'a', 0, 0, None, False), ('two', 'b', 0, 2, None, True),
        ], a=numpy.arange(4), b=numpy.arange(4))
    with h5py.File(path) as file:
        assert [('a',), ('b',)] == [
            H5PYDataset.get_provided_sources(file, split)
            for split in ('one', 'two')]
    with pytest.raises(ValueError, match="no source is in all of the splits "
                                         r"\('one', 'two'\)"):
        H5PYDataset(path, ('one', 'two'))


# --- pairs stay pairs ------------------------------------------------

@IN_MEMORY
def test_splits_pair_sources_by_position(tmp_path, load_in_memory):
    """Train features (0, 10) with targets (10, 20), test the other way
    round; both splits together still pair feature 0 with target 10."""
    path = write(tmp_path / 'x.hdf5', [
        ('train', 'f', 0, 10, None, True), ('train', 't', 10, 20, None, True),
        ('test', 'f', 10, 20, None, True), ('test', 't', 0, 10, None, True),
        ], f=numpy.arange(20), t=numpy.arange(20))
    dataset = H5PYDataset(path, ('train', 'test'),
                          load_in_memory=load_in_memory)
    features, targets = dataset.get_data(request=slice(0, 20))
    assert_array_equal(numpy.arange(20), features)
    assert_array_equal([*range(10, 20), *range(10)], targets)
    assert [s.list_or_slice for s in dataset.subsets] == [slice(0, 20)] * 2
    dataset.close(None)


@IN_MEMORY
def test_index_splits_of_different_order_keep_it(
        tmp_path, load_in_memory):
    """Indices [7, 1, 4] and [1, 4, 7] give the pairs 7-100, 1-400 and
    4-700; `subsets` stays the sorted view."""
    path = write(tmp_path / 'x.hdf5', [
        ('train', 'f', -1, -1, [7, 1, 4], True),
        ('train', 't', -1, -1, [1, 4, 7], True),
        ], f=numpy.arange(10), t=numpy.arange(10) * 100)
    dataset = H5PYDataset(path, ('train',), load_in_memory=load_in_memory)
    features, targets = dataset.get_data(request=[0, 1, 2])
    assert features.tolist() == [7, 1, 4]
    assert targets.tolist() == [100, 400, 700]
    assert [s.list_or_slice for s in dataset.subsets] == [[1, 4, 7]] * 2
    assert dataset.get_data(request=2)[0] == 4
    dataset.close(None)


def test_index_split_beside_a_range_keeps_its_order(tmp_path):
    """A source with a range and one with indices are paired by
    position as well."""
    path = write(tmp_path / 'x.hdf5', [
        ('train', 'f', 2, 5, None, True),
        ('train', 't', -1, -1, [7, 1, 4], True),
        ], f=numpy.arange(10), t=numpy.arange(10) * 100)
    with H5PYDataset(path, ('train',)) as dataset:
        features, targets = dataset.get_data(request=slice(None))
    assert features.tolist() == [2, 3, 4]
    assert targets.tolist() == [700, 100, 400]


def test_index_split_shared_by_all_sources_is_read_in_ascending_order(
        tmp_path):
    """One list of indices for all sources says nothing about order: as
    before, it is ascending and without repetitions."""
    path = write(tmp_path / 'x.hdf5', [
        ('train', 'f', -1, -1, [7, 1, 4, 1], True),
        ('train', 't', -1, -1, [7, 1, 4, 1], True),
        ], f=numpy.arange(10), t=numpy.arange(10) * 100)
    with H5PYDataset(path, ('train',)) as dataset:
        features, targets = dataset.get_data(request=slice(0, 3))
    assert features.tolist() == [1, 4, 7]
    assert targets.tolist() == [100, 400, 700]


def test_order_does_not_depend_on_the_sources_asked_for(tmp_path):
    """One source alone has the order it has with the others, so that two
    data sets of one file pair up."""
    path = write(tmp_path / 'x.hdf5', [
        ('train', 'f', -1, -1, [7, 1, 4], True),
        ('train', 't', -1, -1, [1, 4, 7], True),
        ], f=numpy.arange(10), t=numpy.arange(10) * 100)
    with H5PYDataset(path, ('train',), sources=('f',)) as dataset:
        assert dataset.get_data(request=slice(None))[0].tolist() == [7, 1, 4]


@IN_MEMORY
def test_which_sets_concatenates_in_the_order_given(path, load_in_memory):
    """('test', 'train') begins with the test examples."""
    dataset = H5PYDataset(path, ('test', 'train'),
                          load_in_memory=load_in_memory)
    targets = dataset.get_data(request=slice(0, 100))[1].ravel()
    assert_array_equal([*range(800, 1000, 10), *range(0, 800, 10)], targets)
    assert dataset.subsets[0].list_or_slice == slice(0, 100)
    dataset.close(None)


@IN_MEMORY
def test_overlapping_splits_are_concatenated(tmp_path, load_in_memory):
    """Two splits that share rows are put after each other, not
    merged."""
    path = write(tmp_path / 'x.hdf5', [
        ('a', 'x', 0, 6, None, True), ('b', 'x', 4, 8, None, True),
        ('c', 'x', -1, -1, [9, 5], True)], x=numpy.arange(10))
    dataset = H5PYDataset(path, ('a', 'b', 'c'),
                          load_in_memory=load_in_memory)
    assert dataset.num_examples == 12
    data, = dataset.get_data(request=slice(0, 12))
    assert data.tolist() == [0, 1, 2, 3, 4, 5, 4, 5, 6, 7, 5, 9]
    dataset.close(None)


def test_unequal_lengths_within_a_split_raise_valueerror(tmp_path):
    """Sources of unequal length in a split are refused, even if the sums
    agree."""
    path = write(tmp_path / 'x.hdf5', [
        ('train', 'f', 0, 4, None, True), ('train', 't', 0, 6, None, True),
        ('test', 'f', 4, 10, None, True), ('test', 't', 6, 10, None, True),
        ], f=numpy.arange(10), t=numpy.arange(10))
    with pytest.raises(ValueError, match="split 'train'.*'f' has 4, 't' has"):
        H5PYDataset(path, ('train', 'test'))
    with H5PYDataset(path, ('train', 'test'), sources=('t',)) as dataset:
        assert dataset.num_examples == 10


def test_subsets_of_unequal_length_from_an_override_raise_valueerror(path):
    """A get_subsets that gives other lengths is refused as well."""
    class Uneven(H5PYDataset):
        @staticmethod
        def get_subsets(h5file, which_sets, sources):
            return [Subset(slice(0, 2), 100), Subset(slice(0, 3), 100)]
    with pytest.raises(ValueError, match="'features' has 2, 'targets' has 3"):
        Uneven(path, ('train',))


# --- subset ---------------------------------------------------------------

@IN_MEMORY
@pytest.mark.parametrize('subset, rows', [
    (slice(10, 20), range(10, 20)), (slice(60, None), range(60, 80)),
    ([3, 1, 4, 1], [1, 3, 4]), ((5, 6, 7), [5, 6, 7]),
    (numpy.array([70, 2], dtype='uint8'), [2, 70]),
    (range(0, 80, 30), [0, 30, 60])])
def test_subset_picks_examples_sorted_and_unique(
        path, load_in_memory, subset, rows):
    """It is a slice, or a list that is sorted and unique."""
    dataset = H5PYDataset(path, ('train',), subset=subset,
                          load_in_memory=load_in_memory)
    assert dataset.num_examples == len(rows)
    targets = dataset.get_data(request=slice(None))[1]
    assert_array_equal(numpy.array(rows)[:, None] * 10, targets)
    assert dataset.subsets[1].get_list_representation() == list(rows)
    dataset.close(None)


def test_subset_counts_positions_of_the_concatenated_splits(path):
    """A subset of ('test', 'train') begins in the test set."""
    with H5PYDataset(path, ('test', 'train'), subset=[0, 19, 20]) as dataset:
        targets = dataset.get_data(request=slice(None))[1]
    assert targets.ravel().tolist() == [800, 990, 0]


@pytest.mark.parametrize('empty', [
    [], (), numpy.array([], dtype=int), slice(0, 0), slice(7, 7),
    slice(None, 0)], ids=repr)
def test_subset_empty_raises_valueerror(path, empty):
    """`subset=[]` does not mean everything."""
    with pytest.raises(ValueError, match='subset must name at least one'):
        H5PYDataset(path, ('train',), subset=empty)


@pytest.mark.parametrize('subset, text', [
    (slice(80, 90), 'within 80 examples'), (slice(0, 81), 'within 80'),
    ([80], 'element 0 is 80'), ([-1], 'element 0 is -1'),
    (slice(0, 80, 2), 'step of 1'), ([0.5], 'must hold integer'),
    ([True, False], 'flatnonzero'), (numpy.ones(80, bool), 'flatnonzero'),
    (5, 'subset must be a slice'), ('train', 'subset must be a slice')])
def test_subset_wrong_raises_valueerror(path, subset, text):
    """A subset that does not lie within the splits is refused."""
    with pytest.raises(ValueError, match=text):
        H5PYDataset(path, ('train',), subset=subset)


# --- requests -------------------------------------------------------------

REQUESTS = [
    [0], [5, 3, 9], [1, 1, 2], [7, 6, 5, 4], list(range(10)), [0, 39, 79],
    numpy.array([4, 2, 2]), numpy.array([79, 0], dtype='uint8'),
    numpy.array([3, 1], dtype='>i4'), range(4, 8)]


@IN_MEMORY
@pytest.mark.parametrize('sort_indices', [True, False])
@pytest.mark.parametrize('request_', REQUESTS, ids=repr)
def test_list_requests_give_rows_in_order(
        path, load_in_memory, sort_indices, request_):
    """Duplicates, any order and index arrays of any type give the
    rows asked for, with sort_indices or without."""
    dataset = H5PYDataset(path, ('train',), load_in_memory=load_in_memory,
                          sort_indices=sort_indices)
    features, targets = dataset.get_data(None, request_)
    rows = numpy.array(request_, dtype=int)
    assert_array_equal(numpy.stack([2 * rows, 2 * rows + 1], 1), features)
    assert_array_equal(10 * rows[:, None], targets)
    dataset.close(None)


@IN_MEMORY
@pytest.mark.parametrize('request_', [
    slice(0, 10), slice(None), slice(70, None), slice(3, 20, 4),
    slice(numpy.int8(2), numpy.int64(4))], ids=repr)
def test_slice_requests_give_rows(path, load_in_memory, request_):
    """Slices may have any positive step and any integer type."""
    dataset = H5PYDataset(path, ('train',), load_in_memory=load_in_memory)
    targets = dataset.get_data(None, request_)[1]
    assert_array_equal(10 * numpy.arange(80)[request_][:, None], targets)
    dataset.close(None)


@IN_MEMORY
@pytest.mark.parametrize('index', [0, 79, numpy.uint8(5), numpy.int64(7)])
def test_integer_request_gives_one_example(path, load_in_memory, index):
    """An integer of any type gives the example without a batch axis."""
    dataset = H5PYDataset(path, ('train',), load_in_memory=load_in_memory)
    features, targets = dataset.get_data(None, index)
    assert features.tolist() == [2 * int(index), 2 * int(index) + 1]
    assert targets.shape == (1,)
    dataset.close(None)


@IN_MEMORY
@pytest.mark.parametrize('request_, text', [
    ([80], 'there are only 80 examples'), ([-1], 'do not count from the end'),
    ([], 'at least one example'), (numpy.array([], int), 'at least one'),
    ([True, False], 'flatnonzero'), (numpy.ones(80, bool), 'flatnonzero'),
    ([1.0, 2.0], 'integer indices'), (numpy.array([1.0]), 'integers'),
    (numpy.zeros((2, 2), int), 'one-dimensional'), (80, 'only 80 examples'),
    (-1, 'from the end'), (True, 'boolean'), (1.0, 'integer'),
    (slice(80, 90), 'only 80 examples'), (slice(0, 81), 'only 80'),
    (slice(5, 5), 'no example'), (slice(-5, None), 'negative'),
    (slice(0, 10, -1), 'negative'), ('0', 'integer'),
    (slice(0.5, 2), 'expected start to be an integer'),
    (slice('a', None), 'expected start to be an integer'),
    (slice(0, True), 'expected stop to be an integer')],
    ids=lambda value: repr(value)[:20])
def test_requests_out_of_range_or_of_another_kind_raise_valueerror(
        path, load_in_memory, request_, text):
    """An invalid request is refused, and the error says what to do."""
    dataset = H5PYDataset(path, ('train',), load_in_memory=load_in_memory)
    with pytest.raises(ValueError, match=text):
        dataset.get_data(None, request_)
    dataset.close(None)


def test_get_data_hooks_refuse_impossible_requests(path):
    """The two private methods raise ValueError for no request at all."""
    on_disk = H5PYDataset(path, ('train',))
    in_memory = H5PYDataset(path, ('train',), load_in_memory=True)
    for state, request in [(None, None), (True, None), (True, [1])]:
        with pytest.raises(ValueError, match='needs a request and has no'):
            in_memory._in_memory_get_data(state, request)
    for state, request in [(None, None), (True, None), (None, {})]:
        with pytest.raises(ValueError, match='request must'):
            on_disk._out_of_memory_get_data(state, request)


# --- files and handles ----------------------------------------------------

def test_get_data_works_without_open_and_close_twice_is_harmless(path):
    """Closing a stream twice neither breaks nor closes another one."""
    first = DataStream(H5PYDataset(path, ('train',)),
                       iteration_scheme=SequentialScheme(80, 40))
    second = DataStream(H5PYDataset(path, ('train',)),
                        iteration_scheme=SequentialScheme(80, 40))
    epoch = second.get_epoch_iterator()
    next(epoch)
    first.close()
    first.close()
    assert second.dataset._file_handle
    assert len(list(epoch)) == 1
    assert len(list(first.get_epoch_iterator())) == 2
    first.close()
    second.close()
    with h5py.File(path, 'a') as file:
        assert 'features' in file


def test_file_is_free_when_its_stream_is_closed_and_an_epoch_dropped(path):
    """The file can be written at once, without the garbage collector."""
    stream = DataStream(H5PYDataset(path, ('train',)),
                        iteration_scheme=SequentialScheme(80, 20))
    gc.disable()
    try:
        epoch = stream.get_epoch_iterator()
        next(epoch), next(epoch)
        stream.close()
        del epoch, stream
        with h5py.File(path, 'a') as file:
            assert 'features' in file
    finally:
        gc.enable()


def test_handle_is_kept_from_one_epoch_to_the_next(path):
    """The file stays open between epochs."""
    stream = DataStream(H5PYDataset(path, ('train',)),
                        iteration_scheme=ShuffledScheme(80, 40))
    list(stream.get_epoch_iterator())
    handle = stream.dataset._file_handle
    for _ in range(3):
        assert len(list(stream.get_epoch_iterator())) == 2
        assert stream.dataset._file_handle is handle
    stream.reset()
    assert stream.dataset._file_handle is handle
    stream.close()


def test_file_handle_raises_oserror_if_nothing_is_open(path):
    """A data set opens its file when it is read, not before."""
    dataset = H5PYDataset(path, ('train',))
    with pytest.raises(OSError, match='is not open'):
        dataset._file_handle  # noqa: B018
    dataset.open()
    assert dataset._file_handle['features'].shape == (100, 2)
    dataset.close(None)
    with pytest.raises(OSError, match='is not open'):
        dataset._file_handle  # noqa: B018


def test_file_can_be_written_again_after_the_data_set_is_gone(path):
    """A data set that is no longer referred to holds no file open."""
    dataset = H5PYDataset(path, ('train',))
    dataset.get_data(None, [0])
    del dataset
    with h5py.File(path, 'w') as file:
        file['new'] = 1


def test_external_handle_is_used_and_left_open(path):
    """A handle the user opened serves the data set and stays open."""
    with h5py.File(path, 'r') as handle:
        dataset = H5PYDataset(handle, ('train',))
        assert dataset._external_file_handle is handle
        assert dataset._file_handle is handle
        stream = DataStream(dataset, iteration_scheme=SequentialScheme(80, 8))
        assert len(list(stream.get_epoch_iterator())) == 10
        stream.close()
        assert handle
        assert dataset.get_data(None, 1)[1] == 10
    assert dataset.get_data(None, 2)[1] == 20, 'reopened by path'
    dataset.close(None)


def test_external_handle_may_be_open_for_writing(tmp_path):
    """The file of a handle that is still being written to is read."""
    with h5py.File(tmp_path / 'x.hdf5', 'w') as file:
        file['x'] = numpy.arange(10)
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 10)}})
        dataset = H5PYDataset(file, ('train',))
        file['x'][3] = 33
        assert dataset.get_data(None, [3, 4])[0].tolist() == [33, 4]


def test_driver_core_reads_the_file(path):
    """The `driver` argument reaches h5py."""
    with H5PYDataset(path, ('train',), driver='core') as dataset:
        assert dataset.get_data(None, [1])[1].tolist() == [[10]]
        assert dataset._file_handle.driver == 'core'


def test_private_open_and_close_may_be_called_by_subclasses(path):
    """`_out_of_memory_open` and `_out_of_memory_close` bracket a use of
    `_file_handle`."""
    dataset = H5PYDataset(path, ('train',))
    assert dataset._out_of_memory_open() is None
    assert dataset._file_handle['targets'][1] == 10
    dataset._out_of_memory_close()
    dataset._out_of_memory_close()


# --- ownership and types --------------------------------------------------

@IN_MEMORY
@pytest.mark.parametrize('request_', [3, slice(2, 5), [4, 2], [4, 4],
                                      numpy.arange(3)], ids=repr)
def test_data_are_the_users_own(path, load_in_memory, request_):
    """Overwriting what came changes neither the data set nor the file
    nor what comes next."""
    dataset = H5PYDataset(path, ('train',), load_in_memory=load_in_memory)
    with open(path, 'rb') as file:
        before = file.read()
    expected = [data.copy() for data in dataset.get_data(None, request_)]
    for data in dataset.get_data(None, request_):
        assert data.flags.writeable
        data[...] = -1
    for data, wanted in zip(dataset.get_data(None, request_), expected,
                            strict=True):
        assert_array_equal(wanted, data)
    dataset.close(None)
    with open(path, 'rb') as file:
        assert before == file.read()


@IN_MEMORY
@pytest.mark.parametrize('dtype', ['>i2', '>f8', '<f4', 'bool', 'S3',
                                   [('a', '>i4'), ('b', '<f8')]], ids=repr)
def test_data_come_in_native_byte_order(tmp_path, load_in_memory, dtype):
    """Arrays are in native order, whatever the byte order of the file."""
    values = numpy.arange(12).reshape(6, 2).astype(dtype)
    path = write(tmp_path / 'x.hdf5', [('train', 'x', 0, 6, None, True)],
                 x=values)
    dataset = H5PYDataset(path, ('train',), load_in_memory=load_in_memory)
    for request in (2, slice(1, 3), [3, 1, 1], [0, 5]):
        data, = dataset.get_data(None, request)
        assert data.dtype.isnative
        assert_array_equal(values[request], data)
    dataset.close(None)


@IN_MEMORY
def test_strings_come_as_h5py_gives_them(tmp_path, load_in_memory):
    """Strings of variable length are bytes in an array of objects."""
    path = write(tmp_path / 'x.hdf5', [('train', 'x', 0, 3, None, True)],
                 x=['a', 'bcd', ''])
    dataset = H5PYDataset(path, ('train',), load_in_memory=load_in_memory)
    assert dataset.get_data(None, [2, 1])[0].tolist() == [b'', b'bcd']
    assert dataset.get_data(None, 1)[0] == b'bcd'
    assert dataset.vlen_sources == ()
    dataset.close(None)


# --- sources of variable shape --------------------------------------------

@pytest.fixture
def ragged(tmp_path):
    """Write a file of images of different shapes, and the images."""
    rng = numpy.random.RandomState(3)
    images = [rng.randint(0, 255, (3, height, height + 1)).astype('uint8')
              for height in (2, 1, 4, 4, 3, 2)]
    path = tmp_path / 'ragged.hdf5'
    with h5py.File(path, 'w') as file:
        write_ragged(file, 'images', images,
                     labels=('channel', 'height', 'width'))
        file['targets'] = numpy.arange(6)[:, None]
        label(file['targets'], 'batch', 'index')
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'images': (0, 6), 'targets': (0, 6)}})
    return str(path), images


@IN_MEMORY
def test_ragged_source_has_labels_and_shapes(ragged, load_in_memory):
    """The scales 'shapes' and 'shape_labels' are found."""
    path, _ = ragged
    dataset = H5PYDataset(path, ('train',), load_in_memory=load_in_memory)
    assert dataset.vlen_sources == ('images',)
    assert dataset.axis_labels['images'] == (
        'batch', 'channel', 'height', 'width')
    assert dataset.provides_sources == ('images', 'targets')
    dataset.close(None)


@IN_MEMORY
@pytest.mark.parametrize('request_', [[0, 1, 2], [4, 0, 5], [3, 3, 1, 3],
                                      slice(1, 5), slice(None), [2, 3], [1]],
                         ids=repr)
def test_ragged_batch_is_an_array_of_shaped_arrays(
        ragged, load_in_memory, request_):
    """Each request gives a 1-d object array, also where lengths agree;
    repeated examples share no memory."""
    path, images = ragged
    dataset = H5PYDataset(path, ('train',), load_in_memory=load_in_memory)
    expected = (images[request_] if isinstance(request_, slice)
                else [images[row] for row in request_])
    for _ in range(2):
        batch, _ = dataset.get_data(None, request_)
        assert batch.dtype == object
        assert batch.shape == (len(expected),)
        assert batch.dtype.metadata is None
        for example, wanted in zip(batch, expected, strict=True):
            assert_array_equal(wanted, example)
            assert example.dtype == numpy.uint8
        for example in batch:
            example[...] = 7
            assert example.flags.writeable
    batch, _ = dataset.get_data(None, request_)
    batch[0][...] = 9
    for example, wanted in list(zip(batch, expected, strict=True))[1:]:
        assert_array_equal(wanted, example)
    dataset.close(None)


@IN_MEMORY
def test_ragged_integer_request_gives_one_shaped_array(
        ragged, load_in_memory):
    """One example is one array, not an array of objects."""
    path, images = ragged
    dataset = H5PYDataset(path, ('train',), load_in_memory=load_in_memory)
    for _ in range(2):
        image, target = dataset.get_data(None, 4)
        assert_array_equal(images[4], image)
        assert target == [4]
        image[...] = 0
    dataset.close(None)


@IN_MEMORY
@pytest.mark.parametrize('dtype', ['>i2', '<i2', '>f8'])
def test_ragged_source_of_another_byte_order_keeps_its_values(
        tmp_path, load_in_memory, dtype):
    """h5py forgets the byte order of elements of variable length; the
    values are right all the same."""
    examples = [numpy.arange(n * 2.0).reshape(n, 2) for n in (1, 3, 2)]
    path = tmp_path / 'x.hdf5'
    with h5py.File(path, 'w') as file:
        write_ragged(file, 'x', examples, dtype)
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 3)}})
    dataset = H5PYDataset(str(path), ('train',),
                          load_in_memory=load_in_memory)
    batch, = dataset.get_data(None, [1, 2])
    assert_array_equal(examples[1], batch[0])
    assert_array_equal(examples[2], batch[1])
    example, = dataset.get_data(None, 1)
    assert_array_equal(examples[1], example)
    assert example.dtype == numpy.dtype(dtype).newbyteorder('=')
    assert dataset.axis_labels == {'x': ('batch', '', '')}
    dataset.close(None)


def test_ragged_shapes_that_do_not_fit_raise_valueerror(ragged):
    """A damaged shape is told with its source and file."""
    path, _ = ragged
    with h5py.File(path, 'a') as file:
        file['images_shapes'][2] = [1, 1, 1]
    with H5PYDataset(path, ('train',)) as dataset:
        for request in (2, [1, 2]):
            with pytest.raises(ValueError, match="shapes of source 'images'"):
                dataset.get_data(None, request)


# --- what subclasses override ---------------------------------------------

class Opening(H5PYDataset):
    """Opens and closes the file in each hook, as users of 0.2.0 do."""

    def _parse_dataset_info(self):
        self._out_of_memory_open()
        handle = self._file_handle
        self.provides_sources = ('features', 'targets')
        self.vlen_sources = self.get_vlen_sources(handle)
        self.default_axis_labels = self.get_axis_labels(handle)
        self._out_of_memory_close()

    def load(self):
        """Read the file, and close it."""
        self._out_of_memory_open()
        super().load()
        self._out_of_memory_close()


@pytest.mark.parametrize('in_memory', [False, True])
def test_subclass_that_closes_the_file_in_its_hooks_is_made(path, in_memory):
    """The constructor does not rely on what a hook leaves open."""
    dataset = Opening(path, ('train',), load_in_memory=in_memory)
    plain = H5PYDataset(path, ('train',), load_in_memory=in_memory)
    assert plain.known_types() == dataset.known_types()
    for ours, expected in zip(
            dataset.get_data(dataset.open(), slice(0, 3)),
            plain.get_data(plain.open(), slice(0, 3)), strict=True):
        assert expected.tolist() == ours.tolist()
    dataset.close(None)
    plain.close(None)


def test_hooks_are_called_through_self(path):
    """A subclass may override each of the hooks."""
    called = []

    class Watched(H5PYDataset):
        def _parse_dataset_info(self):
            called.append('_parse_dataset_info')
            super()._parse_dataset_info()

        def get_subsets(self, h5file, which_sets, sources):
            called.append('get_subsets')
            return [Subset.subset_of(subset, slice(0, 5)) for subset in
                    H5PYDataset.get_subsets(h5file, which_sets, sources)]

        def get_vlen_sources(self, h5file):
            called.append('get_vlen_sources')
            return H5PYDataset.get_vlen_sources(h5file)

        def get_axis_labels(self, h5file):
            called.append('get_axis_labels')
            return {'features': ('batch', 'x'), 'targets': None}

        def load(self):
            called.append('load')
            super().load()
            if self.load_in_memory:
                first, *rest = self.data_sources
                self.data_sources = first + 1000, *rest

        def _in_memory_get_data(self, state=None, request=None):
            called.append('_in_memory_get_data')
            data, _ = super()._in_memory_get_data(state, request)
            return data, None

        def _out_of_memory_get_data(self, state=None, request=None):
            called.append('_out_of_memory_get_data')
            return super()._out_of_memory_get_data(state, request)

    on_disk = Watched(path, ('train',))
    assert on_disk.num_examples == 5
    assert on_disk.axis_labels == {'features': ('batch', 'x'),
                                   'targets': None}
    assert on_disk.get_data(None, [1])[0].tolist() == [[2, 3]]
    on_disk.close(None)
    in_memory = Watched(path, ('train',), load_in_memory=True)
    assert in_memory.get_data(None, [1])[0].tolist() == [[1002, 1003]]
    assert in_memory.in_memory_subset.num_examples == 5
    assert set(called) == {
        '_parse_dataset_info', 'get_subsets', 'get_vlen_sources',
        'get_axis_labels', 'load', '_in_memory_get_data',
        '_out_of_memory_get_data'}


def test_data_sources_of_lists_are_read_row_by_row(path):
    """A subclass may keep something else than arrays in memory."""
    class Listed(H5PYDataset):
        def load(self):
            super().load()
            if self.load_in_memory:
                self.data_sources = [
                    data.tolist() for data in self.data_sources]

    dataset = Listed(path, ('train',), load_in_memory=True)
    assert dataset.get_data(None, [2, 1]) == ([[4, 5], [2, 3]], [[20], [10]])


def test_source_may_be_a_group_for_a_subclass(tmp_path):
    """A group is named as a source; only the base's reading refuses it."""
    path = tmp_path / 'x.hdf5'
    with h5py.File(path, 'w') as file:
        file['rows/data'] = numpy.arange(12).reshape(6, 2)
        file['targets'] = numpy.arange(6)
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'rows': (0, 6), 'targets': (0, 6)}})

    class Grouped(H5PYDataset):
        def _out_of_memory_get_data(self, state=None, request=None):
            return [self._file_handle['rows/data'][request],
                    self._file_handle['targets'][request]], None

    dataset = Grouped(path, ('train',))
    assert dataset.sources == ('rows', 'targets')
    assert dataset.axis_labels == {'rows': None, 'targets': ('',)}
    assert dataset.num_examples == 6
    dataset.open()
    assert dataset.get_data(None, slice(1, 2))[0].tolist() == [[2, 3]]
    dataset.close(None)
    with H5PYDataset(path, ('train',)) as plain, pytest.raises(
            ValueError, match="source 'rows' of '.*' is an HDF5 group"):
        plain.get_data(None, [0])


class Odd(H5PYDataset):
    """The examples with odd numbers."""

    def load(self):
        self.subsets = [Subset(range(1, 80, 2), 100)] * 2
        super().load()


def test_subsets_may_be_assigned_by_a_subclass(path):
    """The method `load`, which the constructor calls, may assign them too."""
    for load_in_memory in False, True:
        dataset = Odd(path, ('train',), load_in_memory=load_in_memory)
        assert 40 == dataset.num_examples
        assert list(range(40)) == list(
            dataset.example_iteration_scheme.get_request_iterator())
        assert [[30], [790]] == dataset.get_data(None, [1, 39])[1].tolist()
        again = pickle.loads(pickle.dumps(dataset))
        assert list(range(1, 80, 2)) == again.subsets[0].list_or_slice
        assert [[30], [790]] == again.get_data(None, [1, 39])[1].tolist()
        again.close(None)
        dataset.close(None)


def test_no_subset_is_made_unless_one_is_asked_for(path, monkeypatch):
    """Rows go from the file to the reader as they are."""
    made = []
    make = Subset.__init__

    def count(subset, *args):
        made.append(args)
        make(subset, *args)

    monkeypatch.setattr(Subset, '__init__', count)
    with H5PYDataset(path, ('train',)) as dataset:
        dataset.get_data(None, [0, 1])
        assert not made
        assert dataset.subsets is dataset.subsets
        assert len(made) == 2


@IN_MEMORY
def test_assigned_subsets_are_what_is_read_from_then_on(path, load_in_memory):
    """Examples keep their order, in memory or not."""
    with H5PYDataset(path, ('train',), load_in_memory=load_in_memory
                     ) as dataset:
        assert [[0]] == dataset.get_data(None, [0])[1].tolist()
        order = numpy.array([7, 3, 5])
        dataset.subsets = [OrderedSubset(order, 100)] * 2
        assert 3 == dataset.num_examples
        assert [[70], [50]] == dataset.get_data(None, [0, 2])[1].tolist()
        with pytest.raises(ValueError, match='different lengths'):
            dataset.subsets = [Subset([1], 100), Subset([1, 2], 100)]
        assert 3 == dataset.num_examples


def test_attributes_that_do_not_apply_are_none(path):
    """Tuples and no handle are in memory; on disk, nothing is in memory."""
    on_disk = H5PYDataset(path, ('train',))
    assert on_disk.data_sources is on_disk.source_shapes is None
    assert on_disk.in_memory_subset is on_disk.external_file_handle is None
    in_memory = H5PYDataset(path, ('train',), load_in_memory=True)
    assert type(in_memory.data_sources) is tuple
    assert (None, None) == in_memory.source_shapes
    assert 80 == in_memory.in_memory_subset.num_examples
    with h5py.File(path, 'r') as handle:
        given = H5PYDataset(handle, ('train',))
        assert given.external_file_handle is handle
        again = pickle.loads(pickle.dumps(given))
        assert again.external_file_handle is None


def test_pickled_subset_that_is_not_ascending_keeps_its_order(tmp_path):
    """Each member of `subsets` by itself, too."""
    path = write(tmp_path / 'x.hdf5', [
        ('train', 'a', 0, 0, [4, 0, 2], True),
        ('train', 'b', 0, 3, None, True)],
        a=numpy.arange(5), b=numpy.arange(5))
    dataset = H5PYDataset(path, ('train',))
    subset = pickle.loads(pickle.dumps(dataset.subsets[0]))
    assert [4, 0, 2] == subset.order.tolist()
    assert [0, 2, 4] == subset.list_or_slice
    dataset.subsets = [subset, dataset.subsets[1]]
    data = dataset.get_data(request=slice(0, 3))
    assert [[4, 0, 2], [0, 1, 2]] == [part.tolist() for part in data]


@IN_MEMORY
def test_source_named_twice_gives_the_same_data_twice(
        path, load_in_memory):
    """The rows are not doubled, and the two arrays share no memory."""
    names = ('targets', 'features', 'targets')
    with H5PYDataset(path, ('test', 'train'), sources=names,
                     load_in_memory=load_in_memory) as dataset:
        assert (100, names) == (dataset.num_examples, dataset.sources)
        for request in [5, 20], slice(5, 7), 5:
            first, _, third = dataset.get_data(None, request)
            assert_array_equal(first, third)
            assert not numpy.shares_memory(first, third)
    with h5py.File(path) as file:
        subsets = H5PYDataset.get_subsets(file, ('train',), ('targets',) * 2)
    assert [80, 80] == [subset.num_examples for subset in subsets]


# --- bad input ------------------------------------------------------------

@pytest.mark.parametrize('call, text', [
    (lambda file: H5PYDataset.get_provided_sources(file), 'split'),
    (lambda file: H5PYDataset.get_provided_sources(file, ('train',)),
     'name of one split'),
    (lambda file: H5PYDataset.get_subsets(file, ('train',)), 'sources'),
    (lambda file: H5PYDataset.get_all_splits(file, 1), 'argument'),
    (lambda file: H5PYDataset.get_vlen_sources(file, 1), 'argument'),
    (lambda file: H5PYDataset.get_axis_labels(file, 1), 'argument'),
    (lambda file: H5PYDataset.get_all_splits(file.filename), 'h5py.File'),
    (lambda file: H5PYDataset.get_vlen_sources(None), 'h5py.File'),
    (lambda file: H5PYDataset.get_axis_labels(1), 'h5py.File')])
def test_wrong_call_of_a_static_method_raises_typeerror(path, call, text):
    """The file is not to blame."""
    with h5py.File(path) as file, pytest.raises(TypeError, match=text):
        call(file)


def test_get_subsets_unknown_names_raise_valueerror(path):
    """Splits and sources are checked, and a string instead of a tuple."""
    with h5py.File(path) as file:
        for splits, sources, text in [
                (('trian',), ('targets',), "no split 'trian'"),
                (('train',), ('target',), "no source 'target'"),
                ('train', ('targets',), r"write \('train',\)"),
                (('train',), 'targets', r"write \('targets',\)"),
                (5, ('targets',), 'splits must be a tuple')]:
            with pytest.raises(ValueError, match=text):
                H5PYDataset.get_subsets(file, splits, sources)


def test_which_sets_string_raises_valueerror(path):
    """A string is not taken for a tuple of letters."""
    with pytest.raises(ValueError, match=r"'train': write \('train',\)"):
        H5PYDataset(path, 'train')
    with pytest.raises(ValueError, match='at least one split'):
        H5PYDataset(path, ())


def test_unknown_names_raise_valueerror_with_the_nearest(path):
    """An unknown split or source is answered with the nearest name."""
    with pytest.raises(ValueError, match="'trian'.*did you mean 'train'"):
        H5PYDataset(path, ('trian',))
    with pytest.raises(ValueError, match="'feature'.*'features'"):
        H5PYDataset(path, ('train',), sources=('feature',))
    with pytest.raises(ValueError, match='tuple'):
        H5PYDataset(path, ('train',), sources='features')
    with h5py.File(path) as file, pytest.raises(
            ValueError, match="no source 'target'.*did you mean 'targets'"):
        H5PYDataset.get_subsets(file, ('train',), ('target',))


def test_missing_file_raises_filenotfounderror_with_its_path(tmp_path):
    """The text says where the file was looked for and what to do."""
    with pytest.raises(FileNotFoundError,
                       match=r"no file '/.*none\.hdf5'; .*find_in_data_path"):
        H5PYDataset(tmp_path / 'none.hdf5', ('train',))


@pytest.mark.parametrize('content, text', [
    (b'\n<!DOCTYPE html><html>404</html>', 'HTML page.*download it again'),
    (b'5.1,3.5,1.4,0.2,Iris-setosa\n' * 40, 'not an HDF5 file.*fuel-convert'),
    (b'', 'not an HDF5 file')])
def test_file_of_another_kind_raises_oserror(tmp_path, content, text):
    """A page or raw data in the place of HDF5 are called by their name."""
    path = tmp_path / 'x.hdf5'
    path.write_bytes(content)
    with pytest.raises(OSError, match=r"cannot read '.*x\.hdf5'.*" + text):
        H5PYDataset(path, ('train',))


def test_truncated_file_raises_oserror(path):
    """A file cut short is told as such."""
    with open(path, 'r+b') as file:
        file.truncate(2000)
    with pytest.raises(OSError, match=r'pairs\.hdf5.*is truncated'):
        H5PYDataset(path, ('train',))


def test_damaged_chunk_raises_oserror_with_source_and_file(tmp_path):
    """Damage that shows only while reading names the source."""
    path = tmp_path / 'x.hdf5'
    with h5py.File(path, 'w') as file:
        file.create_dataset('x', data=numpy.arange(1000), chunks=(100,),
                            compression='gzip')
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 1000)}})
        offset = file['x'].id.get_chunk_info(3).byte_offset
    with open(path, 'r+b') as file:
        file.seek(offset)
        file.write(b'\xff' * 20)
    with H5PYDataset(path, ('train',)) as dataset:
        assert dataset.get_data(None, [5])[0] == 5
        with pytest.raises(
                OSError,
                match=r"x\.hdf5, source 'x', row 350: .*damaged"):
            dataset.get_data(None, [350])


def test_file_without_splits_raises_valueerror(tmp_path):
    """The attribute `split` is missing or of another kind; the error says what
    to do."""
    path = tmp_path / 'x.hdf5'
    with h5py.File(path, 'w') as file:
        file['x'] = numpy.arange(3)
    with pytest.raises(ValueError, match="no attribute 'split'.*create_spl"):
        H5PYDataset(path, ('train',))
    with h5py.File(path, 'a') as file:
        file.attrs['split'] = 'train'
    with pytest.raises(ValueError, match="no field 'split'"):
        H5PYDataset(path, ('train',))


@pytest.mark.parametrize('row, text', [
    (('train', 'x', 0, 11, None, True), 'rows 0 to 11, but.* has 10 rows'),
    (('train', 'x', 5, 3, None, True), 'rows 5 to 3'),
    (('train', 'x', -1, 3, None, True), 'rows -1 to 3'),
    (('train', 'x', 0, 0, [1, 10], True), 'hold 10, but.*rows 0 to 9'),
    (('train', 'x', 0, 0, [-1], True), 'hold -1'),
    (('train', 'x', 0, 0, [[1]], True), r'one-dimensional.*shape \(1, 1\)'),
    (('train', 'x', 0, 0, [0.5], True), 'integers, not.*float64'),
    (('train', 'y', 0, 3, None, True), "should have a data set 'y'"),
    (('train', 'scalar', 0, 1, None, True), 'one row for each example')])
def test_split_beyond_its_source_raises_valueerror(tmp_path, row, text):
    """A split attribute that does not fit its sources is refused, with the
    split, the source and the numbers."""
    path = write(tmp_path / 'x.hdf5', [row], x=numpy.arange(10), scalar=3)
    with pytest.raises(ValueError, match=text):
        H5PYDataset(path, ('train',))


def test_file_or_path_of_another_kind_raises_typeerror():
    """Something that is neither a path nor a file is refused."""
    with pytest.raises(TypeError, match='a path or an open h5py.File, got 3'):
        H5PYDataset(3, ('train',))


@IN_MEMORY
def test_empty_split_has_no_examples(tmp_path, load_in_memory):
    """A split of no rows, at the very end too, is a data set of length
    0."""
    path = write(tmp_path / 'x.hdf5', [
        ('train', 'x', 0, 10, None, True), ('test', 'x', 10, 10, None, True)],
        x=numpy.arange(10))
    dataset = H5PYDataset(path, ('test',), load_in_memory=load_in_memory)
    assert dataset.num_examples == 0
    with pytest.raises(ValueError, match='request'):
        dataset.get_data(None, 0)
    both = H5PYDataset(path, ('test', 'train'))
    assert both.num_examples == 10
    dataset.close(None)


@pytest.mark.parametrize('splits, text', [
    ({'t': {'a': 3}}, r"source 'a' in split 't', got 3"),
    ({'t': {'a': (5, 1)}}, r'stop no earlier than it starts, got \(5, 1\)'),
    ({'t': {'a': (-1, 1)}}, r'must start at 0 or later .*got \(-1, 1\)'),
    ({}, r'must map split names to sources, .*got \{\}')])
def test_create_split_array_nonsense_is_refused(splits, text):
    """The error says what was given and what is expected."""
    with pytest.raises(ValueError, match=text):
        H5PYDataset.create_split_array(splits)


def test_which_sets_none_is_told_what_to_give(tmp_path):
    """Its default would be a guess."""
    path = write_pairs(tmp_path / 'a.hdf5')
    with pytest.raises(ValueError, match='which_sets must be a tuple of '
                       'split names, got None.*get_all_splits'):
        H5PYDataset(path, None)


def test_closed_handle_as_file_is_refused(tmp_path):
    """A closed handle has not even a path."""
    with h5py.File(write_pairs(tmp_path / 'a.hdf5'), 'r') as file:
        pass
    with pytest.raises(ValueError, match='Closed HDF5 file.*give the path'):
        H5PYDataset(file, ('train',))


@pytest.mark.parametrize('given, error, text', [
    (-1, ValueError, 'must not be negative, got -1'),
    (1.5, TypeError, r'an integer, got 1.5 \(float'),
    (True, TypeError, 'an integer, got True'),
    ('1GB', TypeError, "an integer, got '1GB'")])
def test_cache_bytes_is_checked_at_construction(path, given, error, text):
    """The error is not raised by the first batch."""
    with pytest.raises(error, match='cache_bytes .*' + text):
        H5PYDataset(path, ('train',), cache_bytes=given)


@pytest.fixture
def plain(tmp_path):
    """Return a file that does not name splits."""
    path = tmp_path / 'plain.hdf5'
    with h5py.File(path, 'w') as file:
        file['x'], file['y'] = numpy.arange(20).reshape(10, 2), range(10)
        file['y'].dims[0].label = 'batch'
    return path


def test_splits_of_a_plain_file_are_given(plain):
    """Ranges and lists are splits; without `which_sets` all rows are used."""
    splits = {'train': (0, 7), 'test': [9, 7, 7]}
    assert 10 == H5PYDataset(plain, splits=splits).num_examples
    test_set = H5PYDataset(plain, ('test', 'train'), splits=splits)
    assert ('x', 'y') == test_set.sources
    assert {'x': ('', ''), 'y': ('batch',)} == test_set.axis_labels
    for dataset in test_set, pickle.loads(pickle.dumps(test_set)):
        assert [9, 7, 7, 0] == dataset.get_data(
            None, [0, 1, 2, 3])[1].tolist()
    loaded = H5PYDataset(plain, ('train',), splits=splits, subset=[1, 5],
                         load_in_memory=True, sources=('y',))
    assert [1, 5] == loaded.get_data(None, slice(0, 2))[0].tolist()


def test_ragged_source_of_a_plain_file_has_its_shapes(tmp_path):
    """The scale that holds the shapes is not a source."""
    path = tmp_path / 'ragged.hdf5'
    with h5py.File(path, 'w') as file:
        images = file.create_dataset('images', (2,), h5py.vlen_dtype('u1'))
        images[0], images[1] = numpy.arange(6), numpy.arange(4)
        file['shapes'] = [[2, 3], [2, 2]]
        file['shapes'].make_scale('shapes')
        images.dims[0].attach_scale(file['shapes'])
    dataset = H5PYDataset(path, splits={})
    assert ('images',) == dataset.sources == dataset.vlen_sources
    assert [(2, 3), (2, 2)] == [
        image.shape for image in dataset.get_data(None, [0, 1])[0]]


def test_arrays_of_several_lengths_are_chosen_by_sources(plain):
    """Without `sources`, arrays of several lengths are refused."""
    with h5py.File(plain, 'a') as file:
        file['names'] = numpy.arange(3)
    with pytest.raises(ValueError, match="'names' 3; 'x', 'y' 10; choose"):
        H5PYDataset(plain, splits={})
    assert ('y',) == H5PYDataset(
        plain, splits={}, sources=('y',)).sources
    with h5py.File(plain, 'w'):
        pass
    with pytest.raises(ValueError, match='HDF5Dataset reads those of other'):
        H5PYDataset(plain, splits={})


def test_splits_are_refused_where_the_file_names_some(tmp_path):
    """One of the two would be ignored."""
    path = tmp_path / 'own.hdf5'
    with h5py.File(path, 'w') as file:
        file['x'] = numpy.arange(4)
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'valid': {'x': (0, 4)}})
    with pytest.raises(ValueError, match=r"has the attribute 'split'.*leave "
                       r"out splits=, and name some of \('valid',\)"):
        H5PYDataset(path, ('a',), splits={'a': (0, 2)})


@pytest.mark.parametrize(('which_sets', 'text'), [
    (('other',), 'there is no split'), ('train', 'must be a tuple'),
    (('wide',), 'within the 10'), ((), 'at least one')])
def test_wrong_split_of_a_plain_file_is_refused(plain, which_sets, text):
    """Such a split is refused as in every file."""
    with pytest.raises(ValueError, match=text):
        H5PYDataset(plain, which_sets,
                    splits={'train': (0, 7), 'wide': (0, 11)})


def test_state_of_other_given_splits_is_refused(plain):
    """Its position would be that of other rows."""
    def build(stop):
        return DataStream(
            H5PYDataset(plain, ('a',), splits={'a': (stop - 6, stop)}),
            iteration_scheme=SequentialScheme(6, 2))

    stream = build(8)
    next(stream.get_epoch_iterator())
    state = stream.state_dict()
    build(8).load_state_dict(state)
    with pytest.raises(StateMismatchError, match='splits'):
        build(9).load_state_dict(state)
