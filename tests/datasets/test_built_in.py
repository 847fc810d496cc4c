"""Data sets of users that are found by their name in the data path."""
import h5py
import numpy
import pytest

from fuel import config
from fuel.datasets import H5PYDataset
from fuel.datasets.built_in import BuiltInDataset, DatasetInFormats


class Shapes(BuiltInDataset):
    """A set whose file is known by name."""

    filename = 'shapes.hdf5'


@pytest.fixture
def folder(tmp_path):
    """A data path with two files of four rows."""
    config.data_path = [str(tmp_path)]
    for number, name in enumerate(['shapes.hdf5', 'shapes_2.hdf5']):
        with h5py.File(tmp_path / name, 'w') as file:
            file['x'] = numpy.arange(4) + 10 * number
            file.attrs['split'] = H5PYDataset.create_split_array(
                {'train': {'x': (0, 3)}, 'test': {'x': (3, 4)}})
    return tmp_path


@pytest.mark.parametrize('fits', [False, True])
def test_set_is_found_by_the_name_of_its_class(folder, fits, monkeypatch):
    """The data set is loaded into memory if its class says so."""
    monkeypatch.setattr(Shapes, 'fits_in_memory', fits)
    with Shapes(('train',)) as dataset:
        assert [0, 1, 2] == dataset[:][0].tolist()
        assert dataset.load_in_memory is fits


def test_caller_decides_what_is_loaded_into_memory(folder):
    """The argument `load_in_memory` overrides the class."""
    with Shapes(('test',), load_in_memory=True) as dataset:
        assert dataset.load_in_memory


def test_name_may_be_replaced_on_the_class(folder, monkeypatch):
    """Programs with a file of their own replace the name."""
    monkeypatch.setattr(Shapes, 'filename', 'shapes_2.hdf5')
    with Shapes(('train',)) as dataset:
        assert [10, 11, 12] == dataset[:][0].tolist()


def test_format_completes_the_name(folder):
    """The format is put into the name of the class."""
    class Formats(DatasetInFormats):
        _filename = 'shapes_{}.hdf5'

    with Formats(2, ('test',)) as dataset:
        assert [13] == dataset[:][0].tolist()
        assert dataset.which_format == 2


def test_missing_file_is_named(folder):
    """The error says where the file was looked for."""
    (folder / 'shapes.hdf5').unlink()
    with pytest.raises(FileNotFoundError, match=r'shapes\.hdf5'):
        Shapes(('train',))


def test_class_without_a_name_is_refused(folder):
    """The error says what to set."""
    class Nameless(BuiltInDataset):
        """Has no file."""

    with pytest.raises(NotImplementedError,
                       match='Nameless must set the class attribute filename'):
        Nameless(('train',))
