"""Targets of the shape (n,), where files hold (n, 1)."""
import pickle

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal

import fuel
from fuel.bin import fuel_convert
from fuel.datasets import H5PYDataset, Windows
from fuel.describe.source_types import types_of
from fuel.exceptions import StateMismatchError
from fuel.schemes import (
    SequentialScheme, ShuffledExampleScheme, ShuffledScheme)
from fuel.streams import DataStream
from fuel.transformers import Cast

N = 12
SOURCES = ('features', 'ids', 'names', 'targets')


@pytest.fixture(params=['contiguous', 'chunks', 'big-endian', 'by h5py'])
def path(tmp_path, request):
    """A file with columns of targets and of something else."""
    path = tmp_path / 'a.hdf5'
    kind = request.param
    with h5py.File(path, 'w') as file:
        options = {'chunks': (5, 1), 'compression': 'gzip'} if (
            kind == 'chunks') else {}
        if kind == 'by h5py':
            # Filters of this number of bits are left to HDF5.
            options = {'chunks': (5, 1), 'scaleoffset': 0}
        order = '>' if kind == 'big-endian' else '<'
        for source in ('targets', 'ids'):
            file.create_dataset(source, data=numpy.arange(
                N, dtype=f'{order}i8')[:, None], **options)
        file['features'] = numpy.arange(2 * N).reshape(N, 2)
        file['names'] = numpy.arange(N)[:, None]
        for source, labels in (('targets', ('batch', 'class')),
                               ('ids', ('batch', 'index'))):
            for axis, label in enumerate(labels):
                file[source].dims[axis].label = label
        file.attrs['split'] = H5PYDataset.create_split_array({
            'train': dict.fromkeys(SOURCES, (0, 8)),
            'test': dict.fromkeys(SOURCES, (8, N))})
    return path


@pytest.mark.parametrize('load_in_memory', [False, True])
def test_targets_and_what_is_labelled_index_are_flat(path, load_in_memory):
    """Every kind of request has flat targets; other columns stay."""
    dataset = H5PYDataset(path, ('test',), flat_targets=True,
                          load_in_memory=load_in_memory)
    assert ('batch',) == dataset.axis_labels['targets']
    assert ((), ()) == tuple(
        types_of(dataset)[source].shape for source in ('targets', 'ids'))
    for request in (slice(1, 3), [2, 1], numpy.array([1, 2]), [3, 3]):
        rows = numpy.arange(8, N)[request]
        features, ids, names, targets = dataset.get_data(None, request)
        for flat in (ids, targets):
            assert_array_equal(rows, flat)
            assert flat.flags.writeable and flat.dtype.isnative
        assert_array_equal(rows[:, None], names)
        assert (len(rows), 2) == features.shape
    assert 9 == dataset.get_data(None, 1)[3] and () == numpy.shape(
        dataset.get_data(None, 1)[3])
    assert 9 == dataset[1][3]
    copied = pickle.loads(pickle.dumps(dataset))
    assert_array_equal(numpy.arange(8, N), copied[:][3])
    dataset.close(None)


@pytest.mark.parametrize('load_in_memory', [False, True])
@pytest.mark.parametrize('scheme', [
    SequentialScheme(8, 3), ShuffledScheme(8, 3), ShuffledExampleScheme(8)])
def test_streams_read_the_values_of_columns(path, load_in_memory, scheme):
    """The values are flat in batches and as examples, and after a cast."""
    def read(flat):
        stream = DataStream(H5PYDataset(
            path, ('train',), flat_targets=flat,
            load_in_memory=load_in_memory), iteration_scheme=scheme)
        stream.iteration_scheme.rng = numpy.random.RandomState(3)
        with stream:
            return list(Cast(stream, 'float32', which_sources='targets'))

    for flat, column in zip(read(True), read(False), strict=True):
        assert_array_equal(flat[0], column[0])
        for place in (1, 3):
            assert_array_equal(flat[place], column[place][..., 0])
            assert flat[place].dtype == column[place].dtype


def test_state_belongs_to_one_of_the_shapes(path):
    """The error names the argument `flat_targets`."""
    def build(**kwargs):
        return DataStream(H5PYDataset(path, ('train',), **kwargs),
                          batch_size=3, shuffle=True)

    stream = build(flat_targets=True)
    next(stream.get_epoch_iterator())
    state = stream.state_dict()
    build(flat_targets=True).load_state_dict(state)
    with pytest.raises(StateMismatchError, match='flat_targets was True'):
        build().load_state_dict(state)


def test_windows_over_flat_targets(path):
    """A window of targets has one axis."""
    dataset = Windows(H5PYDataset(path, ('train',), flat_targets=True), 3)
    assert [[2, 3, 4]] == dataset.get_data(None, [2])[3].tolist()


def test_columns_are_the_default_of_the_class(path):
    """The default is that of Fuel 0.2.0; other files are as they were."""
    assert (8, 1) == H5PYDataset(path, ('train',))[:][3].shape
    with h5py.File(path, 'a') as file:
        del file['targets']
        file['targets'] = numpy.arange(N)
    assert (8,) == H5PYDataset(path, ('train',))[:][3].shape
    assert (8,) == H5PYDataset(path, ('train',), flat_targets=True)[:][3].shape


def test_load_hands_the_argument_on(path):
    """The class that reads the file gets the argument."""
    dataset = fuel.load(path, 'train', flat_targets=True)
    assert (8,) == dataset[:][3].shape
    with pytest.raises(TypeError, match='flat_targets of H5PYDataset must be'):
        fuel.load(path, 'train', flat_targets='yes')


@pytest.mark.parametrize('options', [[], ['--compression', 'gzip']])
def test_converted_file_has_flat_targets(tmp_path, monkeypatch, options):
    """The file keeps its attributes, and all else."""
    monkeypatch.chdir(tmp_path)
    rows = [f'{i},{i / 2},{"ab"[i % 2]}' for i in range(10)]
    (tmp_path / 'a.csv').write_text('\n'.join(['x,y,kind', *rows]))
    files = []
    for name, more in (('flat', ['--flat-targets']), ('column', [])):
        assert 0 == fuel_convert.main(
            ['csv', 'a.csv', '--target', 'kind', '-r', name, *options,
             '--hold-out', 'test=0.2', *more])
        files.append(h5py.File(tmp_path / f'{name}.hdf5'))
    flat, column = files
    assert ((10,), (10, 1)) == (
        flat['targets'].shape, column['targets'].shape)
    assert_array_equal(flat['targets'][...], column['targets'][:, 0])
    assert flat['targets'].compression == column['targets'].compression
    assert 'batch' == flat['targets'].dims[0].label
    assert flat['targets'].attrs['class_names'] == (
        column['targets'].attrs['class_names'])
    assert_array_equal(flat['features'][...], column['features'][...])
    assert '--flat-targets' in flat.attrs['fuel_convert_command']
    for file in files:
        file.close()
    dataset = fuel.load('flat.hdf5', 'train')
    assert (8,) == dataset[:][1].shape
    assert ('a', 'b') == dataset.class_names
