"""What h5py raises about a damaged file, as one error that names the file."""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from fuel.exceptions import DamagedFileError, FuelError

F = TypeVar('F', bound=Callable[..., Any])

# All of these were seen of h5py, each for some eight bytes overwritten.
OF_DAMAGE = (OSError, RuntimeError, LookupError, TypeError, ValueError,
             AttributeError, ArithmeticError, MemoryError)


@contextmanager
def naming_file(path: str, source: str = '') -> Iterator[None]:
    """Turn errors about what is in an HDF5 file into one that names it.

    Parameters
    ----------
    path : str
        The file.
    source : str, optional
        The source that is looked at, if it is one.

    Raises
    ------
    DamagedFileError
        In the place of an error that does not name the file. One that does
        is of our own making and stays what it is.

    """
    try:
        yield
    except FuelError:
        raise
    except OF_DAMAGE as error:
        # A text may show the path with or without the escapes of `repr`.
        if path in str(error) or repr(path) in str(error):
            raise
        where = f'{path!r}, source {source!r}' if source else repr(path)
        raise DamagedFileError(
            f'cannot read {where}: {type(error).__name__}: {error}; the file '
            'seems to be damaged: restore it from its origin, or convert it '
            'again') from error


def names_file(function: F) -> F:
    """Let :func:`naming_file` watch a function of an open file.

    Parameters
    ----------
    function : callable
        Its first argument is an h5py.File.

    Returns
    -------
    callable

    """
    @functools.wraps(function)
    def watched(h5file: Any, *args: Any, **kwargs: Any) -> Any:
        with naming_file(h5file.filename):
            return function(h5file, *args, **kwargs)
    return watched  # type: ignore[return-value]
