"""`fuel.load` opens other people's files as they are."""
import functools

import h5py
import numpy
import pytest
from scipy import sparse

import fuel
from fuel.datasets import (  # noqa: F401 - for the calls that are shown
    CSR, Categorical, Constant, Flat, HDF5Dataset, PerRun, PerStep, Ragged,
    Rows, Runs, Scaled)
from fuel.testing import check_dataset
from support.layouts import MINIATURES, miniature_named

EACH = pytest.mark.parametrize('miniature', MINIATURES, ids=str)


def assert_same_examples(expected, found):
    """Compare the examples of a source, bit by bit."""
    if sparse.issparse(expected):
        assert sparse.issparse(found) and found.dtype == expected.dtype
        numpy.testing.assert_array_equal(expected.toarray(), found.toarray())
        return
    assert len(expected) == len(found)
    if isinstance(expected, numpy.ndarray) and found.dtype != object:
        assert found.dtype == expected.dtype.newbyteorder('=')
    for one, other in zip(expected, found, strict=True):
        numpy.testing.assert_array_equal(one, other)


@EACH
def test_values_are_those_of_the_file(miniature, tmp_path):
    """Each layout has them, also by the call that is shown."""
    written = miniature.write(tmp_path, numpy.random.default_rng(1))
    dataset = fuel.load(written.files)
    assert {*written.values} == {*dataset.sources}
    again = eval(repr(dataset))
    for one in (dataset, again):
        batch = one.get_data(None, slice(0, one.num_examples))
        for source, found in zip(one.sources, batch, strict=True):
            assert_same_examples(written.values[source], found)
    if written.runs is not None:
        assert list(written.runs) == dataset.runs.tolist()
    dataset.close(None)
    again.close(None)


def test_missing_categories_have_no_name(tmp_path):
    """The code -1 is not a place in the names."""
    miniature = miniature_named('h5ad')
    dataset = fuel.load(miniature.write(
        tmp_path, numpy.random.default_rng(1)).files)
    codes = numpy.array([[-1, 2], [0, -1]])
    assert [[None, 'monocyte'], ['B cell', None]] == dataset.category_names(
        'obs/cell_type', codes).tolist()
    with pytest.raises(KeyError):
        dataset.category_names('obs/depth', codes)


@pytest.mark.parametrize('name', ['cell.h5ad', 'deep/cells.nc', 'x.csv'])
def test_file_that_is_not_there_is_named(name, tmp_path, monkeypatch):
    """The error suggests a file with a name like it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'cells.h5ad').touch()
    with pytest.raises(FileNotFoundError) as caught:
        fuel.load(name)
    assert f'there is no file {name!r}' in str(caught.value)
    if name == 'cell.h5ad':
        assert "did you mean 'cells.h5ad'?" in str(caught.value)


def test_splits_of_a_folder_are_of_one_data_set(tmp_path):
    """A split may be named in two ways; a category has one code in all."""
    for split, names in (('train', [b'T cell', b'B cell']),
                         ('valid', [b'monocyte', b'B cell'])):
        (tmp_path / split).mkdir()
        with h5py.File(tmp_path / split / 'a.h5', 'w') as file:
            file['x'] = numpy.arange(2)
            file['kind/codes'] = numpy.array([0, 1], 'int8')
            file['kind/categories'] = names
    columns = ['x', Categorical('kind')]
    train, valid = [
        fuel.load(tmp_path, split, columns=columns)
        for split in ('train', 'valid')]
    assert train.categories == valid.categories
    assert [0, 1] == train[:][1].tolist()
    assert [2, 1] == valid[:][1].tolist()
    same = fuel.load(tmp_path, which_sets=('train',), columns=columns)
    assert repr(train) == repr(same)
    assert train.kept_arguments() == same.kept_arguments()
    assert train.kept_arguments() != valid.kept_arguments()


def write_makani(folder, labels):
    """Write files of makani whose axes have labels; return their paths."""
    folder.mkdir()
    files = miniature_named('makani').write(
        folder, numpy.random.default_rng(1)).files
    for path in files:
        with h5py.File(path, 'r+') as file:
            file['timestamp'].dims[0].label = labels[0]
            for axis, name in enumerate(labels):
                file['fields'].dims[axis].label = name
    return files


def test_axes_of_makani_without_names_have_no_labels(tmp_path):
    """A long name of one dimension does not name the others."""
    long_name = 'Timestamp in UTC time zone'
    files = write_makani(tmp_path / 'a', [long_name, '', '', ''])
    assert {'fields': None, 'timestamp': ('batch',)} == fuel.load(
        files).axis_labels
    check_dataset(functools.partial(fuel.load, files))
    files = write_makani(tmp_path / 'b', [long_name, 'channel', 'lat', 'lon'])
    assert ('batch', 'channel', 'lat', 'lon') == fuel.load(
        files).axis_labels['fields']
