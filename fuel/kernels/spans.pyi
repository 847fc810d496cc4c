import numpy
from numpy.typing import NDArray

def read_spans(descriptors: NDArray[numpy.int64],
               addresses: NDArray[numpy.int64],
               sizes: NDArray[numpy.int64]) -> list[bytes | None]: ...
def fill_rows(descriptors: NDArray[numpy.int64],
              addresses: NDArray[numpy.int64],
              rows: NDArray[numpy.uint8]) -> int: ...
