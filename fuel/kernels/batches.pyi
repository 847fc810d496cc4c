from collections.abc import Callable
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.kernels.epoch_reader import IndexReader, RequestPosition
from fuel.kernels.gather import Rows
from fuel.typing import EpochReader

class Part: ...

class PlainRows(Part):
    rows: Rows
    def __init__(
        self, rows: Rows, shape: tuple[int, ...], dtype: numpy.dtype[Any],
        each: int = ...,
    ) -> None: ...

class WindowRows(PlainRows):
    def __init__(
        self, rows: Rows, shape: tuple[int, ...], dtype: numpy.dtype[Any],
        first_examples: NDArray[numpy.intp], first_rows: NDArray[numpy.intp],
        stride: int, offsets: NDArray[numpy.intp],
    ) -> None: ...

class RangeRows(Part):
    def __init__(
        self, parts: list[PlainRows], starts: NDArray[numpy.intp],
        stops: NDArray[numpy.intp],
        make: Callable[[list[Any], NDArray[numpy.intp], NDArray[numpy.intp]],
                       Any],
    ) -> None: ...

class Batches:
    def __init__(
        self, parts: list[tuple[Part, int | NDArray[numpy.intp]]],
        num_examples: int, most_nbytes: int, held: object,
        version: tuple[tuple[int, ...], ...] = ...,
    ) -> None: ...
    def read(self, request: object) -> tuple[NDArray[Any], ...] | None: ...

class BatchReader(IndexReader):
    is_open: bool
    prefetches: bool
    version: tuple[tuple[int, ...], ...]
    def __init__(
        self, requests: RequestPosition, fallback: EpochReader,
        owner: object, **kwargs: Any,
    ) -> None: ...
