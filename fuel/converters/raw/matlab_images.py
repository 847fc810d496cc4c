"""Images in a MATLAB 5 file, read a part at a time.

MATLAB stores columns first, so in an array of shape (height, width, channel,
examples) one example follows the other: a file of gigabytes need not be in
memory.
"""
import math
import struct
import zlib
from collections.abc import Iterator
from typing import IO, Any

import h5py
import numpy

from fuel.converters.raw.files import BadInputFile
from fuel.converters.raw.inflate import ZLIB, BinaryReader, Inflated
from fuel.converters.raw.matlab import describe_variable, read_matlab

__all__ = ['MatlabImages']

HEADER = 128
LITTLE_ENDIAN = b'IM'
COMPRESSED, MATRIX, UINT8_DATA, UINT8_CLASS = 15, 14, 2, 9
ROWS_AT_ONCE = 4096

Array = numpy.ndarray[Any, Any]


class _OtherLayoutError(Exception):
    """The file is better left to SciPy."""


class MatlabImages:
    """A variable of unsigned bytes of shape ``(height, width, channel,
    examples)``, with the examples on axis 0."""

    def __init__(self, path: str, name: str) -> None:
        shape, kind = describe_variable(path, name)
        if kind != 'uint8' or len(shape) != 4:
            raise BadInputFile(
                path, f'expected the variable {name!r} to be uint8 of shape '
                f'(height, width, channel, examples), got {kind} {shape}')
        self._path = path
        self._name = name
        self.dtype = numpy.dtype('uint8')
        height, width, channels, examples = shape
        self.shape = (examples, channels, height, width)

    def __len__(self) -> int:
        return self.shape[0]

    def write(self, dataset: h5py.Dataset, start: int) -> None:
        """Write the images from row `start` on."""
        for block in self._blocks():
            dataset[start:start + len(block)] = block
            start += len(block)

    def _blocks(self) -> Iterator[Array]:
        with open(self._path, 'rb') as raw:
            try:
                stream = _find(raw, self._name, math.prod(self.shape))
            except _OtherLayoutError:
                stream = None
            except (zlib.error, EOFError) as error:
                raise BadInputFile(self._path, 'not a sound MATLAB file '
                                   f'({error})') from error
            if stream is not None:
                yield from self._stream(stream)
                return
        images = read_matlab(self._path, self._path, variable_names=[
            self._name])[self._name].transpose(3, 2, 0, 1)
        for i in range(0, len(images), ROWS_AT_ONCE):
            yield numpy.ascontiguousarray(
                images[i:i + ROWS_AT_ONCE].astype('uint8'))

    def _stream(self, stream: BinaryReader) -> Iterator[Array]:
        examples, channels, height, width = self.shape
        size = channels * height * width
        try:
            for i in range(0, examples, ROWS_AT_ONCE):
                count = min(ROWS_AT_ONCE, examples - i)
                content = stream.read(count * size)
                if len(content) != count * size:
                    raise EOFError('it is cut short')
                yield numpy.ascontiguousarray(
                    numpy.frombuffer(content, 'uint8').reshape(
                        count, channels, width, height).swapaxes(2, 3))
            stream.read(8)  # what fills up, and the check sum behind it
        except (zlib.error, EOFError) as error:
            raise BadInputFile(self._path, f'not a sound MATLAB file '
                               f'({error})') from error


def _find(raw: IO[bytes], name: str, size: int) -> BinaryReader:
    """Return a file that begins with the bytes of a variable."""
    if raw.read(HEADER)[-2:] != LITTLE_ENDIAN:
        raise _OtherLayoutError
    while True:
        kind, length = _unpack(raw.read(8))
        following = raw.tell() + length
        stream: BinaryReader = raw
        if kind == COMPRESSED:
            stream = Inflated(raw, ZLIB)
            kind, _ = _unpack(stream.read(8))
        if kind != MATRIX:
            raise _OtherLayoutError
        flags = _element(stream)
        _element(stream)
        if _element(stream).decode('latin1') == name:
            if flags[:1] != bytes([UINT8_CLASS]) or (UINT8_DATA, size) != (
                    _unpack(stream.read(8))):
                raise _OtherLayoutError
            return stream
        raw.seek(following)


def _unpack(tag: bytes) -> tuple[int, int]:
    if len(tag) != 8:
        raise _OtherLayoutError
    kind, length = struct.unpack('<II', tag)
    return kind, length


def _element(stream: BinaryReader) -> bytes:
    """Read a small part of a variable: flags, shape or name."""
    tag = stream.read(8)
    kind, length = _unpack(tag)
    if kind >> 16:  # up to four bytes are in the tag itself
        return bytes(tag[4:4 + (kind >> 16)])
    if length > 1 << 16:
        raise _OtherLayoutError
    return bytes(stream.read(-(-length // 8) * 8)[:length])
