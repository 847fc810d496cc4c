"""MATLAB files up to version 7.2."""
import math
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy
from numpy.typing import ArrayLike

from fuel.converters.raw.files import BadInputFile, refuse_page

__all__ = ['as_bytes', 'describe_variable', 'read_matlab',
           'read_variables']

# Numbers in a variable that is read as a whole; the largest has 16 million.
MAX_NUMBERS = 1 << 27


def read_matlab(file: str | os.PathLike[str] | IO[bytes], path: str,
                **kwargs: object) -> dict[str, Any]:
    """Read a MATLAB file, called `path` in errors, by `scipy.io.loadmat`."""
    from scipy.io import loadmat
    with _sound(file, path):
        content: dict[str, Any] = loadmat(file, **kwargs)
    return content


@contextmanager
def _sound(file: str | os.PathLike[str] | IO[bytes], path: str
           ) -> Iterator[None]:
    """Let faults of a MATLAB file become `BadInputFile`."""
    from scipy.io.matlab import MatReadError
    try:
        yield
    except FileNotFoundError:
        raise
    except (MatReadError, ValueError, TypeError, NotImplementedError,
            EOFError, IndexError, OSError, KeyError, OverflowError,
            MemoryError, zlib.error) as error:
        if isinstance(file, str):
            refuse_page(file)
        raise BadInputFile(path, f'not a sound MATLAB file ({error})'
                           ) from error


def as_bytes(array: ArrayLike, path: str, name: str) -> Any:
    """Return whole numbers from 0 to 255 as bytes; refuse any other."""
    array = numpy.asarray(array)
    if array.dtype.kind not in 'biuf':
        raise BadInputFile(path, f'expected numbers in {name}, got '
                           f'{array.dtype}')
    if not ((array >= 0) & (array <= 255)).all() or (
            array != (as_uint8 := array.astype('uint8'))).any():
        raise BadInputFile(path, f'expected whole numbers from 0 to 255 in '
                           f'{name}')
    return as_uint8


def describe_variable(path: str, name: str) -> tuple[tuple[int, ...], str]:
    """Return shape and type of a variable, without reading it."""
    from scipy.io import whosmat
    with _sound(path, path):
        variables = {row[0]: row[1:] for row in whosmat(path)}
    if name not in variables:
        raise BadInputFile(path, f'there is no variable {name!r}')
    shape, kind = variables[name]
    return tuple(shape), kind


def read_variables(path: str, names: Iterable[str]) -> dict[str, Any]:
    """Return variables of a file, none of them of unreasonable size."""
    names = list(names)
    for name in names:
        shape, _ = describe_variable(path, name)
        if math.prod(shape) > MAX_NUMBERS:
            raise BadInputFile(path, f'the variable {name!r} has the shape '
                               f'{shape}')
    content = read_matlab(path, path, variable_names=names)
    return {name: content[name] for name in names}
