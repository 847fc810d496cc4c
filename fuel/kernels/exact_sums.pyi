from typing import Any

import numpy
from numpy.typing import NDArray

def limbs_of(rows: NDArray[Any]) -> tuple[int, int]: ...
def add_exactly(
    rows: NDArray[Any], first: int, sums: NDArray[numpy.int64],
    squares: NDArray[numpy.int64]) -> None: ...
