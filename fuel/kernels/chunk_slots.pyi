from collections.abc import Iterator

import numpy
from numpy.typing import NDArray

from fuel.kernels.tiles import Tiles

class Clock:
    time: int
    def tick(self) -> int: ...

class Slots:
    num_chunks: int
    chunk_nbytes: int
    num_held: int
    last_used: NDArray[numpy.int64]
    def __init__(self, num_chunks: int, chunk_nbytes: int) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[NDArray[numpy.uint8] | None]: ...
    def __getitem__(self, chunk: int) -> NDArray[numpy.uint8] | None: ...
    def __setitem__(
        self, chunk: int, decoded: NDArray[numpy.uint8] | None,
    ) -> None: ...
    def expect(
        self, tiles: Tiles, rows: NDArray[numpy.intp],
        addresses: NDArray[numpy.int64], most: int, soon: int,
    ) -> tuple[int, list[int]]: ...
