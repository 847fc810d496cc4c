from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.kernels.epoch_reader import IndexReader, RequestPosition
from fuel.kernels.gather import Rows
from fuel.typing import EpochReader

class Batches:
    def __init__(
        self, parts: list[tuple[Rows, int | NDArray[numpy.intp],
                                tuple[int, ...], numpy.dtype[Any]]],
        num_examples: int, most_nbytes: int, held: object,
        version: tuple[tuple[int, ...], ...] = ...,
    ) -> None: ...
    def read(self, request: object) -> tuple[NDArray[Any], ...] | None: ...

class BatchReader(IndexReader):
    is_open: bool
    version: tuple[tuple[int, ...], ...]
    def __init__(
        self, requests: RequestPosition, fallback: EpochReader,
        owner: object, **kwargs: Any,
    ) -> None: ...
