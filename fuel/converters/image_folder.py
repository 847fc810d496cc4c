"""A user's own images, in a folder for each class."""
from __future__ import annotations

import os
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import h5py

from fuel.converters.base import (Converter, converted_file, create_source,
                                  label_axes)
from fuel.converters.class_folders import (ClassFolder, Kind,
                                           add_folder_options, naming_option)
from fuel.converters.custom_data import advise
from fuel.converters.images import create_ragged, write_images
from fuel.converters.output import IMAGES, LABELS
from fuel.converters.raw.files import Folder, require_regular
from fuel.converters.raw.images import MAX_PIXELS, decode_image, open_image
from fuel.transformers.image.orientation import upright_size

if TYPE_CHECKING:
    from PIL import Image

__all__ = ['convert_image_folder', 'fill_subparser']

KIND = Kind('image', ('.jpg', '.jpeg', '.png', '.bmp', '.gif', '.tif',
                      '.tiff', '.webp', '.ppm', '.pgm'))
COLOURS = {'RGB': 3, 'L': 1}

Size = tuple[int, int]


@advise
@naming_option()
def convert_image_folder(
        directory: Folder, output_directory: Folder,
        output_filename: str | None = None, color_mode: str = 'RGB',
        size: Size | None = None,
        hold_out: Sequence[tuple[str, float]] | None = None,
        seed: int = 1, stratify: bool = False,
        on_error: str = 'raise') -> tuple[str]:
    """Convert a folder of images to an HDF5 file that `H5PYDataset` reads.

    The folder has a folder of images for each class, or folders named train,
    valid and test, each with a folder for each class. The file has the sources
    'features', uint8, and 'targets', the number of the class in alphabetical
    order. Images whose EXIF data name an orientation are turned upright.
    Images of one size become an array of shape ``(examples, channel, height,
    width)``; images of several sizes become a source of variable shape. The
    attribute 'class_names' of 'targets' is a list of the names of the classes,
    in JSON.

    `color_mode`: {'RGB', 'L'}; colours or shades of grey. Default 'RGB'.
    `size`: height and width to which all images are resized, in pixels.
        Default: images keep their sizes.
    `hold_out`: splits to draw at random, and their shares. Not for folders
        that come with splits.
    `seed`: seed of the random splits. Default 1.
    `stratify`: whether the same share of every class is held out.
    `on_error`: {'raise', 'skip'}; what to do with images that cannot be
        decoded. With 'skip' they are logged and left out, if they are at most
        10, or at most a hundredth of the images; all images are read once more
        to find them. Default 'raise'.
    """
    folder = ClassFolder(directory, KIND, hold_out, seed, stratify)

    def decode(content: bytes, path: str,
               change: Callable[[Any], Any] | None = None) -> Any:
        return decode_image(content, path, color_mode, change, upright=True)

    def resize(image: Image.Image) -> Image.Image:
        from PIL import Image
        return image if size is None else image.resize(
            size[::-1], Image.Resampling.LANCZOS)

    folder.leave_out_bad(on_error, decode)
    output_filename = folder.output_name(output_filename)
    common = size or _common_size(file.path for file in folder.files)
    with converted_file(output_directory, output_filename) as h5file:
        features = _create_features(h5file, len(folder.files), common,
                                    COLOURS[color_mode])
        write_images(features, 0, folder.decoded(
            partial(decode, change=resize)))
        folder.write_classes(h5file, 'features')
        label_axes(h5file, {'targets': LABELS, **(
            {'features': IMAGES} if common else {})})
    return (os.path.join(output_directory, output_filename),)


def _common_size(paths: Iterable[str]) -> Size | None:
    """Return the height and width that all images have by their headers; None
    if they differ."""
    sizes = set()
    for path in paths:
        require_regular(path)
        with open_image(path, path) as image:
            sizes.add(upright_size(image))
        if len(sizes) > 1:
            return None
    return sizes.pop()


def _create_features(h5file: h5py.File, count: int, common: Size | None,
                     channels: int) -> h5py.Dataset:
    if common is not None:
        return create_source(h5file, 'features', (count, channels, *common),
                             'uint8')
    return create_ragged(h5file, 'features', count, 'uint8', IMAGES[1:],
                         'features_shapes', 'features_shape_labels', 'int32')


def _size(text: str) -> Size:
    height, by, width = text.lower().partition('x')
    if not by:
        width = height
    if not (height.isdecimal() and width.isdecimal() and int(height) and
            int(width)):
        raise ArgumentTypeError(
            f'expected HEIGHTxWIDTH, such as 32x48, or one number for '
            f'squares, got {text!r}')
    if int(height) * int(width) > MAX_PIXELS:
        raise ArgumentTypeError(
            f'expected at most {MAX_PIXELS} pixels, got {text!r}')
    return int(height), int(width)


def fill_subparser(subparser: ArgumentParser) -> Converter:
    """Set up the parser of ``fuel-convert image_folder``."""
    subparser.add_argument('--color-mode', choices=tuple(COLOURS),
                           default='RGB', help='colours (RGB) or shades of '
                           'grey (L) (default: RGB)')
    subparser.add_argument('--size', type=_size, default=None,
                           metavar='HEIGHTxWIDTH',
                           help='resize all images, such as 32x48, or 32 for '
                           'squares (default: do not)')
    add_folder_options(subparser, KIND)
    return convert_image_folder
