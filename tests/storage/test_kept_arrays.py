"""Arrays that are kept on disk for files in one state."""
import os

import numpy
import pytest
from numpy.testing import assert_array_equal

from fuel import config
from fuel.storage.linked_files import keep_arrays, kept_arrays
from fuel.storage.file_bytes import raw_file_at

ARRAYS = {'rows': numpy.arange(5), 'names': numpy.array([b'a', b'bc'])}


@pytest.fixture
def file(tmp_path):
    """Return a file, with the cache in a folder of the test."""
    config.remote_cache_path = str(tmp_path / 'cache')
    (tmp_path / 'a').write_bytes(b'content')
    return raw_file_at(str(tmp_path / 'a'))


def entries(tmp_path):
    """Return the files that are kept."""
    folder = tmp_path / 'cache' / 'indexes'
    return sorted(folder.iterdir()) if folder.exists() else []


def save(path, **changed):
    """Write an entry again, with other arrays."""
    with numpy.load(path) as archive:
        arrays = dict(archive)
    numpy.savez(path, **{**arrays, **changed})


def test_arrays_are_kept_for_a_key_and_a_state(file, tmp_path):
    """Another key has nothing, and nothing is left after the file was
    replaced."""
    assert kept_arrays([file], 'key') is None
    keep_arrays([file], 'key', ARRAYS)
    found = kept_arrays([file], 'key')
    assert ARRAYS.keys() == found.keys()
    for name, array in ARRAYS.items():
        assert_array_equal(array, found[name])
    assert kept_arrays([file], 'other key') is None
    assert kept_arrays([], 'key') is None
    (tmp_path / 'new').write_bytes(b'another content')
    os.replace(tmp_path / 'new', tmp_path / 'a')
    newer = raw_file_at(str(tmp_path / 'a'))
    assert kept_arrays([newer], 'key') is None
    keep_arrays([newer], 'key', ARRAYS)
    keep_arrays([newer], 'other', ARRAYS)
    # Those of the state before are gone.
    assert 2 == len(entries(tmp_path))
    assert kept_arrays([newer], 'key') is not None


def test_damaged_entry_counts_as_none(file, tmp_path, caplog):
    """It is cut, changed, or not written by this version of Fuel."""
    keep_arrays([file], 'key', ARRAYS)
    path, = entries(tmp_path)
    content = path.read_bytes()
    place = content.index(ARRAYS['rows'].tobytes())
    damaged = [b'', content[:-40], content[:100],
               content[:place] + b'\xff' + content[place + 1:]]
    for bad in damaged:
        path.write_bytes(bad)
        assert kept_arrays([file], 'key') is None
    assert len(damaged) == caplog.text.count('will be made again')
    path.write_bytes(content)
    save(path, format=numpy.array(0))
    assert kept_arrays([file], 'key') is None
    keep_arrays([file], 'key', ARRAYS)
    assert kept_arrays([file], 'key') is not None


@pytest.mark.parametrize('made', [
    [2, 2], [2], 2., 'abc', numpy.zeros((), [('a', int)])], ids=str)
def test_entries_of_another_format_count_as_none(file, tmp_path, made):
    """A format of another type cannot be compared, and counts as none too."""
    keep_arrays([file], 'key', ARRAYS)
    path, = entries(tmp_path)
    save(path, format=numpy.array(2))
    assert kept_arrays([file], 'key') is not None
    save(path, format=numpy.array(made))
    assert kept_arrays([file], 'key') is None


@pytest.mark.parametrize('changed', [
    {'rows': numpy.arange(5)[::-1]}, {'names': ARRAYS['rows'],
                                      'rows': ARRAYS['names']},
    {'rows': numpy.arange(5).reshape(5, 1)}, {'more': numpy.arange(2)},
    {'checksum': numpy.array(b'')}], ids=str)
def test_arrays_that_were_changed_count_as_none(file, tmp_path, changed,
                                                caplog):
    """Each has a checksum of its own in the archive, which still fits."""
    keep_arrays([file], 'key', ARRAYS)
    path, = entries(tmp_path)
    save(path, **changed)
    assert kept_arrays([file], 'key') is None
    assert 'was changed' in caplog.text


def test_arrays_of_another_key_count_as_none(file, tmp_path):
    """An entry of another key counts as none under the right name too."""
    keep_arrays([file], 'key', ARRAYS)
    path, = entries(tmp_path)
    keep_arrays([file], 'other', {'rows': numpy.arange(5) + 1})
    other, = {*entries(tmp_path)} - {path}
    os.replace(other, path)
    assert kept_arrays([file], 'key') is None


def test_objects_are_never_unpickled(file, tmp_path):
    """An entry is not trusted."""
    keep_arrays([file], 'key', ARRAYS)
    path, = entries(tmp_path)
    numpy.savez(path, format=numpy.array(1),
                rows=numpy.array([{}], object))
    assert kept_arrays([file], 'key') is None


def test_nothing_is_kept_without_a_cache(file, tmp_path, caplog):
    """The cache may be off, or it cannot be written."""
    config.remote_cache_path = 'off'
    keep_arrays([file], 'key', ARRAYS)
    assert kept_arrays([file], 'key') is None
    (tmp_path / 'occupied').write_text('a file')
    config.remote_cache_path = str(tmp_path / 'occupied')
    keep_arrays([file], 'key', ARRAYS)
    assert 'cannot be kept' in caplog.text
    assert kept_arrays([file], 'key') is None
