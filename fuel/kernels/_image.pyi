from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

Integers: TypeAlias = NDArray[numpy.intp]
Numbers: TypeAlias = NDArray[numpy.float64]

def first_outside(offsets: Integers, most: int) -> int: ...
def copy_windows(
    images: NDArray[Any], tops: Integers, lefts: Integers,
    out: NDArray[Any], start: int, stop: int,
) -> None: ...
def copy_mirrored(
    images: NDArray[Any], mirrored: NDArray[numpy.uint8],
    out: NDArray[Any], start: int, stop: int,
) -> None: ...
def convert(
    images: NDArray[Any], rows: Integers, scales: Numbers,
    shifts: Numbers, out: NDArray[Any], start: int, stop: int,
) -> None: ...
