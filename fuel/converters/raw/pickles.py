"""Untrusted pickles: arrays, lists and text are read, and no code is run.

A pickle names functions and calls them. Here, each name that a pickled array
of numbers needs leads to a replacement, which checks its arguments. Any other
name is an error. NumPy's own functions are not called either, since some
arguments make them read beyond an array.
"""
import io
import pickle
from typing import Any, ClassVar, Literal

import numpy

from fuel.converters.raw.files import BadInputFile

# Modules in which NumPy has or had the functions that its pickles name.
MULTIARRAY = ('numpy.core.multiarray', 'numpy._core.multiarray')
NUMERIC = ('numpy.core.numeric', 'numpy._core.numeric')


class _ArrayClass:
    """Replacement for `numpy.ndarray`."""


class _Type:
    """Replacement for the type of an array."""

    def __init__(self, name: str, *flags: object) -> None:
        self.dtype = numpy.dtype(name)
        if self.dtype.kind not in 'biuf' or self.dtype.fields:
            raise pickle.UnpicklingError(f'unexpected array type {name!r}')

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if state[1] in ('<', '>'):
            self.dtype = self.dtype.newbyteorder(state[1])


class _Array:
    """Replacement for an array, before and after its state is set."""

    def __init__(self, kind: object, *arguments: object) -> None:
        self.array = numpy.empty(0)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, is_fortran, content = state
        self.array = _frombuffer(content, kind, shape,
                                 'F' if is_fortran else 'C')


def _frombuffer(content: bytes | str, kind: _Type, shape: tuple[int, ...],
                order: Literal['C', 'F']) -> Any:
    """Make an array out of its bytes."""
    if isinstance(content, str):
        content = content.encode('latin1')
    return numpy.frombuffer(content, kind.dtype).reshape(shape, order=order)


def _scalar(kind: _Type, content: bytes | str) -> Any:
    """Make a number."""
    return _frombuffer(content, kind, (1,), 'C')[0].item()


def _encode(text: str, encoding: str) -> bytes:
    """Replace `_codecs.encode` for bytes pickled by Python 3."""
    if encoding not in ('latin1', 'latin-1'):
        raise pickle.UnpicklingError(f'unexpected encoding {encoding!r}')
    return text.encode('latin1')


ALLOWED: dict[tuple[str, str], Any] = {
    ('numpy', 'ndarray'): _ArrayClass,
    ('numpy', 'dtype'): _Type,
    ('_codecs', 'encode'): _encode,
    **{(module, '_reconstruct'): _Array for module in MULTIARRAY},
    **{(module, 'scalar'): _scalar for module in MULTIARRAY},
    **{(module, '_frombuffer'): _frombuffer for module in NUMERIC}}


# Opcodes in pickles of dictionaries, lists, text, numbers and arrays, without
# those of data outside the pickle. Other opcodes make objects in other ways,
# or large objects from a few bytes.
OPCODES = b''.join([
    pickle.MARK, pickle.STOP, pickle.POP, pickle.NONE, pickle.INT,
    pickle.BININT, pickle.BININT1, pickle.BININT2, pickle.LONG, pickle.LONG1,
    pickle.FLOAT, pickle.BINFLOAT, pickle.STRING, pickle.BINSTRING,
    pickle.SHORT_BINSTRING, pickle.UNICODE, pickle.BINUNICODE,
    pickle.SHORT_BINUNICODE, pickle.BINBYTES, pickle.SHORT_BINBYTES,
    pickle.BINBYTES8, pickle.EMPTY_LIST, pickle.APPEND, pickle.APPENDS,
    pickle.LIST, pickle.EMPTY_TUPLE, pickle.TUPLE, pickle.TUPLE1,
    pickle.TUPLE2, pickle.TUPLE3, pickle.EMPTY_DICT, pickle.DICT,
    pickle.SETITEM, pickle.SETITEMS, pickle.PUT, pickle.BINPUT,
    pickle.LONG_BINPUT, pickle.MEMOIZE, pickle.GET, pickle.BINGET,
    pickle.LONG_BINGET, pickle.GLOBAL, pickle.STACK_GLOBAL, pickle.REDUCE,
    pickle.BUILD, pickle.NEWTRUE, pickle.NEWFALSE, pickle.PROTO, pickle.FRAME])


# Type checkers know only the unpickler in C.
_InPython: Any = pickle._Unpickler  # type: ignore[attr-defined, unused-ignore]


class _Unpickler(_InPython):  # type: ignore[misc, unused-ignore]
    """Unpickler of the names in `ALLOWED` and of `OPCODES` only.

    Python's unpickler in Python keeps objects in a dictionary. Its unpickler
    in C keeps them in a list, which is as long as the largest number that a
    pickle gives to an object.
    """

    def _build(self) -> None:
        """Set the state of a replacement; other objects must not get
        attributes."""
        if not isinstance(self.stack[-2], _Type | _Array):
            raise pickle.UnpicklingError(
                'it has a state for an object that has no state')
        self.load_build()

    def _bytearray(self) -> None:
        """Load a byte array no larger than the bytes that follow."""
        size = int.from_bytes(self.read(8), 'little')
        content = self.read(size)
        if len(content) != size:
            raise pickle.UnpicklingError('it is cut short')
        self.append(content)

    dispatch: ClassVar[dict[int, Any]] = {
        **{code: method for code, method in _InPython.dispatch.items()
           if code in OPCODES},
        pickle.BUILD[0]: _build, pickle.BYTEARRAY8[0]: _bytearray}

    def find_class(self, module: str, name: str) -> Any:
        """Return the replacement for a name in a pickle."""
        try:
            return ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(
                f'it names {module}.{name}, which has no place in a data '
                'set') from None


def load_arrays(content: bytes, path: str) -> Any:
    """Unpickle a dictionary of text, numbers, lists and arrays of numbers,
    of Python 2 or 3; `BadInputFile` for anything else."""
    try:
        loaded = _Unpickler(io.BytesIO(content), encoding='latin1').load()
    except Exception as error:  # a damaged pickle fails in any way
        raise BadInputFile(path, f'cannot be unpickled: {error}') from error
    if not isinstance(loaded, dict):
        raise BadInputFile(path, 'expected a pickled dictionary, got '
                           f'{type(loaded).__name__}')
    return {key: value.array if isinstance(value, _Array) else value
            for key, value in loaded.items()}
