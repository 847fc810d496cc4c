"""How the rows of a file come into the memory that they are copied from."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager

import numpy

from fuel.storage.background import Background
from fuel.storage.file_bytes import (
    Ends, FileBytes, LocalBytes, RemoteBytes, is_local, is_remote)
from fuel.storage.pages import advise_rows, fits, read_rows
from fuel.storage.sequential_read import SequentialRead

# Bytes of rows whose pages may be asked for before they are needed.
PAGES_AHEAD = 256 << 20
# Neighbouring rows of a remote file that lie together are fetched in pieces
# of so many bytes, where the whole file is wanted in the end.
BLOCK = 1 << 20
PAGE = 1 << 16
# At least so much of it must be the source's own.
DENSE = .5


class LocalPaging:
    """Reads a source that is not in memory from the disk: in order if it
    fits there, and row by row if it does not."""

    #: Whether ranges of rows have to be brought as well.
    is_remote = False

    def __init__(self, file: LocalBytes) -> None:
        self._file = file
        self._ordered: SequentialRead | None = None
        self._by_rows: Background | None = None

    def begin(self, first: int, last: int, nbytes: int) -> int | None:
        """Look at where the bytes of the source are, from `first` to `last`,
        at the beginning of an epoch; return how many may be expected at a
        time, if any."""
        ordered = by_rows = None
        if not self._file.is_resident(first, last):
            if fits(last - first):
                ordered = SequentialRead(self._file, first, last - first)
            else:
                by_rows = Background()
        self._ordered, self._by_rows = ordered, by_rows
        return PAGES_AHEAD if by_rows else None

    @property
    def is_cold(self) -> bool:
        """Whether rows are fetched before they are copied (bool)."""
        # Looked up once: another thread may begin an epoch meanwhile.
        ordered = self._ordered
        return self._by_rows is not None or (
            ordered is not None and not ordered.is_done)

    def prefetch(self, starts: Ends, nbytes: int) -> None:
        """Prefetch pieces in the background."""
        by_rows = self._by_rows
        if by_rows is not None:
            advise_rows(self._file, by_rows, starts, nbytes)

    def widen(self, starts: Ends, nbytes: int) -> tuple[Ends, Ends]:
        """Return the ranges that are fetched for pieces: here none is."""
        return starts, starts + nbytes

    @contextlib.contextmanager
    def bring(self, starts: Ends, nbytes: int) -> Iterator[None]:
        """Read pieces, and keep them while the context is entered."""
        ordered = self._ordered
        if ordered is None:
            read_rows(self._file, starts, nbytes)
        else:
            ordered.wait(starts, nbytes)
        yield


class Blocks:
    """Widens small ranges of a remote source to whole blocks, where the
    cache will have the whole source in the end: few requests, of a size that
    uses the network.

    `first`, `last`: where the bytes of the source begin and end.
    `nbytes`: how many of those in between are the source's.
    """

    def __init__(self, file: RemoteBytes, first: int, last: int,
                 nbytes: int) -> None:
        self._file = file
        self.first, self.last = first, last
        # What lies between the chunks may be of no use.
        self._is_dense = nbytes >= DENSE * (last - first)

    def widen(self, starts: Ends, stops: Ends) -> tuple[Ends, Ends]:
        """Return the ranges to fetch for some that are needed."""
        # From a page of the file's on, so that no page is in two blocks.
        first, last = self.first // PAGE * PAGE, self.last
        if not (starts.size and self._is_dense
                and (stops - starts).max() < BLOCK
                and self._file.keeps(last - first)):
            return starts, stops
        low = (starts - first) // BLOCK
        high = -(-(stops - first) // BLOCK)
        # A range may reach into the next block.
        blocks = numpy.unique(numpy.concatenate([low, high - 1]))
        starts = first + blocks * BLOCK
        return starts, numpy.minimum(starts + BLOCK, last)


class RemotePaging:
    """Fetches a source from where it is, unless all of it is here."""

    is_remote = True

    def __init__(self, file: RemoteBytes) -> None:
        self._file = file
        self._is_here = False
        self._blocks = Blocks(file, 0, 0, 0)

    def begin(self, first: int, last: int, nbytes: int) -> int | None:
        """See :class:`LocalPaging`."""
        self._blocks = Blocks(self._file, first, last, nbytes)
        self._is_here = self._file.is_settled(first, last)
        return None

    @property
    def is_cold(self) -> bool:
        """See :class:`LocalPaging`."""
        return not self._is_here

    def prefetch(self, starts: Ends, nbytes: int | Ends) -> None:
        """See :class:`LocalPaging`."""
        self._file.request(*self.widen(starts, nbytes))

    def bring(self, starts: Ends, nbytes: int | Ends,
              ) -> AbstractContextManager[None]:
        """See :class:`LocalPaging`."""
        return self._file.hold(*self.widen(starts, nbytes))

    def widen(self, starts: Ends, nbytes: int | Ends) -> tuple[Ends, Ends]:
        """See :class:`LocalPaging`."""
        return self._blocks.widen(starts, starts + nbytes)


def paging_of(file: FileBytes) -> LocalPaging | RemotePaging:
    """Return what brings rows of a file into memory."""
    if is_remote(file):
        return RemotePaging(file)
    assert is_local(file)
    return LocalPaging(file)
