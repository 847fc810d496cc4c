"""Dogs vs. Cats: JPEG files of any size in two zip archives."""
import os
import posixpath
from collections.abc import Sequence

import h5py
import numpy

from fuel.converters.parallel import ordered_map
from fuel.converters.ragged import create_ragged, write_ragged
from fuel.converters.base import (check_exists, converted_file, create_source,
                                  filler_of, label_axes, progress_bar,
                                  write_splits)
from fuel.converters.output import LABELS
from fuel.converters.raw.archives import open_zip, read_zipped
from fuel.converters.raw.files import BadInputFile, Folder, input_paths
from fuel.converters.raw.images import decode

__all__ = ['convert_dogs_vs_cats', 'fill_subparser']

TRAIN = 'dogs_vs_cats.train.zip'
TEST = 'dogs_vs_cats.test1.zip'
SHUFFLE_SEED = 123522
IMAGES_AT_ONCE = 64
EXTENSIONS = ('.jpg', '.jpeg')


@check_exists(required_files=[TRAIN, TEST])
def convert_dogs_vs_cats(
        directory: Folder, output_directory: Folder,
        output_filename: str = 'dogs_vs_cats.hdf5') -> tuple[str]:
    """Convert Dogs vs. Cats to HDF5.

    The file has the splits 'train' (25,000 examples) and 'test' (12,500)
    with the sources 'image_features', uint8 images of different shapes
    (channel, height, width), and 'targets', uint8 of shape ``(examples,
    1)``: 0 is a cat, 1 a dog. 'test' has no targets. The training examples
    are shuffled, always in the same way.
    """
    paths = input_paths(directory, [TRAIN, TEST])
    names = [_image_names(path) for path in paths]
    numpy.random.RandomState(SHUFFLE_SEED).shuffle(names[0])
    names[1].sort(key=lambda name: _number(name, paths[1]))
    n_train, n_test = map(len, names)
    with converted_file(output_directory, output_filename, paths) as h5file:
        features = create_ragged(
            h5file, 'image_features', n_train + n_test, 'uint8',
            ('channel', 'height', 'width'), 'image_features_shapes',
            'image_features_shapes_labels', 'int32')
        targets = numpy.array([[_species(name, paths[0])]
                               for name in names[0]], dtype='uint8')
        create_source(h5file, 'targets', (n_train, 1), 'uint8')[...] = targets
        _write_images(features, 0, paths[0], names[0])
        _write_images(features, n_train, paths[1], names[1])
        write_splits(h5file, {
            'train': {'image_features': (0, n_train),
                      'targets': (0, n_train)},
            'test': {'image_features': (n_train, n_train + n_test)}})
        label_axes(h5file, {'targets': LABELS})
    return (os.path.join(output_directory, output_filename),)


def _image_names(path: str) -> list[str]:
    """Return the names of the images of an archive, in its order."""
    with open_zip(path) as archive:
        names = [name for name in archive.namelist()
                 if name.lower().endswith(EXTENSIONS) and
                 not posixpath.basename(name).startswith('.')]
    if not names:
        raise BadInputFile(path, 'there are no images')
    return names


def _species(name: str, path: str) -> int:
    """Return 0 for a cat, 1 for a dog."""
    base = posixpath.basename(name)
    found = [i for i, species in enumerate(('cat', 'dog')) if species in base]
    if len(found) != 1:
        raise BadInputFile(path, 'expected images named by cat or dog, got '
                           f'{name!r}')
    return found[0]


def _number(name: str, path: str) -> int:
    stem = posixpath.splitext(posixpath.basename(name))[0]
    if not stem.isdecimal():
        raise BadInputFile(path, f'expected images named by numbers, got '
                           f'{name!r}')
    return int(stem)


def _write_images(features: h5py.Dataset, start: int, path: str,
                  names: Sequence[str]) -> None:
    with (open_zip(path) as archive,
          progress_bar(os.path.basename(path), len(names)) as bar):
        waiting = []
        for done, array in enumerate(ordered_map(
                lambda item: decode(item[1], f'{path}: {item[0]}', 'RGB'),
                ((name, read_zipped(path, archive, name))
                 for name in names)), 1):
            waiting.append(array)
            if len(waiting) == IMAGES_AT_ONCE or done == len(names):
                write_ragged(features, start, waiting)
                start += len(waiting)
                waiting = []
                bar.update(done)

fill_subparser = filler_of(convert_dogs_vs_cats)
