"""Rotate images by their EXIF orientation."""
from __future__ import annotations

import io
import struct
from typing import Any

# A PNG file is chunks: length, kind, content and checksum.
PNG_SIGNATURE = b'\x89PNG\r\n\x1a\n'
CHECKSUM = 4
WIDTH_TAG, HEIGHT_TAG, ORIENTATION_TAG = 0x0100, 0x0101, 0x0112
# `PIL.Image.Transpose` that makes an image of each orientation upright.
TRANSPOSES = {2: 'FLIP_LEFT_RIGHT', 3: 'ROTATE_180', 4: 'FLIP_TOP_BOTTOM',
              5: 'TRANSPOSE', 6: 'ROTATE_270', 7: 'TRANSVERSE',
              8: 'ROTATE_90'}
# The orientations that exchange height and width.
SWAPPED = (5, 6, 7, 8)


def orientation(image: Any) -> int:
    """Return the orientation, 1 to 8, in the EXIF data of an opened image.

    It is 1 if the orientation is missing or invalid, and for TIFF files, which
    Pillow rotates itself. Pixels are decoded only for PNG files whose EXIF
    data come after the pixels.
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
    """Return whether a PNG file has EXIF data, before or after its pixels.

    Pillow finds EXIF data after the pixels only when it decodes the pixels.
    """
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


def turned_upright(image: Any, number: int) -> Any:
    """Return an image rotated upright, given the number of its orientation."""
    if number not in TRANSPOSES:
        return image
    from PIL import Image
    return image.transpose(Image.Transpose[TRANSPOSES[number]])


def upright_size(image: Any) -> tuple[int, int]:
    """Return the height and width that an opened image has when upright."""
    if image.format == 'TIFF':
        # Before Pillow 11, it is the size in the file until pixels are read.
        tags = image.tag_v2
        size, turned = (tags[WIDTH_TAG], tags[HEIGHT_TAG]), tags.get(
            ORIENTATION_TAG)
    else:
        size, turned = image.size, orientation(image)
    return size if turned in SWAPPED else size[::-1]
