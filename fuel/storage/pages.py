"""Reading pages of a local file."""
from __future__ import annotations

import numpy
from numpy.typing import NDArray

from fuel.storage.background import Background
from fuel.storage.memory_limit import usable_memory
from fuel.storage.file_bytes import LocalBytes

# Of the memory, what a source may take to be read as a whole.
SHARE = 0.5
# Two pieces of a file this near to each other are asked for as one.
NEAR = 16 << 10


def fits(nbytes: int) -> bool:
    """Return whether so many bytes of a file would stay in memory."""
    return nbytes <= SHARE * usable_memory()


def advise_rows(file: LocalBytes, background: Background,
                starts: NDArray[numpy.int64], nbytes: int) -> None:
    """Ask for the pages of rows, in the background."""
    pieces = _pieces(starts, nbytes)

    def advise() -> None:
        for first, end in pieces:
            file.advise(first, end - first)

    if pieces:
        background.add(advise)


def read_rows(file: LocalBytes, starts: NDArray[numpy.int64],
              nbytes: int) -> None:
    """Read the pages of rows now.

    A map would read megabytes around each page that is missing, and push
    out what was prefetched; this reads what is asked for.
    """
    for first, end in _pieces(starts, nbytes):
        file.read(first, end - first)


def _pieces(starts: NDArray[numpy.int64], nbytes: int,
            ) -> list[tuple[int, int]]:
    """Return begin and end of the parts of a file with some rows, in its
    order."""
    if not starts.size:
        return []
    starts = numpy.sort(starts)
    breaks = numpy.flatnonzero(numpy.diff(starts) > nbytes + NEAR) + 1
    firsts = starts[numpy.append(0, breaks)]
    lasts = starts[numpy.append(breaks - 1, -1)]
    return list(zip(firsts.tolist(), (lasts + nbytes).tolist(), strict=True))
