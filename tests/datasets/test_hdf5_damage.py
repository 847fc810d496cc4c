"""HDF5 files with a few overwritten bytes: errors that name the file."""
import random
from pathlib import Path

import h5py
import numpy
import pytest
from support.hdf5_files import split_array, write_pairs, write_ragged
from support.processes import run_python

from fuel.datasets import Categorical, H5PYDataset, HDF5Dataset
from fuel.storage.attributes import axis_labels, own_labels, scale
from fuel.exceptions import DamagedFileError

DAMAGE = Path(__file__).with_name('damage.py')


@pytest.mark.parametrize('kind', ['own', 'any'])
@pytest.mark.parametrize('seed, files', [
    (4, 60), pytest.param(None, 500, marks=pytest.mark.full)])
def test_damaged_file_is_an_error_that_names_it(
        tmp_path, seed, files, kind):
    """A child process reads files of any seed, and no signal ends it."""
    seed = random.randrange(2 ** 32) if seed is None else seed
    status, out, errors = run_python(
        '-X', 'faulthandler', str(DAMAGE), str(tmp_path), str(seed),
        str(files), kind)
    lines = out.decode().splitlines()
    assert 0 == status, (seed, lines[-1:], errors.decode())
    assert [] == [line for line in lines if 'NAMELESS' in line], seed
    assert 2 * files == len(lines)
    assert any(' named ' in line for line in lines)
    assert any(line.endswith(' read') for line in lines)


def test_type_that_numpy_lacks_is_an_error_that_names_the_file(tmp_path):
    """A damaged byte made the type of a source a time of HDF5."""
    path = write_pairs(tmp_path / 'a.hdf5')
    with h5py.File(path, 'r+') as file:
        name = next(name for name in file if isinstance(
            file[name], h5py.Dataset))
        count = len(file[name])
        del file[name]
        h5py.h5d.create(file.id, name.encode(), h5py.h5t.UNIX_D32LE,
                        h5py.h5s.create_simple((count,)))
    with pytest.raises(DamagedFileError, match='a.hdf5'):
        H5PYDataset(path, which_sets=('train',))


def test_labels_are_read_without_the_functions_that_crash(
        tmp_path, monkeypatch):
    """HDF5's own ones end the process where the file is damaged."""
    path = write_pairs(tmp_path / 'a.hdf5')

    def never(*args):
        raise AssertionError('called')

    with monkeypatch.context() as patch:
        for name in ('get_label', 'iterate', 'get_num_scales',
                     'get_scale_name'):
            patch.setattr(h5py.h5ds, name, never)
        data_set = H5PYDataset(path, ('train',))
    assert {'features': ('batch', 'feature'), 'targets': ('batch', 'index')
            } == data_set.axis_labels


def test_labels_and_scales_equal_those_of_h5py(tmp_path):
    """Arrays have labels or none, scales of several names, or no axes."""
    with h5py.File(tmp_path / 'a.hdf5', 'w') as file:
        write_pairs(tmp_path / 'b.hdf5')
        file['bare'] = numpy.zeros((2, 3))
        file['scalar'] = 1
        file['empty'] = h5py.Empty('f4')
        file['partly'] = numpy.zeros((2, 3))
        file['partly'].dims[1].label = 'größe'
        write_ragged(file, 'ragged', [numpy.zeros((2, 3), 'u1')],
                     labels=('height', 'width'))
        file['other'] = numpy.arange(2)
        file['other'].make_scale('other')
        file['bare'].dims[1].attach_scale(file['other'])
        for name, node in file.items():
            expected = tuple(axis.label for axis in node.dims)
            assert expected == own_labels(node), name
            if node.shape:
                scales = dict(node.dims[0].items())
                for kind in ('shapes', 'shape_labels', 'other'):
                    assert scales.get(kind) == scale(node, kind)
        assert ('batch', 'height', 'width') == axis_labels(file['ragged'])


STRANGE = b'tail\xff'


@pytest.mark.parametrize('read, text', [
    (lambda path: H5PYDataset(path, ('train',), splits={'train': 2}),
     "a.hdf5.*name b'tail.xff' is not UTF-8"),
    (lambda path: HDF5Dataset(path, ['x'], parts='demo_*'),
     "a.hdf5.* no group 'demo_.'; it has 'tail"),
    (lambda path: HDF5Dataset(path, ['missing']),
     "a.hdf5.*no array 'missing'.*tail")])
def test_name_that_is_not_text_is_in_errors_about_the_file(
        tmp_path, read, text):
    """A damaged byte makes such a name; h5py gives it as bytes."""
    path = tmp_path / 'a.hdf5'
    with h5py.File(path, 'w') as file:
        file['x'] = numpy.arange(4)
        file.create_group(STRANGE)['y'] = numpy.arange(4)
        file.create_dataset(STRANGE + b'2', data=numpy.arange(4))
    with pytest.raises((ValueError, KeyError), match=text):
        read(path)


def test_array_whose_name_is_not_text_is_read(tmp_path):
    """The name is that which Python gives to such bytes."""
    path = tmp_path / 'a.hdf5'
    with h5py.File(path, 'w') as file:
        file.create_dataset(STRANGE, data=numpy.arange(8), chunks=(2,),
                            compression='gzip')
    name = STRANGE.decode('utf-8', 'surrogateescape')
    dataset = HDF5Dataset(path, {'x': name})
    assert [3, 1] == dataset.get_data(None, [3, 1])[0].tolist()


@pytest.mark.parametrize('make', [
    lambda file: file.create_group('shapes'),
    lambda file: file.__setitem__('shapes', numpy.dtype('f4'))])
def test_scale_that_is_not_an_array_is_damage(tmp_path, make):
    """A damaged address leads to another object."""
    path = write_pairs(tmp_path / 'a.hdf5')
    with h5py.File(path, 'r+') as file:
        make(file)
        file['shapes'].attrs['NAME'] = 'shapes'
        scales = numpy.empty(file['features'].ndim, object)
        scales[:] = [numpy.array([], h5py.ref_dtype)] * len(scales)
        scales[0] = numpy.array([file['shapes'].ref], h5py.ref_dtype)
        file['features'].attrs.create(
            'DIMENSION_LIST', scales, dtype=h5py.vlen_dtype(h5py.ref_dtype))
    with pytest.raises(DamagedFileError, match=(
            "a.hdf5.*'features'.*scale 'shapes' is not an array")):
        assert H5PYDataset(path, ('train',)).axis_labels


def test_names_of_categories_that_are_arrays_are_refused(tmp_path):
    """A damaged type makes such names."""
    path = tmp_path / 'a.hdf5'
    with h5py.File(path, 'w') as file:
        file['kind/codes'] = numpy.zeros(4, 'i1')
        names = file.create_dataset('kind/categories', (2,),
                                    h5py.vlen_dtype('i4'))
        names[0] = [1, 2]
    with pytest.raises(ValueError, match="a.hdf5.*no names for 'kind'"):
        HDF5Dataset(path, [Categorical('kind')])


def test_wrong_labels_name_file_and_source(tmp_path):
    """Two labels for three axes, as of an attribute that was damaged."""
    path = tmp_path / 'a.hdf5'
    with h5py.File(path, 'w') as file:
        file['x'] = numpy.zeros((4, 2, 2))
        file['x'].attrs['DIMENSION_LABELS'] = ['batch', 'feature']
        file.attrs['split'] = split_array([('train', 'x', 0, 4, None, True)])
    with pytest.raises(DamagedFileError,
                       match="a.hdf5', source 'x': .*2 labels for 3 axes"):
        H5PYDataset(path, ('train',))
