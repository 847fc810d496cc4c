from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

from fuel.kernels.converter import Converter

Indices: TypeAlias = Sequence[int] | NDArray[numpy.integer[Any]]

def as_indices(
    request: Indices, num_examples: int, name: str = ...,
) -> NDArray[numpy.intp]: ...
def native(array: NDArray[Any]) -> NDArray[Any]: ...
def own_record(record: numpy.void) -> numpy.void: ...
def take(
    array: NDArray[Any], indices: Indices, converter: Converter | None = ...,
) -> NDArray[Any]: ...
def take_row(array: NDArray[Any], index: int) -> Any: ...
