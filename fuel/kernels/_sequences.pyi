from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

Padded: TypeAlias = tuple[NDArray[Any], NDArray[Any]] | None

def pad_lists(
    sequences: list[Any], mask_dtype: numpy.dtype[Any],
) -> Padded: ...
def pad_arrays(
    sequences: list[Any], mask_dtype: numpy.dtype[Any],
) -> Padded: ...
