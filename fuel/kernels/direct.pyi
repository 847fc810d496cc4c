from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.kernels.chunk_slots import Clock, Slots
from fuel.kernels.gather import Copies
from fuel.kernels.tiles import Tiles

class Rows:
    declines: bool

class MappedRows(Rows):
    def __init__(
        self, tiles: Tiles, memory: Any, addresses: NDArray[Any],
        fill: NDArray[Any],
    ) -> None: ...
    def watch(self, descriptor: int, size: int, changed: int) -> None: ...
    def plan(
        self, rows: NDArray[Any] | tuple[int, int], out: NDArray[Any],
    ) -> Copies: ...

class RememberedRows(Rows):
    def __init__(self, tiles: Tiles, slots: Slots, clock: Clock) -> None: ...

class Batches:
    def __init__(
        self, parts: list[tuple[Rows, int, tuple[int, ...],
                                numpy.dtype[Any]]],
        num_examples: int, most_nbytes: int, held: object,
    ) -> None: ...
    def read(self, request: object) -> tuple[NDArray[Any], ...] | None: ...

class BatchesInOrder:
    def __init__(
        self, owner: Any, order: NDArray[Any] | range, batch_size: int,
        position: int,
    ) -> None: ...
    def __iter__(self) -> BatchesInOrder: ...
    def __next__(self) -> tuple[NDArray[Any], ...]: ...
