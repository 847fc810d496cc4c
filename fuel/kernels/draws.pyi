from typing import Any

import numpy
from numpy.typing import NDArray

def draw_integers(
    bit_generator: Any, most: int, count: int,
) -> NDArray[numpy.intp]: ...
def draw_order(bit_generator: Any, size: int) -> NDArray[numpy.uint32]: ...
