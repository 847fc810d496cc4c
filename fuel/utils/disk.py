"""Folders, and the space on their disks."""
import os
import shutil
import sys
from pathlib import Path

__all__ = ['check_enough_space', 'disk_usage', 'safe_mkdir']


def allocated(status: os.stat_result) -> int:
    """Return the number of bytes that a file takes on the disk.

    On Windows, which does not report it, the length of the file is returned.
    """
    if sys.platform == 'win32':
        return status.st_size
    return status.st_blocks * 512


def disk_usage(path: str) -> tuple[int, int]:
    """Return the size of the disk that contains a path, and the number of used
    bytes.

    Parameters
    ----------
    path : str
        A folder or file on the disk.

    Returns
    -------
    total, used : int
        Numbers of bytes.

    Examples
    --------
    >>> from fuel.utils.disk import disk_usage
    >>> total, used = disk_usage('.')
    >>> used <= total
    True
    """
    usage = shutil.disk_usage(path)
    return usage.total, usage.used


def safe_mkdir(folder_name: str, force_perm: int | None = None) -> None:
    """Create a folder and its missing parents, unless the folder exists.

    Parameters
    ----------
    folder_name : str
        The folder to create.
    force_perm : int, optional
        Permissions of each folder that is created, independent of the umask.
        By default the umask decides, as for any new folder; usually other
        users cannot write into it.

    Raises
    ------
    FileExistsError
        If there is a file with this name.

    Examples
    --------
    >>> import os, tempfile
    >>> from fuel.utils.disk import safe_mkdir
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     safe_mkdir(os.path.join(folder, 'a', 'b'))
    ...     os.listdir(folder)
    ['a']
    """
    missing = []
    folder = os.path.abspath(folder_name)
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    os.makedirs(folder_name, exist_ok=True)
    if force_perm is not None:
        for folder in missing:
            os.chmod(folder, force_perm)


def check_enough_space(dataset_local_dir: str, remote_fname: str,
                       local_fname: str,
                       max_disk_usage: float = 0.9) -> bool:
    """Return whether the disk of a folder has space for a copy of a file.

    Parameters
    ----------
    dataset_local_dir : str
        Folder on the disk that is checked.
    remote_fname : str
        The file to copy.
    local_fname : str
        Path of the copy. A file that is there now is replaced only after the
        copy is complete, so its space does not count as free.
    max_disk_usage : float, optional
        The largest part of the disk that may be in use after the copy, as a
        fraction. Defaults to 0.9.

    Returns
    -------
    bool
        Whether the copy fits and does not exceed this limit.

    Examples
    --------
    >>> import tempfile
    >>> from fuel.utils.disk import check_enough_space
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     check_enough_space('.', file.name, 'copy', max_disk_usage=0.)
    False
    """
    needed = os.path.getsize(remote_fname)
    usage = shutil.disk_usage(dataset_local_dir)
    return (needed < usage.free
            and usage.used + needed < usage.total * max_disk_usage)


def holes_take_space(descriptor: int) -> bool:
    """Return whether reading the holes of a mapped file takes space.

    On ``tmpfs`` it does; if the file system is full, the system ends the
    process (SIGBUS).
    """
    device = os.fstat(descriptor).st_dev
    try:
        mounts = Path('/proc/self/mountinfo').read_text('utf-8', 'replace')
        name = f'{os.major(device)}:{os.minor(device)}'
    except (OSError, AttributeError):  # no Linux
        return False
    for line in mounts.splitlines():
        place, _, kind = line.partition(' - ')
        if place.split()[2:3] == [name]:
            return kind.startswith('tmpfs ')
    return False
