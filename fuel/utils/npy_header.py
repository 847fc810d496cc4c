"""Headers of NumPy's own files, which may be damaged or hostile."""
from __future__ import annotations

import warnings
from typing import IO, Any

import numpy

# Of an array, in bytes: what an offset in a file can say.
MAX_NBYTES = 2 ** 62
VERSIONS = (1, 0), (2, 0), (3, 0)


def read_npy_header(stream: IO[bytes]
                    ) -> tuple[tuple[int, ...], bool, numpy.dtype[Any]]:
    """Read the header of a ``.npy`` file; leave the stream at the first byte
    of the array.

    Return shape, whether it is in Fortran's order, and type. Raises ValueError
    if it is no header, or describes no array.
    """
    layout = numpy.lib.format
    try:
        version = layout.read_magic(stream)
        if version not in VERSIONS:
            raise ValueError(f'unknown version {version}')
        read = (layout.read_array_header_1_0 if version == (1, 0)
                else layout.read_array_header_2_0)
        with warnings.catch_warnings():
            # Of files that Python 2 wrote, and of literals in no file.
            warnings.simplefilter('ignore')
            shape, by_columns, dtype = read(stream)
    except OSError:
        raise
    except Exception as error:  # NumPy raises nearly any
        reason = ' '.join(str(error).split())[:200]
        raise ValueError(reason or type(error).__name__) from error
    nbytes = max(1, dtype.itemsize)
    for length in shape:
        if isinstance(length, bool) or length < 0:
            raise ValueError(f'the header names the shape {shape}')
        nbytes *= max(1, length)
    if nbytes > MAX_NBYTES:
        raise ValueError(f'the header names the shape {shape}, which is '
                         'larger than any file')
    return shape, by_columns, dtype
