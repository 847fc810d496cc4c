from typing import Any

import numpy
from numpy.typing import NDArray

def copy_pixels(
    capsule: Any, channels: int, height: int, width: int,
) -> NDArray[numpy.uint8]: ...
