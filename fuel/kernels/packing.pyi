from collections.abc import Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

def measure(
    sequences: list[Any], dtype: numpy.dtype[Any], shape: tuple[int, ...],
) -> NDArray[numpy.int64] | None: ...

class RowPacker:
    length: int
    window: int
    num_sources: int
    first: int
    closed: list[list[list[NDArray[Any]]]]
    def __init__(
        self, length: int, window: int, num_sources: int,
        used: Sequence[int] = (), first: int = 0) -> None: ...
    @property
    def used(self) -> list[int]: ...
    @property
    def num_closed(self) -> int: ...
    def add(
        self, parts: tuple[list[Any], ...], lengths: NDArray[numpy.int64],
        start: int, stop: int, wanted: int) -> int: ...
    def finish(self) -> None: ...
    def take(self, count: int) -> list[list[list[NDArray[Any]]]]: ...

def fill_rows(
    rows: list[list[list[NDArray[Any]]]], source: int,
    out: NDArray[Any]) -> None: ...
def number_rows(
    rows: list[list[list[NDArray[Any]]]],
    segments: NDArray[numpy.int32] | None,
    positions: NDArray[numpy.int32] | None) -> int: ...
