"""Dogs vs. Cats: JPEG files of any size in two zip archives."""
import os
import posixpath

import numpy

from fuel.converters.base import (consecutive, converted_file, create_source,
                                  filler_of, label_axes, write_splits)
from fuel.converters.images import (create_ragged, write_images,
                                    zipped_images)
from fuel.converters.output import LABELS
from fuel.converters.raw.archives import open_zip
from fuel.converters.raw.files import BadInputFile, Folder, input_paths

__all__ = ['convert_dogs_vs_cats', 'fill_subparser']

TRAIN = 'dogs_vs_cats.train.zip'
TEST = 'dogs_vs_cats.test1.zip'
SHUFFLE_SEED = 123522
EXTENSIONS = ('.jpg', '.jpeg')


def convert_dogs_vs_cats(
        directory: Folder, output_directory: Folder,
        output_filename: str = 'dogs_vs_cats.hdf5') -> tuple[str]:
    """Convert Dogs vs. Cats to HDF5.

    The file has the splits 'train' (25,000 examples) and 'test' (12,500)
    with the sources 'image_features', uint8 images of different shapes
    (channel, height, width), and 'targets', uint8 of shape ``(examples,
    1)``: 0 is a cat, 1 a dog. 'test' has no targets. The training examples
    are shuffled with a fixed seed.
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
        for start, path, part in zip((0, n_train), paths, names, strict=True):
            write_images(features, start, zipped_images(path, part))
        splits = consecutive({'train': n_train, 'test': n_test},
                             ('image_features', 'targets'))
        del splits['test']['targets']
        write_splits(h5file, splits)
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


fill_subparser = filler_of(convert_dogs_vs_cats)
