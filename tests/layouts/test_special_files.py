"""Pipes, sockets, devices and links that lead in a circle are refused."""
import errno
import os
import socket

import pytest

import fuel
from fuel.datasets import (
    CSVDataset, H5PYDataset, HDF5Dataset, JSONLDataset, NPYDataset)
from fuel.storage import open_hdf5

pytestmark = pytest.mark.skipif(
    not hasattr(os, 'mkfifo'), reason='the platform has no named pipes')

OPENERS = {
    'h5': (fuel.load, HDF5Dataset, open_hdf5,
           lambda path: H5PYDataset(path, ('train',))),
    'csv': (fuel.load, CSVDataset), 'jsonl': (fuel.load, JSONLDataset),
    'npy': (fuel.load, NPYDataset), 'npz': (fuel.load, NPYDataset),
    'txt': (fuel.load,), 'parquet': (fuel.load,), 'arrow': (fuel.load,),
    'unknown': (fuel.load,)}


@pytest.mark.parametrize('ending', OPENERS)
def test_named_pipe_is_refused_at_once(tmp_path, ending):
    """Opening it would wait until another process writes to it."""
    path = tmp_path / f'a.{ending}'
    os.mkfifo(path)
    for opener in OPENERS[ending]:
        with pytest.raises(ValueError, match=r'regular file.* a named pipe'):
            opener(str(path))
    with pytest.raises(ValueError, match='a named pipe'):
        fuel.load([str(path)])
    with pytest.raises(ValueError, match='a named pipe'):
        fuel.load(str(tmp_path / 'a.*'))


def test_socket_and_device_are_refused(tmp_path, monkeypatch):
    """The error says what the file is, not why the system cannot open it."""
    # The path of a socket must be short.
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind('a.csv')
        with pytest.raises(ValueError, match='it is a socket'):
            fuel.load('a.csv')
    with pytest.raises(ValueError, match='it is a device'):
        fuel.load('/dev/zero')


@pytest.mark.parametrize('name', ['itself', 'itself.h5', 'itself.csv'])
def test_folder_with_a_link_to_itself_names_the_link(tmp_path, name):
    """The error is not the number of the system alone."""
    link = tmp_path / name
    link.symlink_to(name)
    for files in tmp_path, link, tmp_path / '*s?l*':
        with pytest.raises(OSError, match=(
                f'{str(link)!r} is a link that leads back')) as caught:
            fuel.load(str(files))
        assert errno.ELOOP == caught.value.errno
    if name == 'itself.h5':
        with pytest.raises(OSError, match='is a link that leads back'):
            HDF5Dataset(str(link))


def test_folder_below_which_a_link_leads_up_names_the_link(tmp_path):
    """Nothing is there to be loaded but the way round."""
    (tmp_path / 'train').mkdir()
    link = tmp_path / 'train' / 'again'
    link.symlink_to(tmp_path)
    with pytest.raises(OSError, match=(
            f'{str(link)!r} is a link that leads back to a folder')):
        fuel.load(str(tmp_path))
    (tmp_path / 'train' / 'a.txt').write_text('a\n1\n')
    with pytest.raises(FileNotFoundError, match=r"It has '.*a\.txt'"):
        fuel.load(str(tmp_path))


@pytest.mark.parametrize('name', ['a\0b', 'a\0b.csv', 'a\0b.h5'])
def test_path_with_a_null_byte_is_a_file_that_does_not_exist(name):
    """No file has such a name: the error names it, as for other paths."""
    for opener in fuel.load, lambda path: H5PYDataset(path, ('train',)):
        with pytest.raises(FileNotFoundError) as caught:
            opener(name)
        assert repr(name) in str(caught.value)
