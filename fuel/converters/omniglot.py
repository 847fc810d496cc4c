"""Omniglot: PNG files of handwritten characters in two zip archives."""
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy

from fuel.converters.base import (converted_file,
                                  fill_hdf5_file, filler_of, label_axes)
from fuel.converters.images import batched, zipped_images
from fuel.converters.output import IMAGES, LABELS, Array, Examples
from fuel.converters.raw.archives import open_zip
from fuel.converters.raw.files import BadInputFile, Folder, input_paths

__all__ = ['convert_omniglot', 'fill_subparser']

ARCHIVES = {'background': 'images_background.zip',
            'evaluation': 'images_evaluation.zip'}
SIZE = (105, 105)
DRAWERS = {f'{i:02d}': i for i in range(1, 21)}
IMAGES_AT_ONCE = 512


class Drawing(NamedTuple):
    """A drawing, by its place in an archive; sorted by character, then by
    person."""

    alphabet: str
    character: str
    drawer: int
    name: str


def convert_omniglot(directory: Folder, output_directory: Folder,
                     output_filename: str = 'omniglot.hdf5') -> tuple[str]:
    """Convert Omniglot to HDF5.

    The file has the splits 'background' (19,280 examples) and 'evaluation'
    (13,180) with the sources 'features', uint8 of shape ``(examples, 1, 105,
    105)`` and axes (batch, channel, height, width), 1 for paper and 0 for
    ink; 'targets', int16 of shape ``(examples, 1)``, the character, numbered
    through both splits; 'alphabets', uint8 of the same shape, the alphabet,
    numbered through both splits; and 'drawers', uint8, from 1 to 20. The names
    of characters and alphabets are in the HDF5 data sets 'targets_names' and
    'alphabets_names'.
    """
    paths = input_paths(directory, ARCHIVES.values())
    characters: list[str] = []
    alphabets: list[str] = []
    data: list[tuple[str, str, Any]] = []
    with converted_file(output_directory, output_filename, paths) as h5file:
        for split, path in zip(ARCHIVES, paths, strict=True):
            drawings = _drawings(path)
            data += [
                (split, 'features', _Drawings(path, drawings)),
                (split, 'targets', _numbers(
                    [f'{d.alphabet}/{d.character}' for d in drawings],
                    characters, 'int16', path)),
                (split, 'alphabets', _numbers(
                    [d.alphabet for d in drawings], alphabets, 'uint8',
                    path)),
                (split, 'drawers', numpy.array(
                    [[d.drawer] for d in drawings], dtype='uint8'))]
        fill_hdf5_file(h5file, data)
        for source, names in (('targets', characters),
                              ('alphabets', alphabets)):
            h5file[f'{source}_names'] = [name.encode('utf8')
                                         for name in names]
        label_axes(h5file, {'features': IMAGES, 'targets': LABELS,
                            'alphabets': LABELS, 'drawers': LABELS})
    return (os.path.join(output_directory, output_filename),)


def _drawings(path: str) -> list[Drawing]:
    """Return the drawings of an archive, sorted."""
    drawings = []
    with open_zip(path) as archive:
        for name in archive.namelist():
            parts = name.split('/')
            if not name.endswith('.png') or len(parts) != 4:
                continue
            drawer = DRAWERS.get(
                parts[3].removesuffix('.png').rpartition('_')[2])
            if drawer is None:
                raise BadInputFile(path, f'the name {name!r} does not say '
                                   'who drew, 01 to 20')
            drawings.append(Drawing(parts[1], parts[2], drawer, name))
    if not drawings:
        raise BadInputFile(path, 'there are no drawings')
    return sorted(drawings)


def _numbers(names: list[str], known: list[str], dtype: str,
             path: str) -> numpy.ndarray[Any, Any]:
    """Add new names, in sorted order, to the known names; return the number
    of each name."""
    known += sorted(set(names) - set(known))
    most = numpy.iinfo(dtype).max + 1
    if len(known) > most:
        raise BadInputFile(path, f'expected at most {most} names such as '
                           f'{known[0]!r}, got {len(known)}')
    number = {name: i for i, name in enumerate(known)}
    return numpy.array([[number[name]] for name in names], dtype=dtype)


class _Drawings(Examples):
    """The images of an archive, decoded when they are written."""

    def __init__(self, path: str, drawings: list[Drawing]) -> None:
        super().__init__((len(drawings), 1, *SIZE), 'uint8')
        self._path = path
        self._names = [drawing.name for drawing in drawings]

    def blocks(self) -> Iterator[Array]:
        """Iterate over the images, some at a time."""
        return map(numpy.stack, batched(zipped_images(
            self._path, self._names, '1', size=SIZE), IMAGES_AT_ONCE))


fill_subparser = filler_of(convert_omniglot)
