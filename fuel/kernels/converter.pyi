from typing import Any

import numpy

class Converter:
    source: numpy.dtype[Any]
    dtype: numpy.dtype[Any]
    def __init__(
        self, source: numpy.dtype[Any],
        conversion: tuple[numpy.dtype[Any], float | None, float | None],
    ) -> None: ...

def converter_of(
    source: numpy.dtype[Any],
    conversion: tuple[numpy.dtype[Any], float | None, float | None] | None,
) -> Converter | None: ...
