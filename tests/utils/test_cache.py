"""The local cache against original files, and many processes at once."""
import logging
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fuel import config
from fuel.remote import local_copies
from fuel.utils.cache import cache_file, copy_from_server_to_local
from fuel.utils.lock import _readers, release_readlock

CACHE_ONE = ('import sys\n'
             'from fuel import config\n'
             'from fuel.utils.cache import cache_file\n'
             'config.local_data_path = sys.argv[1]\n'
             'print(cache_file(sys.argv[2]), flush=True)\n')


@pytest.fixture
def local(tmp_path):
    """Set the folder of local copies for one test; it is not made yet."""
    path = tmp_path / 'local'
    config.local_data_path = str(path)
    before = set(_readers)
    yield path
    for name in set(_readers) - before:
        release_readlock(name)


@pytest.fixture
def server(tmp_path):
    """Make the folder of the original files."""
    path = tmp_path / 'server'
    path.mkdir()
    return path


def write(path, data):
    """Write a file and return its path as a string."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return str(path)


def read(path):
    """Return the bytes of a file."""
    with open(path, 'rb') as file:
        return file.read()


def copies(local):
    """Return the names of all copies, without locks."""
    return sorted(path.name for path in local.glob('*/*')
                  if path.name != 'lock' and '.readlock.' not in path.name
                  and path.suffix != '.description')


def start(*arguments, code=CACHE_ONE):
    """Start an interpreter that caches one file."""
    return subprocess.Popen(
        [sys.executable, '-c', code, *map(str, arguments)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_cache_file_makes_one_local_copy(local, server):
    """The second call finds the copy of the first."""
    original = write(server / 'data.hdf5', b'data')
    copy = cache_file(original)
    assert str(local) == os.path.dirname(os.path.dirname(copy))
    assert copy.endswith('-data.hdf5')
    assert b'data' == read(copy)
    inode = os.stat(copy).st_ino
    assert copy == cache_file(original)
    assert inode == os.stat(copy).st_ino
    assert 1 == len(copies(local))


def test_files_of_one_name_never_collide(local, server, tmp_path):
    """Files of one name and size in two folders have two copies."""
    first = write(server / 'data.hdf5', b'AAAA')
    second = write(tmp_path / 'other' / 'data.hdf5', b'BBBB')
    os.utime(second, (1, 1))
    assert b'AAAA' == read(cache_file(first))
    assert b'BBBB' == read(cache_file(second))
    assert b'AAAA' == read(cache_file(first))


def test_cache_file_key_is_the_real_path(local, server):
    """Two links to one file share the copy."""
    original = write(server / 'data.hdf5', b'data')
    (server / 'link').symlink_to(original)
    assert cache_file(original) == cache_file(str(server / 'link'))


@pytest.mark.parametrize('change', ['content', 'time', 'replaced'])
def test_cache_file_changed_original_is_copied_anew(local, server, change):
    """A stale copy is refreshed, even with the old size
    and an old time."""
    path = server / 'data.hdf5'
    cache_file(write(path, b'old!'))
    times = (path.stat().st_atime, path.stat().st_mtime)
    if change == 'content':
        path.write_bytes(b'new, and longer')
    elif change == 'time':
        path.write_bytes(b'new!')
        os.utime(path, (10 ** 9, 10 ** 9))
    else:
        os.replace(write(server / 'next', b'new!'), path)
        os.utime(path, times)
    assert path.read_bytes() == read(cache_file(str(path)))


def test_stale_copies_are_evicted_once_nobody_reads_them(local, server):
    """Stale copies are removed."""
    path = server / 'data.hdf5'
    write(path, b'1')
    reader = start(local, path, code=CACHE_ONE + 'sys.stdin.read()')
    first = reader.stdout.readline().strip()
    write(path, b'22')
    second = cache_file(str(path))
    assert b'1' == read(first)
    reader.communicate(timeout=30)
    write(path, b'333')
    third = cache_file(str(path))
    # This process still reads the second, nobody the first.
    assert sorted(map(os.path.basename, [second, third])) == copies(local)
    # Release what this process reads, as its end would.
    for name in list(_readers):
        release_readlock(name)
    write(path, b'4444')
    cache_file(str(path))
    assert 1 == len(copies(local))
    left = [path.name for path in local.glob('*/*')
            if '.readlock.' in path.name]
    assert 1 == len(left)


def test_cache_file_original_permissions_are_kept(local, server):
    """A private file stays private, a read-only one read-only."""
    for mode in (0o400, 0o600, 0o640, 0o644):
        original = server / f'{mode}'
        write(original, b'data')
        original.chmod(mode)
        assert mode == stat.S_IMODE(os.stat(cache_file(str(original))).st_mode)


def test_folder_of_a_copy_has_the_access_of_the_original_folder(
        local, server):
    """A user who may not read the folder may not read the copy either."""
    for mode, expected in ((0o750, 0o750), (0o700, 0o700), (0o755, 0o755),
                           (0o775, 0o755), (0o550, 0o750)):
        folder = server / f'{mode}'
        folder.mkdir()
        original = write(folder / 'a', b'data')
        folder.chmod(mode)
        copied = os.path.dirname(cache_file(original))
        assert expected == stat.S_IMODE(os.stat(copied).st_mode)
        target = local / 'more' / f'{mode}'
        copy_from_server_to_local(
            str(folder), str(local), original, str(target / 'a'))
        assert expected == stat.S_IMODE(target.stat().st_mode)


def test_cache_folders_are_not_writable_for_everybody(local, server):
    """The folders of the cache have the rights of any new folder."""
    cache_file(write(server / 'a', b'data'))
    for folder in (local, *local.iterdir()):
        assert not stat.S_IMODE(folder.stat().st_mode) & 0o002


def test_planted_folder_is_not_trusted(local, server, caplog):
    """Data that anybody could have put there are not used."""
    original = write(server / 'a', b'data')
    copy = cache_file(original)
    os.chmod(os.path.dirname(copy), 0o777)
    write(server.parent / 'planted', b'evil')
    shutil.copy(server.parent / 'planted', copy)
    assert original == cache_file(original)
    assert 'others could have changed' in caplog.text


def test_cache_file_without_a_cache_gives_the_original(server):
    """There is no local data path, no copy and no log."""
    config.local_data_path = ''
    original = write(server / 'a', b'data')
    assert original == cache_file(original)


def test_cache_file_in_the_cache_gives_itself(local):
    """A file below the local data path is local already."""
    local.mkdir()
    original = write(local / 'data.hdf5', b'data')
    assert original == cache_file(original)
    assert ['data.hdf5'] == os.listdir(local)


def test_cache_file_missing_original_is_given_back(local, server):
    """The caller's own attempt to open it gives the best error."""
    assert str(server / 'absent') == cache_file(str(server / 'absent'))
    assert not local.exists()


def test_cache_file_no_room_gives_the_original(
        local, server, monkeypatch, caplog):
    """A disk that would be too full is left alone, with a warning."""
    original = write(server / 'a', b'data')
    usage = type(shutil.disk_usage(server))(100, 89, 11)
    monkeypatch.setattr(shutil, 'disk_usage', lambda path: usage)
    assert original == cache_file(original)
    assert 'no room' in caplog.text
    assert [] == copies(local)


def test_cache_file_disk_that_fills_up_gives_the_original(
        local, server, monkeypatch, caplog):
    """A copy that fails leaves nothing behind."""
    original = write(server / 'a', b'data')

    def copyfile(source, destination):
        with open(destination, 'wb') as file:
            file.write(b'da')
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(shutil, 'copyfile', copyfile)
    assert original == cache_file(original)
    assert 'No space left' in caplog.text
    assert [] == copies(local)


def test_cache_file_original_that_changes_meanwhile_is_not_kept(
        local, server, monkeypatch, caplog):
    """A torn copy is found out."""
    original = write(server / 'a', b'data')
    copyfile = shutil.copyfile

    def append_then_copy(source, destination):
        copyfile(source, destination)
        with open(source, 'ab') as file:
            file.write(b'more')

    monkeypatch.setattr(shutil, 'copyfile', append_then_copy)
    assert original == cache_file(original)
    assert 'changed while it was copied' in caplog.text
    assert [] == copies(local)


def test_cache_file_local_path_that_is_a_file_gives_the_original(
        server, caplog):
    """A wrong setting costs speed, not the run."""
    original = write(server / 'a', b'data')
    config.local_data_path = write(server / 'file', b'')
    assert original == cache_file(original)
    assert 'read in place' in caplog.text


@pytest.mark.parametrize('round_', range(2))
def test_cache_file_many_processes_at_once_share_one_copy(
        local, server, round_):
    """Each process gets the whole file; it is copied once."""
    data = bytes(range(256)) * 4096 * 4
    original = write(server / 'data.hdf5', data)
    code = (CACHE_ONE + 'import hashlib, os\n'
            'data = open(cache_file(sys.argv[2]), "rb").read()\n'
            'print(hashlib.sha256(data).hexdigest(),\n'
            '      os.stat(cache_file(sys.argv[2])).st_ino)')
    processes = [start(local, original, code=code) for _ in range(6)]
    outputs = {process.communicate(timeout=60)[0] for process in processes}
    assert [0] * 6 == [process.returncode for process in processes]
    assert 1 == len(outputs)
    assert data == read(outputs.pop().splitlines()[0])
    # Nothing but the copy, its description and the lock is left.
    assert 3 == len(list(local.glob('*/*')))


def test_cache_file_killed_copier_leaves_no_torn_copy(local, server):
    """After a kill in mid-copy the next process makes the whole copy."""
    original = write(server / 'data.hdf5', b'data' * 1000)
    code = ('import os, shutil, signal\n'
            'def copyfile(source, destination):\n'
            '    open(destination, "wb").write(b"half")\n'
            '    os.kill(os.getpid(), signal.SIGKILL)\n'
            'shutil.copyfile = copyfile\n' + CACHE_ONE)
    process = start(local, original, code=code)
    process.communicate(timeout=30)
    assert -signal.SIGKILL == process.returncode
    assert 1 == len(copies(local))
    assert b'data' * 1000 == read(cache_file(original))
    assert 1 == len(copies(local))


def test_slow_copy_of_another_process_is_waited_for_but_not_for_ever(
        local, server, caplog):
    """The lock of a long copy is not stolen after 5 s: a process
    waits as long as it was told to, and then reads the original."""
    original = write(server / 'data.hdf5', b'data')
    code = ('import shutil, sys\n'
            'copyfile = shutil.copyfile\n'
            'def slow(source, destination):\n'
            '    print("copying", flush=True)\n'
            '    sys.stdin.readline()\n'
            '    copyfile(source, destination)\n'
            'shutil.copyfile = slow\n' + CACHE_ONE)
    process = start(local, original, code=code)
    assert 'copying\n' == process.stdout.readline()
    assert original == cache_file(original, timeout=0.2)
    assert 'locked by another process' in caplog.text
    output, _ = process.communicate('go on\n', timeout=30)
    assert output.strip() == cache_file(original) != original


def test_cache_file_logs_as_the_module(local, server, caplog):
    """Copying is told on the module's logger."""
    caplog.set_level(logging.INFO, 'fuel.remote.local_copies')
    cache_file(write(server / 'a', b'data'))
    assert {local_copies.__name__} == {
        record.name for record in caplog.records}


def test_copy_from_server_to_local_makes_folders_and_replaces(server):
    """The copy is made where it is asked for, over what was there."""
    original = write(server / 'a', b'data')
    copy = str(server / 'new' / 'deep' / 'copy')
    for data in (b'data', b'other'):
        write(server / 'a', data)
        copy_from_server_to_local(
            str(server), str(server / 'new'), original, copy)
        assert data == read(copy)


def test_copy_from_server_to_local_missing_original_raises(server):
    """Nothing is made of nothing."""
    with pytest.raises(FileNotFoundError, match='absent'):
        copy_from_server_to_local(str(server), str(server / 'new'),
                                  str(server / 'absent'),
                                  str(server / 'new' / 'copy'))
    assert [] == os.listdir(server / 'new')


@pytest.mark.parametrize('change', ['cut', 'grown', 'other', 'back in time'])
def test_cache_file_damaged_copy_is_made_again(local, server, caplog,
                                               change):
    """A copy that is cut, or has other bytes, is not served; a copy that was
    only touched is."""
    original = write(server / 'a', b'data' * 100)
    copy = cache_file(original)
    with open(copy, 'r+b') as file:
        if change == 'cut':
            file.truncate(10)
        else:
            file.seek(400 if change == 'grown' else 7)
            file.write(b'x')
    if change == 'back in time':
        os.utime(copy, ns=(1, 1))
    assert b'data' * 100 == read(cache_file(original))
    assert 'copied again' in caplog.text
    caplog.clear()
    os.utime(copy)
    inode = os.stat(copy).st_ino
    assert copy == cache_file(original)
    assert inode == os.stat(copy).st_ino
    assert '' == caplog.text


def test_cache_file_copy_without_description_is_compared_by_size(
        local, server):
    """An earlier version left no descriptions."""
    original = write(server / 'a', b'data')
    copy = cache_file(original)
    os.remove(copy + '.description')
    assert copy == cache_file(original)
    write(Path(copy), b'dat')
    assert b'data' == read(cache_file(original))


def test_cache_file_damaged_copy_of_another_user_is_not_read(
        local, server, monkeypatch):
    """If the folder is not writable, the original is read."""
    original = write(server / 'a', b'data')
    copy = cache_file(original)
    monkeypatch.setattr(os, 'access', lambda *arguments: False)
    assert copy == cache_file(original)
    write(Path(copy), b'dat')
    assert original == cache_file(original)


@pytest.mark.parametrize('replace', [False, True])
def test_cache_file_original_rewritten_at_its_size_is_not_kept(
        local, server, monkeypatch, caplog, replace):
    """Half of the copy is old then, half new; also if the time of its
    modification is set back, or another file has its name."""
    original = write(server / 'a', b'old' * 1000)
    before = os.stat(original)
    copyfile = shutil.copyfile

    def rewrite_while_copying(source, destination):
        copyfile(source, destination)
        time.sleep(.02)
        if replace:
            write(server / 'b', b'new' * 1000)
            os.replace(server / 'b', source)
        else:
            with open(source, 'r+b') as file:
                file.write(b'new' * 500)
        os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))

    monkeypatch.setattr(shutil, 'copyfile', rewrite_while_copying)
    assert original == cache_file(original)
    assert 'changed while it was copied' in caplog.text
    assert [] == copies(local)
