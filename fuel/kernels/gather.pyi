from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

from fuel.kernels.chunk_slots import Clock, Slots
from fuel.kernels.file_states import FileStates
from fuel.kernels.part_table import PartTable

MISSING: int
OUTSIDE: int

_Rows: TypeAlias = (
    NDArray[numpy.intp] | tuple[int, int]
    | tuple[NDArray[numpy.intp], NDArray[numpy.intp]])

class Rows:
    declines: bool
    table: PartTable
    addresses: NDArray[numpy.int64]
    def watch(self, states: FileStates) -> None: ...

class MappedRows(Rows):
    def __init__(
        self, table: PartTable, addresses: NDArray[numpy.int64],
        maps: list[tuple[int, object]],
    ) -> None: ...
    def copy(
        self, rows: _Rows, out: NDArray[Any], begin: int = ...,
        end: int | None = ...,
    ) -> bool: ...

class DecodedRows(Rows):
    def __init__(
        self, table: PartTable, addresses: NDArray[numpy.int64],
        slots: Slots, clock: Clock,
    ) -> None: ...
    def copy(
        self, rows: _Rows, out: NDArray[Any],
    ) -> tuple[list[tuple[int, list[tuple[int, int, int]]]], bool]: ...
    def copy_chunk(
        self, chunk: int, decoded: NDArray[numpy.uint8],
        pieces: list[tuple[int, int, int]], out: NDArray[Any],
    ) -> None: ...
    def expect(
        self, rows: NDArray[numpy.intp], most: int, soon: int,
    ) -> tuple[int, list[int]]: ...
