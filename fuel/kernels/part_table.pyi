from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.kernels.tiles import Tiles

PART: numpy.dtype[Any]
ALL_ROWS: int

class PartTable:
    num_rows: int
    num_parts: int
    num_chunks: int
    num_files: int
    row_nbytes: int
    kinds: tuple[tuple[Tiles, NDArray[Any]], ...]
    def __init__(
        self, kinds: list[tuple[Tiles, NDArray[Any]]], parts: NDArray[Any],
        num_chunks: int, num_files: int = ...,
    ) -> None: ...
    def chunks_of(self, rows: NDArray[numpy.intp]) -> NDArray[numpy.intp]: ...
