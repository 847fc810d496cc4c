"""Images in a MATLAB 5 file, read a part at a time.

MATLAB stores columns first, so in an array of shape (height, width, channel,
examples) one example follows the other: a file of gigabytes need not be in
memory.
"""
from collections.abc import Iterator

import numpy

from fuel.converters.output import Array, Examples
from fuel.converters.raw.files import BadInputFile
from fuel.converters.raw.matlab import open_variable, read_tag

UINT8 = 2
ROWS_AT_ONCE = 4096


class MatlabImages(Examples):
    """A variable of unsigned bytes of shape ``(height, width, channel,
    examples)``, with the examples on axis 0."""

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
            stream.read(8)  # what fills up, and the check sum behind it
