"""Files that may not be read, disks that may not be written: as told by the
system to somebody who is not root."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy
import pytest
from support.processes import environment, on_small_disk, run_python

from fuel.datasets import H5PYDataset

pytestmark = pytest.mark.skipif(
    sys.platform == 'win32', reason='this system has other permissions')

# That user could not read modules that are imported later.
AS_NOBODY = """
import logging, os, resource, sys, zipfile
import fuel.config_parser
import platformdirs
from fuel import config
from fuel.datasets import H5PYDataset
from fuel.datasets.csv import CSVDataset
from fuel.datasets.files import FilesDataset
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
def folder():
    """Return a folder with one file of each kind that nobody may read."""
    # Another run of pytest closes the folder that `tmp_path` lies in.
    with tempfile.TemporaryDirectory() as name:
        write_unreadable(Path(name))
        yield Path(name)


def write_unreadable(folder):
    """Write the files, and let everybody get as far as them."""
    path = folder / 'a.hdf5'
    with h5py.File(path, 'w') as file:
        file['x'] = numpy.zeros((4, 2))
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 4)}})
    numpy.save(folder / 'a.npy', numpy.zeros(3))
    (folder / 'a.csv').write_text('a,b\n1,2\n')
    for name in 'a.files', 'a.closed':
        (folder / name).mkdir()
    (folder / 'a.files' / '1').write_bytes(b'1')
    for name in 'a.hdf5', 'a.npy', 'a.csv', 'a.files/1', 'a.closed':
        (folder / name).chmod(0)
    place = folder
    while place != place.parent and os.stat(place).st_uid == os.geteuid():
        place.chmod(place.stat().st_mode | 0o055)
        place = place.parent


@pytest.mark.parametrize('made', [
    "H5PYDataset(path('a.hdf5'), ('train',))", "NPYDataset(path('a.npy'))",
    "CSVDataset(path('a.csv'))", "FilesDataset(path('a.closed'))",
    "FilesDataset(path('a.files')).get_data(None, [0])"])
def test_file_without_permission_is_named(folder, made):
    """Errors of HDF5 name the file too; a folder is named when it is listed,
    and a file in it when it is read."""
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


COPY = """
import logging, os, sys
from fuel import config
from fuel.datasets import H5PYDataset
from fuel.remote import local_copies
logging.basicConfig()
folder, local, check = sys.argv[1:]
config.local_data_path = local
if check == 'unchecked':
    # As when another program takes the room in the meantime.
    local_copies.check_enough_space = lambda *paths: True
dataset = H5PYDataset(folder + '/large.hdf5', ('train',))
print(dataset.get_data(None, [3, 1])[0][:, 0].tolist())
dataset.close(None)
print([name for _, _, names in os.walk(local) for name in names
       if name.endswith('.hdf5')])
"""


@pytest.mark.parametrize('disk, check, reason', [
    ('size=1m', 'checked', b'no room'),
    ('size=1m', 'unchecked', b'No space left'),
    ('size=1m,ro', 'checked', b'ead-only')])
def test_copies_on_a_disk_that_takes_none_cost_no_run(
        tmp_path, disk, check, reason):
    """A full and a read-only disk, mounted for this: the original is read
    in place, a warning says why, and no part of a copy stays."""
    small = tmp_path / 'small'
    private = on_small_disk(small, disk)
    with h5py.File(tmp_path / 'large.hdf5', 'w') as file:
        file['x'] = numpy.arange(4)[:, None] * numpy.ones(10 ** 5)
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 4)}})
    done = subprocess.run(
        [*private, sys.executable, '-c', COPY, str(tmp_path), str(small),
         check], env=environment(), capture_output=True, check=False,
        timeout=60)
    assert (0, b'[3.0, 1.0]\n[]\n') == (done.returncode, done.stdout)
    assert b'is read in place' in done.stderr and reason in done.stderr


@pytest.mark.parametrize('made', [
    "H5PYDataset(path('a.hdf5'), ('train',))", "NPYDataset(path('a.npy'))",
    "CSVDataset(path('a.csv'))"])
def test_lack_of_descriptors_is_told_with_the_file(folder, made):
    """The error on opening is neither a crash nor that of a damaged file."""
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
