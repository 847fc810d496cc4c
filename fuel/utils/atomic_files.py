"""Write files completely or not at all, and remove leftover temporary files.

The owner of a temporary file or folder holds a lock on it, which the system
releases when the process ends in any way. An unlocked temporary file or folder
is left over, and may be removed.
"""
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

try:
    import fcntl
except ImportError:  # Windows: nothing is locked, and nothing removed
    fcntl = None  # type: ignore[assignment, unused-ignore]


@contextmanager
def atomic_path(path: str | os.PathLike[str],
                check: Callable[[str], object] | None = None,
                mode: int | None = None) -> Iterator[str]:
    """Return a context for writing a file completely or not at all.

    The block writes to a temporary file in the same folder. When the block
    ends without an error, this file is flushed to disk, checked, and renamed
    to `path` in one step. If the block or a later step fails, the temporary
    file is removed, and a file that was at `path` before is unchanged.

    A process that is killed leaves its temporary file behind, with the name
    ``.part-<random>-<name>``. The next writer of `path` removes it. The
    temporary file of a running process is locked, and so is not removed. A
    writer in the block must not lock the file itself.

    `path`: the path of the finished file. A symbolic link is followed.
    `check`: called with the temporary path after writing; if it raises an
        exception, the file is not renamed.
    `mode`: permissions of the finished file. Defaults to those of the file
        that is replaced; for a new file, the umask decides.
    Returns: the temporary path: a hidden, empty file whose name ends like
        `path`, since some writers check the file extension. The block may
        truncate or replace the file, and must close it.

    Examples
    --------
    >>> import os, tempfile
    >>> from fuel.utils.atomic_files import atomic_path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_path(os.path.join(folder, 'a.txt')) as temporary:
    ...         with open(temporary, 'w') as file:
    ...             _ = file.write('whole')
    ...     os.listdir(folder)
    ['a.txt']
    """
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    if os.path.isdir(target):
        raise IsADirectoryError(
            f'cannot write the file {target!r}: it is a folder')
    if not os.path.isdir(folder):
        raise FileNotFoundError(
            f'cannot write {target!r}: the folder {folder!r} does not exist; '
            'create it first')
    name = name[-60:]
    remove_stale(folder, rf'\.part-[0-9a-f]{{16}}-{re.escape(name)}')
    if mode is None and os.path.exists(target):
        mode = stat.S_IMODE(os.stat(target).st_mode)
    def create() -> str:
        # Created here, so that the kernel applies the umask, and no other user
        # can have put a file or a link with this name there. With a `mode`, no
        # other user can read the file before it has its permissions.
        path = os.path.join(folder, f'.part-{secrets.token_hex(8)}-{name}')
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY,
                         0o666 if mode is None else 0o600))
        return path

    with claimed(create) as temporary:
        try:
            yield temporary
            _flush(temporary)
            if check is not None:
                check(temporary)
            if mode is not None:
                os.chmod(temporary, mode)
            os.replace(temporary, target)
        except BaseException:
            with suppress(FileNotFoundError):
                os.remove(temporary)
            raise
    flush_folder(folder)


@contextmanager
def new_path(path: str | os.PathLike[str]) -> Iterator[str]:
    """Return a context for writing a file that must not exist before.

    It works like :func:`atomic_path`, but there is no file at the temporary
    path. This path has the name of the finished file, in a folder of its own.
    FileNotFoundError is raised if the block does not create the file.
    """
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    with scratch_folder(f'.new-{name[-60:]}-', folder) as scratch:
        temporary = os.path.join(scratch, name)
        yield temporary
        if not os.path.isfile(temporary):
            raise FileNotFoundError(
                f'no file was written to {temporary!r}, the path that was '
                f'given for {target!r}')
        _flush(temporary)
        os.replace(temporary, target)
    flush_folder(folder)


def _flush(path: str) -> None:
    with open(path, 'rb+') as file:
        os.fsync(file.fileno())


def flush_folder(folder: str) -> None:
    """Make renames in a folder survive a power cut, if the system can."""
    if os.name == 'nt':
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file in UTF-8, completely or not at all."""
    with atomic_path(path) as temporary, open(
            temporary, 'w', encoding='utf-8') as file:
        file.write(text)


@contextmanager
def claimed(create: Callable[[], str]) -> Iterator[str]:
    """Make a new file or folder, and lock it until the block ends.

    `create`: makes the file or folder under a new name; returns its path.
    """
    descriptor: int | None = None
    try:
        while True:
            path = create()
            if fcntl is None:
                break  # type: ignore[unreachable, unused-ignore]
            try:
                # A file whose permissions forbid reading can be written.
                descriptor = os.open(
                    path, os.O_RDONLY if os.path.isdir(path) else os.O_RDWR)
                # Shared: the finished file may be read at once.
                fcntl.flock(descriptor, fcntl.LOCK_SH)
            except FileNotFoundError:
                continue
            except OSError:
                break  # a file system without locks
            # Another process may have removed the file before it was locked.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                    break
            os.close(descriptor)
            descriptor = None
        yield path
    finally:
        if descriptor is not None:
            os.close(descriptor)


def remove_stale(folder: str, pattern: str) -> None:
    """Remove files and folders of this user if their names fully match a
    pattern and their owner has ended."""
    if fcntl is None:
        return  # type: ignore[unreachable, unused-ignore]
    with suppress(OSError):
        for name in os.listdir(folder):
            if re.fullmatch(pattern, name):
                with suppress(OSError):
                    _remove_unclaimed(os.path.join(folder, name))


def _remove_unclaimed(path: str) -> None:
    """Remove a file or folder, unless it is a link, another user's or
    locked."""
    # O_NONBLOCK: do not wait for the other end of a pipe of that name.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if os.fstat(descriptor).st_uid != os.getuid():
            return
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Another file may have got the name since this one was opened.
        if not os.path.samestat(os.fstat(descriptor), os.lstat(path)):
            return
        if os.path.isdir(path):
            shutil.rmtree(path)
        else:
            os.remove(path)
    finally:
        os.close(descriptor)


@contextmanager
def scratch_folder(prefix: str, parent: str | None = None) -> Iterator[str]:
    """Make a folder for temporary files, and remove it when the block ends.

    Folders with the same prefix whose owner was killed are removed too.

    `parent`: the folder in which to make it. Defaults to the system's folder
        for temporary files.
    """
    parent = parent or tempfile.gettempdir()
    # tempfile appends eight such characters to the prefix.
    remove_stale(parent, re.escape(prefix) + '[a-z0-9_]{8}')
    with claimed(lambda: tempfile.mkdtemp(prefix=prefix, dir=parent)) as path:
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)
