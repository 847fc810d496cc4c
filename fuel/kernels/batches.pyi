from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.kernels.gather import Rows

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
