"""Reads from within HDF5, with a server that notes what is asked at once."""
import asyncio

import numpy
import pytest

from fuel.remote.index_bytes import AT_ONCE, BLOCK, LARGEST, IndexBytes
from fuel.remote.pages import PageTable, Resident
from fuel.remote.stores import Answer

SIZE = 200 * BLOCK
CONTENT = numpy.random.RandomState(0).bytes(SIZE)


class Origin:
    """Answers with `CONTENT`, but not from `broken` on."""

    def __init__(self, broken=SIZE):
        self.rounds = []
        self.broken = broken
        self._num_waiting = 0

    async def fetch(self, start, stop, expected):
        """Return bytes; note how many are asked for together."""
        if not self._num_waiting:
            self.rounds.append([])
        self._num_waiting += 1
        self.rounds[-1].append((start, stop))
        await asyncio.sleep(0)
        self._num_waiting -= 1
        if start >= self.broken:
            raise OSError('broken')
        return Answer(CONTENT[start:stop], SIZE, '')

    async def close(self):
        """Do nothing."""


@pytest.fixture
def make():
    """Return what makes a reader of an origin, closed afterwards."""
    readers = []

    def reader_of(origin):
        table = PageTable(SIZE)
        readers.append(IndexBytes(
            table, Resident(None, table.page, 1 << 20), None,
            Answer(b'', SIZE, ''), lambda first, last: None,
            lambda loop: origin))
        return readers[-1]

    yield reader_of
    for reader in readers:
        reader.close()


def read(reader, address, nbytes=4000):
    """Return what a reader reads, after it was compared."""
    buffer = bytearray(nbytes)
    count = reader.read_into(memoryview(buffer), address)
    assert buffer[:count] == CONTENT[address:address + nbytes]
    return count


@pytest.mark.parametrize('distance', [BLOCK + 5000, 3 * BLOCK - 7])
def test_reads_at_equal_distances_are_answered_together(make, distance):
    """Reads may cross the border of two pieces, up to the end of the file."""
    origin = Origin()
    reader = make(origin)
    for address in range(100, SIZE - 4000, distance):
        read(reader, address)
    num_reads = SIZE // distance
    assert len(origin.rounds) < 5 + 3 * num_reads // AT_ONCE + 2
    asked = [begin for answered in origin.rounds for begin, _ in answered]
    assert len(asked) == len(set(asked))
    assert max(map(len, origin.rounds)) <= AT_ONCE


def test_nothing_is_fetched_ahead_of_long_reads(make):
    """Reading ahead would fetch more than is remembered."""
    origin = Origin()
    reader = make(origin)
    for address in range(0, SIZE, 40 * BLOCK):
        read(reader, address, 33 * BLOCK + 9)
    assert max(sum(stop - start for start, stop in answered)
               for answered in origin.rounds) <= LARGEST


def test_pieces_that_come_again_are_counted_once(make):
    """Pieces are read from the last to the first, each with the one behind
    it."""
    reader = make(Origin())
    for place in reversed(range(10)):
        read(reader, place * BLOCK, 2 * BLOCK)
    assert sum(map(len, reader._pieces.values())) == reader._nbytes


def test_nothing_is_fetched_before_distances_are_equal(make):
    """Two reads do not suffice to guess a distance."""
    origin = Origin()
    reader = make(origin)
    for address in (0, 10, 30, 70, 150, 20):
        read(reader, address * BLOCK)
    assert list(map(len, origin.rounds)) == [1] * 6


def test_bytes_fetched_ahead_fail_only_when_they_are_read(make):
    """Bytes that nobody needs raise no error."""
    origin = Origin(broken=50 * BLOCK)
    reader = make(origin)
    for place in range(0, 50, 5):
        read(reader, place * BLOCK)
    with pytest.raises(OSError, match='broken'):
        read(reader, 50 * BLOCK)
