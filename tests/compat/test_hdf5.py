"""`H5PYDataset`, as programs written for Fuel 0.2.0 use it."""
import pickle

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal
from support.hdf5_files import write_ragged

from fuel.datasets import H5PYDataset
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream
from fuel.utils import Subset

FEATURES = numpy.arange(60, dtype='float32').reshape(20, 3)
TARGETS = numpy.arange(20, dtype='uint8')[:, None]


@pytest.fixture
def path(tmp_path):
    """Write two splits; the second has no targets."""
    path = str(tmp_path / 'data.hdf5')
    with h5py.File(path, 'w') as file:
        file['targets'], file['features'] = TARGETS, FEATURES
        for name, labels in (('features', ('batch', 'feature')),
                             ('targets', ('batch', 'index'))):
            for dim, label in zip(file[name].dims, labels, strict=True):
                dim.label = label
        file.attrs['split'] = H5PYDataset.create_split_array({
            'train': {'features': (0, 15), 'targets': (0, 15)},
            'test': {'features': (15, 20, None, 'no labels')}})
    return path


@pytest.fixture
def ragged(tmp_path):
    """Write images of four shapes."""
    path = str(tmp_path / 'ragged.hdf5')
    images = [numpy.full((1, size, size + 1), size, 'uint8')
              for size in (1, 2, 3, 4)]
    with h5py.File(path, 'w') as file:
        write_ragged(file, 'images', images,
                     labels=('channel', 'height', 'width'))
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'images': (0, 4)}})
    return path, images


each_memory = pytest.mark.parametrize('load_in_memory', [False, True])


def test_hdf5_arguments_are_checked(path):
    """A string is not a tuple of splits; splits and sources must exist."""
    for kwargs in ({'which_sets': 'train'}, {'which_sets': ('valid',)},
                   {'which_sets': ('train',), 'sources': ('labels',)},
                   {'which_sets': ('train',), 'subset': slice(10, 16)},
                   {'which_sets': ('train',), 'subset': []}):
        with pytest.raises(ValueError):
            H5PYDataset(path, **kwargs)


def test_hdf5_sources_are_alphabetical_unless_given(path):
    """The default sources are those that all splits have."""
    assert ('features', 'targets') == H5PYDataset(path, ('train',)).sources
    assert ('targets', 'features') == H5PYDataset(
        path, ('train',), sources=('targets', 'features')).sources
    both = H5PYDataset(path, ('train', 'test'))
    assert (('features',), 20) == (both.provides_sources, both.num_examples)
    assert {'features': ('batch', 'feature'),
            'targets': ('batch', 'index')} == H5PYDataset(
                path, ('train',)).axis_labels


def test_hdf5_splits_concatenate_in_the_order_given(path):
    """Not in that of the file."""
    dataset = H5PYDataset(path, ('test', 'train'))
    assert_array_equal(
        FEATURES[[15, 19, 0]], dataset.get_data(None, [0, 4, 5])[0])


@pytest.mark.parametrize('make_owner', [
    lambda path: H5PYDataset, lambda path: H5PYDataset(path, ('train',))],
    ids=['class', 'data set'])
def test_hdf5_static_methods_read_a_handle(path, make_owner):
    """They are called on open files, of the class or of a data set."""
    owner = make_owner(path)
    with h5py.File(path) as file:
        assert ('train', 'test') == owner.get_all_splits(file)
        assert ('features', 'targets') == owner.get_all_sources(file)
        assert () == tuple(owner.get_vlen_sources(file))
        assert ('features', 'targets') == owner.get_provided_sources(
            file, 'train')
        assert ('features',) == owner.get_provided_sources(
            file, split='test')
        assert () == owner.get_provided_sources(file, 'valid')
        with pytest.raises(ValueError):
            owner.get_subsets(
                file, splits=('valid',), sources=('targets',))
        assert ('batch', 'index') == owner.get_axis_labels(
            file)['targets']
        subset, = owner.get_subsets(file, ('train',), ('targets',))
        assert isinstance(subset, Subset)
        assert 15 == subset.num_examples
    assert 1 == len(owner.create_split_array({'train': {'x': (0, 4)}}))


def test_hdf5_split_array_has_seven_fields_and_all_pairs():
    """Byte strings, scalar bounds, a row for what is not there."""
    array = H5PYDataset.create_split_array({
        'train': {'x': (0, 4), 'y': (0, 4, None)},
        'test': {'x': (4, 6, None, 'why')}})
    assert ('split', 'source', 'start', 'stop', 'indices', 'available',
            'comment') == array.dtype.names
    assert 4 == len(array)
    rows = {(row['split'], row['source']): row for row in array}
    assert {b'.', b'why'} == {
        row['comment'] for row in array if row['available']}
    assert () == rows[b'train', b'x']['start'].shape
    assert (0, 4, True) == tuple(
        rows[b'train', b'y'][['start', 'stop', 'available']])
    assert not rows[b'test', b'y']['available']
    assert not any(row['indices'] for row in array)
    assert array.dtype['split'].kind == array.dtype['comment'].kind == 'S'


def test_hdf5_attributes(path):
    """The data set has the attributes that subclasses and tools read."""
    dataset = H5PYDataset(path, ('train',), subset=[5, 3, 3])
    assert (('train',), [3, 5]) == (
        dataset.which_sets, list(dataset.user_given_subset)) or (
            [5, 3, 3] == list(dataset.user_given_subset))
    assert [[3, 5], [3, 5]] == [
        subset.get_list_representation() for subset in dataset.subsets]
    assert dataset.data_sources is None
    assert dataset.source_shapes is None
    assert () == tuple(dataset.vlen_sources)
    assert dataset.default_axis_labels == dataset.axis_labels
    inside = H5PYDataset(path, ('train',), load_in_memory=True)
    assert 2 == len(inside.data_sources)
    assert (15, 3) == inside.data_sources[0].shape
    assert isinstance(inside.data_sources[0], numpy.ndarray)
    assert 15 == inside.in_memory_subset.num_examples
    assert isinstance(inside.data_sources, tuple)
    assert dataset.in_memory_subset is None
    assert inside.external_file_handle is None
    assert 15 == inside.example_iteration_scheme.num_examples


def test_hdf5_sources_of_different_length_are_a_valueerror(tmp_path):
    """Already in the constructor."""
    path = str(tmp_path / 'uneven.hdf5')
    with h5py.File(path, 'w') as file:
        file['x'], file['y'] = numpy.arange(4), numpy.arange(4)
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 4), 'y': (0, 3)}})
    with pytest.raises(ValueError):
        assert H5PYDataset(path, ('train',)).subsets


@each_memory
@pytest.mark.parametrize('sort_indices', [True, False])
def test_hdf5_answers_requests_without_being_opened(
        path, load_in_memory, sort_indices):
    """An integer, a slice, a list in any order with repetitions."""
    dataset = H5PYDataset(path, ('train',), subset=slice(2, 12),
                          load_in_memory=load_in_memory,
                          sort_indices=sort_indices)
    for request in (3, slice(1, 4), [4, 0, 4, 9], (4, 0, 4, 9)):
        features, targets = dataset.get_data(None, request)
        rows = list(request) if isinstance(request, tuple) else request
        assert_array_equal(FEATURES[2:12][rows], features)
        assert_array_equal(TARGETS[2:12][rows], targets)
        assert features.dtype == 'float32'
    state = dataset.open()
    assert_array_equal(FEATURES[2], dataset.get_data(state, 0)[0])
    state = dataset.next_epoch(state)
    dataset.close(dataset.reset(state))


def test_hdf5_source_named_twice_comes_twice(path):
    """The same data under one name, and no more examples."""
    for sources in [('targets', 'targets'),
                    ('targets', 'features', 'targets')]:
        dataset = H5PYDataset(path, ('train',), sources=sources)
        assert 15 == dataset.num_examples
        one, *_, other = dataset.get_data(None, [3, 1])
        assert [[3], [1]] == one.tolist() == other.tolist()
    with h5py.File(path) as file:
        assert [15, 15] == [subset.num_examples for subset in
                            H5PYDataset.get_subsets(
                                file, ('train',), ('targets', 'targets'))]


def test_hdf5_subsets_may_be_assigned(path):
    """A class of the user's own narrows the rows so."""
    class Narrow(H5PYDataset):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.subsets = [Subset(slice(2, 6), 20) for _ in self.subsets]

    dataset = Narrow(path, ('train',))
    assert 4 == dataset.num_examples
    assert [[2], [5]] == dataset.get_data(None, [0, 3])[1].tolist()


def test_hdf5_private_methods_that_are_called_from_outside(path):
    """Each refuses a state or request that is not its own."""
    dataset = H5PYDataset(path, ('train',))
    with pytest.raises(IOError):
        dataset._file_handle
    dataset._out_of_memory_open()
    assert dataset._file_handle.attrs['split'].size
    data, shapes = dataset._out_of_memory_get_data(None, [1, 0])
    assert_array_equal(FEATURES[[1, 0]], data[0])
    assert [None, None] == list(shapes)
    dataset._out_of_memory_close()
    inside = H5PYDataset(path, ('train',), load_in_memory=True)
    data, shapes = inside._in_memory_get_data(None, slice(0, 2))
    assert_array_equal(FEATURES[:2], data[0])
    for state, request in ((None, None), (True, None)):
        with pytest.raises(ValueError):
            inside._in_memory_get_data(state, request)
    for state, request in ((None, None), (True, None), (None, {})):
        with pytest.raises(ValueError):
            dataset._out_of_memory_get_data(state, request)


def test_hdf5_handle_can_be_given_and_replaced(path):
    """A file that is open for writing is read through its handle."""
    with h5py.File(path, 'r+') as file:
        dataset = H5PYDataset(file, ('train',))
        assert dataset._external_file_handle == file
        file['features'][0] = -1
        assert [[-1, -1, -1]] == dataset.get_data(
            None, [0])[0].tolist()
        again = pickle.loads(pickle.dumps(dataset))
        assert [[-1, -1, -1]] == again.get_data(None, [0])[0].tolist()
        again._external_file_handle = file
        assert 15 == again.num_examples


def test_hdf5_pickle_does_not_touch_the_file():
    """A file that is in memory alone survives, handle and all."""
    with h5py.File('nowhere.hdf5', 'w', driver='core',
                   backing_store=False) as file:
        file['x'] = numpy.arange(4)
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 4)}})
        stream = DataStream(H5PYDataset(file, ('train',)),
                            iteration_scheme=SequentialScheme(4, 2))
        again = pickle.loads(pickle.dumps(stream))
        assert 'nowhere.hdf5' == again.dataset.path
        assert 4 == again.dataset.num_examples


def test_hdf5_stream_pickles_in_the_middle(path):
    """It goes on where it stood."""
    stream = DataStream(H5PYDataset(path, ('train',)),
                        iteration_scheme=SequentialScheme(15, 4))
    epoch = stream.get_epoch_iterator()
    next(epoch)
    _, again = pickle.loads(pickle.dumps((stream, epoch)))
    assert_array_equal(FEATURES[4:8], next(again)[0])


def test_hdf5_index_splits_by_reference(path):
    """Any bounds beside them count for nothing."""
    with h5py.File(path, 'r+') as file:
        file['odd'] = numpy.arange(1, 20, 2)
        file.attrs['split'] = H5PYDataset.create_split_array({
            'odd': dict.fromkeys(('features', 'targets'),
                                 (-1, -1, file['odd'].ref))})
    dataset = H5PYDataset(path, ('odd',))
    assert_array_equal(TARGETS[1::2], dataset.get_data(
        None, slice(0, 10))[1])
    assert list(range(1, 20, 2)) == dataset.subsets[
        0].get_list_representation()


@each_memory
@pytest.mark.parametrize('request_', [
    [0, 1], [3, 0, 2], slice(1, 4)], ids=repr)
def test_hdf5_variable_length_batches_are_arrays_of_objects(
        ragged, load_in_memory, request_):
    """One dimension, of arrays that have their shapes again."""
    path, images = ragged
    dataset = H5PYDataset(path, ('train',), load_in_memory=load_in_memory)
    batch, = dataset.get_data(None, request_)
    expected = numpy.empty(4, object)
    expected[:] = images
    expected = expected[request_]
    assert (object, expected.shape) == (batch.dtype, batch.shape)
    for one, other in zip(expected, batch, strict=True):
        assert_array_equal(one, other)
    one, = dataset.get_data(None, 2)
    assert_array_equal(images[2], one)
    assert ('images',) == tuple(dataset.vlen_sources)
    assert ('batch', 'channel', 'height', 'width') == dataset.axis_labels[
        'images']
    if load_in_memory:
        assert [(1, 1, 2), (1, 2, 3)] == [
            tuple(shape) for shape in dataset.source_shapes[0][:2]]


class Hooked(H5PYDataset):
    """A user's class that overrides what can be overridden."""

    def __init__(self, *args, **kwargs):
        self.called = []
        super().__init__(*args, **kwargs)

    def _parse_dataset_info(self):
        self.called.append('_parse_dataset_info')
        super()._parse_dataset_info()

    def get_data(self, state=None, request=None):
        """Note the call."""
        self.called.append('get_data')
        return super().get_data(state, request)

    def _in_memory_get_data(self, state=None, request=None):
        data, shapes = super()._in_memory_get_data(state, request)
        return [part + 1 for part in data], shapes

    def _out_of_memory_get_data(self, state=None, request=None):
        assert isinstance(request, (int, slice, list))
        data, shapes = super()._out_of_memory_get_data(state, request)
        return [part + 1 for part in data], shapes

    def get_vlen_sources(self, h5file):
        """Note the call."""
        self.called.append('get_vlen_sources')
        return super().get_vlen_sources(h5file)

    def get_axis_labels(self, h5file):
        """Invent labels."""
        labels = super().get_axis_labels(h5file)
        return {**labels, 'features': ('batch', 'mine')}

    def get_subsets(self, h5file, splits, sources):
        """Drop the first example of each."""
        return [Subset(slice(1, subset.num_examples), 20)
                for subset in super().get_subsets(h5file, splits, sources)]

    def load(self):
        """Note the call."""
        self.called.append('load')
        super().load()


def test_hdf5_own_load_leaves_nothing_in_memory(path):
    """It need not say so."""
    class Lazy(H5PYDataset):
        def load(self):
            pass

    dataset = Lazy(path, ('train',))
    assert (None, None) == (dataset.data_sources, dataset.source_shapes)


@each_memory
def test_hdf5_hooks_of_a_subclass_are_called(path, load_in_memory):
    """Each through `self`; requests are lists of Python's integers."""
    dataset = Hooked(path, ('train',), load_in_memory=load_in_memory)
    assert 14 == dataset.num_examples
    assert ('batch', 'mine') == dataset.axis_labels['features']
    assert 'get_vlen_sources' in dataset.called
    assert 'load' in dataset.called
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(14, 5))
    batches = list(stream.get_epoch_iterator())
    assert_array_equal(FEATURES[1:6] + 1, batches[0][0])
    assert 3 == dataset.called.count('get_data')


def test_hdf5_source_may_be_a_group(tmp_path):
    """A user's class reads it."""
    path = str(tmp_path / 'groups.hdf5')
    with h5py.File(path, 'w') as file:
        for row in range(3):
            file[f'words/{row}'] = numpy.full(row + 1, row)
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'words': (0, 3)}})

    class Words(H5PYDataset):
        def _out_of_memory_get_data(self, state=None, request=None):
            group = self._file_handle['words']
            return [[group[str(row)][...] for row in request]], [None]

    dataset = Words(path, ('train',))
    dataset.open()
    words, = dataset.get_data(None, [2, 0])
    assert [[2, 2, 2], [0]] == [word.tolist() for word in words]


def test_hdf5_stream_goes_over_files_of_the_old_form(path):
    """Bounds may be arrays of one element."""
    with h5py.File(path, 'r+') as file:
        old = file.attrs['split']
        new = numpy.empty(len(old), dtype=[
            (name, old.dtype[name], (1,)) if name in ('start', 'stop')
            else (name, old.dtype[name]) for name in old.dtype.names])
        for name in old.dtype.names:
            new[name] = (old[name][:, None] if name in ('start', 'stop')
                         else old[name])
        del file.attrs['split']
        file.attrs['split'] = new
    assert 15 == H5PYDataset(path, ('train',)).num_examples
