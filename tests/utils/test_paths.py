"""Finding files in the data path, and coming back from a folder."""
import os
from pathlib import Path

import pytest

from fuel import config
from fuel.utils import find_in_data_path, remember_cwd


@pytest.fixture
def folders(tmp_path):
    """Two folders that are the data path for one test."""
    paths = [tmp_path / name for name in ('a', 'b')]
    for path in paths:
        path.mkdir()
    config.data_path = [str(path) for path in paths]
    yield paths
    del config.data_path


def test_find_in_data_path_returns_the_first_hit(folders):
    """The order of the data path counts."""
    (folders[1] / 'data.hdf5').touch()
    assert str(folders[1] / 'data.hdf5') == find_in_data_path('data.hdf5')
    (folders[0] / 'data.hdf5').touch()
    assert str(folders[0] / 'data.hdf5') == find_in_data_path('data.hdf5')


def test_find_in_data_path_skips_folders_of_that_name(folders):
    """A folder is not a file."""
    (folders[0] / 'data.hdf5').mkdir()
    (folders[1] / 'data.hdf5').touch()
    assert str(folders[1] / 'data.hdf5') == find_in_data_path('data.hdf5')


def test_find_in_data_path_finds_relative_and_home_paths(
        folders, monkeypatch):
    """Folders may be relative, or contain ``~`` and variables."""
    (folders[0] / 'data.hdf5').touch()
    monkeypatch.chdir(folders[0])
    config.data_path = '.'
    assert 'data.hdf5' == os.path.normpath(find_in_data_path('data.hdf5'))
    monkeypatch.setenv('HOME', str(folders[0].parent))
    monkeypatch.setenv('PLACE', 'a')
    config.data_path = os.path.join('~', '$PLACE')
    assert (folders[0] / 'data.hdf5').samefile(find_in_data_path('data.hdf5'))


def test_find_in_data_path_missing_says_where_it_looked(folders):
    """The error names the file, every folder, and what to do."""
    with pytest.raises(IOError, match='absent.hdf5') as caught:
        find_in_data_path('absent.hdf5')
    assert isinstance(caught.value, FileNotFoundError)
    text = str(caught.value)
    for part in (*map(str, folders), 'fuel-download', 'FUEL_DATA_PATH'):
        assert part in text


def test_remember_cwd_returns_after_an_exception(tmp_path):
    """The working directory is the same afterwards, whatever happens."""
    before = Path.cwd()
    def leave():
        with remember_cwd():
            os.chdir(tmp_path)
            raise KeyError('left')

    with pytest.raises(KeyError, match='left'):
        leave()
    assert before == Path.cwd()
