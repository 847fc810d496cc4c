from collections.abc import Sequence

import numpy
from numpy.typing import NDArray

ROUNDS: int

def permute(
    numbers: NDArray[numpy.int64], size: int, keys: Sequence[int],
) -> None: ...

def unpermute(
    numbers: NDArray[numpy.int64], size: int, keys: Sequence[int],
) -> None: ...
