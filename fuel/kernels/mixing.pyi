from collections.abc import Callable, Iterator
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.kernels.epoch_reader import CompiledReader, RequestPosition
from fuel.typing import Batch, EpochReader

class MixReader(CompiledReader):
    def __init__(
        self, requests: RequestPosition, fallback: EpochReader,
        iterators: list[Iterator[Any]], thresholds: NDArray[numpy.int64],
        taken: NDArray[numpy.int64],
        finish: Callable[[Batch, int], Batch] | None = None) -> None: ...
