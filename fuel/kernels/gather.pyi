from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

from fuel.kernels.chunk_slots import Clock, Slots
from fuel.kernels.tiles import Tiles

MISSING: int
OUTSIDE: int

_Rows: TypeAlias = NDArray[numpy.intp] | tuple[int, int]

class Rows:
    declines: bool
    tiles: Tiles
    addresses: NDArray[numpy.int64]
    def watch(self, descriptor: int, size: int, changed: int) -> None: ...

class MappedRows(Rows):
    def __init__(
        self, tiles: Tiles, addresses: NDArray[numpy.int64],
        fill: NDArray[Any], memory: object,
    ) -> None: ...
    def copy(
        self, rows: _Rows, out: NDArray[Any], begin: int = ...,
        end: int | None = ...,
    ) -> bool: ...

class DecodedRows(Rows):
    def __init__(
        self, tiles: Tiles, addresses: NDArray[numpy.int64],
        fill: NDArray[Any], slots: Slots, clock: Clock,
    ) -> None: ...
    def copy(
        self, rows: _Rows, out: NDArray[Any],
    ) -> list[tuple[int, list[int]]]: ...
    def copy_chunk(
        self, chunk: int, decoded: NDArray[numpy.uint8], rows: _Rows,
        places: list[int], out: NDArray[Any],
    ) -> None: ...
