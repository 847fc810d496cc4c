"""MATLAB files up to version 7.2."""
from collections.abc import Callable
from typing import Any

import h5py
import numpy

from fuel.converters._inputs import BadInputFile, refuse_page

__all__ = ['LazyVariable', 'read_matlab']

ROWS_AT_ONCE = 4096


def read_matlab(file: Any, path: str, **kwargs: Any) -> dict[str, Any]:
    """Read a MATLAB file; its faults become `BadInputFile`.

    Parameters
    ----------
    file : str or file
        What to read.
    path : str
        What to call it in error texts.
    **kwargs
        For `scipy.io.loadmat`.
    """
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError
    try:
        content: dict[str, Any] = loadmat(file, **kwargs)
    except (MatReadError, ValueError, TypeError, NotImplementedError,
            EOFError, IndexError, OSError, KeyError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        if isinstance(file, str):
            refuse_page(file)
        raise BadInputFile(path, f'not a sound MATLAB file ({error})'
                           ) from error
    except Exception as error:
        # Some damage ends in the decompressor's own error class.
        if type(error).__module__ == 'zlib':
            raise BadInputFile(path, f'not a sound MATLAB file ({error})'
                               ) from error
        raise
    return content


class LazyVariable:
    """An array of unsigned bytes in a MATLAB file, read when it is written.

    Parameters
    ----------
    path : str
        The file.
    name : str
        The variable.
    change : callable
        Makes a view with the examples on axis 0 of the array.
    """

    def __init__(self, path: str, name: str,
                 change: Callable[[Any], Any]) -> None:
        shape, kind = _describe(path, name)
        if kind != 'uint8':
            raise BadInputFile(path, f'expected the variable {name!r} to be '
                               f'uint8, got {kind}')
        self.path = path
        self.name = name
        self._change = change
        self.dtype = numpy.dtype('uint8')
        # A view of nothing has the shape of the real one.
        self.shape: tuple[int, ...] = change(numpy.broadcast_to(
            numpy.uint8(0), shape)).shape

    def __len__(self) -> int:
        return self.shape[0]

    def write(self, dataset: h5py.Dataset, start: int) -> None:
        """Write the array from row `start` on, a part at a time."""
        array = self._change(read_matlab(
            self.path, self.path, variable_names=[self.name])[self.name])
        for i in range(0, len(array), ROWS_AT_ONCE):
            block = numpy.ascontiguousarray(array[i:i + ROWS_AT_ONCE])
            dataset[start + i:start + i + len(block)] = block


def _describe(path: str, name: str) -> tuple[tuple[int, ...], str]:
    from scipy.io import whosmat
    from scipy.io.matlab import MatReadError
    try:
        variables = {row[0]: row[1:] for row in whosmat(path)}
    except (MatReadError, ValueError, TypeError, NotImplementedError,
            EOFError) as error:
        raise BadInputFile(path, f'not a sound MATLAB file ({error})'
                           ) from error
    if name not in variables:
        raise BadInputFile(path, f'there is no variable {name!r}')
    shape, kind = variables[name]
    return tuple(shape), kind
