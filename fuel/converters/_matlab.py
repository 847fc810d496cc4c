"""MATLAB files up to version 7.2."""
from typing import Any

from fuel.converters._inputs import BadInputFile, refuse_page

__all__ = ['read_matlab']


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
