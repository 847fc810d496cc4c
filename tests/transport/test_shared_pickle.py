"""Objects pickled once for several processes: arrays are shared, not sent."""
import mmap
import multiprocessing
import os
import pickle
import sys
import tempfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.processes import start_python
from support.random_arrays import ARRAYS
from support.shared_arrays import Writing, stream_of
from support.waiting import wait_until

from fuel.exceptions import DamagedFileError
from fuel.transformers import MultiProcessing
from fuel.transport import shared_pickle
from fuel.transport.segment import Segment
from fuel.transport.shared_pickle import SHARED_BYTES, SharedPickle

STARTED = [method for method in multiprocessing.get_all_start_methods()
           if method != 'fork']
LINUX = pytest.mark.skipif(sys.platform != 'linux', reason='asks Linux')
MIB = 1 << 20


@contextmanager
def pickle_of(instance):
    """Pickle an object, and close the segment in the end."""
    pickled = SharedPickle(instance)
    try:
        yield pickled
    finally:
        pickled.close_descriptor()


def load(pickled):
    """Return the object, as another process gets it."""
    shared = pickle.loads(pickle.dumps(pickled.shared))
    descriptor = pickled.descriptor
    return shared.load(None if descriptor is None else os.dup(descriptor))


def across(instance):
    """Return an object as another process gets it."""
    with pickle_of(instance) as pickled:
        pickled.write()
        return load(pickled)


@given(st.lists(st.tuples(ARRAYS, st.booleans(), st.sampled_from('CFS')),
                max_size=5), st.sampled_from([1, 100, MIB]))
def test_objects_arrive_as_they_are(drawn, limit):
    """Types, values, the order in memory and the writable flag stay."""
    arrays = []
    for values, is_writable, order in drawn:
        array = (numpy.repeat(values, 2, 0)[::2]
                 if order == 'S' and values.ndim
                 else values.copy(order='F' if order == 'F' else 'C'))
        array.flags.writeable = is_writable
        arrays.append(array)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_pickle, 'SHARED_BYTES', limit)
        patch.setattr(shared_pickle, '_INLINE', limit)
        found = across({'arrays': arrays, 'again': arrays[:1], 'n': 7})
    assert found['n'] == 7
    assert len(found['arrays']) == len(arrays)
    if arrays:
        assert found['again'][0] is found['arrays'][0]
    for array, expected in zip(found['arrays'], arrays, strict=True):
        assert array.dtype == expected.dtype
        assert array.shape == expected.shape
        # Not the bytes: those between fields are any.
        assert repr(array.tolist()) == repr(expected.tolist())
        assert array.flags.aligned
        if expected.size:
            assert array.flags.writeable == expected.flags.writeable
            assert array.flags.f_contiguous >= expected.flags.f_contiguous


def test_large_arrays_are_written_once_and_belong_to_each():
    """A process that writes into its arrays changes them for no other."""
    array = numpy.arange(SHARED_BYTES, dtype='u1')
    with pickle_of([array]) as pickled:
        pickled.write()
        assert len(pickle.dumps(pickled.shared)) < 1000
        first, second = load(pickled), load(pickled)
        first[0][:] = 7
        assert (second[0] == array).all()
        assert (load(pickled)[0] == array).all()
        assert array[8] == 8


@LINUX
def test_limit_of_files_is_named_where_it_forbids_shared_memory():
    """Shared memory is a file to the system."""
    resource = pytest.importorskip('resource')
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, limits[1]))
    text = (r'2097152 bytes of memory that processes share cannot be had: the '
            r'limit of the size of files \(ulimit -f\) applies to this memory')
    try:
        with pickle_of(numpy.zeros(2 * MIB, 'u1')) as pickled, \
                pytest.raises(OSError, match=text):
            pickled.write()
        with pytest.raises(OSError, match=text):
            Segment.create(2 * MIB)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@LINUX
def test_segment_cannot_be_written_any_more():
    """Neither the workers nor the maker can write to the segment."""
    with pickle_of(numpy.zeros(SHARED_BYTES)) as pickled:
        pickled.write()
        with pytest.raises(PermissionError):
            os.pwrite(pickled.descriptor, b'1', 0)


def test_small_objects_need_no_segment():
    """Small objects travel in the message."""
    with pickle_of([numpy.arange(10)]) as pickled:
        pickled.write()
        assert pickled.descriptor is None
        assert load(pickled)[0].tolist() == list(range(10))


def map_of(path, kind):
    """Return an array over a file in one of the ways that there are."""
    if kind == 'mmap':
        with open(path, 'rb') as file:
            return numpy.frombuffer(mmap.mmap(
                file.fileno(), 0, access=mmap.ACCESS_READ), 'i4').reshape(
                    100, 30)
    mode = kind if kind in ('r', 'r+', 'c') else 'r'
    array = numpy.memmap(path, 'i4', mode, shape=(100, 30))
    return {'plain': lambda: numpy.asarray(array),
            'later': lambda: numpy.memmap(path, 'i4', 'r', 120 * 50,
                                          shape=(50, 30)),
            'steps': lambda: array[10:90:3, ::2],
            'reversed': lambda: array[::-1, 3::-1],
            'turned': lambda: array.T, 'one': lambda: array[5:6, 7],
            }.get(kind, lambda: array)()


@pytest.fixture
def file(tmp_path):
    """Return the path of a file of 100 x 30 numbers."""
    path = tmp_path / 'numbers.bin'
    numpy.arange(3000, dtype='i4').tofile(path)
    return path


@pytest.mark.parametrize('knows_maps', [
    pytest.param(True, marks=LINUX), False])
@pytest.mark.parametrize('kind', [
    'r', 'r+', 'plain', 'later', 'steps', 'reversed', 'turned', 'one',
    'mmap'])
def test_maps_of_files_are_opened_again(file, kind, knows_maps, monkeypatch):
    """A map is not sent: changes of the file are seen, as after a fork."""
    if not knows_maps:
        monkeypatch.setattr(shared_pickle, '_MAPS', Path('/not/there'))
    monkeypatch.setattr(shared_pickle, 'SHARED_BYTES', 1)
    array = map_of(file, kind)
    found = across(array)
    assert type(found) is type(array)
    assert found.flags.writeable == array.flags.writeable
    assert found.dtype == array.dtype
    assert (found == array).all()
    if kind == 'mmap' and not knows_maps:
        # Without /proc/self/maps the file of a bare map is not known.
        return
    assert found.strides == array.strides
    with open(file, 'r+b') as opened:
        opened.write(b'\xff' * 12000)
    assert (found == -1).all()
    if kind == 'r+':
        found[3, 4] = 17
        assert array[3, 4] == 17


@pytest.mark.parametrize('knows_maps', [
    pytest.param(True, marks=LINUX), False])
def test_map_with_changes_of_its_own_is_sent(file, knows_maps, monkeypatch):
    """The changes of a map of mode 'c' are in no file."""
    if not knows_maps:
        monkeypatch.setattr(shared_pickle, '_MAPS', Path('/not/there'))
    array = map_of(file, 'c')
    array[2, 3] = -5
    found = across(array)
    assert (found == array).all()
    found[0, 0] = 9
    assert array[0, 0] == 0


@LINUX
@pytest.mark.parametrize('name', ['a\x0cb', 'a\u2028b', 'a\rb', 'a\nb', ' '])
def test_maps_of_files_of_any_name_arrive(file, name, monkeypatch):
    """The system writes them as they are, but for the end of a line."""
    others = [numpy.memmap(file.with_name('other'), 'i4', 'w+', shape=9)]
    array = numpy.memmap(file.rename(file.with_name(name)), 'i4', 'r')
    others.append(numpy.memmap(file.with_name('other'), 'i4', 'r+'))
    assert (across(array) == numpy.arange(3000)).all()
    for other in others:
        assert (across(other) == 0).all()


class MapsWhenPickled:
    """Has its arrays in files, mapped when it is pickled."""

    def __init__(self, paths):
        self.paths = paths

    def __reduce__(self):
        return list, ([numpy.memmap(path, 'i4', 'r') for path in self.paths],)


@LINUX
def test_many_maps_are_found_by_asking_the_system_once(file, monkeypatch):
    """The maps are read again if an address has another file, since pickling
    maps and frees files itself."""
    asked, read = [], Path.read_bytes
    monkeypatch.setattr(Path, 'read_bytes', lambda path: (
        asked.append(path), read(path))[1])
    arrays = [map_of(file, 'r') for _ in range(200)]
    assert all((found == arrays[0]).all() for found in across(arrays))
    assert len(asked) == 2
    paths = []
    for number in range(8):
        paths.append(file.with_name(f'{number}.bin'))
        numpy.full(5000, number, 'i4').tofile(paths[-1])
    first = [numpy.memmap(path, 'i4', 'r') for path in paths]
    steps = [first[:4], MapsWhenPickled(paths[4:]), Freeing(first),
             MapsWhenPickled(paths[::-1])]
    del first
    found = across(steps)
    assert [[array[0] for array in part] for part in found if part] == [
        [0, 1, 2, 3], [4, 5, 6, 7], [*range(7, -1, -1)]]


class Freeing:
    """Frees arrays when it is pickled."""

    def __init__(self, arrays):
        self.arrays = arrays

    def __reduce__(self):
        self.arrays.clear()
        return list, ()


@LINUX
def test_map_of_a_file_that_is_gone_is_sent(file):
    """A file of the same name is another one."""
    array = map_of(file, 'r')
    file.unlink()
    assert (across(array) == array).all()
    numpy.zeros(3000, 'i4').tofile(file)
    assert (across(array) == array).all()


@LINUX
def test_file_that_is_replaced_before_it_is_opened_is_an_error(file, tmp_path):
    """Its rows are others."""
    with pickle_of(map_of(file, 'r')) as pickled:
        other = tmp_path / 'other'
        numpy.zeros(3000, 'i4').tofile(other)
        other.replace(file)
        with pytest.raises(DamagedFileError, match=r'numbers\.bin was replac'):
            load(pickled)
    with pickle_of(map_of(file, 'r')) as pickled:
        os.truncate(file, 4000)
        with pytest.raises(DamagedFileError, match='replaced or cut'):
            load(pickled)


@pytest.mark.parametrize('method', STARTED)
def test_workers_have_the_data_of_the_moment_they_were_started(method):
    """Later changes do not cross processes, as after a fork."""
    array = numpy.zeros((16, MIB // 8))
    with MultiProcessing(stream_of(array, Writing), num_workers=2,
                         start_method=method, max_store=4) as ahead:
        epoch = ahead.get_epoch_iterator()
        first, = next(epoch)
        array[:] = 100
        seen = [first.max(), *(batch.max() for batch, in epoch)]
    # Each of the two workers made every second batch.
    assert seen == [0, 0, 1, 1]
    assert (array == 100).all()


@LINUX
@pytest.mark.parametrize('method', STARTED)
def test_arrays_are_in_memory_once(method):
    """All workers share one copy."""
    array = numpy.ones((64, MIB // 8))
    with MultiProcessing(stream_of(array), num_workers=2, max_store=4,
                         start_method=method) as ahead:
        assert all((batch == 1).all()
                   for batch, in ahead.get_epoch_iterator())
        for pid in ahead.worker_pids:
            maps = Path(f'/proc/{pid}/smaps').read_text().split('\n')
            sizes = [int(lines.split()[1]) for lines in maps
                     if lines.startswith('Anonymous:')]
            names = [line for line in maps
                     if '-' in line.split(' ')[0] and ':' in line]
            copied = dict(zip(names, sizes, strict=True))
            segments = [size for name, size in copied.items()
                        if 'fuel-segment' in name and 'rw-p' in name]
            assert segments == [0]


@pytest.fixture
def short_folder():
    """Return a folder for temporary files: the path of a socket, such as the
    fork server's, has a limit."""
    with tempfile.TemporaryDirectory(prefix='fuel-', dir='/tmp') as path:
        yield path


KILLED = """
import sys
import numpy
from support.shared_arrays import stream_of
from fuel.transformers import MultiProcessing
if __name__ == '__main__':
    ahead = MultiProcessing(
        stream_of(numpy.ones((1000, 1 << 14))), num_workers=2, max_store=2,
        start_method=sys.argv[1])
    epoch = ahead.get_epoch_iterator()
    next(epoch)
    print(*ahead.worker_pids, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize('method', STARTED)
def test_killed_process_leaves_no_memory_and_no_workers(
        method, tmp_path, short_folder, monkeypatch):
    """The segment has 125 MiB."""
    monkeypatch.setenv('PYTHONPATH', os.pathsep.join(sys.path))
    script = tmp_path / 'script.py'
    script.write_text(KILLED)
    process = start_python(str(script), method, TMPDIR=short_folder)
    try:
        workers = [int(pid) for pid in process.stdout.readline().split()]
        assert len(workers) == 2
    finally:
        process.kill()
        process.communicate()
    for pid in workers:
        wait_until(partial(is_gone, pid), f'the end of worker {pid}')
    # The fork server of Python has a socket there.
    left = [path for path in Path(short_folder).rglob('*') if path.is_file()]
    assert left == []


def is_gone(pid):
    """Return whether a process that is not our child has ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@LINUX
def test_fork_server_has_imported_what_workers_need():
    """The server imports NumPy and Fuel once; workers do not."""
    array = numpy.ones((16, 4))
    with MultiProcessing(stream_of(array),
                         start_method='forkserver') as ahead:
        next(ahead.get_epoch_iterator())
        pid, = ahead.worker_pids
        status = Path(f'/proc/{pid}/status').read_text()
        server = int(status.split('PPid:')[1].split()[0])
        assert server != os.getpid()
        assert '_multiarray_umath' in Path(f'/proc/{server}/maps').read_text()
