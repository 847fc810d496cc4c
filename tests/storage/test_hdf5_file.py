"""HDF5 files with h5py's names."""
import multiprocessing
import operator
import os
import pickle
import threading
from pathlib import Path

import h5py
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from support.processes import run_python

from fuel.exceptions import DamagedFileError
from fuel.storage import open_hdf5
from fuel.storage.open_files import FileAccess, access_to
from fuel.storage.hdf5_file import SharedFile

LAYOUTS = {
    'contiguous': {}, 'chunked': {'chunks': (3, 2, 2)},
    'gzip': {'chunks': (4, 3, 1), 'compression': 'gzip'},
    'lzf': {'chunks': (1, 4, 5), 'compression': 'lzf', 'shuffle': True}}
TYPES = ('u1', '>i4', '<f4', '>f8', '?', 'S3', 'c8',
         [('a', '<i2'), ('b', '>f4', (2,))])
SHAPE = 11, 4, 5


@pytest.fixture(scope='module')
def arrays(tmp_path_factory):
    """Return a file of arrays of each layout and type, and what they hold."""
    folder = tmp_path_factory.mktemp('arrays')
    rng = numpy.random.default_rng(1)
    path, held = str(folder / 'arrays.h5'), {}
    with h5py.File(path, 'w') as file:
        for layout, options in LAYOUTS.items():
            for dtype in TYPES:
                array = numpy.frombuffer(
                    rng.integers(65, 67, 11 * 20 * numpy.dtype(
                        dtype).itemsize).astype('u1').tobytes()
                    if dtype != '?' else rng.integers(
                        0, 2, 220).astype('u1').tobytes(), dtype).reshape(
                            SHAPE)
                name = f'{layout}/{numpy.dtype(dtype).str}'
                held[name] = array
                file.create_dataset(name, data=array, **options)
        file['text'] = numpy.array([f'é{i}' for i in range(11)], object)
        held['text'] = file['text'][()]
        file['row/one'] = rng.random(11)
        held['row/one'] = file['row/one'][()]
        file['scalar'] = 3
        file['scalar'].attrs['unit'] = 'm'
        virtual = h5py.VirtualLayout((22, 4, 5), '<f4')
        for half in range(2):
            virtual[half * 11:half * 11 + 11] = h5py.VirtualSource(
                path, 'gzip/<f4', SHAPE)
        file.create_virtual_dataset('virtual', virtual)
        held['virtual'] = numpy.concatenate([held['gzip/<f4']] * 2)
    return path, held


def selections(count):
    """Return a strategy of selections of one axis."""
    place = st.integers(-count, count - 1)
    bound = st.none() | st.integers(-count - 2, count + 2)
    return st.one_of(
        place, st.builds(slice, bound, bound, st.none() | st.integers(1, 4)),
        st.lists(place, max_size=6),
        st.lists(place, max_size=6).map(lambda rows: numpy.array(
            rows, 'i4')),
        st.lists(st.booleans(), min_size=count, max_size=count).map(
            lambda mask: numpy.array(mask, bool)))


@given(st.data())
def test_any_selection_is_numpys(arrays, data):
    """Selections are of rows in any order, of other axes, of fields, of
    everything."""
    path, held = arrays
    name = data.draw(st.sampled_from(sorted(held)))
    expected = held[name]
    first = data.draw(selections(len(expected)))
    key = data.draw(st.sampled_from([first, (first,), (first, ...)]))
    if expected.ndim > 1 and data.draw(st.booleans()):
        key = first, *[data.draw(st.one_of(
            st.integers(0, count - 1), st.builds(
                slice, st.integers(0, count), st.none())))
            for count in expected.shape[1:data.draw(st.integers(1, 3))]]
    file = open_hdf5(path)
    found = file[name][key]
    wanted = expected[tuple(part if not isinstance(part, list)
                            else numpy.array(part, int) for part in key)
                      if isinstance(key, tuple) else numpy.array(key, int)
                      if isinstance(key, list) else key]
    assert_array_equal(wanted, found)
    assert numpy.shape(wanted) == numpy.shape(found)
    if isinstance(found, numpy.ndarray) and not found.dtype.hasobject:
        assert found.dtype.isnative


def test_names_are_h5pys(arrays):
    """Groups and arrays have h5py's names, so that a loader need not be
    changed."""
    path, held = arrays
    with open_hdf5(path, 'r', swmr=True) as file, h5py.File(path) as other:
        assert list(other) == list(file) == list(file.keys())
        assert path == file.filename
        assert 'gzip/<f4' in file
        assert 'gone' not in file
        assert file.get('gone') is None
        group = file['gzip']
        assert {*other['gzip']} == {name for name, _ in group.items()}
        array, plain = group['<f4'], other['gzip/<f4']
        for name in ('shape', 'dtype', 'ndim', 'size', 'chunks', 'maxshape',
                     'compression', 'name', 'nbytes'):
            assert getattr(plain, name) == getattr(array, name)
        assert len(plain) == len(array)
        assert_array_equal(plain[()], list(array))
        assert_array_equal(plain[()], numpy.asarray(array, 'f8'))
        assert group == array.parent
        assert file == array.file
        assert 'm' == file['scalar'].attrs['unit']
        assert 3 == file['scalar'][()]
        assert_array_equal(other['text'].asstr()[:], file['text'].asstr()[:])
        fields = numpy.dtype(TYPES[-1]).str
        assert_array_equal(held[f'gzip/{fields}']['a'],
                           file[f'gzip/{fields}']['a'])
        seen = []
        file.visititems(lambda name, node: seen.append(name))
        others = []
        other.visititems(lambda name, node: others.append(name))
        assert sorted(others) == sorted(seen)
    # As a handle of h5py's is not: it is opened again.
    assert_array_equal(held['row/one'], array.file['row/one'][:])


@pytest.mark.parametrize('name', [
    numpy.dtype(TYPES[-1]).str, '<f4', '>f8'])
@pytest.mark.parametrize('layout', ['contiguous', 'lzf'])
def test_read_direct_fills_an_array(arrays, layout, name):
    """All fields or some of them are read, also as other types."""
    path, held = arrays
    name = f'{layout}/{name}'
    dtype = held[name].dtype
    wanted = [dtype.newbyteorder('='), dtype]
    if dtype.names:
        wanted += [[('a', '<i2')], [('b', '<f8', (2,)), ('a', '<i4')]]
    for kind in wanted:
        for source, place in ((None, None), (numpy.s_[3:8], None),
                              (numpy.s_[2:4, 1], numpy.s_[1:3])):
            shape = SHAPE if source is None else (
                (5, *SHAPE[1:]) if place is None else (3, SHAPE[2]))
            expected, found = numpy.zeros((2, *shape), kind)
            with h5py.File(path) as file:
                file[name].read_direct(expected, source, place)
            open_hdf5(path)[name].read_direct(found, source, place)
            assert expected.tobytes() == found.tobytes()


@pytest.mark.parametrize('key, error', [
    (11, IndexError), (-12, IndexError), ([3, 11], IndexError),
    (numpy.ones(3, bool), IndexError), ([.5], TypeError),
    ('gone', ValueError)])
def test_wrong_selections_are_refused(arrays, key, error):
    """The error names the row that is out of range."""
    with pytest.raises(error):
        open_hdf5(arrays[0])['contiguous/|u1'][key]


def test_files_are_only_read(arrays, tmp_path):
    """Writing and unknown options are refused."""
    with pytest.raises(ValueError, match='only reads'):
        open_hdf5(arrays[0], 'a')
    with pytest.raises(FileNotFoundError):
        open_hdf5(tmp_path / 'gone.h5')
    with pytest.raises(ValueError, match='follow'):
        open_hdf5(arrays[0], follow='nowhere')
    with pytest.raises(KeyError, match='gone'):
        open_hdf5(arrays[0])['gone']


@pytest.mark.parametrize('method', ['fork', 'spawn'])
def test_arrays_go_to_other_processes(arrays, method):
    """A process gets them by a pickle, or has them after a fork."""
    path, held = arrays
    array = open_hdf5(path)['gzip/<f4']
    array[[3]]
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.starmap(operator.getitem, [(array, [5, 0])] * 3)
    for one in found:
        assert_array_equal(held['gzip/<f4'][[5, 0]], one)
    again = pickle.loads(pickle.dumps(array))
    assert array == again
    assert_array_equal(held['gzip/<f4'], again[...])


def test_threads_read_at_once(arrays):
    """Threads may share the first read, which opens everything."""
    path, held = arrays
    failed = []

    def read(seed):
        rng = numpy.random.default_rng(seed)
        for _ in range(30):
            name = str(rng.choice(sorted(held)))
            rows = rng.integers(0, 11, 5)
            if not numpy.array_equal(held[name][rows],
                                     open_hdf5(path)[name][rows]):
                failed.append(name)

    threads = [threading.Thread(target=read, args=(seed,))
               for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_changed_files_are_errors_until_they_are_opened_again(tmp_path):
    """No batch has rows of two versions."""
    path = tmp_path / 'a.h5'
    for version in range(2):
        with h5py.File(tmp_path / 'new.h5', 'w') as file:
            file['x'] = numpy.full((9, 3), version)
        os.replace(tmp_path / 'new.h5', path)
        if version == 0:
            array = open_hdf5(path)['x']
            assert 0 == array[[2, 1]].sum()
    assert 0 == array[[2]].sum()
    assert 9 == open_hdf5(path)['x'][[0, 1, 2]].sum()
    with open_hdf5(path) as file:
        array = file['x']
        assert 3 == array[[0]].sum()
    # Closed, as far as HDF5 knows.
    with h5py.File(path, 'r+') as file:
        file['x'][:] = 5
    with pytest.raises(DamagedFileError):
        array[[0]]
    with open_hdf5(path) as file:
        array = file['x']
        assert 15 == array[[0]].sum()
    with open(path, 'r+b') as raw:
        raw.seek(-8, 2)
        raw.write(b'\1' * 8)
    with pytest.raises(DamagedFileError):
        array[[0]]


def test_links_outside_of_the_folder_are_refused(tmp_path):
    """The option `follow` allows such links."""
    (tmp_path / 'inner').mkdir()
    with h5py.File(tmp_path / 'other.h5', 'w') as file:
        file['x'] = [1, 2]
    path = tmp_path / 'inner' / 'a.h5'
    with h5py.File(path, 'w') as file:
        file['link'] = h5py.ExternalLink('../other.h5', '/x')
        file['broken'] = h5py.ExternalLink('gone.h5', '/x')
    with pytest.raises(ValueError, match='lies outside'):
        open_hdf5(path)['link']
    assert [2, 1] == open_hdf5(path, follow='anywhere')['link'][
        [1, 0]].tolist()
    assert 'broken' not in open_hdf5(path)
    assert open_hdf5(path).get('broken') is None


def test_files_that_nobody_has_are_closed(tmp_path):
    """HDF5's lock on an open file would keep writers away."""
    path = tmp_path / 'a.h5'
    with h5py.File(path, 'w') as file:
        file['x'] = numpy.arange(5)
        file['y'] = numpy.arange(5.)
    array = open_hdf5(path)['x']
    assert [3, 1] == array[[3, 1]].tolist()
    other = open_hdf5(path)['y']
    del array
    with pytest.raises(OSError, match='open'):
        h5py.File(path, 'r+')
    assert [2.] == other[[2]].tolist()
    del other
    with h5py.File(path, 'r+') as file:
        file['x'][0] = 7
    assert 7 == open_hdf5(path)['x'][0]


def test_file_is_opened_once(arrays, monkeypatch):
    """It is not opened once to be checked, and again to be read."""
    opened = []
    open_once = FileAccess.open
    monkeypatch.setattr(FileAccess, 'open', lambda access: opened.append(
        access) or open_once(access))
    SharedFile(access_to(arrays[0], None), None, 'folder').files()
    assert 1 == len(opened)


def test_many_files_are_not_kept_open(tmp_path):
    """Loaders open a file for each example."""
    for number in range(80):
        with h5py.File(tmp_path / f'{number}.h5', 'w') as file:
            file['x'] = numpy.full(4, number)
    before = len(os.listdir('/proc/self/fd'))
    for number in range(80):
        with open_hdf5(tmp_path / f'{number}.h5') as file:
            assert [number] * 2 == file['x'][[3, 0]].tolist()
    assert len(os.listdir('/proc/self/fd')) - before < 80


LOADER = """
import h5py

class Loader:
    def __init__(self, path):
        self.images = h5py.File(path, 'r')['images']

    def get(self, rows):
        return self.images[rows]
"""

LINES = {
    'of the whole process': 'package.module.h5py.File = open_hdf5',
    'of one module':
        'package.module.h5py = types.SimpleNamespace(**{'
        "**vars(h5py), 'File': open_hdf5})"}

PROGRAM = """
import sys, types
import h5py, numpy
import package.module
from fuel.storage import open_hdf5

path, line, real = *sys.argv[1:], h5py.File
exec(line)
found = package.module.Loader(path).get([7, 2, 7])
assert type(package.module.Loader(path).images).__name__ == 'HDF5Array'
assert found.tolist() == [[14, 15], [4, 5], [14, 15]], found
if line.startswith('package.module.h5py ='):
    assert h5py.File is real

import fuel
from fuel.bin import fuel_convert, fuel_info
from fuel.datasets import H5PYDataset, HDF5Dataset

dataset = HDF5Dataset(path, ['images'])
assert dataset.get_data(None, [3])[0].tolist() == [[6, 7]]
assert fuel.load(path).get_data(None, [3])[0].tolist() == [[6, 7]]
given = {'train': (0, 8)}
for one in path, real(path):
    dataset = H5PYDataset(one, ('train',), splits=given)
    assert dataset.get_data(None, [3])[0].tolist() == [[6, 7]]
virtual = h5py.VirtualLayout((10, 2), 'i8')
virtual[:] = h5py.VirtualSource(path, 'images', (10, 2))
with real(f'{path}.virtual', 'w') as file:
    file.create_virtual_dataset('images', virtual)
    file['linked'] = h5py.ExternalLink(path, 'images')
for name in 'images', 'linked':
    dataset = HDF5Dataset(f'{path}.virtual', [name])
    assert dataset.get_data(None, [3])[0].tolist() == [[6, 7]]
assert not fuel_info.main([path])
with open(f'{path}.csv', 'w') as table:
    table.write('a,b\\n1,2\\n3,4\\n')
assert not fuel_convert.main(['csv', f'{path}.csv', '--target', 'b',
                              '-o', path.rpartition('/')[0]])
"""

MANUAL = Path(__file__).parents[2] / 'docs' / 'hdf5_layouts.rst'


@pytest.mark.parametrize('line', LINES.values(), ids=LINES)
def test_open_hdf5_takes_the_place_of_h5pys_class_of_files(tmp_path, line):
    """A module that says ``import h5py`` gets it, by either line of the
    manual; Fuel itself, and the modules that it imports later, keep the
    class."""
    path = str(tmp_path / 'a.h5')
    with h5py.File(path, 'w') as file:
        file['images'] = numpy.arange(20).reshape(10, 2)
    assert line in MANUAL.read_text()
    (tmp_path / 'package').mkdir()
    (tmp_path / 'package' / '__init__.py').touch()
    (tmp_path / 'package' / 'module.py').write_text(LOADER)
    (tmp_path / 'program.py').write_text(PROGRAM)
    status, _, errors = run_python(str(tmp_path / 'program.py'), path, line)
    assert not status, errors.decode()
