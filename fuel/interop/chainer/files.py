"""Folders, downloads and cached files of data sets."""
from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable
from typing import Any, TypeVar

from fuel.downloaders.base import default_downloader
from fuel.utils.atomic_files import new_path
from fuel.utils.lockfile import LockFile

Content = TypeVar('Content')

VARIABLE = 'CHAINER_DATASET_ROOT'
_root: str | None = None


def get_dataset_root() -> str:
    """Return the folder in which data sets are kept.

    Returns
    -------
    str
        The path that :func:`set_dataset_root` was given. If there is none,
        the value of the environment variable ``CHAINER_DATASET_ROOT``. If
        that is not set, ``.chainer/dataset`` in the home directory.
    """
    return _root or os.environ.get(VARIABLE) or os.path.join(
        os.path.expanduser('~'), '.chainer', 'dataset')


def set_dataset_root(path: str | os.PathLike[str] | None) -> None:
    """Set the folder in which data sets are kept.

    Parameters
    ----------
    path : str or path-like
        The folder, which need not exist. None: undo an earlier call.
    """
    global _root
    _root = None if path is None else os.fspath(path)


def get_dataset_directory(dataset_name: str,
                          create_directory: bool = True) -> str:
    """Return the folder of a data set.

    Parameters
    ----------
    dataset_name : str
        Name of the data set, a path below the root.
    create_directory : bool, optional
        Whether to create the folder. Defaults to True.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If the name is that of a folder outside the root.
    """
    root = os.path.abspath(get_dataset_root())
    path = os.path.abspath(os.path.join(root, dataset_name))
    if not path.startswith(os.path.join(root, '')):
        raise ValueError(
            f'dataset_name must be a path below {root}, got '
            f'{dataset_name!r}')
    if create_directory:
        os.makedirs(path, exist_ok=True)
    return os.path.join(get_dataset_root(), dataset_name)


def cached_download(url: str) -> str:
    """Download a file, unless it was downloaded before.

    Parameters
    ----------
    url : str

    Returns
    -------
    str
        Path of the file below :func:`get_dataset_root`. Chainer keeps the
        file at the same path.

    Raises
    ------
    fuel.downloaders.base.DownloadError
        If the file cannot be downloaded. Then no file is left at its path.

    Notes
    -----
    The file is downloaded as by ``fuel-download``: the download resumes,
    retries and gives up on a server that is too slow, and the file gets its
    name only when it is complete. If several threads or processes request the
    file, one of them downloads it and the others wait.
    """
    folder = os.path.join(get_dataset_root(), '_dl_cache')
    # The name that Chainer gives the file; the digest protects no secret.
    name = hashlib.md5(url.encode(), usedforsecurity=False).hexdigest()
    path = os.path.join(folder, name)
    if os.path.exists(path):
        return path
    os.makedirs(folder, exist_ok=True)
    lock = LockFile(path + '.lock')
    # Wait without limit: the download has time limits of its own.
    with lock.held(math.inf):
        try:
            if not os.path.exists(path):
                default_downloader(folder, [url], [name])
        finally:
            lock.remove()
    return path


def cache_or_load_file(path: str | os.PathLike[str],
                       creator: Callable[[str], Content],
                       loader: Callable[[Any], Content]) -> Content:
    """Load a file, or create it if it does not exist.

    Parameters
    ----------
    path : str or path-like
        The file.
    creator : callable
        Takes a temporary path where no file exists, writes the file there and
        returns its content.
    loader : callable
        Takes `path`, as it was passed, and returns the content of the file.

    Returns
    -------
    object
        The result of `creator` or `loader`.

    Raises
    ------
    FileNotFoundError
        If `creator` returned without making the file.

    Notes
    -----
    A complete file gets its name in one step. If several threads or processes
    call at the same time, each may create the file, and the last file stays.

    Examples
    --------
    >>> def create(path):
    ...     with open(path, 'w') as file:
    ...         file.write('squares')
    ...     return 'created'
    >>> def load(path):
    ...     with open(path) as file:
    ...         return 'loaded ' + file.read()
    >>> cache_or_load_file('cached.txt', create, load)
    'created'
    >>> cache_or_load_file('cached.txt', create, load)
    'loaded squares'
    """
    if os.path.exists(path):
        return loader(path)
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with new_path(path) as temporary:
        return creator(temporary)
