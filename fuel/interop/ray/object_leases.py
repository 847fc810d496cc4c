"""Make writable arrays over the memory of objects in Ray's store."""
from __future__ import annotations

import sys
import weakref
from collections import deque
from collections.abc import Sequence

import numpy
from numpy.typing import NDArray

from fuel.kernels.memory import address_of


class _Memory:
    """The memory of an object, exported as writable."""

    def __init__(self, owner: NDArray[numpy.uint8]) -> None:
        self.owner = owner
        self.__array_interface__ = {
            'version': 3, 'typestr': '|u1', 'shape': (owner.nbytes,),
            'data': (address_of(owner), False)}


class _Loan(weakref.ref[_Memory]):
    """Weak reference to memory that an array uses.

    `nbytes`: size of the memory.
    """

    __slots__ = ('nbytes',)
    nbytes: int


class ObjectLeases:
    """Lends the memory of objects in the store to arrays.

    An object has a single reader, so the reader may write into its memory.
    The store keeps an object as long as an array uses its memory.

    `limit`: most bytes that may be lent at once.  Further objects are copied,
        so that a consumer that keeps all batches does not fill the store.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.lent = 0
        self._loans: dict[int, _Loan] = {}
        # The garbage collector may end a loan at any line, so the end of a
        # loan only appends to this queue.
        self._ended: deque[_Loan] = deque()
        self._writable: list[tuple[int, int]] = []

    def lend(self, buffers: Sequence[NDArray[numpy.uint8]],
             ) -> list[NDArray[numpy.uint8]]:
        """Return writable arrays with the bytes of buffers."""
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
        """Return whether the memory at an address may be written."""
        if not any(start <= address < stop for start, stop in self._writable):
            self._writable = _writable_mappings()
        return any(start <= address < stop for start, stop in self._writable)


def _writable_mappings() -> list[tuple[int, int]]:
    """Return the writable address ranges of this process, on Linux."""
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
