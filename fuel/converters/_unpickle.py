"""Pickles of strangers: arrays, lists and text, and nothing that runs."""
import io
import pickle
from typing import Any

import numpy

from fuel.converters._inputs import BadInputFile

__all__ = ['load_arrays']

# The places where NumPy has kept what its pickles name.
ARRAY_MODULES = ('numpy.core.multiarray', 'numpy._core.multiarray')


def _encode(text: str, encoding: str) -> bytes:
    """Do what `_codecs.encode` does for bytes pickled by Python 3."""
    if encoding not in ('latin1', 'latin-1'):
        raise pickle.UnpicklingError(f'unexpected encoding {encoding!r}')
    return text.encode('latin1')


def _reconstruct(kind: Any, shape: Any, code: Any) -> Any:
    """Make an empty array, to be filled by its state."""
    if kind is not numpy.ndarray:
        raise pickle.UnpicklingError(f'unexpected array class {kind!r}')
    return numpy.ndarray.__new__(kind, shape, code)


def _dtype(name: Any, *flags: Any) -> Any:
    """Make a type of numbers."""
    dtype = numpy.dtype(name)
    if dtype.kind not in 'biuf':
        raise pickle.UnpicklingError(f'unexpected array type {dtype}')
    return dtype


def _scalar(dtype: Any, content: Any) -> Any:
    """Make a number."""
    if isinstance(content, str):
        content = content.encode('latin1')
    return numpy.frombuffer(content, dtype)[0]


def _frombuffer(content: Any, dtype: Any, shape: Any, order: Any) -> Any:
    """Make an array out of its bytes (pickle protocol 5)."""
    return numpy.frombuffer(content, dtype).reshape(shape, order=order)


ALLOWED: dict[tuple[str, str], Any] = {
    ('numpy', 'ndarray'): numpy.ndarray,
    ('numpy', 'dtype'): _dtype,
    ('_codecs', 'encode'): _encode,
    **{(module, '_reconstruct'): _reconstruct for module in ARRAY_MODULES},
    **{(module, 'scalar'): _scalar for module in ARRAY_MODULES},
    ('numpy.core.numeric', '_frombuffer'): _frombuffer,
    ('numpy._core.numeric', '_frombuffer'): _frombuffer}


class _Unpickler(pickle.Unpickler):
    """Knows the names in `ALLOWED`, and no other."""

    def find_class(self, module: str, name: str) -> Any:
        """Return what a pickle names, if that is harmless."""
        try:
            return ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(
                f'it names {module}.{name}, which has no place in a data '
                'set') from None


def load_arrays(content: bytes, path: str) -> Any:
    """Unpickle text, numbers, lists, dicts and arrays of numbers.

    Parameters
    ----------
    content : bytes
        A pickle, of Python 2 or 3.
    path : str
        Where it comes from, for error texts.

    Raises
    ------
    BadInputFile
        If the pickle is damaged or names anything else.
    """
    try:
        return _Unpickler(io.BytesIO(content), encoding='latin1').load()
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError,
            AttributeError, IndexError, KeyError, ImportError,
            OverflowError, MemoryError) as error:
        raise BadInputFile(path, f'cannot be unpickled: {error}') from error
