"""Encoded images, such as JPEG and PNG."""
import io
from collections.abc import Callable
from typing import Any

import numpy

from fuel.converters.raw.files import BadInputFile

__all__ = ['MAX_PIXELS', 'decode']

# A file of a kilobyte can claim to be an image of gigabytes.
MAX_PIXELS = 1 << 26


def decode(content: bytes, where: str, mode: str | None = 'RGB',
           change: Callable[[Any], Any] | None = None
           ) -> numpy.ndarray[Any, Any]:
    """Decode an image that is called `where` in errors.

    Return uint8 of shape ``(channel, height, width)`` in a colour mode, None
    for the image's own; `change` makes another `PIL.Image.Image` of one.
    """
    from PIL import Image, UnidentifiedImageError
    try:
        image: Any = Image.open(io.BytesIO(content))
        if image.width * image.height > MAX_PIXELS:
            raise ValueError(f'{image.width} x {image.height} pixels')
        if mode is not None and image.mode.startswith(('I', 'F')):
            # Pillow would cut their numbers off at 255.
            raise ValueError('its pixels are no bytes but numbers of more '
                             f'bits, mode {image.mode}')
        if mode is not None and image.mode != mode:
            image = image.convert(mode)
        if change is not None:
            image = change(image)
        array = numpy.asarray(image, dtype='uint8')
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError,
            Image.DecompressionBombError,
            Image.DecompressionBombWarning) as error:
        # Pillow's own text names an object in memory.
        why = ('it is no image, or of a format that Pillow cannot read'
               if isinstance(error, UnidentifiedImageError) else error)
        raise BadInputFile(where, f'cannot be decoded as an image ({why})'
                           ) from error
    if array.ndim == 2:
        array = array[..., None]
    return numpy.ascontiguousarray(array.transpose(2, 0, 1))
