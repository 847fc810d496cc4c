from typing import Any

from numpy.typing import NDArray

MISSING: int
OUTSIDE: int

def file_state(descriptor: int) -> tuple[int, int]: ...

class Tiles:
    num_rows: int
    block_rows: int
    num_tiles: int
    row_nbytes: int
    chunk_nbytes: int
    def __init__(
        self, shape: tuple[int, ...], chunk_shape: tuple[int, ...],
        itemsize: int,
    ) -> None: ...

class Copies:
    count: int
    absent: list[tuple[int, int, list[int]]]
    def run(self, begin: int = ..., end: int | None = ...) -> bool: ...

class MappedRows:
    def __init__(
        self, tiles: Tiles, memory: Any, addresses: NDArray[Any],
        fill: NDArray[Any],
    ) -> None: ...
    def copy(
        self, rows: NDArray[Any] | tuple[int, int], out: NDArray[Any],
    ) -> bool: ...
    def plan(
        self, rows: NDArray[Any] | tuple[int, int], out: NDArray[Any],
    ) -> Copies: ...

def cached_rows(
    tiles: Tiles, slots: list[NDArray[Any] | None], used: NDArray[Any],
    now: int, rows: NDArray[Any], out: NDArray[Any], fill: NDArray[Any],
) -> Copies: ...
def chunk_rows(
    tiles: Tiles, decoded: NDArray[Any] | None, tile: int,
    rows: NDArray[Any], places: list[int], out: NDArray[Any],
    fill: NDArray[Any],
) -> Copies: ...
