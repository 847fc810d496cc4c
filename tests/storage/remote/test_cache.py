"""The cache on disk: shared, within its budget, and never wrong."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy
import pytest
from support.processes import environment, run_python

from fuel import config
from fuel.remote import disk_cache
from fuel.remote.disk_cache import DiskCache
from fuel.remote.file import HEAD, RemoteFile
from fuel.remote.location import RemotePath
from fuel.storage.file_bytes import raw_file_at
from fuel.testing.faults import intercept

SIZE = 3 << 20
READ = """
import hashlib, os, sys
from fuel import config
from fuel.remote.location import RemotePath
from fuel.storage.file_bytes import raw_file_at
config.remote_cache_path = sys.argv[2]
file = raw_file_at(RemotePath(sys.argv[1]))
content = b''.join(file.read(place, 1 << 16)
                   for place in range(0, file.size, 1 << 16))
print(hashlib.sha256(content).hexdigest(), file.counts.nbytes)
"""


@pytest.fixture
def content(folder):
    """Write ``a`` into the folder; return its bytes."""
    data = numpy.random.RandomState(5).bytes(SIZE + 1234)
    (folder / 'a').write_bytes(data)
    return data


def open_file(server, name='a'):
    """Return a remote file that this process did not have open."""
    return raw_file_at(RemotePath(server.url(name)))


def read_all(file):
    """Return all bytes of a file."""
    return b''.join(file.read(place, 1 << 16)
                    for place in range(0, file.size, 1 << 16))


def sparse_file(cache):
    """Return the path of the only file in the cache."""
    path, = cache.glob('*/data')
    return path


def test_bytes_are_fetched_once(server, content, cache):
    """A file that is opened again is read from the cache."""
    file = open_file(server)
    assert content == read_all(file)
    assert file.counts.nbytes < len(content) + 2 ** 17
    del file
    again = open_file(server)
    assert content == read_all(again)
    assert again.counts.requests <= 1


def test_only_its_owner_may_read_the_cache(server, content, cache):
    """The cache may hold private bytes."""
    open_file(server).read(0, 10)
    assert 0o700 == cache.stat().st_mode & 0o777
    assert 0o600 == sparse_file(cache).stat().st_mode & 0o777


def test_folder_that_others_may_write_to_is_not_used(
        folder, server, content, cache, caplog):
    """Anybody may have written the folder; the file is read all the same. One
    warning stands for all files."""
    cache.mkdir()
    cache.chmod(0o777)
    (folder / 'b').write_bytes(content)
    for name in 'ab':
        assert content == read_all(open_file(server, name))
    assert 1 == caplog.text.count('other users can write to this')


@pytest.mark.parametrize('damage', ['flip', 'hole', 'cut', 'long', 'index'])
def test_damaged_cache_is_never_read(server, content, cache, damage):
    """Bytes with a wrong checksum or length are fetched again."""
    read_all(open_file(server))
    path = sparse_file(cache)
    with open(path.with_name('index') if damage == 'index' else path,
              'r+b') as file:
        if damage in ('flip', 'index'):
            file.seek(70_000 if damage == 'flip' else 30)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 1]))
        elif damage == 'hole':
            file.seek(1 << 20)
            file.write(bytes(1 << 16))
        else:
            file.truncate(SIZE // 2 if damage == 'cut' else SIZE * 2)
    again = open_file(server)
    assert content == read_all(again)
    assert again.counts.nbytes > 1


def test_damaged_pages_may_be_named_anew_by_others(server, content, cache):
    """Larger pieces replace them; the process that found the damage then reads
    these."""
    read_all(open_file(server))
    with open(sparse_file(cache), 'r+b') as file:
        file.write(bytes(SIZE))
    late, other = (RemoteFile(server.url('a'), {}) for _ in range(2))
    # As reads from within HDF5 do.
    late._transfers.settle(0, 1 << 20)
    other._transfers.settle(0, 1 << 20)
    assert content == other.read(0, other.size)
    assert content == read_all(late)
    assert late.counts.nbytes <= HEAD


def test_read_from_within_hdf5_waits_for_no_thread(server, content, cache):
    """Such a read has h5py's lock, which a thread that frees objects needs."""
    read_all(open_file(server))
    file = open_file(server)
    stream, found = file.stream('a'), []
    stream.seek(SIZE // 2)
    reader = threading.Thread(
        target=lambda: found.append(stream.read(100)), daemon=True)
    with file._transfers.lock:
        reader.start()
        reader.join(15)
        assert [content[SIZE // 2:][:100]] == found


def test_half_a_record_hides_none_after_it(server, content, cache):
    """One that a process wrote that was killed in the middle of it."""
    file = open_file(server)
    file.read(0, 1 << 16)
    index = sparse_file(cache).with_name('index')
    with open(index, 'ab') as stream:
        stream.write(b'\1\2\3\4\5')
    file.read(1 << 20, 1 << 20)
    del file
    again = open_file(server)
    again.read(1 << 20, 1 << 20)
    assert again.counts.nbytes <= HEAD


@pytest.mark.parametrize('point', ['cache write', 'cache record'])
@pytest.mark.parametrize('count', [
    2, pytest.param(3, marks=pytest.mark.full)])
def test_killed_process_leaves_a_cache_that_is_sound(
        server, content, cache, point, count):
    """It is killed at any moment; the next process reads what it has
    written."""
    code = f"""
import sys
from support.killing import arm
arm({point!r}, {count})
{READ}"""
    process = subprocess.run(
        [sys.executable, '-c', code, server.url('a'), str(cache)],
        env={**environment(), 'PYTHONPATH': os.pathsep.join(sys.path)},
        check=False)
    assert -signal.SIGKILL == process.returncode
    file = open_file(server)
    assert content == read_all(file)


def test_processes_share_the_cache(server, content, cache):
    """They use it one after the other, and at the same time."""
    first = run_python('-c', READ, server.url('a'), str(cache))
    second = run_python('-c', READ, server.url('a'), str(cache))
    assert first[0] == second[0] == 0, first[2] + second[2]
    assert first[1].split()[0] == second[1].split()[0]
    assert int(first[1].split()[1]) >= len(content)
    assert int(second[1].split()[1]) <= HEAD


def test_what_another_process_fetched_is_found_in_the_middle(
        server, content, cache):
    """The index is looked at again before anything is fetched."""
    file = open_file(server)
    file.read(0, 1)
    assert 0 == run_python('-c', READ, server.url('a'), str(cache))[0]
    before = file.counts.nbytes
    assert content == read_all(file)
    assert before == file.counts.nbytes


def test_oldest_entries_make_room_for_new_ones(
        folder, server, content, cache, monkeypatch):
    """Only entries that are not in use are removed."""
    monkeypatch.setattr(disk_cache, 'ALLOWANCE', 1 << 20)
    config.remote_cache_bytes = 8 << 20
    for name in 'bcde':
        (folder / name).write_bytes(content)
    used = open_file(server, 'a')
    read_all(used)
    for place, name in enumerate('bcde'):
        file = open_file(server, name)
        assert content == read_all(file)
        index = max(cache.glob('*/index'), key=lambda p: p.stat().st_mtime)
        os.utime(index, (place, place))
        del file
    urls = [json.loads(path.read_text())['url'][-1]
            for path in cache.glob('*/state.json')]
    assert 'a' in urls and 'b' not in urls
    assert DiskCache(cache, 0).used_bytes() <= 9 << 20


def test_file_larger_than_the_budget_is_read(server, content, cache):
    """The first bytes stay on disk; the rest comes and goes."""
    config.remote_cache_bytes = config.remote_memory_bytes = 1 << 20
    file = open_file(server)
    for _ in range(2):
        assert content == read_all(file)
    # The index takes a block of the disk.
    assert DiskCache(cache, 0).used_bytes() <= (1 << 20) + (1 << 14)
    assert file.counts.nbytes < 2 * len(content) - (1 << 19)


def test_folders_that_are_not_entries_of_the_cache_are_left_alone(
        folder, server, content, cache, monkeypatch):
    """A user's folder that has the cache in it is never emptied."""
    monkeypatch.setattr(disk_cache, 'ALLOWANCE', 1 << 20)
    config.remote_cache_bytes = 4 << 20
    cache.mkdir(0o700)
    names = ['photos', 'f' * 32, f'{"0" * 32}-{"x" * 32}', '.git']
    for name in names:
        (cache / name).mkdir()
        (cache / name / 'data').write_bytes(bytes(5 << 20))
        (cache / name / 'thesis.tex').write_text('years of work')
    for name in 'abc':
        (folder / name).write_bytes(content)
        assert content == read_all(open_file(server, name))
    for name in names:
        assert 'years of work' == (cache / name / 'thesis.tex').read_text()
    # The user's files do not count: the entries have the whole budget.
    assert DiskCache(cache, 0).used_bytes() >= len(content)


@pytest.mark.parametrize('name', ['data', 'index', ''])
def test_link_in_the_cache_is_not_followed(server, content, cache, tmp_path,
                                           name):
    """Nothing is written where it leads; the file is read all the same."""
    read_all(open_file(server))
    other = tmp_path / 'other'
    other.mkdir()
    place = sparse_file(cache).parent / name
    target = other if not name else other / name
    if name:
        target.write_bytes(b'of somebody else')
        place.unlink()
    else:
        shutil.rmtree(place)
    place.symlink_to(target)
    assert content == read_all(open_file(server))
    assert ([b'of somebody else'] if name else []) == [
        path.read_bytes() for path in other.iterdir()]


def test_the_cache_is_listed_once_however_many_files_there_are(
        folder, server, cache, monkeypatch):
    """Each file is found by its name from then on."""
    listed = []
    entries = DiskCache._entries

    def count(self):
        listed.append(self)
        return entries(self)

    monkeypatch.setattr(DiskCache, '_entries', count)
    for number in range(5):
        (folder / f'{number}').write_bytes(bytes(10))
        open_file(server, f'{number}').read(0, 10)
    # To find other states, and to see how much room there is.
    assert 2 >= len(listed)


def test_old_state_of_a_file_is_removed(folder, server, content, cache):
    """Opening the new state removes it."""
    read_all(open_file(server))
    (folder / 'a').write_bytes(content[::-1])
    assert content[::-1] == read_all(open_file(server))
    assert 1 == len(list(cache.glob('*/data')))


def test_list_of_the_cache_that_failed_is_made_again(
        folder, server, content, cache, caplog, monkeypatch):
    """A part of it would hide states that are to be removed."""
    open_file(server)
    (folder / 'a').write_bytes(content[::-1])
    disk_cache.disk_cache()._states = None

    def fail(path):
        raise OSError('the disk does not answer')

    with monkeypatch.context() as patches:
        patches.setattr(Path, 'iterdir', fail)
        open_file(server)
    assert 'the disk does not answer' in caplog.text
    (folder / 'a').write_bytes(content[1:])
    open_file(server)
    assert 1 == len(list(cache.iterdir()))


def test_full_disk_raises_no_error(server, content, cache, caplog):
    """Bytes without room on disk are kept in memory."""
    def fail(*args):
        raise OSError(28, 'No space left on device')

    file = open_file(server)
    with intercept('cache write', fail):
        assert content == read_all(file)
    assert 'is not written to any more' in caplog.text


@pytest.fixture
def tmpfs():
    """Cache in a file system in memory; return the folder.

    There, a hole takes space when it is read, and where there is none the
    process ends.
    """
    with tempfile.TemporaryDirectory(dir='/dev/shm') as folder:
        config.remote_cache_path = folder
        yield Path(folder)


@pytest.mark.skipif(sys.platform != 'linux', reason='of Linux alone')
def test_cache_in_memory_has_no_holes(server, content, tmpfs):
    """Its bytes are taken when the file is opened."""
    file = open_file(server)
    assert 512 * sparse_file(tmpfs).stat().st_blocks >= len(content)
    assert content == read_all(file)
    again = run_python('-c', READ, server.url('a'), str(tmpfs))
    assert int(again[1].split()[1]) == HEAD


@pytest.mark.skipif(sys.platform != 'linux', reason='of Linux alone')
@pytest.mark.parametrize('is_full', [True, False], ids=['full', 'budget'])
def test_memory_that_has_no_room_for_a_file_is_not_used(
        server, content, tmpfs, caplog, monkeypatch, is_full):
    """No byte of it is in a map of the cache."""
    def fail(*args):
        raise OSError(28, 'No space left on device')

    if is_full:
        monkeypatch.setattr('os.posix_fallocate', fail)
    else:
        config.remote_cache_bytes = SIZE
    assert content == read_all(open_file(server))
    assert 'is not cached on disk' in caplog.text
    assert [0] == [path.stat().st_blocks for path in tmpfs.glob('*/data')]


@pytest.mark.parametrize('damage', ['pipe', 'terabyte'])
def test_index_that_is_none_is_removed(server, content, cache, damage):
    """The index is not waited for, nor read."""
    read_all(open_file(server))
    index, = cache.glob('*/index')
    if damage == 'pipe':
        index.unlink()
        os.mkfifo(index)
    else:
        os.truncate(index, 1 << 40)
    assert content == read_all(open_file(server))
    index, = cache.glob('*/index')
    assert index.is_file()
    assert index.stat().st_size < SIZE


def test_file_without_a_validator_is_not_kept_on_disk(
        server, content, cache, monkeypatch):
    """An old copy could not be told from the file."""
    monkeypatch.setattr('fuel.remote.stores.validator_of',
                        lambda headers: '')
    assert content == read_all(open_file(server))
    assert [] == list(cache.glob('*/data'))


@pytest.mark.parametrize('setting', [('remote_cache_path', 'off'),
                                     ('remote_cache_bytes', 0)])
def test_cache_may_be_turned_off(server, content, cache, setting):
    """Either setting turns it off."""
    setattr(config, *setting)
    assert content == read_all(open_file(server))
    assert not cache.exists()


def test_threads_fetch_nothing_twice(server, content, cache):
    """The second thread waits for the first."""
    file = open_file(server)
    wrong = []

    def read(seed):
        generator = numpy.random.RandomState(seed)
        for place in generator.randint(0, SIZE, 50).tolist():
            wrong.extend({file.read(place, 5000)}
                         - {content[place:place + 5000]})

    threads = [threading.Thread(target=read, args=[seed])
               for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == wrong
    assert file.counts.nbytes <= len(content) + 2 ** 16
