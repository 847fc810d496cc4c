"""Images in a MATLAB 5 file, read a part at a time.

MATLAB stores columns first, so in an array of shape (height, width, channel,
examples) one example follows the other: a file of gigabytes need not be in
memory.
"""
from collections.abc import Iterator
from typing import Any

import h5py
import numpy

from fuel.converters.raw.files import BadInputFile
from fuel.converters.raw.matlab import open_variable, read_tag

__all__ = ['MatlabImages']

UINT8 = 2
ROWS_AT_ONCE = 4096

Array = numpy.ndarray[Any, Any]


class MatlabImages:
    """A variable of unsigned bytes of shape ``(height, width, channel,
    examples)``, with the examples on axis 0."""

    def __init__(self, path: str, name: str) -> None:
        with open_variable(path, name) as variable:
            shape, kind = variable.shape, variable.kind
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
            stream.read(8)  # what fills up, and the check sum behind it
