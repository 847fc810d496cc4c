"""How the rows of a file come into the memory that they are copied from."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol

import numpy

from fuel.storage.file_bytes import Ends, FileBytes, RemoteBytes, is_remote
from fuel.storage.prefetch import PagePrefetcher, fits, is_resident, read_rows
from fuel.storage.raw_file import RawFile
from fuel.storage.sequential_prefetch import SequentialRead

# Bytes of rows whose pages may be asked for before they are needed.
PAGES_AHEAD = 256 << 20
# Neighbouring rows of a remote file that lie together are fetched in pieces
# of so many bytes, where the whole file is wanted in the end.
BLOCK = 1 << 20


class Paging(Protocol):
    """Brings the rows of one source into memory."""

    #: Whether rows have to be brought before they are copied.
    is_cold: bool
    #: Whether that is so for ranges of rows as well.
    is_remote: bool

    def begin(self, first: int, last: int) -> int | None:
        """Look at where the bytes of the source are, at the beginning of an
        epoch; return how many may be expected at a time, if any."""
        ...

    def prefetch(self, starts: Ends, nbytes: int) -> None:
        """Have pieces brought in the background."""
        ...

    def bring(self, starts: Ends, nbytes: int) -> AbstractContextManager[None]:
        """Bring pieces, and keep them while the context is entered."""
        ...


class LocalPaging:
    """Reads a source that is not in memory from the disk: in order if it
    fits there, and row by row if it does not."""

    is_remote = False

    def __init__(self, file: RawFile) -> None:
        self._file = file
        self._ordered: SequentialRead | None = None
        self._by_rows: PagePrefetcher | None = None

    def begin(self, first: int, last: int) -> int | None:
        """See :class:`Paging`."""
        ordered = by_rows = None
        if not is_resident(self._file, first, last - first):
            if fits(last - first):
                ordered = SequentialRead(self._file, first, last - first)
            else:
                by_rows = PagePrefetcher(self._file)
        self._ordered, self._by_rows = ordered, by_rows
        return PAGES_AHEAD if by_rows else None

    @property
    def is_cold(self) -> bool:
        """Whether rows have to be brought before they are copied (bool)."""
        # Looked up once: another thread may begin an epoch meanwhile.
        ordered = self._ordered
        return self._by_rows is not None or (
            ordered is not None and not ordered.is_done)

    def prefetch(self, starts: Ends, nbytes: int) -> None:
        """See :class:`Paging`."""
        by_rows = self._by_rows
        if by_rows is not None:
            by_rows.prefetch(starts, nbytes)

    @contextlib.contextmanager
    def bring(self, starts: Ends, nbytes: int) -> Iterator[None]:
        """See :class:`Paging`."""
        ordered = self._ordered
        if ordered is None:
            read_rows(self._file, starts, nbytes)
        else:
            ordered.wait(starts, nbytes)
        yield


class RemotePaging:
    """Fetches a source from where it is, unless the cache on disk has all
    of it."""

    is_remote = True

    def __init__(self, file: RemoteBytes) -> None:
        self._file = file
        self._is_here = False
        self._first = self._last = 0

    def begin(self, first: int, last: int) -> int | None:
        """See :class:`Paging`."""
        self._first, self._last = first, last
        # Pages on disk stay there while the file is open.
        self._is_here = self._file.is_settled(first, last)
        return None

    @property
    def is_cold(self) -> bool:
        """Whether rows have to be brought before they are copied (bool)."""
        return not self._is_here

    def prefetch(self, starts: Ends, nbytes: int) -> None:
        """See :class:`Paging`."""
        self._file.request(*self._pieces(starts, nbytes))

    def bring(self, starts: Ends, nbytes: int) -> AbstractContextManager[None]:
        """See :class:`Paging`."""
        return self._file.hold(*self._pieces(starts, nbytes))

    def missing_bytes(self, starts: Ends, nbytes: int) -> int:
        """Return how many bytes of pieces are not here nor under way."""
        return self._file.missing_bytes(*self._pieces(starts, nbytes))

    def _pieces(self, starts: Ends, nbytes: int) -> tuple[Ends, Ends]:
        """Return the ranges to fetch for some pieces: whole blocks, where
        the cache will have the whole source in the end."""
        if not starts.size:
            return starts, starts
        stops = starts + nbytes
        if nbytes < BLOCK and self._file.keeps(self._last - self._first):
            starts = self._first + (
                (starts - self._first) // BLOCK * BLOCK)
            stops = numpy.minimum(
                self._first - (self._first - stops) // BLOCK * BLOCK,
                max(self._last, int(stops.max())))
            starts, places = numpy.unique(starts, return_index=True)
            stops = stops[places]
        return starts, stops


def paging_of(file: FileBytes) -> LocalPaging | RemotePaging:
    """Return what brings rows of a file into memory."""
    if is_remote(file):
        return RemotePaging(file)
    assert isinstance(file, RawFile)
    return LocalPaging(file)
