"""Arrays of what may be ragged."""
import warnings
from typing import Any

import numpy
from numpy.typing import NDArray

# Whether NumPy refuses lists of unequal lengths, or only warns of them.
REFUSES_RAGGED = numpy.lib.NumpyVersion(numpy.__version__) >= '1.24.0'


def as_regular(data: object) -> NDArray[Any]:
    """Return data as an array; ValueError if their shape is not regular."""
    if REFUSES_RAGGED:
        return numpy.asarray(data)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        try:
            return numpy.asarray(data)
        except Warning as error:
            raise ValueError(str(error)) from error
