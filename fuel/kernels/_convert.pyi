from typing import Any

from numpy.typing import NDArray

def scale_and_shift(
    source: NDArray[Any], target: NDArray[Any], scale: float, shift: float,
) -> bool: ...
def scale_singles(
    source: NDArray[Any], target: NDArray[Any], scale: float, shift: float,
) -> bool: ...
