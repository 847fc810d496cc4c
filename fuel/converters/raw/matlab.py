"""MATLAB files up to version 7.2."""
import math
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

import numpy
from numpy.typing import ArrayLike

from fuel.converters.raw.files import BadInputFile, refuse_page
from fuel.converters.raw.inflate import ZLIB, BinaryReader, Inflated

__all__ = ['as_bytes', 'open_variable', 'read_matlab', 'read_tag',
           'read_variables']

# Numbers in a variable that is read as a whole; the largest has 16 million.
MAX_NUMBERS = 1 << 27
HEADER = 128
BYTE_ORDERS = {b'IM': '<', b'MI': '>'}
COMPRESSED, MATRIX = 15, 14
IS_COMPLEX = 1 << 11
# Types of arrays, and those that their numbers may be stored in.
CLASSES = {6: 'f8', 7: 'f4', 8: 'i1', 9: 'u1', 10: 'i2', 11: 'u2', 12: 'i4',
           13: 'u4', 14: 'i8', 15: 'u8'}
STORED = {1: 'i1', 2: 'u1', 3: 'i2', 4: 'u2', 5: 'i4', 6: 'u4', 7: 'f4',
          9: 'f8', 12: 'i8', 13: 'u8'}


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


class Variable(NamedTuple):
    """An array of numbers in a file, and what is read next: its data."""

    shape: tuple[int, ...]
    kind: numpy.dtype[Any]
    data: BinaryReader
    order: str


@contextmanager
def open_variable(path: str, name: str) -> Iterator[Variable]:
    """Open an array of numbers; the stream stands before its data.

    SciPy's reader may end the process on damaged files, so arrays of numbers
    are read here.
    """
    try:
        with open(path, 'rb') as raw:
            yield _find(raw, path, name)
    except BadInputFile:
        raise
    except (zlib.error, EOFError, struct.error, ValueError) as error:
        raise BadInputFile(path, f'not a sound MATLAB file ({error})'
                           ) from error


def _find(raw: IO[bytes], path: str, name: str) -> Variable:
    order = BYTE_ORDERS.get(raw.read(HEADER)[-2:])
    if order is None:
        raise BadInputFile(path, 'not a sound MATLAB file: expected one of '
                           'version 5 to 7.2')
    while tag := raw.read(8):
        kind, length = struct.unpack(f'{order}II', tag)
        following = raw.tell() + length
        stream: BinaryReader = raw
        if kind == COMPRESSED:
            stream = Inflated(raw, ZLIB)
            kind, _ = struct.unpack(f'{order}II', stream.read(8))
        if kind != MATRIX:
            raise EOFError(f'an element of kind {kind}')
        flags = read_element(stream, order)[1]
        shape = numpy.frombuffer(read_element(stream, order)[1], f'{order}i4')
        if read_element(stream, order)[1] == name.encode('latin1'):
            bits, = struct.unpack_from(f'{order}I', flags)
            if bits & 255 not in CLASSES or bits & IS_COMPLEX:
                raise BadInputFile(path, f'expected numbers in {name}')
            if len(shape) < 2 or (shape < 0).any():
                raise EOFError(f'{name} has the shape {tuple(shape)}')
            return Variable(tuple(shape.tolist()), numpy.dtype(
                CLASSES[bits & 255]), stream, order)
        raw.seek(following)
    raise BadInputFile(path, f'there is no variable {name!r}')


def read_tag(stream: BinaryReader, order: str) -> tuple[int, int, bytes]:
    """Return kind and length of an element, and its content if that is in
    the tag itself."""
    tag = stream.read(8)
    kind, length = struct.unpack(f'{order}II', tag)
    if kind >> 16:  # up to four bytes
        return kind & 0xffff, kind >> 16, tag[4:4 + (kind >> 16)]
    return kind, length, b''


def read_element(stream: BinaryReader, order: str,
                 most: int = 1 << 16) -> tuple[int, bytes]:
    """Return kind and content of an element of at most so many bytes."""
    kind, length, content = read_tag(stream, order)
    if length > most:
        raise EOFError(f'an element of {length} bytes')
    if not content:
        content = stream.read(-(-length // 8) * 8)[:length]
    if len(content) != length:
        raise EOFError('it is cut short')
    return kind, content


def read_variables(path: str, names: Iterable[str]) -> dict[str, Any]:
    """Return arrays of numbers, none of them of unreasonable size."""
    found = {}
    for name in names:
        with open_variable(path, name) as variable:
            count = math.prod(variable.shape)
            if count > MAX_NUMBERS:
                raise BadInputFile(path, f'the variable {name!r} has the '
                                   f'shape {variable.shape}')
            kind, content = read_element(variable.data, variable.order,
                                         8 * count)
            stored = STORED.get(kind)
            if stored is None or len(content) != count * int(stored[1]):
                raise EOFError(f'{name} has {len(content)} bytes')
            found[name] = numpy.frombuffer(
                content, variable.order + stored).astype(
                    variable.kind).reshape(variable.shape, order='F')
            variable.data.read(8)  # the check sum behind it
    return found
