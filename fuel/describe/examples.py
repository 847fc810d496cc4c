"""Convert examples to show them: as arrays, images, curves and texts."""
from __future__ import annotations

import io
import re
import reprlib
from collections.abc import Sequence
from importlib import import_module
from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray
from PIL import Image

from fuel.exceptions import UndecodableAudioError
from fuel.utils.arguments import try_call
from fuel.utils.printing import printable
from fuel.utils.sparse import is_sparse, to_dense

Array: TypeAlias = NDArray[Any]

# Most pixels of a decoded image: the header of a file of a kilobyte can claim
# an image of gigabytes.
MAX_PIXELS = 1 << 26
# Formats that Pillow decodes itself. For PostScript, for example, it runs
# another program.
FORMATS = ('PNG', 'JPEG', 'GIF', 'BMP', 'WEBP', 'TIFF', 'PPM', 'JPEG2000')
# Least height and width of a matrix that is shown as an image; curves show a
# smaller matrix better.
SMALLEST_SHEET = 8
# First bytes of audio files, and the number of samples that are drawn.
AUDIO = re.compile(rb'RIFF....WAVE|RF64|fLaC|OggS|FORM....AIF|ID3|'
                   rb'\xff[\xf2\xf3\xfa\xfb]|\.snd|caff', re.DOTALL)
MOST_SAMPLES = 1 << 20
# Most letters of a text in a row of a table.
LONGEST = 60
# Most numbers of an example that a row of a table shows.
FEW = 6

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 2 * LONGEST


def shown_array(part: Any) -> Array:
    """Return the data of a source in an example as a dense array.

    For an audio file, the array holds the samples.  Any other object that is
    not an array becomes the only element of an array of objects.
    """
    if is_sparse(part):
        return numpy.asarray(to_dense(part)[0])
    if isinstance(part, (bytes, bytearray, memoryview)) and try_call(
            True, _is_file, bytes(part)):
        part = numpy.frombuffer(part, 'uint8')
    try:
        array = numpy.asarray(part)
    except Exception:  # noqa: BLE001 (of a class of the user's)
        array = numpy.empty((), object)
        array[()] = part
    return as_curve(array)


def _is_file(content: bytes) -> bool:
    """Return whether bytes are those of a binary file, not text in UTF-8."""
    try:
        content.decode('utf8')
    except UnicodeDecodeError:
        return True
    return False


def as_curve(example: Array) -> Array:
    """Return the samples of an audio file, and other examples unchanged.

    If the library that decodes audio is missing, a text is returned instead
    of the samples.
    """
    if example.dtype != 'uint8' or example.ndim != 1:
        return example
    if not AUDIO.match(example[:12].tobytes()):
        return example
    try:
        # Not an import statement: that module imports streams, which import
        # this package.
        audio = import_module('fuel.interop.audio')
        return numpy.asarray(audio.first_samples(
            example.tobytes(), MOST_SAMPLES))
    except ImportError as error:
        return numpy.array(f'audio file, {example.size} bytes ({error})')
    except UndecodableAudioError:
        return example


def is_numeric(example: Array) -> bool:
    """Return whether an example holds numbers."""
    return example.dtype.kind in 'buif'


def as_image(example: Array, is_labelled: bool = False
             ) -> Image.Image | None:
    """Return an image of an example; None if the example is not an image.

    `is_labelled`: whether the axes of the example are called height and
        width.
    """
    array = numpy.asarray(example)
    if array.dtype == 'uint8' and array.ndim == 1 and array.size > 16:
        return _decoded(array.tobytes())
    if array.ndim == 2 and (
            is_labelled or min(array.shape) >= SMALLEST_SHEET):
        array = array[None]
    if array.ndim == 3 and array.shape[0] not in (1, 3) and (
            array.shape[2] in (1, 3)):
        # The channels are the last axis, as in files of other libraries.
        array = array.transpose(2, 0, 1)
    if array.ndim != 3 or array.shape[0] not in (1, 3) or min(
            array.shape[1:]) < 2 or not is_numeric(array):
        return None
    array = pixels(array).transpose(1, 2, 0)
    return Image.fromarray(array[..., 0] if array.shape[2] == 1
                           else array).convert('RGB')


def _decoded(content: bytes) -> Image.Image | None:
    """Return the image in a file; None if the file cannot be decoded."""
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            if image.width * image.height > MAX_PIXELS:
                return None
            return image.convert('RGB')
    except Exception:  # noqa: BLE001 (damaged files raise many kinds)
        return None


def pixels(array: Array) -> NDArray[numpy.uint8]:
    """Return numbers scaled to 0 to 255.

    A uint8 array with numbers above 1 is returned unchanged.
    """
    if array.dtype == numpy.uint8 and array.max(initial=0) > 1:
        return array
    finite = array[numpy.isfinite(array)].astype('float64')
    low, high = (finite.min(), finite.max()) if finite.size else (0, 0)
    scaled = (array.astype('float64') - low) * (255 / (high - low or 1))
    return numpy.nan_to_num(scaled, posinf=255, neginf=0).astype('uint8')


def shown_text(example: Any) -> str:
    """Return an example as readable text, without ``b'...'`` and without
    control characters of terminals."""
    if isinstance(example, numpy.ndarray):
        return ', '.join(shown_text(item) for item in example.ravel()[:100])
    if isinstance(example, bytes):
        return printable(example.decode('utf8', 'replace'))
    if isinstance(example, str):
        return printable(example)
    return printable(try_call(type(example).__name__, _short.repr, example)
                     if not isinstance(example, numpy.generic)
                     else str(example))


def cell_of(example: Array) -> str:
    """Return the text of an example for the cell of a table.

    It is the numbers if they are few, the start of a text, or else the type,
    shape and range of the array.
    """
    if not is_numeric(example):
        text = shown_text(example)
        return text if len(text) <= LONGEST else f'{text[:LONGEST - 3]}...'
    if example.size <= FEW:
        return ', '.join([
            str(number.item()) if number.dtype.kind in 'bui'
            else f'{number:g}' for number in example.ravel()])
    return f'{example.dtype} {example.shape}{numbers_in([example])}'


def numbers_in(examples: Sequence[Array]) -> str:
    """Return the range of numeric examples as text; '' for other examples."""
    numbers = [numpy.ravel(example) for example in examples]
    numbers = [array for array in numbers if array.size]
    if not numbers or not all(map(is_numeric, numbers)):
        return ''
    low = min(float(array.min()) for array in numbers)
    high = max(float(array.max()) for array in numbers)
    return f': {low:g} to {high:g}'
