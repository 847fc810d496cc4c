"""Arrays over the memory of objects in Ray's store, which may be written."""
from __future__ import annotations

import sys
import weakref
from collections import deque
from collections.abc import Sequence

import numpy
from numpy.typing import NDArray

from fuel.kernels.memory import address_of


class _Memory:
    """The memory of an object, as one that its reader may write."""

    def __init__(self, owner: NDArray[numpy.uint8]) -> None:
        self.owner = owner
        self.__array_interface__ = {
            'version': 3, 'typestr': '|u1', 'shape': (owner.nbytes,),
            'data': (address_of(owner), False)}


class _Loan(weakref.ref[_Memory]):
    """Reference to memory that an array looks at."""

    __slots__ = ('nbytes',)
    nbytes: int


class ObjectLeases:
    """Objects of the store, lent to the arrays that look at their memory.

    An object has one reader, so nobody else sees what is written into it.
    The store keeps it as long as an array looks at it.

    `limit`: most bytes that may be lent at once.  More than that is
        copied, so that a consumer that keeps everything does not fill the
        store.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.lent = 0
        self._loans: dict[int, _Loan] = {}
        # Memory is dropped anywhere, in the garbage collector too.
        self._ended: deque[_Loan] = deque()
        self._writable: list[tuple[int, int]] = []

    def lend(self, buffers: Sequence[NDArray[numpy.uint8]],
             ) -> list[NDArray[numpy.uint8]]:
        """Return arrays of the same bytes that belong to the caller."""
        self._take_back()
        size = sum(buffer.nbytes for buffer in buffers)
        if self.lent + size > self.limit or not all(
                self._is_writable(address_of(buffer)) for buffer in buffers):
            return [buffer.copy() for buffer in buffers]
        self.lent += size
        return [self._lend(buffer) for buffer in buffers]

    def _lend(self, buffer: NDArray[numpy.uint8]) -> NDArray[numpy.uint8]:
        memory = _Memory(buffer)
        loan = _Loan(memory, self._ended.append)
        loan.nbytes = buffer.nbytes
        self._loans[id(loan)] = loan
        return numpy.asarray(memory)

    def _take_back(self) -> None:
        while self._ended:
            loan = self._ended.popleft()
            self.lent -= loan.nbytes
            del self._loans[id(loan)]

    def _is_writable(self, address: int) -> bool:
        """Return whether the store is mapped for writing at an address."""
        if not any(start <= address < stop for start, stop in self._writable):
            self._writable = _writable_mappings()
        return any(start <= address < stop for start, stop in self._writable)


def _writable_mappings() -> list[tuple[int, int]]:
    """Return the parts of the address space that may be written."""
    if sys.platform != 'linux':
        return []
    mappings = []
    with open('/proc/self/maps', encoding='ascii', errors='replace') as file:
        for line in file:
            extent, access = line.split()[:2]
            if 'w' in access:
                start, stop = extent.split('-')
                mappings.append((int(start, 16), int(stop, 16)))
    return mappings
