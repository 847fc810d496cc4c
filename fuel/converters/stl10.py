"""STL-10: headerless arrays in a tar archive."""
import os
from typing import Any

import h5py
import numpy

from fuel.converters.base import (consecutive, converted_file, create_source,
                                  filler_of, label_axes, progress_bar,
                                  write_splits)
from fuel.converters.output import IMAGES, LABELS
from fuel.converters.raw.archives import MAX_IMAGE
from fuel.converters.raw.files import BadInputFile, Folder, input_paths
from fuel.converters.raw.tar import open_tar

__all__ = ['convert_stl10', 'fill_subparser']

ARCHIVE = 'stl10_binary.tar.gz'
FOLDER = 'stl10_binary/'
SPLITS = ('train', 'test', 'unlabeled')
LABELLED = ('train', 'test')
IMAGES_OF = {f'{split}_X.bin': split for split in SPLITS}
SHAPE = (3, 96, 96)
IMAGE_SIZE = 3 * 96 * 96
IMAGES_AT_ONCE = 512
# The unlabelled images are 2.8 GB.
MAX_MEMBER = 1 << 33


def convert_stl10(directory: Folder, output_directory: Folder,
                  output_filename: str = 'stl10.hdf5') -> tuple[str]:
    """Convert STL-10 to HDF5.

    The file has the splits 'train' (5,000 examples), 'test' (8,000),
    'unlabeled' (100,000), and 'fold_0' to 'fold_9', 1,000 examples of
    'train' each, with the sources 'features', uint8 of shape ``(examples, 3,
    96, 96)`` and axes (batch, channel, height, width), and 'targets', uint8
    of shape ``(examples, 1)``, the class from 1 to 10. 'unlabeled' has no
    targets.
    """
    path, = input_paths(directory, [ARCHIVE])
    counts, small = _scan(path)
    splits: dict[str, dict[str, Any]] = {**consecutive(
        {split: counts[split] for split in SPLITS}, ('features', 'targets'))}
    borders = {split: splits[split]['features'] for split in SPLITS}
    del splits['unlabeled']['targets']
    with converted_file(output_directory, output_filename, [path]) as h5file:
        features = create_source(
            h5file, 'features', (borders['unlabeled'][1], *SHAPE), 'uint8')
        targets = create_source(
            h5file, 'targets', (borders['test'][1], 1), 'uint8')
        _write_images(features, path, borders)
        for split in LABELLED:
            start, stop = borders[split]
            targets[start:stop] = _labels(small, split, stop - start, path)
        splits.update(_folds(h5file, small, counts['train'], path))
        write_splits(h5file, splits)
        label_axes(h5file, {'features': IMAGES, 'targets': LABELS})
    return (os.path.join(output_directory, output_filename),)


def _scan(path: str) -> tuple[dict[str, int], dict[str, bytes]]:
    """Return the number of images of each split, and the contents of the
    small members by name."""
    counts, small = {}, {}
    with open_tar(path) as archive:
        for member in archive.walk(MAX_MEMBER):
            name = member.name.removeprefix(FOLDER)
            split = IMAGES_OF.get(name)
            if split is not None:
                if split in counts:
                    raise BadInputFile(path, f'there are two members {name}')
                counts[split] = member.size // IMAGE_SIZE
                if member.size % IMAGE_SIZE:
                    raise BadInputFile(path, f'the member {name!r} does not '
                                       'hold whole images')
            elif name.endswith(('_y.bin', '.txt')):
                small[name] = archive.read(member, MAX_IMAGE)
    for split in SPLITS:
        if split not in counts:
            raise BadInputFile(path, f'there is no member {split}_X.bin')
    return counts, small


def _write_images(features: h5py.Dataset, path: str,
                  borders: dict[str, tuple[int, int]]) -> None:
    with (open_tar(path) as archive,
          progress_bar(ARCHIVE, len(features)) as bar):
        for member in archive.walk(MAX_MEMBER):
            split = IMAGES_OF.get(member.name.removeprefix(FOLDER))
            if split is None:
                continue
            start = borders[split][0]
            for block in archive.blocks(member, IMAGES_AT_ONCE * IMAGE_SIZE):
                # Images are stored column by column.
                images = numpy.frombuffer(block, 'uint8').reshape(
                    -1, *SHAPE).swapaxes(2, 3)
                features[start:start + len(images)] = (
                    numpy.ascontiguousarray(images))
                start += len(images)
                bar.advance(len(images))


def _labels(small: dict[str, bytes], split: str, count: int,
            path: str) -> numpy.ndarray[Any, Any]:
    labels = numpy.frombuffer(small.get(f'{split}_y.bin', b''), 'uint8')
    if len(labels) != count:
        raise BadInputFile(path, f'expected {count} labels in '
                           f'{split}_y.bin, got {len(labels)}')
    return labels[:, None]


def _folds(h5file: h5py.File, small: dict[str, bytes], n_train: int,
           path: str) -> dict[str, dict[str, Any]]:
    """Store the indices of the folds; return their splits."""
    folds = {}
    lines = small.get('fold_indices.txt', b'').splitlines()
    for i, line in enumerate(lines):
        try:
            indices = numpy.array(line.split(), dtype='int64')
        except (ValueError, OverflowError) as error:
            raise BadInputFile(path, f'expected numbers in fold {i} ({error})'
                               ) from error
        if not len(indices):
            continue
        if indices.min() < 0 or indices.max() >= n_train:
            raise BadInputFile(path, f'fold {i} goes beyond the {n_train} '
                               'training examples')
        stored = h5file.create_dataset(f'fold_{i}_indices', data=indices)
        folds[f'fold_{i}'] = dict.fromkeys(
            ('features', 'targets'), (0, n_train, stored.ref))
    return folds


fill_subparser = filler_of(convert_stl10)
