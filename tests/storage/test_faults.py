"""Damaged files raise errors that name file, source and row."""
import os
import re
import signal
import subprocess
import sys
import textwrap

import h5py
import numpy
import pytest
from support.processes import run_python

from fuel.exceptions import DamagedFileError
from fuel.storage import choose_reader, chunks

PAGE = 4096


@pytest.fixture
def path(tmp_path):
    """Return the path of a file with one data set in each layout."""
    target = tmp_path / 'faulty.hdf5'
    data = numpy.random.RandomState(0).randint(
        0, 256, (64, PAGE)).astype('u1')
    with h5py.File(target, 'w') as file:
        file['contiguous'] = data
        file.create_dataset('chunked', data=data, chunks=(8, PAGE))
        file.create_dataset('gzip', data=data // 16, chunks=(8, PAGE),
                            compression='gzip')
        file.create_dataset('lzf', data=data // 64, chunks=(8, PAGE),
                            compression='lzf')
        file.create_dataset('checked', data=data, chunks=(8, PAGE),
                            fletcher32=True)
    return target


def overwrite(path, address, content):
    """Change bytes of a file, but not its size or time."""
    status = os.stat(path)
    with open(path, 'r+b') as file:
        file.seek(address)
        file.write(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def chunk_of(path, name, chunk):
    """Return address and size of a chunk."""
    with h5py.File(path, 'r') as file:
        found = file[name].id.get_chunk_info(chunk)
    return found.byte_offset, found.size


@pytest.mark.parametrize('name', ['gzip', 'lzf', 'checked'])
@pytest.mark.parametrize('by_hdf5', [False, True])
def test_damaged_chunk_is_an_error_that_names_the_row(
        path, name, by_hdf5, monkeypatch):
    """Bytes inside a chunk were changed; rows of others are still read."""
    if by_hdf5:
        monkeypatch.setattr(chunks, 'is_known', lambda *_: False)
    address, size = chunk_of(path, name, 3)
    overwrite(path, address, b'\xff' * (size - 8))
    with h5py.File(path, 'r') as file:
        reader = choose_reader(file[name])
        with pytest.raises(
                DamagedFileError,
                match=f"faulty.hdf5, source '{name}', row 27: .*chunk"):
            reader.read(numpy.array([0, 27, 30]))
        assert (file[name][50] == reader.read(50)).all()


def test_failing_checksum_names_both_values(path):
    """One bit of a chunk with fletcher32 was turned."""
    address, _ = chunk_of(path, 'checked', 0)
    with open(path, 'rb') as file:
        file.seek(address)
        first = file.read(1)[0]
    overwrite(path, address, bytes([first ^ 1]))
    with h5py.File(path, 'r') as file, pytest.raises(DamagedFileError,
                       match='row 5: .*checksum is 0x.* says 0x'):
        choose_reader(file['checked']).read(5)


@pytest.mark.parametrize('package', ['with', 'without'])
def test_gzip_is_decoded_without_the_package_too(path, package):
    """Some platforms have no such package."""
    status, out, errors = run_python('-c', """
import sys
without = sys.argv[2] == 'without'
if without:
    sys.modules['deflate'] = None
import h5py
from fuel.storage import filters, choose_reader
assert without == (filters.deflate is None)
with h5py.File(sys.argv[1], 'r') as file:
    reader = choose_reader(file['gzip'])
    assert (file['gzip'][...] == reader.read(slice(None))).all()
    print(reader.layout.reader, 'right')
""", str(path), package)
    assert (0, b'', b'decoded right\n') == (status, errors, out)


def test_chunk_that_inflates_to_more_is_refused(path, monkeypatch):
    """A chunk may not claim more memory than it has."""
    import zlib
    bomb = zlib.compress(bytes(100 << 20), 9)
    with h5py.File(path, 'r+') as file:
        file['gzip'].id.write_direct_chunk((0, 0), bomb)
    for package in ('here', None):
        if package is None:
            monkeypatch.setattr('fuel.storage.filters.deflate', None)
        with h5py.File(path, 'r') as file, pytest.raises(
                DamagedFileError, match="'gzip', row 2: .*decode"):
            choose_reader(file['gzip']).read(2)


def test_chunk_that_inflates_to_less_is_refused(path, monkeypatch):
    """HDF5 would hand out what happens to be in memory."""
    import zlib
    with h5py.File(path, 'r+') as file:
        file['gzip'].id.write_direct_chunk((0, 0), zlib.compress(b'short'))
    for package in ('here', None):
        if package is None:
            monkeypatch.setattr('fuel.storage.filters.deflate', None)
        with h5py.File(path, 'r') as file, pytest.raises(
                DamagedFileError, match='to 5 bytes instead'):
            choose_reader(file['gzip']).read(2)


@pytest.mark.parametrize('name', ['gzip', 'chunked'])
def test_chunk_index_outside_the_file_is_an_error(path, name):
    """The address of a chunk in the index was changed."""
    address, _ = chunk_of(path, name, 3)
    with open(path, 'rb') as file:
        content = file.read()
    key = address.to_bytes(8, 'little')
    assert 1 == content.count(key)
    overwrite(path, content.index(key), (1 << 40).to_bytes(8, 'little'))
    with h5py.File(path, 'r') as file:
        reader = choose_reader(file[name])
        assert reader.layout.reader != 'h5py'
        for rows in (numpy.array([1, 30, 25]), slice(20, 40)):
            first = 30 if isinstance(rows, numpy.ndarray) else 24
            with pytest.raises(DamagedFileError,
                               match=f"'{name}', row {first}: the file has"):
                reader.read(rows)
        assert (file[name][8] == reader.read(8)).all()


def test_contiguous_data_outside_the_file_is_an_error(path):
    """The address of the data was changed to near the end."""
    with h5py.File(path, 'r') as file:
        address = file['contiguous'].id.get_offset()
    with open(path, 'rb') as file:
        content = file.read()
    key = (address).to_bytes(8, 'little') + (64 * PAGE).to_bytes(8, 'little')
    assert 1 == content.count(key)
    overwrite(path, content.index(key),
              (len(content) - 100).to_bytes(8, 'little'))
    # Newer versions of HDF5 see it themselves.
    with h5py.File(path, 'r') as file, pytest.raises(
            (DamagedFileError, KeyError),
            match="'contiguous', row 3: |likely file corrupt"):
        choose_reader(file['contiguous']).read(3)


@pytest.mark.parametrize('name', ['contiguous', 'chunked', 'gzip'])
def test_file_cut_while_in_use_is_an_error(path, name):
    """A map of a file that was cut must not kill the process."""
    with h5py.File(path, 'r') as file:
        reader = choose_reader(file[name])
        reader.read(slice(0, 8))
        os.truncate(path, 3000)
        for rows in (numpy.array([63]), slice(8, None), 40):
            with pytest.raises(DamagedFileError,
                               match='faulty.hdf5 had .* has 3000 now'):
                reader.read(rows)


def test_file_cut_and_filled_again_is_an_error(path):
    """Copying another file onto one in use mixes old and new rows."""
    content = path.read_bytes()
    with h5py.File(path, 'r') as file:
        reader = choose_reader(file['contiguous'])
        status = os.stat(path)
        with open(path, 'wb') as copy:
            copy.write(content)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 10))
        with pytest.raises(DamagedFileError, match='was written to'):
            reader.read(0)


def test_file_replaced_while_in_use_is_read_as_it_was(path, tmp_path):
    """Renaming a new file onto one in use leaves readers the old one."""
    with h5py.File(path, 'r') as file:
        reader = choose_reader(file['contiguous'])
        wanted = file['contiguous'][40]
        with h5py.File(tmp_path / 'new.hdf5', 'w') as new:
            new['contiguous'] = numpy.zeros((64, PAGE), 'u1')
        os.replace(tmp_path / 'new.hdf5', path)
        assert (wanted == reader.read(40)).all()


@pytest.mark.skipif(not hasattr(signal, 'SIGBUS'),
                    reason='this system cannot cut a mapped file')
@pytest.mark.parametrize('handler', ['none', 'before', 'after'])
def test_bus_error_elsewhere_goes_where_it_went(tmp_path, handler):
    """Only maps of Fuel are guarded; faulthandler still sees the others."""
    script = textwrap.dedent(f"""
        import faulthandler, mmap, os, sys
        import h5py, numpy
        from fuel.storage import choose_reader
        if {handler!r} == 'before':
            faulthandler.enable()
        with h5py.File('a.hdf5', 'w') as file:
            file['x'] = numpy.zeros((64, 4096), 'u1')
        file = h5py.File('a.hdf5', 'r')
        reader = choose_reader(file['x'])
        reader.read(5)
        if {handler!r} == 'after':
            faulthandler.enable()
            reader.read(5)
        with open('other', 'wb') as other:
            other.write(bytes(8192))
        with open('other', 'r+b') as other:
            memory = mmap.mmap(other.fileno(), 0)
            os.truncate('other', 0)
        print('alive', flush=True)
        memory[5000]
        print('not reached', flush=True)
    """)
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)}
    # The development mode has a handler of its own.
    environment.pop('PYTHONDEVMODE', None)
    done = subprocess.run(
        [sys.executable, '-c', script], cwd=tmp_path, timeout=60,
        capture_output=True, text=True, check=False,
        env=environment)
    assert -signal.SIGBUS == done.returncode
    assert 'alive\n' == done.stdout
    assert ('Bus error' in done.stderr) == (handler != 'none')


@pytest.mark.skipif(not hasattr(signal, 'SIGBUS'),
                    reason='this system cannot cut a mapped file')
def test_file_cut_in_the_middle_of_a_copy_is_an_error(path):
    """Another thread cuts the file again and again; each read either gives
    the right rows or an error."""
    script = textwrap.dedent("""
        import os, shutil, sys, threading
        import h5py, numpy
        from fuel.exceptions import DamagedFileError
        from fuel.storage import choose_reader
        path = sys.argv[1]
        failed = 0
        for attempt in range(30):
            shutil.copy(path, 'copy.hdf5')
            with h5py.File('copy.hdf5', 'r') as file:
                reader = choose_reader(file['contiguous'])
                wanted = reader.read(slice(None))
                rows = numpy.random.RandomState(attempt).randint(
                    0, 64, 20000)
                cut = threading.Timer(
                    0.001 * (attempt % 10), os.truncate, ('copy.hdf5', 1))
                cut.start()
                try:
                    for _ in range(100):
                        batch = reader.read(rows)
                        assert (batch == wanted[rows]).all()
                except DamagedFileError:
                    failed += 1
                cut.join()
        print(failed)
    """)
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, '-c', script, str(path)], cwd=path.parent,
        timeout=100, capture_output=True, text=True, check=False,
        env=environment)
    assert '' == done.stderr
    assert '30\n' == done.stdout


@pytest.mark.skipif(os.name == 'nt', reason='has no such limit')
@pytest.mark.parametrize('spare', [0, 1, 2])
def test_lack_of_descriptors_is_told_with_the_file(path, spare):
    """A process may open only so many files; Fuel needs two for one.

    In a process of its own: threads and files that other tests left may
    close descriptors at any time.
    """
    status, out, errors = run_python('-c', """
import os, resource, sys
import h5py
from fuel.storage import choose_reader
path, spare = sys.argv[1], int(sys.argv[2])
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
with h5py.File(path, 'r') as file:
    taken = [os.dup(0) for _ in range(100)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(taken) + 1, hard))
    for _ in range(spare):
        os.close(taken.pop())
    try:
        print(choose_reader(file['contiguous']).read(3).shape)
    except OSError as error:
        print(error)
""", str(path), str(spare))
    assert (0, b'') == (status, errors)
    assert re.match(r'\(4096,\)' if spare == 2 else
                    r'(?s).*Too many open files.*ulimit.*faulty\.hdf5',
                    out.decode())
