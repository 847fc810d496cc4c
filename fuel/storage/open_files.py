"""Open HDF5 files: one shared handle for each file in a process.

Each reader of a file references its :class:`OpenFile`. The file is closed when
the last reference is dropped, whether or not ``close`` was called. A handle
stays open from one epoch to the next.
"""
from __future__ import annotations

import functools
import itertools
import logging
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import h5py

from fuel.exceptions import DamagedFileError
from fuel.remote.location import RemotePath, as_path, ask_all
from fuel.remote.urls import StorageOptions
from fuel.storage.attributes import scale
from fuel.storage.file_bytes import RemoteBytes, attach, identity_of, raw_file
from fuel.storage.layout import SWMR_OBSTACLE, obstacle_of_file
from fuel.storage.reader import Reader
from fuel.storage.reader_choice import choose_reader
from fuel.utils import find_in_data_path
from fuel.utils.background import wait_for_release
from fuel.utils.forks import Step, at_fork
from fuel.utils.h5py_file import H5PYFile
from fuel.utils.hdf5_errors import naming_file
from fuel.utils.paths import refuse_folder, refuse_special_file
from fuel.utils.warn import warn_user


class OpenFile:
    """An open file with the readers of its sources.

    Threads may share it, since h5py serialises their calls.

    `file`: the open handle.
    `owned`: whether to close `file` when this object is no longer referenced.
    `driver`: the requested HDF5 driver.
    `raw`: the bytes of the file; None if only HDF5 may read them.
    `place`: device and inode; for a remote file that Fuel reads, two numbers
        for its URL; for any other file that is not local, its name.
    `identity`: device, inode, size and time of the last change; for a remote
        file that Fuel reads, the identity of its state. None if `is_written`
        is True, and for any other file that is not local.
    `is_swmr`: whether the program has opened the file with swmr=True.
    `is_written`: whether this or another process writes to the file.
    """

    def __init__(self, file: h5py.File, owned: bool,
                 driver: str | None = None) -> None:
        self.file = file
        self.path = os.fsdecode(file.filename)
        self.owned = owned
        self.driver = driver
        self.place, self.identity = find_state(self.path)
        # Shared with the readers, which check it after each read.
        obstacle = obstacle_of_file(file)
        self.raw = None if obstacle else raw_file(file)
        intent = file.id.get_intent()
        self.is_swmr = bool(intent & h5py.h5f.ACC_SWMR_READ)
        if self.is_swmr and self.raw is not None:
            # A process may have begun to write before the state was read.
            obstacle = obstacle_of_file(file)
            self.raw = None if obstacle else self.raw
        self.is_written = bool(intent & h5py.h5f.ACC_RDWR
                               ) or obstacle == SWMR_OBSTACLE
        if self.raw is not None:
            self.place, self.identity = (
                self.raw.identity[:2], self.raw.identity)
        elif self.is_written:
            self.identity = None
        self._is_outdated = False
        self._id = file.id
        self._pid = os.getpid()
        self._readers: dict[tuple[str, bool, int | None], Reader] = {}
        if owned:
            weakref.finalize(self, _close, file, self._pid)

    @property
    def usable(self) -> bool:
        """Whether this process opened the file and it is open (bool)."""
        # h5py sets the number to 0 when it closes the file. A call of HDF5
        # would take ten times as long, for each batch.
        return self._id.id != 0 and self._pid == os.getpid()

    def check(self) -> None:
        """Raise DamagedFileError if the file has changed since it was
        opened."""
        if self.raw is not None:
            self.raw.check()
        if self._is_outdated:
            raise DamagedFileError(
                f'{self.path} was overwritten while it was in use, so old '
                f'and new rows would be mixed: begin another epoch, or make '
                f'the data set again')

    def retire(self) -> None:
        """Close a file that was overwritten.

        Otherwise HDF5 would use its metadata of the old content for a new
        handle too. A handle that the user opened is never closed here: for
        such a handle, DamagedFileError is raised, unless it has swmr=True.
        """
        self._is_outdated = True
        if self.owned:
            self.file.close()
        elif self.usable and not self.is_swmr:
            raise _overwritten(self.path)

    def reader(self, source: str, of_shapes: bool = False,
               cache_bytes: int | None = None) -> Reader:
        """Return the reader of a source.

        `of_shapes`: whether to read the shapes of the rows of a source of
            variable length, instead of the rows.
        """
        key = source, of_shapes, cache_bytes
        reader = self._readers.get(key)
        if reader is None:
            with naming_file(self.file.filename, source):
                dataset = _with_rows(self.file[source], source)
                if of_shapes:
                    dataset = scale(dataset, 'shapes')
                reader = choose_reader(dataset, cache_bytes)
            # HDF5 may have read another version of the file meanwhile.
            self.check()
            self._readers[key] = reader
        return reader


def _with_rows(dataset: Any, source: str) -> h5py.Dataset:
    """Return an HDF5 data set; raise ValueError for a group and for a
    scalar, which have no rows."""
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


# Number of attempts to open a file that is changed at the same time.
ATTEMPTS = 10
# The least number of places that are added before places without an open file
# are dropped.
MOST_PLACES = 64


class OpenFiles:
    """The files that this process has open, for reading."""

    def __init__(self) -> None:
        # Mapping from place to files, since there may be thousands of files.
        self._files: dict[tuple[int, ...] | str,
                          weakref.WeakSet[OpenFile]] = {}
        self._most_places = MOST_PLACES
        self._opening = threading.Lock()
        self._inherited: list[OpenFile] = []
        self._warned: set[tuple[int, ...] | str] = set()

    def add(self, opened: OpenFile) -> OpenFile:
        """Register a file that the user has opened; return it."""
        with self._opening:
            return self._add(opened)

    def _add(self, opened: OpenFile) -> OpenFile:
        self._files.setdefault(opened.place, weakref.WeakSet()).add(opened)
        if opened.is_swmr and opened.is_written and (
                opened.place not in self._warned):
            self._warned.add(opened.place)
            warn_user(_slow_beside_writer(opened.path))
        if len(self._files) > self._most_places:
            self._files = {place: files for place, files
                           in self._files.items() if files}
            self._most_places = 2 * len(self._files) + MOST_PLACES
        return opened

    def _at(self, place: tuple[int, ...] | str) -> list[OpenFile]:
        """Return the files that were opened at a place and can be read."""
        return [opened for opened in self._files.get(place, ())
                if opened.usable]

    def get(self, path: str, driver: str | None = None) -> OpenFile:
        """Return an open file; it is closed when the last reference to it is
        dropped."""
        with self._opening:
            found = self._find(path, driver)
            if found is not None:
                return found
            for _ in range(ATTEMPTS):
                before = find_state(path)
                opened = OpenFile(
                    open_with_h5py(path, driver), owned=True, driver=driver)
                # HDF5 has read the beginning of the index by now. If a process
                # writes to the file, HDF5 itself handles later changes.
                if opened.is_written or find_state(path) == before:
                    break
                opened.file.close()
            else:
                raise DamagedFileError(
                    f'{path} was changed each time it was opened, in '
                    f'{ATTEMPTS} attempts: open it when it is written')
            # With swmr=True, a file may grow while it is open.
            if opened.identity and not opened.is_swmr and (
                    opened.file.id.get_filesize() != opened.identity[2]):
                opened.file.close()
                raise _overwritten(path)
            return self._add(opened)

    def get_remote(self, file: RemoteBytes) -> OpenFile:
        """Return the open file for a remote file; see :meth:`get`."""
        with self._opening:
            for opened in self._at(file.identity[:2]):
                if opened.owned and opened.raw is file:
                    return opened
            return self._add(OpenFile(open_stream(file), owned=True))

    def _find(self, path: str, driver: str | None) -> OpenFile | None:
        """Return the file if it is open, else None; retire handles of its
        older states."""
        place, identity = find_state(path)
        found = None
        for opened in self._at(place):
            if opened.identity not in (None, identity):
                opened.retire()
            elif opened.owned and opened.driver == driver:
                found = opened
        return found

    def start_in_child(self) -> None:
        """Drop the parent's files in a forked child, without closing them."""
        # Another thread of the parent may have held the lock.
        self._opening = threading.Lock()
        # The parent's files are kept, so that the child never closes them.
        self._inherited.extend(itertools.chain(*self._files.values()))
        self._files.clear()


open_files = OpenFiles()

at_fork(Step.OWNERSHIP, in_child=open_files.start_in_child)


def find_state(path: str) -> tuple[tuple[int, ...] | str,
                                      tuple[int, ...] | None]:
    """Return the place and the identity of a file; for a file that is not
    local, its name and None."""
    try:
        status = os.stat(path)
    except OSError:
        return path, None
    return (status.st_dev, status.st_ino), identity_of(status)


def _slow_beside_writer(path: str) -> str:
    return (f'{path} is read by h5py, which takes up to a hundred times as '
            f'long for random rows: this process has h5py.File({path!r}, '
            f'swmr=True) open, and the flags in the file say that a process '
            f'writes to it. Once it is closed there, a data set that is made '
            f'anew reads directly; if the process was killed, clear the flags '
            f'with h5clear --status, or write a copy of the file')


def _overwritten(path: str) -> DamagedFileError:
    return DamagedFileError(
        f'{path} was overwritten while an h5py.File of it is open in this '
        f'process, and HDF5 would mix old and new content: close that '
        f'handle first (to replace a file in use, rename the new one onto '
        f'it)')


def open_with_h5py(path: str, driver: str | None = None,
              storage_options: StorageOptions | None = None) -> h5py.File:
    """Open a file for reading; if this fails, the error says why."""
    path = as_path(path, storage_options)
    if isinstance(path, RemotePath):
        return open_stream(path.open())
    refuse_special_file(path)
    refuse_folder(path, 'an HDF5 file')
    try:
        return H5PYFile(path, mode='r', driver=driver)
    except FileNotFoundError:
        raise FileNotFoundError(
            f'there is no file {os.path.abspath(path)!r}') from None
    except (OSError, RuntimeError, ValueError) as error:
        raise _refused(path, error, functools.partial(_head, path)
                       ) from error


def open_stream(file: RemoteBytes) -> h5py.File:
    """Open a remote file with HDF5; if this fails, the error says why."""
    try:
        return H5PYFile(file.stream(attach(file)), mode='r')
    except (OSError, RuntimeError, ValueError) as error:
        file.check()
        if isinstance(error, (DamagedFileError, PermissionError,
                              TimeoutError)):
            raise
        raise _refused(file.path, error, lambda: file.read(0, HEAD)
                       ) from error


# Number of bytes by which other kinds of files are recognised.
HEAD = 512


def _head(path: str) -> bytes:
    with open(path, 'rb') as file:
        return file.read(HEAD)


def _refused(path: str, error: Exception, read_head: Callable[[], bytes],
             ) -> OSError:
    """Return the error for a file that HDF5 cannot open."""
    text = (f'cannot read {path!r}: {_diagnosis(error, read_head)} '
            f'({error})')
    # Given an error number, OSError returns the subclass for this number.
    number = getattr(error, 'errno', None)
    return OSError(number, text) if number else OSError(text)


def _diagnosis(error: Exception, read_head: Callable[[], bytes]) -> str:
    """Return the reason why HDF5 cannot open a file, and a known remedy."""
    if 'truncated' in str(error):
        return ('the file is truncated, as by an interrupted copy or '
                'conversion; make it again')
    if isinstance(error, BlockingIOError):
        return 'another process has it open for writing'
    try:
        head = read_head().lstrip().lower()
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


logger = logging.getLogger(__name__)

# With these drivers, a name is the path of one local file.
_LOCAL_DRIVERS = (None, 'sec2', 'stdio', 'core', 'direct')


class FileAccess:
    """Access of one data set to its file.

    A pickle has only the path. If there is no such file on the machine that
    loads the pickle, a file of the same name is searched for in the data path.

    `path`: path or name of the file, as the user gave it.
    `driver`: HDF5 driver.
    `external`: a handle that the user opened. It is used while it is open, and
        is never closed here.
    `must_exist`: whether to check now that the file exists. Defaults to True.
    """

    def __init__(self, path: str, driver: str | None,
                 external: h5py.File | None = None,
                 must_exist: bool = True) -> None:
        self.path = path
        self.driver = driver
        self._absolute_path = os.path.abspath(path)
        self._opened: OpenFile | None = None
        self._external: OpenFile | None = None
        self.external = external
        is_wanted = must_exist and external is None and self._is_local
        if is_wanted:
            refuse_special_file(path)
        if is_wanted and not os.path.exists(path):
            raise FileNotFoundError(
                f'there is no file {self._absolute_path!r}; a file in the '
                'data path is given as '
                f'find_in_data_path({os.path.basename(path)!r})')

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, '_opened': None, '_external': None}

    @property
    def external(self) -> h5py.File | None:
        """The handle that the user opened, None if there is none."""
        return None if self._external is None else self._external.file

    @external.setter
    def external(self, file: h5py.File | None) -> None:
        self._external = None if file is None else open_files.add(
            OpenFile(file, owned=False))

    @property
    def storage_options(self) -> StorageOptions | None:
        """Options of a remote file, without credentials; None for a local
        file."""
        return None

    @storage_options.setter
    def storage_options(self, options: StorageOptions) -> None:
        raise AttributeError(
            f'{self.path!r} is a local file, which has no storage_options')

    @property
    def current(self) -> OpenFile | None:
        """The open file that is read now, None if none is open."""
        for opened in (self._external, self._opened):
            if opened is not None and opened.usable:
                return opened
        return None

    def open(self) -> OpenFile:
        """Return the open file; open it if it is not open.

        The file stays open as long as the caller holds a reference.
        """
        opened = self.current
        if opened is None:
            if self._opened is not None:
                # In the middle of an epoch, no other version may be read.
                self._opened.check()
            if self._only_in_memory:
                assert self._external is not None
                return self._external
            opened = self._opened = self._open()
        return opened

    def _open(self) -> OpenFile:
        """Open the file, or share one that is open."""
        return open_files.get(self._locate(), self.driver)

    def is_current(self) -> bool:
        """Return whether the path still leads to the same file, unchanged.

        The result is True for the user's own handle, which is never opened
        again, and if no file is open.
        """
        opened = self.current
        if (opened is None or opened is self._external
                or opened.identity is None):
            return True
        # Without a local copy, only the path's own state counts.
        return (find_state(self._absolute_path)[1] == opened.identity
                or find_state(self._locate())[1] in (None, opened.identity))

    def close(self) -> None:
        """Close the file; further calls do nothing."""
        opened, self._opened = self._opened, None
        if opened is not None:
            held = weakref.ref(opened)
            del opened
            wait_for_release(held)

    @property
    def _is_local(self) -> bool:
        return self.driver in _LOCAL_DRIVERS

    @property
    def _only_in_memory(self) -> bool:
        # True after a fork, for a file that exists only in memory: the child
        # has its own copy of the memory.
        return (self._external is not None and bool(self._external.file)
                and self._is_local and not os.path.exists(self.path))

    def _locate(self) -> str:
        """Return the path to open: the path of a local copy, if there is
        one."""
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


class RemoteAccess(FileAccess):
    """Access of one data set to a remote file.

    Fetched bytes are cached as long as the data set exists, not only while the
    file is open.
    """

    path: RemotePath

    def __init__(self, path: RemotePath, driver: str | None) -> None:
        if driver is not None:
            raise ValueError(
                f'driver={driver!r} is for local files, and {path} is not: '
                f'leave it out')
        self._file: RemoteBytes | None = None
        super().__init__(path, None, must_exist=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), '_file': None}

    @property
    def storage_options(self) -> StorageOptions | None:
        """Options of the file, without credentials."""
        return self.path.public_options

    @storage_options.setter
    def storage_options(self, options: StorageOptions) -> None:
        self.path = self.path.with_options(options)
        self._file = None
        self.close()

    def is_current(self) -> bool:
        """See :meth:`FileAccess.is_current`."""
        return self._file is None or self._file.is_current()

    def _open(self) -> OpenFile:
        self._file = self.path.open()
        return open_files.get_remote(self._file)


def access_to(file_or_path: str | os.PathLike[str] | h5py.File,
              driver: str | None,
              storage_options: StorageOptions | None = None) -> FileAccess:
    """Return the access to a file given as a path, URL or open handle."""
    if isinstance(file_or_path, H5PYFile):
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
    path = as_path(path, storage_options)
    if isinstance(path, RemotePath):
        return RemoteAccess(path, driver)
    return FileAccess(path, driver)


def _local_copy(path: str) -> str:
    from fuel.remote.local_copies import cache_file

    return cache_file(path)


def open_all(accesses: Sequence[FileAccess]) -> list[OpenFile]:
    """Open files; several remote files are opened at a time."""
    ask_all(FileAccess.open, [access for access in accesses
                              if isinstance(access, RemoteAccess)])
    return [access.open() for access in accesses]
