"""MATLAB files up to version 7.2."""
import math
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import IO, Any, NamedTuple

import numpy
from numpy.typing import ArrayLike

from fuel.converters.raw.files import BadInputFile, refuse_page
from fuel.converters.raw.inflate import ZLIB, BinaryReader, Inflated

File = str | os.PathLike[str] | IO[bytes]

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


class Matrix(NamedTuple):
    """Any array of MATLAB's, and what is read next: its content.

    `bits`: the number of its class, and flags above it.
    """

    bits: int
    shape: tuple[int, ...]
    name: bytes
    data: BinaryReader
    order: str

    @property
    def dtype(self) -> numpy.dtype[Any]:
        """Type of the numbers, of an array of numbers."""
        return numpy.dtype(CLASSES[self.bits & 255])


@contextmanager
def open_matrix(file: File, path: str, name: str
                ) -> Iterator[Matrix]:
    """Open an array; the stream stands before its content.

    SciPy's reader may end the process on damaged files, so all is read here.
    """
    try:
        with _opened(file) as raw:
            raw.seek(0)
            yield _find(raw, path, name)
    except BadInputFile:
        raise
    except (zlib.error, EOFError, struct.error, ValueError) as error:
        raise BadInputFile(path, f'not a sound MATLAB file ({error})'
                           ) from error


def _opened(file: File) -> AbstractContextManager[IO[bytes]]:
    if not isinstance(file, (str, os.PathLike)):
        return nullcontext(file)
    refuse_page(os.fspath(file))
    return open(file, 'rb')


@contextmanager
def open_variable(file: File, name: str,
                  path: str = '') -> Iterator[Matrix]:
    """Open an array of numbers, of a file that errors call `path`."""
    path = path or str(file)
    with open_matrix(file, path, name) as matrix:
        if matrix.bits & 255 not in CLASSES or matrix.bits & IS_COMPLEX:
            raise BadInputFile(path, f'expected numbers in {name}')
        yield matrix


def _find(raw: IO[bytes], path: str, name: str) -> Matrix:
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
        found = read_head(stream, order)
        if found.name == name.encode('latin1'):
            return found
        raw.seek(following)
    raise BadInputFile(path, f'there is no variable {name!r}')


def read_head(stream: BinaryReader, order: str) -> Matrix:
    """Read what comes before the content of an array."""
    bits, = struct.unpack_from(f'{order}I', read_element(stream, order)[1])
    shape = numpy.frombuffer(read_element(stream, order)[1], f'{order}i4')
    name = read_element(stream, order)[1]
    if len(shape) < 2 or (shape < 0).any():
        raise EOFError(f'{name.decode("latin1")} has the shape '
                       f'{tuple(shape.tolist())}')
    return Matrix(bits, tuple(shape.tolist()), name, stream, order)


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


def read_numbers(matrix: Matrix) -> Any:
    """Return the numbers of an array, from where its data stands."""
    count = math.prod(matrix.shape)
    stored, content = read_element(matrix.data, matrix.order, 8 * count)
    dtype = STORED.get(stored)
    if dtype is None or len(content) != count * int(dtype[1]):
        raise EOFError(f'{len(content)} bytes for the shape {matrix.shape}')
    return numpy.frombuffer(content, matrix.order + dtype).astype(
        matrix.dtype).reshape(matrix.shape, order='F')


def read_variables(file: File, names: Iterable[str],
                   path: str = '') -> dict[str, Any]:
    """Return arrays of numbers, none of them of unreasonable size."""
    path = path or str(file)
    found = {}
    for name in names:
        with open_variable(file, name, path) as variable:
            if math.prod(variable.shape) > MAX_NUMBERS:
                raise BadInputFile(path, f'the variable {name!r} has the '
                                   f'shape {variable.shape}')
            try:
                found[name] = read_numbers(variable)
            except EOFError as error:
                raise EOFError(f'{name} has {error}') from None
            variable.data.read(8)  # the check sum behind it
    return found
