"""Encoded images, such as JPEG and PNG."""
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy

from fuel.converters.raw.files import BadInputFile
from fuel.transformers.image.orientation import orientation, turned_upright

# A file of a kilobyte can claim to be an image of gigabytes.
MAX_PIXELS = 1 << 26


@contextmanager
def open_image(file: Any, where: str) -> Iterator[Any]:
    """Return a context in which an image, given as a path or a file, is open
    in Pillow. Errors in the context become `BadInputFile` for `where`."""
    from PIL import Image, UnidentifiedImageError
    try:
        with Image.open(file) as image:
            if image.width * image.height > MAX_PIXELS:
                raise ValueError(f'{image.width} x {image.height} pixels')
            yield image
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError,
            Image.DecompressionBombError,
            Image.DecompressionBombWarning) as error:
        # Pillow's own text names an object in memory.
        why = ('it is not an image, or Pillow cannot read its format'
               if isinstance(error, UnidentifiedImageError) else error)
        raise BadInputFile(where, f'cannot be decoded as an image ({why})'
                           ) from error


def decode_image(content: bytes, where: str, mode: str | None = 'RGB',
                 change: Callable[[Any], Any] | None = None,
                 upright: bool = False) -> numpy.ndarray[Any, Any]:
    """Decode an image.

    `where`: name of the image in errors.
    `mode`: colour mode of the result; None for the mode of the image.
    `change`: function that returns a changed `PIL.Image.Image`; None to keep
        the image.
    `upright`: whether to turn the image first, as its EXIF data say.
    Returns: uint8 of shape ``(channel, height, width)``.
    """
    if not content:
        raise BadInputFile(where, 'the file is empty')
    with open_image(io.BytesIO(content), where) as opened:
        image = opened
        if mode is not None and image.mode.startswith(('I', 'F')):
            # Pillow would replace numbers above 255 by 255.
            raise ValueError('its pixels are not bytes but numbers of more '
                             f'bits, mode {image.mode}')
        turned = orientation(image) if upright else 1
        image.load()  # A TIFF file has its size only now.
        if mode is not None and image.mode != mode:
            image = image.convert(mode)
        image = turned_upright(image, turned)
        if change is not None:
            image = change(image)
        array = numpy.asarray(image, dtype='uint8')
    if array.ndim == 2:
        array = array[..., None]
    return numpy.ascontiguousarray(array.transpose(2, 0, 1))
