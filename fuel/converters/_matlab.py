"""MATLAB files up to version 7.2."""
from typing import Any

from fuel.converters._inputs import BadInputFile, refuse_page

__all__ = ['describe_variable', 'read_matlab']


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


def describe_variable(path: str, name: str) -> tuple[tuple[int, ...], str]:
    """Return shape and type of a variable, without reading it."""
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
