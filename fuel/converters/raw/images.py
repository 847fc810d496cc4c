"""Encoded images, such as JPEG and PNG."""
import io
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy

from fuel.converters.raw.files import BadInputFile

# A file of a kilobyte can claim to be an image of gigabytes.
MAX_PIXELS = 1 << 26

# A PNG file is chunks: length, kind, content and checksum.
PNG_SIGNATURE = b'\x89PNG\r\n\x1a\n'
CHECKSUM = 4
WIDTH_TAG, HEIGHT_TAG, ORIENTATION_TAG = 0x0100, 0x0101, 0x0112
# `PIL.Image.Transpose` that makes an image of each orientation upright.
TRANSPOSES = {2: 'FLIP_LEFT_RIGHT', 3: 'ROTATE_180', 4: 'FLIP_TOP_BOTTOM',
              5: 'TRANSPOSE', 6: 'ROTATE_270', 7: 'TRANSVERSE',
              8: 'ROTATE_90'}
# Those that exchange height and width.
SWAPPED = (5, 6, 7, 8)


def orientation(image: Any) -> int:
    """Return the orientation, 1 to 8, in the EXIF data of an opened image.

    It is 1 where there is none, or an invalid one, and for TIFF files, which
    Pillow turns itself. Pixels are decoded only of a PNG file whose EXIF data
    come after them.
    """
    if image.format == 'TIFF' or (
            image.format == 'PNG' and not _png_has_exif(image)):
        return 1
    try:
        found = image.getexif().get(ORIENTATION_TAG)
    except (OSError, SyntaxError, ValueError, struct.error):
        return 1  # Damaged EXIF data do no harm to the pixels.
    return found if found in TRANSPOSES else 1


def _png_has_exif(image: Any) -> bool:
    """Return whether a PNG file has EXIF data, before its pixels or after
    them, where Pillow does not look until it decodes."""
    file = image.fp  # None once the pixels are decoded
    if 'exif' in image.info or file is None:
        return 'exif' in image.info
    place = file.tell()
    file.seek(len(PNG_SIGNATURE))
    kind = b''
    while kind != b'eXIf' and len(head := file.read(8)) == 8:
        length, kind = struct.unpack('>I4s', head)
        file.seek(length + CHECKSUM, io.SEEK_CUR)
    file.seek(place)
    return kind == b'eXIf'


def upright_size(image: Any) -> tuple[int, int]:
    """Return height and width of an opened image once it is upright."""
    if image.format == 'TIFF':
        # Before Pillow 11, `image.size` is that of the file until it is read.
        tags = image.tag_v2
        size, turned = (tags[WIDTH_TAG], tags[HEIGHT_TAG]), tags.get(
            ORIENTATION_TAG)
    else:
        size, turned = image.size, orientation(image)
    return size if turned in SWAPPED else size[::-1]


@contextmanager
def open_image(file: Any, where: str) -> Iterator[Any]:
    """Open an image with Pillow, `file` being a path or a file; an error, of
    what is done with it too, becomes `BadInputFile` for `where`."""
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
        why = ('it is no image, or of a format that Pillow cannot read'
               if isinstance(error, UnidentifiedImageError) else error)
        raise BadInputFile(where, f'cannot be decoded as an image ({why})'
                           ) from error


def decode_image(content: bytes, where: str, mode: str | None = 'RGB',
                 change: Callable[[Any], Any] | None = None,
                 upright: bool = False) -> numpy.ndarray[Any, Any]:
    """Decode an image that is called `where` in errors.

    Return uint8 of shape ``(channel, height, width)`` in a colour mode, None
    for the image's own; `change` makes another `PIL.Image.Image` of one.
    With `upright`, it is first turned as its EXIF data say.
    """
    from PIL import Image
    with open_image(io.BytesIO(content), where) as opened:
        image = opened
        if mode is not None and image.mode.startswith(('I', 'F')):
            # Pillow would cut their numbers off at 255.
            raise ValueError('its pixels are no bytes but numbers of more '
                             f'bits, mode {image.mode}')
        turned = orientation(image) if upright else 1
        image.load()  # A TIFF file has its size only now.
        if mode is not None and image.mode != mode:
            image = image.convert(mode)
        if turned in TRANSPOSES:
            image = image.transpose(Image.Transpose[TRANSPOSES[turned]])
        if change is not None:
            image = change(image)
        array = numpy.asarray(image, dtype='uint8')
    if array.ndim == 2:
        array = array[..., None]
    return numpy.ascontiguousarray(array.transpose(2, 0, 1))
