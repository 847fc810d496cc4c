"""Open HDF5 files: one handle a file and process, shared and never counted.

Whoever reads a file holds on to its :class:`OpenFile`; the last one to let
go closes it. So a file closes neither too early nor never, however often
``close`` is called, and a handle stays open from one epoch to the next.
"""
from __future__ import annotations

import logging
import os
import threading
import weakref
from typing import Any

import h5py

from fuel.datasets.hdf5.labels import scale
from fuel.storage import Reader, open_reader
from fuel.utils import find_in_data_path
from fuel.utils.forks import Step, at_fork
from fuel.utils.hdf5_errors import naming_file

logger = logging.getLogger(__name__)

# With these drivers a name is that of one local file.
_LOCAL_DRIVERS = (None, 'sec2', 'stdio', 'core', 'direct')


class OpenFile:
    """An open file with the readers of its sources.

    Parameters
    ----------
    file : h5py.File
        The open handle.
    owned : bool
        Whether `file` is closed when nobody holds this object any more.

    Notes
    -----
    Threads may share it: h5py serialises what they do.

    """

    def __init__(self, file: h5py.File, owned: bool) -> None:
        self.file = file
        self._id = file.id
        self._pid = os.getpid()
        self._readers: dict[tuple[str, bool, int | None], Reader] = {}
        if owned:
            weakref.finalize(self, _close, file, self._pid)

    @property
    def usable(self) -> bool:
        """Whether this process opened the file and it is still open."""
        # h5py sets the number to 0 when it closes the file; to ask HDF5
        # would take ten times as long, for each batch.
        return self._id.id != 0 and self._pid == os.getpid()

    def reader(self, source: str, of_shapes: bool = False,
               cache_bytes: int | None = None) -> Reader:
        """Return what reads the rows of a source.

        Parameters
        ----------
        of_shapes : bool, optional
            Read the shapes of a variable-length source instead.
        cache_bytes : int, optional
            See :func:`fuel.storage.open_reader`.

        Raises
        ------
        ValueError
            If the source has no rows to read: a group or a scalar.

        """
        key = source, of_shapes, cache_bytes
        reader = self._readers.get(key)
        if reader is None:
            with naming_file(self.file.filename, source):
                dataset = _with_rows(self.file[source], source)
                if of_shapes:
                    dataset = scale(dataset, 'shapes')
                reader = open_reader(dataset, cache_bytes)
            self._readers[key] = reader
        return reader


def _with_rows(dataset: Any, source: str) -> h5py.Dataset:
    """Return an HDF5 data set; refuse what has no rows."""
    if not isinstance(dataset, h5py.Dataset):
        raise ValueError(
            f'source {source!r} of {dataset.file.filename!r} is an HDF5 '
            f'{type(dataset).__name__.lower()}, which has no rows; a subclass '
            'of H5PYDataset that overrides load and _out_of_memory_get_data '
            'may read it')
    if not dataset.shape:
        raise ValueError(
            f'source {source!r} of {dataset.file.filename!r} is a scalar; its '
            'first axis should count examples')
    return dataset


class FileAccess:
    """How one data set comes by its file.

    Parameters
    ----------
    path : str
        Path or name of the file, as the user gave it.
    driver : str or None
        HDF5 driver.
    external : h5py.File, optional
        A handle the user opened; it is used while it is open, and never
        closed here.
    must_exist : bool, optional
        Whether to look for the file now, not when it is opened. Defaults to
        True.

    Raises
    ------
    FileNotFoundError
        If there is no handle and no such file.

    Notes
    -----
    A pickle holds the path alone. When it is gone on the machine that loads
    the pickle, the file is searched by its name in the data path.

    """

    def __init__(self, path: str, driver: str | None,
                 external: h5py.File | None = None,
                 must_exist: bool = True) -> None:
        self.path = path
        self.driver = driver
        self._absolute_path = os.path.abspath(path)
        self._opened: OpenFile | None = None
        self._external: OpenFile | None = None
        # What the data set looked up in the open file.
        self.kept: Any = None
        self.external = external
        if (must_exist and external is None and self._is_local
                and not os.path.exists(path)):
            raise FileNotFoundError(
                f'there is no file {self._absolute_path!r}; a file in the '
                'data path is given as '
                f'find_in_data_path({os.path.basename(path)!r})')

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, '_opened': None, '_external': None,
                'kept': None}

    @property
    def external(self) -> h5py.File | None:
        """The handle the user opened, if any."""
        return None if self._external is None else self._external.file

    @external.setter
    def external(self, file: h5py.File | None) -> None:
        self._external = None if file is None else OpenFile(file, owned=False)

    @property
    def current(self) -> OpenFile | None:
        """The open file that would be read, or None."""
        for opened in (self._external, self._opened):
            if opened is not None and opened.usable:
                return opened
        return None

    def open(self) -> OpenFile:
        """Return the open file, opened if needed.

        The caller keeps it open by holding on to it.
        """
        opened = self.current
        if opened is None:
            if self._only_in_memory:
                assert self._external is not None
                return self._external
            opened = self._opened = shared_file(self._locate(), self.driver)
        return opened

    def close(self) -> None:
        """Let go of the file; to be called as often as one likes."""
        self._opened = self.kept = None

    @property
    def _is_local(self) -> bool:
        return self.driver in _LOCAL_DRIVERS

    @property
    def _only_in_memory(self) -> bool:
        # After a fork, a file that exists nowhere else: the child has its
        # own copy of the memory.
        return (self._external is not None and bool(self._external.file)
                and self._is_local and not os.path.exists(self.path))

    def _locate(self) -> str:
        """Return the path to open, that of the local copy if there is one."""
        if not self._is_local:
            return self.path
        for path in (self._absolute_path, self.path):
            if os.path.exists(path):
                return _local_copy(path)
        try:
            path = find_in_data_path(os.path.basename(self.path))
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f'there is no file {self._absolute_path!r} any more, and '
                f'none of its name in the data path: {error}') from error
        logger.warning('%s is gone, reading %s instead',
                       self._absolute_path, path)
        return _local_copy(path)


class _Registry:
    """The files that this process has open."""

    def __init__(self) -> None:
        self._files: weakref.WeakValueDictionary[Any, OpenFile] = (
            weakref.WeakValueDictionary())
        self._opening = threading.Lock()
        self._inherited: list[OpenFile] = []

    def get(self, path: str, driver: str | None) -> OpenFile:
        """Return the open file, opened if it is not."""
        with self._opening:
            key = (os.getpid(), _identity(path), driver)
            opened = self._files.get(key)
            if opened is None or not opened.usable:
                opened = OpenFile(open_hdf5(path, driver), owned=True)
                self._files[key] = opened
            return opened

    def start_in_child(self) -> None:
        """Begin anew after a fork."""
        # Another thread of the parent may have held the lock.
        self._opening = threading.Lock()
        # The parent's files are kept, so that the child never closes them.
        self._inherited.extend(self._files.values())
        self._files.clear()


_registry = _Registry()

at_fork(Step.OWNERSHIP, in_child=_registry.start_in_child)


def shared_file(path: str, driver: str | None = None) -> OpenFile:
    """Open a file for reading, or join those who have it open.

    Returns
    -------
    OpenFile
        Closed when the last one to hold it lets go.

    Raises
    ------
    OSError
        If the file is not a whole HDF5 file; FileNotFoundError if missing.

    """
    return _registry.get(path, driver)


def _local_copy(path: str) -> str:
    from fuel.utils.cache import cache_file

    return cache_file(path)


def _identity(path: str) -> Any:
    # A file that took the place of another has an inode of its own.
    try:
        status = os.stat(path)
    except OSError:
        return path
    return status.st_dev, status.st_ino


def open_hdf5(path: str, driver: str | None = None) -> h5py.File:
    """Open a file for reading, with an error that says why it cannot be.

    Raises
    ------
    OSError
        If the file is not a whole HDF5 file; FileNotFoundError if missing.

    """
    try:
        return h5py.File(path, mode='r', driver=driver)
    except FileNotFoundError:
        raise FileNotFoundError(
            f'there is no file {os.path.abspath(path)!r}') from None
    except (OSError, RuntimeError, ValueError) as error:
        text = (f'cannot read {path!r}: {_diagnosis(path, error)} '
                f'({error})')
        # With a number, OSError becomes the subclass that belongs to it.
        number = getattr(error, 'errno', None)
        raise (OSError(number, text) if number else OSError(text)) from error


def access_to(file_or_path: Any, driver: str | None) -> FileAccess:
    """Return the access to a file given as a path or an open handle.

    Raises
    ------
    TypeError
        If it is neither.
    ValueError
        If the handle is closed.

    """
    if isinstance(file_or_path, h5py.File):
        if not file_or_path:
            raise ValueError(
                f'file_or_path must be a path or an open h5py.File, got '
                f'{file_or_path!r}: give the path, or open the file again')
        return FileAccess(os.fsdecode(file_or_path.filename), driver,
                          file_or_path)
    try:
        path = os.fsdecode(file_or_path)
    except TypeError:
        raise TypeError(
            'file_or_path must be a path or an open h5py.File, got '
            f'{file_or_path!r}') from None
    return FileAccess(path, driver)


def _diagnosis(path: str, error: Exception) -> str:
    """Say in plain words why HDF5 refused a file."""
    if 'truncated' in str(error):
        return ('the file is truncated, as by an interrupted copy or '
                'conversion; make it again')
    if isinstance(error, BlockingIOError):
        return 'another process has it open for writing'
    try:
        with open(path, 'rb') as file:
            head = file.read(512).lstrip().lower()
    except OSError:
        return 'it cannot be opened as a file'
    if head.startswith((b'<!doctype', b'<html', b'<?xml')):
        return ('it is an HTML page and not an HDF5 file; a download '
                'probably brought an error page, so download it again')
    if 'signature' in str(error):
        return ('it is not an HDF5 file; convert raw data with fuel-convert '
                'first')
    return 'HDF5 refused it'


def _close(file: h5py.File, pid: int) -> None:
    if pid == os.getpid():
        file.close()
