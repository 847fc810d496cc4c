"""Files that may not be read, disks that may not be written: as told by the
system to somebody who is not root."""
import os
import sys

import h5py
import numpy
import pytest

from fuel.datasets import H5PYDataset
from processes import run_python

pytestmark = pytest.mark.skipif(
    sys.platform == 'win32', reason='this system has other permissions')

# What is imported later could not be read by that user.
AS_NOBODY = """
import logging, os, resource, sys, zipfile
import fuel.config_parser
from fuel import config
from fuel.datasets import H5PYDataset
from fuel.datasets.csv import CSVDataset
from fuel.datasets.npy import NPYDataset
from fuel.utils.cache import cache_file
folder = sys.argv[1]
path = lambda name: os.path.join(folder, name)
try:
    CSVDataset(path('none.csv'))
except OSError:
    pass
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
"""


@pytest.fixture
def folder(tmp_path):
    """Return a folder with one file of each kind that nobody may read."""
    path = tmp_path / 'a.hdf5'
    with h5py.File(path, 'w') as file:
        file['x'] = numpy.zeros((4, 2))
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 4)}})
    numpy.save(tmp_path / 'a.npy', numpy.zeros(3))
    (tmp_path / 'a.csv').write_text('a,b\n1,2\n')
    for name in 'a.hdf5', 'a.npy', 'a.csv':
        (tmp_path / name).chmod(0)
    place = tmp_path
    # The user must get as far as the file.
    while place != place.parent and os.stat(place).st_uid == os.geteuid():
        place.chmod(place.stat().st_mode | 0o055)
        place = place.parent
    return tmp_path


@pytest.mark.parametrize('made', [
    "H5PYDataset(path('a.hdf5'), ('train',))", "NPYDataset(path('a.npy'))",
    "CSVDataset(path('a.csv'))"])
def test_file_without_permission_is_named(folder, made):
    """Also HDF5's own error says which file it was."""
    status, out, errors = run_python('-c', AS_NOBODY + f"""
try:
    {made}
except OSError as error:
    print(type(error).__name__, error)
""", str(folder))
    assert (0, b'') == (status, errors)
    assert out.startswith(b'PermissionError') and b'ermission denied' in out
    assert str(folder / 'a.').encode() in out


def test_read_only_disk_for_copies_costs_no_run(folder):
    """The original is read in place, and a warning says why."""
    (folder / 'a.csv').chmod(0o444)
    (folder / 'local').mkdir(mode=0o555)
    status, out, errors = run_python('-c', AS_NOBODY + """
logging.basicConfig()
config.local_data_path = path('local')
print(cache_file(path('a.csv')))
print(CSVDataset(cache_file(path('a.csv'))).num_examples)
""", str(folder))
    assert 0 == status, errors
    assert [str(folder / 'a.csv'), '1'] == out.decode().split()
    assert b'is read in place' in errors and b'Permission denied' in errors
    assert [] == os.listdir(folder / 'local')


@pytest.mark.parametrize('made', [
    "H5PYDataset(path('a.hdf5'), ('train',))", "NPYDataset(path('a.npy'))",
    "CSVDataset(path('a.csv'))"])
def test_lack_of_descriptors_is_told_with_the_file(folder, made):
    """When the file is opened; not a crash, or a file that seems damaged."""
    for name in 'a.hdf5', 'a.npy', 'a.csv':
        (folder / name).chmod(0o444)
    status, out, errors = run_python('-c', AS_NOBODY + f"""
resource.setrlimit(resource.RLIMIT_NOFILE, (50, 50))
taken = []
try:
    while True:
        taken.append(os.dup(0))
except OSError:
    pass
try:
    {made}
except OSError as error:
    print(type(error).__name__, error)
""", str(folder))
    assert (0, b'') == (status, errors)
    assert b'oo many open files' in out
    assert str(folder / 'a.').encode() in out
