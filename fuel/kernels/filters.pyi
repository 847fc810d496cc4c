from typing import Any

import numpy
from numpy.typing import NDArray

def unshuffle(
    data: Any, itemsize: int, result: NDArray[numpy.uint8] | None = None,
) -> NDArray[numpy.uint8]: ...
def lzf_decode(
    data: Any, nbytes: int, result: NDArray[numpy.uint8] | None = None,
) -> NDArray[numpy.uint8]: ...
def fletcher32(data: Any) -> int: ...
