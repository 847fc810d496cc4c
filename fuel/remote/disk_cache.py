"""Cache of remote files on the local disk.

An entry of the cache is a folder for one remote file in one state. The name of
the folder is a digest of the URL and the state, and ``state.json`` in it has
both in full. ``data`` is a sparse file of the same size as the remote file.
``index`` has a record for each run of pages in ``data``. A record has a fixed
size, contains checksums, and is appended after its pages were written. So a
process that is killed leaves a shorter index, and damaged pages are found by
their checksums.

Processes share an entry, and lock it while they use it. If the budget is
exceeded, entries that are not in use are removed, the least recently used
first.
"""
from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import re
import shutil
import stat
import struct
import threading
import zlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from fuel.config_parser import config
from fuel.remote.pages import Record
from fuel.utils.disk import allocated, holes_take_space
from fuel.utils.forks import Step, each_at_fork
from fuel.utils.lockfile import NO_FOLLOW
from fuel.utils.seams import fault_point

logger = logging.getLogger(__name__)

# First page, page after the last, checksums of the bytes and of the record.
RECORD = struct.Struct('<QQII')
FORMAT = 1
# Names of entries. Nothing else in the folder is ever touched.
_ENTRY = re.compile('[0-9a-f]{32}-[0-9a-f]{32}')
# A link in an entry was not made by this cache, so it is not followed.
_FLAGS = os.O_RDWR | os.O_CREAT | NO_FOLLOW
# An index may have at most LARGEST_INDEX bytes and, in addition, the records
# of _SHARERS processes that each write every page. A larger index would fill
# the memory.
LARGEST_INDEX, _SHARERS = 1 << 16, 16
# Bytes that a process may write before it checks the budget again.
ALLOWANCE = 64 << 20
# The default budget is 1 / SHARE_OF_DISK of the disk, but at most
# 1 / SHARE_OF_FREE of its free space.
SHARE_OF_DISK, SHARE_OF_FREE = 5, 2


def digest(*parts: object) -> str:
    """Return a digest of the texts of `parts`, to be used as a name."""
    text = '\0'.join(map(str, parts)).encode('utf-8', 'surrogateescape')
    return hashlib.sha256(text).hexdigest()[:32]


@fault_point('cache write')
def write_at(descriptor: int, data: bytes, start: int) -> None:
    """Write bytes of a remote file into the file on disk."""
    view = memoryview(data)
    while view:
        done = os.pwrite(descriptor, view, start)
        view, start = view[done:], start + done


@fault_point('cache record')
def append(descriptor: int, record: bytes) -> None:
    """Append a record to an index; other processes see all of it or none."""
    os.write(descriptor, record)


class CacheEntry:
    """Entry of the cache: one remote file in one state, on disk.

    `descriptor`: descriptor of the sparse file.
    """

    def __init__(self, cache: DiskCache, folder: Path, size: int,
                 page: int) -> None:
        self._cache = cache
        self.folder = folder
        self._size = size
        self._page = page
        self.descriptor = os.open(folder / 'data', _FLAGS, 0o600)
        self._index = -1
        try:
            _lock(self.descriptor)
            if os.fstat(self.descriptor).st_size not in (0, size):
                raise FileNotFoundError('it is damaged')
            os.ftruncate(self.descriptor, size)
            self._is_reserved = holes_take_space(self.descriptor)
            if self._is_reserved:
                cache.reserve(self.descriptor, size, folder)
            self._index = os.open(
                folder / 'index', _FLAGS | os.O_APPEND, 0o600)
            status = os.fstat(self._index)
            if not stat.S_ISREG(status.st_mode) or status.st_size > (
                    LARGEST_INDEX + _SHARERS * RECORD.size * (size // page)):
                raise FileNotFoundError('its index is damaged')
            os.utime(self._index)
            # Another process may have removed the entry just before.
            if not os.path.samestat(os.fstat(self.descriptor),
                                    os.stat(folder / 'data')):
                raise FileNotFoundError('it was removed')
        except BaseException:
            self.close()
            raise
        self._read_to = 0

    def fits(self) -> bool:
        """Return whether the budget has space for the whole file."""
        return self._cache.is_open and self._size <= self._cache.budget

    def close(self) -> None:
        """Close the files."""
        for descriptor in (self.descriptor, self._index):
            if descriptor >= 0:
                os.close(descriptor)
        self.descriptor = self._index = -1

    def read_index(self) -> list[Record]:
        """Return the runs of pages that were added since the last call, by
        this process or another one."""
        end = os.fstat(self._index).st_size
        content = os.pread(self._index, max(0, end - self._read_to),
                           self._read_to)
        found = []
        place = 0
        while place + RECORD.size <= len(content):
            record = content[place:place + RECORD.size]
            first, last, checksum, own = RECORD.unpack(record)
            if zlib.crc32(record[:-4]) != own:
                # A part of a record, which a killed process has left.
                place += 1
                continue
            place += RECORD.size
            if first < last <= -(-self._size // self._page):
                found.append(Record(first, last, checksum))
        self._read_to += place
        return found

    def read(self, start: int, nbytes: int) -> bytes:
        """Return bytes of the sparse file."""
        pieces = []
        while nbytes > 0:
            piece = os.pread(self.descriptor, nbytes, start)
            if not piece:
                break
            pieces.append(piece)
            start, nbytes = start + len(piece), nbytes - len(piece)
        return pieces[0] if len(pieces) == 1 else b''.join(pieces)

    def is_sound(self, record: Record) -> bool:
        """Return whether the bytes of a run have the checksum in the index."""
        start = record.first * self._page
        nbytes = min(record.last * self._page, self._size) - start
        try:
            data = self.read(start, nbytes)
        except OSError:
            return False
        return len(data) == nbytes and zlib.crc32(data) == record.checksum

    def keep(self, first: int, last: int, data: bytes) -> bool:
        """Write a run of pages and its record; return whether this was done.

        It is not done if there is no space, or if writing fails. After a
        failed write, nothing more is written to any entry of the cache.
        """
        if not self._is_reserved and not self._cache.admits(
                len(data), self.folder):
            return False
        try:
            write_at(self.descriptor, data, first * self._page)
            body = RECORD.pack(first, last, zlib.crc32(data), 0)[:-4]
            append(self._index,
                   body + zlib.crc32(body).to_bytes(4, 'little'))
        except OSError as error:
            logger.warning('%s is not written to any more: %s',
                           self.folder, error)
            self._cache.close()
            return False
        return True


class DiskCache:
    """Cache of remote files in a folder, within a budget of bytes.

    `folder`: the folder. If it is missing, it is made for this user alone.
    `budget`: bytes of disk for all entries together.
    """

    def __init__(self, folder: str | os.PathLike[str], budget: int) -> None:
        self.folder = Path(folder)
        self.budget = budget
        self.is_open = True
        # Numbers of the errors that were logged.
        self._told: set[int | None] = set()
        # The entries of each file. They are listed once, since listing takes
        # long if there are many.
        self._states: defaultdict[str, set[Path]] | None = None
        self.start_in_child()
        _all.add(self)

    def start_in_child(self) -> None:
        """Reset the lock and the allowance in a forked child."""
        self._lock = threading.Lock()
        self._allowed = 0

    def close(self) -> None:
        """Stop writing to the cache, for example because the disk is full."""
        self.is_open = False

    def open(self, name: str, size: int, validator: str, page: int,
             shown: str) -> CacheEntry | None:
        """Return the entry of a remote file; None if it cannot be cached.

        `name`: digest of the URL and the options.
        `validator`: text that identifies the state of the file.
        `page`: size of a page.
        `shown`: the URL without credentials.
        """
        try:
            self.folder.mkdir(0o700, parents=True, exist_ok=True)
            _check_own(self.folder)
            place = digest(name)
            folder = self.folder / (
                f'{place}-{digest(size, validator, page, FORMAT)}')
            self._remove_others(place, folder)
            for _ in range(10):
                with contextlib.suppress(FileNotFoundError):
                    return self._open(folder, size, validator, page, shown)
                _remove_unused(folder)
        except OSError as error:
            # Logged once for each cause: there may be thousands of files.
            if error.errno not in self._told:
                self._told.add(error.errno)
                logger.warning(
                    '%s is not cached on disk, in %s: %s (other files may '
                    'not be for the same cause)', shown, self.folder, error)
        return None

    def _remove_others(self, place: str, folder: Path) -> None:
        """Remove the entries of a file's other states, unless they are in
        use."""
        with self._lock:
            if self._states is None:
                found: defaultdict[str, set[Path]] = defaultdict(set)
                for entry in self._entries():
                    found[_place_of(entry)].add(entry)
                self._states = found
            states = self._states[place]
            states.add(folder)
            others = states - {folder}
        for other in others:
            if _remove_unused(other):
                states.discard(other)

    def _open(self, folder: Path, size: int, validator: str, page: int,
              shown: str) -> CacheEntry:
        if folder.is_symlink():
            folder.unlink()
        folder.mkdir(0o700, exist_ok=True)
        entry = CacheEntry(self, folder, size, page)
        state = folder / 'state.json'
        if not state.exists():
            part = folder / f'state.{os.getpid()}'
            part.write_text(json.dumps({
                'url': shown, 'size': size, 'validator': validator}))
            os.replace(part, state)
        return entry

    def admits(self, nbytes: int, folder: Path) -> bool:
        """Return whether `nbytes` more bytes may be written to an entry.

        If there is no space, entries that are not in use are removed first.
        """
        with self._lock:
            return self.is_open and self._allow(nbytes, folder)

    def reserve(self, descriptor: int, size: int, folder: Path) -> None:
        """Allocate all bytes of an entry before writing.

        Raises: OSError if there is no space for them.
        """
        with self._lock:
            missing = size - 512 * os.fstat(descriptor).st_blocks
            if missing > 0 and self._make_room(missing, folder) < missing:
                raise OSError('the budget has no room for the whole file')
            os.posix_fallocate(descriptor, 0, size)

    def _allow(self, nbytes: int, folder: Path) -> bool:
        if self._allowed < nbytes:
            free = self._make_room(ALLOWANCE, folder)
            self._allowed = max(0, min(free, ALLOWANCE))
            if self._allowed < nbytes:
                return False
        self._allowed -= nbytes
        return True

    def _make_room(self, wanted: int, folder: Path) -> int:
        """Remove unused entries until there is room for `wanted` more bytes.

        `folder`: the entry that needs the room, which is not removed.

        Returns: the number of free bytes of the budget.
        """
        used = {entry: _disk_usage(entry) for entry in self._entries()}
        free = self.budget - sum(used.values())
        for entry in sorted(used, key=_last_used):
            if free >= wanted or entry == folder:
                continue
            if _remove_unused(entry):
                free += used[entry]
        return free

    def used_bytes(self) -> int:
        """Return the number of bytes that the entries occupy on disk."""
        return sum(map(_disk_usage, self._entries()))

    def _entries(self) -> Iterator[Path]:
        with contextlib.suppress(FileNotFoundError):
            yield from (entry for entry in self.folder.iterdir()
                        if _ENTRY.fullmatch(entry.name)
                        and entry.is_dir())


_all = each_at_fork(Step.OWNERSHIP, in_child=DiskCache.start_in_child)


def _place_of(entry: Path) -> str:
    """Return the common prefix of the entries of all states of a file."""
    return entry.name.partition('-')[0]


def _check_own(folder: Path) -> None:
    """Raise PermissionError if another user could write into a folder."""
    status = folder.stat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise PermissionError(
            'other users can write to this folder: remove their write '
            'permission, or choose another folder as config.remote_cache_path')


def _lock(descriptor: int) -> None:
    """Mark an entry as in use, until the process ends or closes it."""
    # Windows does not have this module; remote files are not read there.
    import fcntl
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_SH)


def _remove_unused(folder: Path) -> bool:
    """Remove an entry unless a process uses it; return whether it was
    removed."""
    import fcntl
    try:
        descriptor = os.open(folder / 'data', os.O_RDWR)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _last_used(folder: Path) -> float:
    try:
        return (folder / 'index').stat().st_mtime
    except OSError:
        return 0.


def _disk_usage(folder: Path) -> int:
    total = 0
    for name in ('data', 'index'):
        with contextlib.suppress(OSError):
            total += allocated((folder / name).stat())
    return total


_caches: dict[tuple[str, int | None], DiskCache] = {}


def disk_cache() -> DiskCache | None:
    """Return the cache on disk, as configured; None if it is turned off."""
    folder: str = config.remote_cache_path
    wanted: int | None = config.remote_cache_bytes
    if folder == 'off' or wanted == 0:
        return None
    if (folder, wanted) not in _caches:
        budget = _default_budget(folder) if wanted is None else wanted
        _caches[folder, wanted] = DiskCache(folder, budget)
    return _caches[folder, wanted]


def _default_budget(folder: str) -> int:
    place = Path(os.path.abspath(folder))
    while not place.exists():
        place = place.parent
    usage = shutil.disk_usage(place)
    return min(usage.total // SHARE_OF_DISK, usage.free // SHARE_OF_FREE)
