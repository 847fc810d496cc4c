"""Local copies of files on a network drive or a server, and uploads.

Many jobs on one machine that read the same data set need only one copy of it.
A copy is in ``config.local_data_path``, in a folder for its original. The name
of a copy has a digest of the original's size and times. So files of the same
name are never confused, and a changed original is copied again. A description
of the copy is in the same folder: size, time of modification and SHA-256. If
the copy does not fit this description, it is made again as well. Outdated
copies are removed when no process uses them.
"""
from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import stat
import sys
from contextlib import suppress

from fuel.config_parser import config
from fuel.exceptions import ConfigurationError
from fuel.remote.disk_cache import digest
from fuel.remote.location import RemotePath, as_path
from fuel.remote.urls import Secrets, StorageOptions, file_name
from fuel.utils.atomic_files import atomic_path
from fuel.utils.disk import check_enough_space, safe_mkdir
from fuel.utils.lock import holds_readlock, mark_reader, other_readers
from fuel.utils.lockfile import LockFile

__all__ = ['cache_dataset', 'cache_file', 'copy_from_server_to_local']

logger = logging.getLogger(__name__)

# Seconds to wait for a copy that another process makes.
DEFAULT_TIMEOUT = 600.
# Bytes of a part in an upload.
_PART = 16 << 20
_LOCK_NAME = 'lock'
_DESCRIPTION = '.description'


def cache_file(filename: str, timeout: float = DEFAULT_TIMEOUT) -> str:
    """Return the path of a local copy of a file, or the file's own path.

    Parameters
    ----------
    filename : str
        The file to read.
    timeout : float, optional
        Seconds to wait for another process that is making the copy. Defaults
        to 600.

    Returns
    -------
    str
        The path of the local copy, which is made if it does not exist. The
        copy is kept until this process ends. The result is `filename` itself
        if ``config.local_data_path`` is empty, if the file is in that folder,
        or if there is no such file. It is `filename` too if the copy cannot be
        made, for example because the disk is full; then a warning is logged.

    Examples
    --------
    >>> from fuel import config
    >>> from fuel.utils.cache import cache_file
    >>> config.local_data_path = ''
    >>> cache_file('/network/data.hdf5')
    '/network/data.hdf5'
    >>> del config.local_data_path
    """
    local_data_path = config.local_data_path
    if not local_data_path or not os.path.isfile(filename):
        return filename
    original = os.path.realpath(filename)
    root = os.path.realpath(local_data_path)
    if os.path.commonpath([root, original]) == root:
        return filename
    try:
        return _cached(original, root, timeout)
    except (OSError, _NotCachedError) as error:
        # TimeoutError is an OSError. Reading the original is always right.
        logger.warning('%r is read in place, not from a local copy: %s',
                       filename, error)
        return filename


def cache_dataset(path: str, storage_options: StorageOptions | None = None,
                  timeout: float = DEFAULT_TIMEOUT) -> str:
    """Return the path of a local copy of a file of a data set.

    A remote file that is read many times does not need a copy, since the bytes
    that were read are cached (:doc:`/object_storage`). A copy is for programs
    that need a path, and for servers that send only whole files.

    Parameters
    ----------
    path : str
        The path of the file, or its URL.
    storage_options : dict, optional
        Arguments of the fsspec file system for a URL.
    timeout : float, optional
        As for :func:`cache_file`.

    Returns
    -------
    str
        The path of the copy, which is made if it does not exist. For a local
        file, the result of :func:`cache_file`.

    Raises
    ------
    ConfigurationError
        If `path` is a URL and ``config.local_data_path`` is empty.
    OSError
        If a remote file cannot be fetched, or if its copy cannot be written.

    Examples
    --------
    This needs the extra ``remote``.

    >>> import fsspec, tempfile
    >>> from fuel import config
    >>> from fuel.utils.cache import cache_dataset
    >>> with fsspec.open('memory://copies/a.txt', 'wb') as file:
    ...     _ = file.write(b'content')
    >>> folder = tempfile.TemporaryDirectory()
    >>> config.local_data_path = folder.name
    >>> with open(cache_dataset('memory://copies/a.txt')) as file:
    ...     file.read()
    'content'
    >>> del config.local_data_path
    >>> folder.cleanup()
    """
    found = as_path(path, storage_options)
    if not isinstance(found, RemotePath):
        return cache_file(found, timeout)
    root: str = config.local_data_path
    if not root:
        raise ConfigurationError(
            f'there is no folder for a copy of {found}: set '
            f'config.local_data_path')
    safe_mkdir(root)
    return _remote_copy(found, os.path.realpath(root), timeout)


class _NotCachedError(Exception):
    """Error that a copy cannot or should not be used; the text has the
    reason."""


def _cached(original: str, root: str, timeout: float) -> str:
    """Return the path of the local copy, which is made if it does not
    exist."""
    safe_mkdir(root)
    # One folder for each original, one name for each state of it.
    folder = os.path.join(root, digest(original))
    copy = os.path.join(folder, _copy_name(original))
    _make_folder(folder, original)
    _check_trusted(folder, root)
    if not os.access(folder, os.W_OK):
        # The folder of another user: a complete copy in it may be read.
        if _is_sound(copy, original):
            return copy
        raise _NotCachedError(f'the folder {folder!r} is not writable')
    with LockFile(os.path.join(folder, _LOCK_NAME)).held(timeout):
        if not _is_sound(copy, original):
            _remove_stale(folder, copy)
            if not check_enough_space(folder, original, copy):
                raise _NotCachedError(
                    f'it has {os.path.getsize(original)} bytes, for which '
                    f'the disk of {root!r} has no room')
            copy_from_server_to_local(
                os.path.dirname(original), root, original, copy)
            _describe(copy)
        if not holds_readlock(copy):
            # Until this process ends, no process removes the copy.
            mark_reader(os.getpid(), copy)
    return copy


def _copy_name(original: str) -> str:
    status = os.stat(original)
    # The time of the last status change is different even if a file is
    # replaced by a file of the same size and the time of modification is set
    # back.
    state = digest(
        status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return f'{state}-{os.path.basename(original)}'


def _is_sound(copy: str, original: str) -> bool:
    """Return whether a copy exists, has the size of the original, and was not
    changed after it was made."""
    if not os.path.isfile(copy):
        return False
    status = os.stat(copy)
    if status.st_size != os.path.getsize(original):
        logger.warning('%r has %s bytes, the original %r has another number: '
                       'it is copied again', copy, status.st_size, original)
        return False
    described: object = None
    with suppress(OSError, ValueError), open(
            copy + _DESCRIPTION, encoding='utf-8') as file:
        described = json.load(file)
    if not isinstance(described, dict):
        return True  # made by an earlier version
    if described.get('mtime_ns') == status.st_mtime_ns or (
            described.get('sha256') == _sha256(copy)):
        return True
    logger.warning('%r was changed since it was copied from %r: it is copied '
                   'again', copy, original)
    return False


def _describe(copy: str) -> None:
    """Write the size, time and digest of a copy into its description."""
    described = {'size': os.path.getsize(copy), 'sha256': _sha256(copy),
                 'mtime_ns': os.stat(copy).st_mtime_ns}
    with atomic_path(copy + _DESCRIPTION) as path, open(
            path, 'w', encoding='utf-8') as file:
        json.dump(described, file)


def _sha256(path: str) -> str:
    with open(path, 'rb') as file:
        return hashlib.file_digest(file, 'sha256').hexdigest()


def _check_trusted(folder: str, root: str) -> None:
    """Raise an error if another user could have changed data in a folder."""
    if sys.platform == 'win32':
        return
    status = os.lstat(folder)
    owners = {os.geteuid(), 0, os.stat(root).st_uid}
    if (not stat.S_ISDIR(status.st_mode) or status.st_uid not in owners
            or status.st_mode & stat.S_IWOTH):
        raise _NotCachedError(
            f'{folder!r} belongs to user {status.st_uid} with permissions '
            f'{stat.filemode(status.st_mode)}: others could have changed '
            'what lies there; remove it')


def _remove_stale(folder: str, copy: str) -> None:
    """Remove files other than `copy` that no process reads.

    The caller must hold the lock of the folder.
    """
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if name == _LOCK_NAME or path == copy or '.readlock.' in name or (
                name.endswith(_DESCRIPTION) and os.path.exists(
                    path.removesuffix(_DESCRIPTION))):
            continue
        if holds_readlock(path) or other_readers(path):
            logger.debug('%r is out of date, but still read', path)
            continue
        os.remove(path)


def _remote_copy(path: RemotePath, root: str, timeout: float) -> str:
    """Return the path of a copy of a remote file, which is made if it does not
    exist.

    `timeout`: seconds to wait for another process that is making it.
    """
    file = path.open(is_kept=False)
    # One folder for each file, one name for each state of it.
    folder = os.path.join(root, digest(*file.identity[:2]))
    os.makedirs(folder, mode=0o700, exist_ok=True)
    name = f'{digest(*file.identity)}-{file_name(path)}'
    copy = os.path.join(folder, name)
    with LockFile(os.path.join(folder, _LOCK_NAME)).held(timeout):
        if not (os.path.isfile(copy)
                and os.path.getsize(copy) == file.size):
            with atomic_path(copy, mode=0o600) as part, file.open(
                    ) as source, open(part, 'wb') as target:
                shutil.copyfileobj(source, target, 1 << 20)
            file.check()
    return copy


def copy_from_server_to_local(dataset_remote_dir: str,
                              dataset_local_dir: str,
                              remote_fname: str, local_fname: str) -> None:
    """Copy a remote file to a local file, completely or not at all.

    Users who may read the original may read the copy. If a folder is made for
    the copy, users who may read the original's folder may read it.

    Parameters
    ----------
    dataset_remote_dir : str
        Folder of the original; only for the log.
    dataset_local_dir : str
        Folder of local copies; created if needed.
    remote_fname : str
        Path of the original.
    local_fname : str
        Path of the copy; its folder is created if needed.

    Raises
    ------
    OSError
        If the original cannot be read, if the copy cannot be written, or if
        the original changed during the copy. A file that was at `local_fname`
        before is unchanged.

    Examples
    --------
    >>> import os, tempfile
    >>> from fuel.utils.cache import copy_from_server_to_local
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     original = os.path.join(folder, 'original')
    ...     with open(original, 'w') as file:
    ...         _ = file.write('data')
    ...     local = os.path.join(folder, 'local')
    ...     copy = os.path.join(local, 'copy')
    ...     copy_from_server_to_local(folder, local, original, copy)
    ...     os.listdir(local)
    ['copy']
    """
    logger.info('Copying %r from %r to %r', os.path.basename(remote_fname),
                dataset_remote_dir, local_fname)
    safe_mkdir(dataset_local_dir)
    _make_folder(os.path.dirname(os.path.abspath(local_fname)), remote_fname)
    before = os.stat(remote_fname)

    def check_unchanged(temporary: str) -> None:
        after = os.stat(remote_fname)
        size = os.path.getsize(temporary)
        if (size != before.st_size or after.st_size != before.st_size
                or after.st_mtime_ns != before.st_mtime_ns
                or after.st_ctime_ns != before.st_ctime_ns
                or after.st_ino != before.st_ino):
            raise OSError(
                f'{remote_fname!r} changed while it was copied: {size} '
                f'bytes were read, it had {before.st_size} at first and has '
                f'{after.st_size} now; try again when it is complete')

    with atomic_path(local_fname, check_unchanged, _mode(before),
                     ) as temporary:
        shutil.copyfile(remote_fname, temporary)
        _give_to_group(temporary, before)


def _make_folder(folder: str, original: str) -> None:
    """Make the folder of a copy, unless it exists.

    Users who may read the original's folder may read it. Only its owner may
    write into it.
    """
    if os.path.isdir(folder):
        return
    status = os.stat(os.path.dirname(os.path.abspath(original)))
    safe_mkdir(folder, _mode(status) & 0o755 | 0o700)
    _give_to_group(folder, status)


def _mode(original: os.stat_result) -> int:
    """Return the permissions of a copy, from those of its original."""
    mode = stat.S_IMODE(original.st_mode) & 0o777
    # The permissions of the original's group are not given to another group.
    return mode if _may_give_to(original.st_gid) else mode & ~0o070


def _give_to_group(copy: str, original: os.stat_result) -> None:
    if sys.platform != 'win32' and _may_give_to(original.st_gid):
        os.chown(copy, -1, original.st_gid)


def _may_give_to(group: int) -> bool:
    """Return whether this process may make a file belong to a group."""
    if sys.platform == 'win32':
        return True
    return (os.geteuid() == 0 or group == os.getegid()
            or group in os.getgroups())


def upload(path: str, target: RemotePath) -> None:
    """Upload a file to object storage, in parts if it is large.

    Until the whole file was sent, an old file at the target is unchanged.
    """
    from fuel.remote.stores import filesystem_of
    url, options = target.reveal()
    secrets = Secrets(url, options)
    filesystem = filesystem_of(url, options)
    size = os.path.getsize(path)
    try:
        place = filesystem._strip_protocol(url)
        # If anything fails, the incomplete upload is discarded.
        with filesystem.transaction, open(
                path, 'rb') as source, filesystem.open(
                place, 'wb', block_size=_PART) as stream:
            shutil.copyfileobj(source, stream, _PART)
        filesystem.invalidate_cache()
        found = filesystem.info(place)['size']
    except Exception as error:  # noqa: BLE001 (each system has its own)
        raise OSError(secrets.hide(
            f'cannot write {target}: {type(error).__name__}: {error}; '
            f'nothing was written')) from None
    if found != size:
        raise OSError(f'{target} has {found} bytes, {size} were sent: send '
                      f'it again')
