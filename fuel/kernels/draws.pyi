from collections.abc import Iterable
from typing import Any

import numpy
from numpy.typing import NDArray

def draw_integers(
    bit_generator: Any, most: int, count: int,
) -> NDArray[numpy.intp]: ...
def draw_order(bit_generator: Any, size: int) -> NDArray[numpy.uint32]: ...
def example_words(
    key: int, ids: NDArray[numpy.int64], more: Iterable[int] = (),
) -> NDArray[numpy.uint64]: ...
def example_shares(
    key: int, ids: NDArray[numpy.int64], count: int,
) -> NDArray[numpy.float64]: ...
