"""One's own images, in a folder for each class."""
from __future__ import annotations

import hashlib
import logging
import os
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError
from collections.abc import (
    Callable, Iterable, Iterator, Mapping, Sequence)
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import h5py

from fuel.converters.custom_data import (add_split_options, advise,
                                          as_classes)
from fuel.converters.images import (create_ragged, ordered_map,
                                    write_images)
from fuel.converters.base import (Converter, consecutive, converted_file,
                                  create_source, label_axes, write_splits)
from fuel.converters.output import IMAGES, LABELS, write_inputs, write_names
from fuel.converters.raw.files import BadInputFile, Folder, require_regular
from fuel.datasets.random_splits import held_out
from fuel.converters.raw.images import (MAX_PIXELS, decode_image, open_image,
                                        upright_size)
from fuel.epochs.skipped import check_skipping, skip_limit
from fuel.exceptions import BadRecordsError, MissingInputFiles

if TYPE_CHECKING:
    from PIL import Image

__all__ = ['convert_image_folder', 'fill_subparser']

log = logging.getLogger(__name__)

EXTENSIONS = ('.jpg', '.jpeg', '.png', '.bmp', '.gif', '.tif', '.tiff',
              '.webp', '.ppm', '.pgm')
SPLITS = {'train': 'train', 'training': 'train', 'valid': 'valid',
          'val': 'valid', 'validation': 'valid', 'test': 'test',
          'testing': 'test'}
COLOURS = {'RGB': 3, 'L': 1}

# Split, class, path.
Picture = tuple[str, str, str]
Size = tuple[int, int]
# Size and SHA-256 of a file.
Digest = tuple[int, str]


@contextmanager
def _naming_option() -> Iterator[None]:
    try:
        yield
    except BadInputFile as error:
        error.advice = ('Mend the file, or leave out a few such ones with '
                        '--on-error skip')
        raise


@advise
@_naming_option()
def convert_image_folder(
        directory: Folder, output_directory: Folder,
        output_filename: str | None = None, color_mode: str = 'RGB',
        size: Size | None = None,
        hold_out: Sequence[tuple[str, float]] | None = None,
        seed: int = 1, stratify: bool = False,
        on_error: str = 'raise') -> tuple[str]:
    """Convert a folder of images to an HDF5 file that `H5PYDataset` reads.

    The folder has a folder of images for each class; or folders named train,
    valid and test that have. The file has the sources 'features', uint8,
    and 'targets', the number of the class in alphabetical order. Images whose
    EXIF data name an orientation are turned upright. Images of one size become
    an array of shape ``(examples, channel, height, width)``, others a source
    of varying shape. The names of the classes are a list in JSON, the
    attribute 'class_names' of 'targets'.

    `color_mode`: {'RGB', 'L'}; colours or shades of grey. Default 'RGB'.
    `size`: height and width to which all images are resized, in pixels.
        Default: as they are.
    `hold_out`: splits to make of random examples, and their shares. Not for
        folders that come with splits.
    `seed`: seed of that choice. Default 1.
    `stratify`: whether the same share of every class is held out.
    `on_error`: {'raise', 'skip'}; what to do with images that cannot be
        decoded. With 'skip' they are logged and left out, if they are at most
        a hundredth, or 10; all are read once more to find them. Default
        'raise'.
    """
    directory = os.fspath(directory)
    check_skipping(on_error, None, 0)
    splits = _find_splits(directory, hold_out, seed, stratify)
    pictures = [picture for part in splits.values() for picture in part]
    targets, names = as_classes([name for _, name, _ in pictures])
    num_found = len(pictures)
    if on_error == 'skip':
        splits = _decodable(splits, color_mode)
        left = {picture for part in splits.values() for picture in part}
        # A class keeps its number, whatever is left out.
        targets = targets[[picture in left for picture in pictures]]
        pictures = [picture for picture in pictures if picture in left]
    output_filename = output_filename or os.path.basename(
        os.path.abspath(directory)) + '.hdf5'
    common = size or _common_size(path for _, _, path in pictures)
    with converted_file(output_directory, output_filename) as h5file:
        features = _create_features(h5file, len(pictures), common,
                                    COLOURS[color_mode])
        create_source(h5file, 'targets', targets.shape, targets.dtype)[
            ...] = targets
        digests: dict[str, Digest] = {}
        write_images(features, 0, _decoded(pictures, color_mode, size,
                                           digests))
        write_splits(h5file, consecutive(
            {split: len(part) for split, part in splits.items()},
            ('features', 'targets')))
        write_names(h5file, 'class_names', {'targets': names})
        write_inputs(h5file, _folder_digest(
            directory, digests, num_found - len(pictures)))
        label_axes(h5file, {'targets': LABELS, **(
            {'features': IMAGES} if common else {})})
    return (os.path.join(output_directory, output_filename),)


def _decodable(splits: Mapping[str, list[Picture]], color_mode: str,
               ) -> dict[str, list[Picture]]:
    """Return the pictures that can be decoded."""
    def found(picture: Picture) -> BadInputFile | None:
        try:
            _read(picture[2], color_mode)
        except BadInputFile as error:
            return error
        return None

    pictures = [picture for part in splits.values() for picture in part]
    bad = {picture: error for picture, error in zip(pictures, ordered_map(
        found, pictures, 'checks', len(pictures)), strict=True)
        if error is not None}
    reasons = [f'{error.path}: {error.problem}' for error in bad.values()]
    for reason in reasons:
        log.warning('left out: %s', reason)
    most = skip_limit(None, len(pictures))
    if len(bad) > most or len(bad) == len(pictures):
        raise BadRecordsError(
            f'{len(bad)} of {len(pictures)} images cannot be decoded, and at '
            f'most {min(most, len(pictures) - 1)} are left out: '
            + '; '.join(reasons[:5]))
    return {split: [picture for picture in part if picture not in bad]
            for split, part in splits.items()}


def _find_splits(directory: str,
                 hold_out: Sequence[tuple[str, float]] | None, seed: int,
                 stratify: bool
                 ) -> dict[str, list[Picture]]:
    own = _find_own_splits(directory)
    _warn_of_loose([directory, *(
        os.path.join(directory, name) for name in _folders(directory)
        if own and name.lower() in SPLITS)])
    if own:
        if hold_out:
            raise ValueError(f'{directory!r} comes with the splits '
                             f'{", ".join(own)}: none can be held out')
        return own
    found = _find(directory, 'train')
    if not found:
        raise MissingInputFiles('No images in folders of classes',
                                [directory])
    return {split: [found[row] for row in rows.tolist()] for split, rows
            in held_out(len(found), hold_out, seed, [
                name for _, name, _ in found] if stratify else None).items()}


def _find_own_splits(directory: str) -> dict[str, list[Picture]]:
    """Return the images of folders named as splits, if they have classes."""
    found, others = [], []
    for name in _folders(directory):
        path = os.path.join(directory, name)
        part = (_find(path, SPLITS[name.lower()])
                if name.lower() in SPLITS else [])
        found += part
        if not part and any(_is_picture(file) for _, _, files in os.walk(path)
                            for file in files):
            others.append(name)
    if found and others:
        # As classes, "train" and "test" would be two of them.
        raise ValueError(
            f'{directory!r} has folders of splits with folders of classes in '
            f'them, and beside them images in {", ".join(others)}: expected '
            'train, valid or test, each with a folder for each class. Move '
            'the others elsewhere, or give the folder of one split (-d)')
    return {split: part for split in ('train', 'valid', 'test')
            if (part := [p for p in found if p[0] == split])}


def _warn_of_loose(directories: Iterable[str]) -> None:
    for directory in directories:
        loose = sorted(entry.name for entry in os.scandir(directory)
                       if entry.is_file() and _is_picture(entry.name))
        if loose:
            log.warning('%d images in %s, such as %s, are in no folder of a '
                        'class, and left out', len(loose), directory,
                        loose[0])


def _is_picture(name: str) -> bool:
    return name.lower().endswith(EXTENSIONS)


def _folders(directory: str) -> list[str]:
    if not os.path.isdir(directory):
        raise MissingInputFiles('There is no such folder', [directory])
    return sorted(entry.name for entry in os.scandir(directory)
                  if entry.is_dir() and not entry.name.startswith('.'))


def _find(directory: str, split: str) -> list[Picture]:
    """Return the images of all classes, sorted."""
    found: list[Picture] = []
    others: list[str] = []
    for name in _folders(directory):
        for parent, folders, files in os.walk(os.path.join(directory, name)):
            folders.sort()
            found += [(split, name, os.path.join(parent, file))
                      for file in sorted(files)
                      if _is_picture(file)]
            others += [os.path.join(parent, file) for file in sorted(files)
                       if not (_is_picture(file) or file.startswith('.'))]
    if found and others:
        log.warning('%d files beside the images, such as %s, have the '
                    'extension of no image, and are left out', len(others),
                    others[0])
    _warn_of_nested(directory, found)
    return found


def _warn_of_nested(directory: str, found: Sequence[Picture]) -> None:
    """Warn if all images are of one class that has folders of classes."""
    classes = {name for _, name, _ in found}
    if len(classes) != 1:
        return
    parent = os.path.join(directory, *classes)
    inside = sorted({os.path.relpath(path, parent).split(os.sep)[0]
                     for _, _, path in found
                     if os.path.dirname(path) != parent})
    if len(inside) < 2 or any(os.path.dirname(path) == parent
                              for _, _, path in found):
        return
    log.warning('all images are of one class, %s, whose folder has the '
                'folders %s%s: did you mean %s?', os.path.basename(parent),
                ', '.join(inside[:5]), ', ...' if len(inside) > 5 else '',
                parent)


def _common_size(paths: Iterable[str]) -> Size | None:
    """Return height and width, None if images differ. Only their headers
    are read."""
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


def _folder_digest(directory: str, digests: Mapping[str, Digest],
                   num_left_out: int) -> dict[str, dict[str, Any]]:
    """Return the digest of a folder, as `write_inputs` takes it: that of a
    list of its files as ``sha256sum`` prints it, sorted by name."""
    directory = os.path.abspath(directory)
    names = {os.fsencode(os.path.relpath(path, directory)).replace(
        os.fsencode(os.sep), b'/'): path for path in digests}
    listed = hashlib.sha256()
    for name, path in sorted(names.items()):
        listed.update(f'{digests[path][1]}  '.encode() + name + b'\n')
    return {os.path.basename(directory): {
        'files': len(digests),
        **({'left_out': num_left_out} if num_left_out else {}),
        'size': sum(size for size, _ in digests.values()),
        'sha256': listed.hexdigest()}}


def _decoded(pictures: Sequence[Picture], color_mode: str,
             size: Size | None, digests: dict[str, Digest]) -> Iterator[Any]:
    """Decode pictures, and record the digests of their files."""
    def change(image: Image.Image) -> Image.Image:
        from PIL import Image
        return image if size is None else image.resize(
            size[::-1], Image.Resampling.LANCZOS)

    def one(picture: Picture) -> Any:
        path = picture[2]
        digests[path], image = _read(path, color_mode, change)
        return image

    return ordered_map(one, pictures, 'images', len(pictures))


def _read(path: str, color_mode: str,
          change: Callable[[Any], Any] | None = None) -> tuple[Digest, Any]:
    """Return the digest of a picture's file, and the picture, decoded."""
    require_regular(path)
    with open(path, 'rb') as raw:
        content = raw.read()
    digest = len(content), hashlib.sha256(content).hexdigest()
    return digest, decode_image(
        content, path, color_mode, change, upright=True)


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
    subparser.add_argument(
        'directory', nargs='?', default=SUPPRESS, metavar='FOLDER',
        help='the folder, instead of -d')
    subparser.add_argument('--color-mode', choices=tuple(COLOURS),
                           default='RGB', help='colours (RGB) or shades of '
                           'grey (L) (default: RGB)')
    subparser.add_argument('--size', type=_size, default=None,
                           metavar='HEIGHTxWIDTH',
                           help='resize all images, such as 32x48, or 32 for '
                           'squares (default: do not)')
    subparser.add_argument('--on-error', choices=('raise', 'skip'),
                           default='raise', help='what to do with images that '
                           'cannot be decoded; with skip a few are left out '
                           'and listed (default: raise)')
    add_split_options(subparser)
    return convert_image_folder
