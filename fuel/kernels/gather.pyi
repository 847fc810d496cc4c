from typing import Any

from numpy.typing import NDArray

from fuel.kernels.chunk_slots import Slots
from fuel.kernels.tiles import Tiles

MISSING: int
OUTSIDE: int

class Copies:
    count: int
    absent: list[tuple[int, int, list[int]]]
    def run(self, begin: int = ..., end: int | None = ...) -> bool: ...

def cached_rows(
    tiles: Tiles, slots: Slots, now: int, rows: NDArray[Any],
    out: NDArray[Any], fill: NDArray[Any],
) -> Copies: ...
def chunk_rows(
    tiles: Tiles, decoded: NDArray[Any] | None, tile: int,
    rows: NDArray[Any], places: list[int], out: NDArray[Any],
    fill: NDArray[Any],
) -> Copies: ...
