"""Files appear as a whole or not at all."""
import os
import signal
import stat
import subprocess
import sys

import numpy
import pytest

from fuel.utils.atomic_files import atomic_path


def permissions(path):
    """Return the permission bits of a file."""
    return stat.S_IMODE(path.stat().st_mode)


def test_atomic_path_replaces_the_file_at_the_end(tmp_path):
    """Until the block ends the old content stands."""
    path = tmp_path / 'a.npy'
    path.write_bytes(b'old')
    with atomic_path(path) as temporary:
        assert os.path.dirname(temporary) == str(tmp_path)
        numpy.save(temporary, numpy.arange(3))
        assert b'old' == path.read_bytes()
    numpy.testing.assert_array_equal(numpy.arange(3), numpy.load(path))
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.parametrize('error', [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize('old', [b'old', None])
def test_atomic_path_failing_block_leaves_nothing(tmp_path, old, error):
    """A failure removes the temporary file and touches nothing else."""
    path = tmp_path / 'a'
    if old is not None:
        path.write_bytes(old)
    def fail_in_the_middle():
        with atomic_path(path) as temporary:
            (tmp_path / temporary).write_bytes(b'half')
            raise error('half')

    with pytest.raises(error, match='half'):
        fail_in_the_middle()
    assert ([path] if old else []) == list(tmp_path.iterdir())
    assert old is None or old == path.read_bytes()


def test_atomic_path_failing_check_leaves_nothing(tmp_path):
    """A file that does not pass the check never gets its name."""
    def check(temporary):
        raise ValueError(f'{os.path.getsize(temporary)} bytes')

    with (pytest.raises(ValueError, match='^4 bytes'),
          atomic_path(tmp_path / 'a', check) as temporary,
          open(temporary, 'wb') as file):
        file.write(b'data')
    assert [] == list(tmp_path.iterdir())


def test_atomic_path_block_that_removes_the_file_raises(tmp_path):
    """A writer that wrote elsewhere is found out."""
    with (pytest.raises(FileNotFoundError, match='part-'),
          atomic_path(tmp_path / 'a') as temporary):
        os.remove(temporary)
    assert [] == list(tmp_path.iterdir())


def test_atomic_path_permissions_are_those_of_open(tmp_path):
    """The umask decides on new files, the old file on replaced ones."""
    old = os.umask(0o027)
    try:
        with atomic_path(tmp_path / 'new'):
            pass
        assert 0o640 == permissions(tmp_path / 'new')
    finally:
        os.umask(old)
    (tmp_path / 'new').chmod(0o604)
    with atomic_path(tmp_path / 'new'):
        pass
    assert 0o604 == permissions(tmp_path / 'new')


def test_atomic_path_given_mode_is_private_meanwhile(tmp_path):
    """A private file is not readable for others while it is written."""
    path = tmp_path / 'a'
    with atomic_path(path, mode=0o400) as temporary:
        assert 0o600 == stat.S_IMODE(os.stat(temporary).st_mode)
    assert 0o400 == permissions(path)


def test_atomic_path_follows_a_link(tmp_path):
    """A link stays, and its target is replaced."""
    target, link = tmp_path / 'target', tmp_path / 'link'
    link.symlink_to(target)
    with atomic_path(link) as temporary, open(temporary, 'wb') as file:
        file.write(b'data')
    assert link.is_symlink()
    assert b'data' == target.read_bytes()


def test_atomic_path_long_name_is_fine(tmp_path):
    """The temporary name is not longer than the system allows."""
    with atomic_path(tmp_path / ('n' * 255)):
        pass
    assert 255 == len(os.listdir(tmp_path)[0])


def test_atomic_path_bad_place_raises(tmp_path):
    """A missing folder, or a folder of that name, is said before writing."""
    with (pytest.raises(FileNotFoundError, match='absent.*create it'),
          atomic_path(tmp_path / 'absent' / 'a')):
        pytest.fail('the block ran')
    with (pytest.raises(IsADirectoryError, match='it is a folder'),
          atomic_path(tmp_path)):
        pytest.fail('the block ran')


def test_atomic_path_killed_writer_leaves_the_old_file(tmp_path):
    """A kill in the middle of the block does not tear the file."""
    path = tmp_path / 'a'
    path.write_bytes(b'old')
    code = ('import os, signal, sys\n'
            'from fuel.utils.atomic_files import atomic_path\n'
            'with atomic_path(sys.argv[1]) as temporary:\n'
            '    open(temporary, "wb").write(b"half")\n'
            '    os.kill(os.getpid(), signal.SIGKILL)\n')
    result = subprocess.run([sys.executable, '-W', 'ignore', '-c', code,
                             str(path)], timeout=60, check=False)
    assert -signal.SIGKILL == result.returncode
    assert b'old' == path.read_bytes()


KILLED = ('import os, signal, sys\n'
          'from fuel.utils.atomic_files import atomic_path\n'
          'with atomic_path(sys.argv[1]) as temporary:\n'
          '    open(temporary, "wb").write(b"half")\n'
          '    os.kill(os.getpid(), signal.SIGKILL)\n')


def test_atomic_path_removes_what_a_killed_writer_left(tmp_path):
    """The next to write the name does; other names and links stay."""
    for name in ('a', 'a', 'b'):
        subprocess.run([sys.executable, '-W', 'ignore', '-c', KILLED,
                        str(tmp_path / name)], timeout=60, check=False)
    link = tmp_path / '.part-0123456789abcdef-a'
    link.symlink_to(tmp_path / 'elsewhere')
    with atomic_path(tmp_path / 'a'):
        pass
    left = set(os.listdir(tmp_path)) - {'a', link.name}
    assert ['-b'] == [name[22:] for name in left]


def test_atomic_path_leaves_the_files_of_living_writers(tmp_path):
    """Two at once are both whole; the later to end stays."""
    with atomic_path(tmp_path / 'a') as first:
        with (atomic_path(tmp_path / 'a') as second,
              open(second, 'wb') as file):
            file.write(b'second')
        assert b'second' == (tmp_path / 'a').read_bytes()
        with open(first, 'wb') as file:
            file.write(b'first')
    assert b'first' == (tmp_path / 'a').read_bytes()
    assert ['a'] == os.listdir(tmp_path)


def test_atomic_path_taken_for_left_over_begins_again(tmp_path, monkeypatch):
    """A file that goes between its making and its lock is made again."""
    import fcntl

    from fuel.utils import atomic_files
    flock, calls = fcntl.flock, []

    def remove_first(descriptor, operation):
        calls.append(operation)
        if len(calls) == 1:
            for path in tmp_path.iterdir():
                path.unlink()
        return flock(descriptor, operation)
    monkeypatch.setattr(atomic_files.fcntl, 'flock', remove_first)
    with atomic_path(tmp_path / 'a') as temporary:
        assert [os.path.basename(temporary)] == os.listdir(tmp_path)
    assert 2 == len(calls)


@pytest.mark.parametrize('error', [OSError(95, 'not supported'), None])
def test_atomic_path_without_locks_removes_nothing(tmp_path, monkeypatch,
                                                   error):
    """Nobody knows whether another file's owner lives."""
    from fuel.utils import atomic_files
    if error is None:
        monkeypatch.setattr(atomic_files, 'fcntl', None)
    else:
        def flock(*args):
            raise error
        monkeypatch.setattr(atomic_files.fcntl, 'flock', flock)
    other = tmp_path / '.part-0123456789abcdef-a'
    other.write_bytes(b'half')
    with atomic_path(tmp_path / 'a'):
        pass
    assert {'a', other.name} == set(os.listdir(tmp_path))


def test_atomic_path_flushes_before_it_replaces(tmp_path, monkeypatch):
    """A power cut after the rename finds the bytes on the disk: the file is
    flushed before, the folder after."""
    calls = []
    fsync, replace = os.fsync, os.replace

    def note_fsync(descriptor):
        is_folder = os.path.isdir(f'/proc/self/fd/{descriptor}')
        calls.append('flush folder' if is_folder else 'flush file')
        fsync(descriptor)

    def note_replace(source, target):
        calls.append('replace')
        replace(source, target)

    monkeypatch.setattr(os, 'fsync', note_fsync)
    monkeypatch.setattr(os, 'replace', note_replace)
    with (atomic_path(tmp_path / 'a') as path, open(path, 'w') as file):
        file.write('whole')
    assert ['flush file', 'replace', 'flush folder'] == calls
