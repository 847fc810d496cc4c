"""MATLAB files up to version 7.2: arrays of numbers, images and tables."""
import math
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import IO, Any, NamedTuple

import numpy
from numpy.typing import ArrayLike

from fuel.converters.output import Array, Examples
from fuel.converters.raw.files import BadInputFile, refuse_page
from fuel.converters.raw.inflate import ZLIB, BinaryFile, Inflated

File = str | os.PathLike[str] | IO[bytes]

# The most numbers in a variable that is read as a whole; the largest of these
# variables has 16 million.
MAX_NUMBERS = 1 << 27
HEADER = 128
BYTE_ORDERS = {b'IM': '<', b'MI': '>'}
COMPRESSED, MATRIX = 15, 14
IS_COMPLEX = 1 << 11
# Mapping from classes of arrays to types, and from kinds of elements to the
# types in which numbers may be stored.
CLASSES = {6: 'f8', 7: 'f4', 8: 'i1', 9: 'u1', 10: 'i2', 11: 'u2', 12: 'i4',
           13: 'u4', 14: 'i8', 15: 'u8'}
STORED = {1: 'i1', 2: 'u1', 3: 'i2', 4: 'u2', 5: 'i4', 6: 'u4', 7: 'f4',
          9: 'f8', 12: 'i8', 13: 'u8'}
UINT8 = 2
# Number of images that are read at once.
ROWS_AT_ONCE = 4096
TABLE, TEXT = 2, 4
# Mapping from the types of stored characters to encodings.
CODINGS = {1: 'latin1', 2: 'latin1', 4: 'utf-16', 16: 'utf-8', 17: 'utf-16',
           18: 'utf-32'}
# The tables of ImageNet have some 2,000 rows of 8 cells, and 1 MB of content.
MOST_CELLS = 1 << 20
MOST_NBYTES = 1 << 26
MOST_IN_A_CELL = 1 << 16
NAMES = 1 << 14


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
    """The header of a MATLAB array, and the stream that continues with its
    content.

    `bits`: the number of the array's class in the lowest byte, and flags in
        the other bytes.
    """

    bits: int
    shape: tuple[int, ...]
    name: bytes
    data: BinaryFile
    order: str

    @property
    def dtype(self) -> numpy.dtype[Any]:
        """Type of the numbers; only for an array of numbers (dtype)."""
        return numpy.dtype(CLASSES[self.bits & 255])


@contextmanager
def open_matrix(file: File, path: str, name: str
                ) -> Iterator[Matrix]:
    """Open an array; the position of the stream is before the content.

    SciPy's reader may crash the process if a file is damaged, so Fuel has its
    own reader.
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
    """Open an array of numbers; errors call the file `path`."""
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
        stream: BinaryFile = raw
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


def read_head(stream: BinaryFile, order: str) -> Matrix:
    """Read the header of an array."""
    bits, = struct.unpack_from(f'{order}I', read_element(stream, order)[1])
    shape = numpy.frombuffer(read_element(stream, order)[1], f'{order}i4')
    name = read_element(stream, order)[1]
    if len(shape) < 2 or (shape < 0).any():
        raise EOFError(f'{name.decode("latin1")} has the shape '
                       f'{tuple(shape.tolist())}')
    return Matrix(bits, tuple(shape.tolist()), name, stream, order)


def read_tag(stream: BinaryFile, order: str) -> tuple[int, int, bytes]:
    """Return kind and length of an element, and its content if that is in
    the tag itself."""
    tag = stream.read(8)
    kind, length = struct.unpack(f'{order}II', tag)
    if kind >> 16:  # up to four bytes
        return kind & 0xffff, kind >> 16, tag[4:4 + (kind >> 16)]
    return kind, length, b''


def read_element(stream: BinaryFile, order: str,
                 most: int = 1 << 16) -> tuple[int, bytes]:
    """Return kind and content of an element of at most `most` bytes."""
    kind, length, content = read_tag(stream, order)
    if length > most:
        raise EOFError(f'an element of {length} bytes')
    if not content:
        content = stream.read(-(-length // 8) * 8)[:length]
    if len(content) != length:
        raise EOFError('it is cut short')
    return kind, content


def read_numbers(matrix: Matrix) -> Any:
    """Return the numbers of an array, from the position of its stream on."""
    count = math.prod(matrix.shape)
    stored, content = read_element(matrix.data, matrix.order, 8 * count)
    dtype = STORED.get(stored)
    if dtype is None or len(content) != count * int(dtype[1]):
        raise EOFError(f'{len(content)} bytes for the shape {matrix.shape}')
    return numpy.frombuffer(content, matrix.order + dtype).astype(
        matrix.dtype).reshape(matrix.shape, order='F')


def read_variables(file: File, names: Iterable[str],
                   path: str = '') -> dict[str, Any]:
    """Return a mapping from names to arrays of numbers; refuse an array of
    unreasonable size."""
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
            variable.data.read(8)  # the checksum after it
    return found


class MatlabImages(Examples):
    """A variable of unsigned bytes of shape ``(height, width, channel,
    examples)``, with the examples on axis 0, read a part at a time.

    MATLAB stores columns first, so one example follows the other: a file of
    gigabytes need not be in memory.
    """

    def __init__(self, path: str, name: str) -> None:
        with open_variable(path, name) as variable:
            shape, kind = variable.shape, variable.dtype
        if kind != 'uint8' or len(shape) != 4:
            raise BadInputFile(
                path, f'expected the variable {name!r} to be uint8 of shape '
                f'(height, width, channel, examples), got {kind} {shape}')
        self._path = path
        self._name = name
        height, width, channels, examples = shape
        super().__init__((examples, channels, height, width), kind)

    def blocks(self) -> Iterator[Array]:
        """Iterate over the images, some at a time."""
        examples, channels, height, width = self.shape
        size = channels * height * width
        with open_variable(self._path, self._name) as variable:
            stream = variable.data
            kind, length, _ = read_tag(stream, variable.order)
            if kind != UINT8 or length != examples * size:
                raise EOFError(f'{self._name} has {length} bytes')
            for i in range(0, examples, ROWS_AT_ONCE):
                count = min(ROWS_AT_ONCE, examples - i)
                content = stream.read(count * size)
                if len(content) != count * size:
                    raise EOFError('it is cut short')
                yield numpy.ascontiguousarray(
                    numpy.frombuffer(content, 'uint8').reshape(
                        count, channels, width, height).swapaxes(2, 3))
            stream.read(8)  # padding, and the checksum after it


def read_table(file: File, path: str,
               name: str) -> dict[str, list[Any]]:
    """Return a mapping from names to columns of a table; errors call the file
    `path`.

    Cells are arrays of numbers or strings; a table that holds other cells, or
    more than is reasonable, is refused.
    """
    with open_matrix(file, path, name) as matrix:
        if matrix.bits & 255 != TABLE:
            raise BadInputFile(path, f'expected a table (an array of '
                               f'structures) in {name}')
        fields = _read_names(matrix)
        count = math.prod(matrix.shape)
        if count * len(fields) > MOST_CELLS:
            raise BadInputFile(path, f'{name} has {count} rows of '
                               f'{len(fields)} fields, more than a table of '
                               f'synsets')
        columns: dict[str, list[Any]] = {field: [] for field in fields}
        left = MOST_NBYTES
        for _ in range(count):
            for field in fields:
                cell, nbytes = _read_cell(matrix.data, matrix.order)
                left -= nbytes
                if left < 0:
                    raise BadInputFile(path, f'{name} has more than '
                                       f'{MOST_NBYTES} bytes')
                columns[field].append(cell)
    return columns


def _read_names(matrix: Matrix) -> list[str]:
    width, = struct.unpack_from(
        f'{matrix.order}i', read_element(matrix.data, matrix.order)[1])
    text = read_element(matrix.data, matrix.order, NAMES)[1]
    if width < 1 or len(text) % width:
        raise EOFError(f'names of {width} bytes in {len(text)}')
    return [text[start:start + width].partition(b'\0')[0].decode('latin1')
            for start in range(0, len(text), width)]


def _read_cell(stream: BinaryFile, order: str) -> tuple[Any, int]:
    """Return the content of a cell, and its number of bytes."""
    kind, length = struct.unpack(f'{order}II', stream.read(8))
    if kind != MATRIX:
        raise EOFError(f'a cell of kind {kind}')
    if length > MOST_IN_A_CELL:
        raise EOFError(f'a cell of {length} bytes')
    if not length:
        return numpy.empty(0), 0
    head = read_head(stream, order)
    if math.prod(head.shape) > MOST_IN_A_CELL:
        raise EOFError(f'a cell of the shape {head.shape}')
    number = head.bits & 255
    if number == TEXT:
        stored, content = read_element(stream, order, MOST_IN_A_CELL)
        coding = CODINGS.get(stored)
        if coding is None:
            raise EOFError(f'a text of kind {stored}')
        if coding != 'latin1' and coding != 'utf-8':
            coding += '-le' if order == '<' else '-be'
        return content.decode(coding), length
    if number not in CLASSES:
        raise EOFError(f'a cell of class {number}')
    return read_numbers(head).reshape(-1, order='F'), length
