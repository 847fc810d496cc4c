"""ILSVRC 2012 (ImageNet): like 2010, without patches and test classes."""
import os
from typing import Any

import h5py

from fuel import config
from fuel.converters import ilsvrc2010
from fuel.converters.ilsvrc_metadata import (
    Synsets, classes_of, read_devkit_files, synset_table, wnid_classes)
from fuel.converters.base import (check_exists, converted_file, filler_of,
                                  write_splits)
from fuel.converters.ilsvrc2010 import (SEED, Splits, create_sources,
                                        process_other_set, process_train_set)
from fuel.converters.raw.files import Folder, input_paths
from fuel.converters.raw.tar import Archive, name_of, open_tar
from fuel.exceptions import MissingInputFiles

__all__ = ['DEVKIT_ARCHIVE', 'DEVKIT_META_PATH', 'TEST_IMAGES_TAR',
           'convert_ilsvrc2012', 'create_splits', 'fill_subparser',
           'prepare_hdf5_file', 'prepare_metadata', 'read_devkit',
           'read_metadata_mat_file']

DEVKIT_ARCHIVE = 'ILSVRC2012_devkit_t12.tar.gz'
DEVKIT_META_PATH = 'ILSVRC2012_devkit_t12/data/meta.mat'
DEVKIT_VALID_GROUNDTRUTH_PATH = (
    'ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt')
TRAIN_IMAGES_TAR = 'ILSVRC2012_img_train.tar'
VALID_IMAGES_TAR = 'ILSVRC2012_img_val.tar'
TEST_IMAGES_TAR = 'ILSVRC2012_img_test.tar'
# The archive distributed since 2019: its images are in a folder, and some of
# them differ.
NEW_TEST_IMAGES_TAR = 'ILSVRC2012_img_test_v10102019.tar'


@check_exists(required_files=[DEVKIT_ARCHIVE, TRAIN_IMAGES_TAR,
                              VALID_IMAGES_TAR])
def convert_ilsvrc2012(directory: Folder, output_directory: Folder,
                       output_filename: str = 'ilsvrc2012.hdf5',
                       shuffle_seed: int | None = None) -> tuple[str]:
    """Convert ILSVRC 2012 to HDF5.

    The file has the splits 'train' (1,281,167 examples), 'valid' (50,000)
    and 'test' (100,000) with the sources of `convert_ilsvrc2010`; 'test' has
    no targets.

    `shuffle_seed`: seed of the order of the training examples. Default
        ``config.default_seed``.
    """
    if shuffle_seed is None:
        shuffle_seed = config.default_seed
    paths = input_paths(directory, [DEVKIT_ARCHIVE, TRAIN_IMAGES_TAR,
                                    VALID_IMAGES_TAR, _test_tar(directory)])
    devkit, train, valid, test = paths
    n_train, valid_groundtruth, n_test, wnid_map = prepare_metadata(
        devkit, test)
    n_valid = len(valid_groundtruth)
    with converted_file(output_directory, output_filename, paths) as h5file:
        prepare_hdf5_file(h5file, n_train, n_valid, n_test)
        process_train_set(h5file, train, None, n_train, wnid_map,
                          shuffle_seed)
        process_other_set(h5file, 'valid', valid, None, valid_groundtruth,
                          n_train)
        process_other_set(h5file, 'test', test, None, (None,) * n_test,
                          n_train + n_valid)
    return (os.path.join(output_directory, output_filename),)


def _test_tar(directory: Folder) -> str:
    """Return the name of the archive of test images that exists."""
    for name in (TEST_IMAGES_TAR, NEW_TEST_IMAGES_TAR):
        if os.path.isfile(os.path.join(directory, name)):
            return name
    raise MissingInputFiles(
        f'Required files missing ({NEW_TEST_IMAGES_TAR} would do as well)',
        [TEST_IMAGES_TAR], directory)


def prepare_metadata(devkit_archive: Archive,
                     test_archive: Archive | None = None
                     ) -> tuple[int, list[int], int, dict[str, int]]:
    """Gather the metadata that reading images needs.

    `devkit_archive`: the archive of the development kit.
    `test_archive`: the archive of the test images. Default: the one in the
        folder of the development kit.
    Returns `n_train`: number of training images.
    Returns `valid_groundtruth`: classes, from 0 on, of the images in the order
        of their names.
    Returns `n_test`: number of test images.
    Returns `wnid_map`: the class of each WordNet identifier.
    """
    synsets, raw_valid = read_devkit(devkit_archive)
    if test_archive is None:
        folder = os.path.dirname(name_of(devkit_archive))
        test_archive = os.path.join(folder, _test_tar(folder))
    with open_tar(test_archive) as archive:
        n_test = len(archive.members())
    return (int(synsets['num_train_images'].sum()),
            classes_of(synsets, 'ILSVRC2012_ID', raw_valid,
                       str(devkit_archive)),
            n_test, wnid_classes(synsets))


def read_devkit(f: Archive) -> tuple[Synsets, Any]:
    """Read the development kit.

    `f`: its archive.
    Returns `synsets`: see `fuel.converters.ilsvrc2010.read_metadata_mat_file`.
    Returns `raw_valid_groundtruth`: identifiers, from 1 on, of the classes of
        the validation images.
    """
    meta, groundtruth = read_devkit_files(
        f, DEVKIT_META_PATH, DEVKIT_VALID_GROUNDTRUTH_PATH)
    return read_metadata_mat_file(meta), groundtruth


def read_metadata_mat_file(meta_mat: Archive) -> Synsets:
    """Read the table of synsets.

    `meta_mat`: ``meta.mat`` of the development kit.
    Returns: the table of ILSVRC 2010, with the field ILSVRC2012_ID instead of
        ILSVRC2010_ID.
    """
    return synset_table(meta_mat, 'ILSVRC2012_ID')


def prepare_hdf5_file(hdf5_file: h5py.File, n_train: int, n_valid: int,
                      n_test: int) -> None:
    """Create the sources and splits of a file.

    `hdf5_file`: open for writing.
    `n_train`, `n_valid`, `n_test`: numbers of examples.
    """
    write_splits(hdf5_file, create_splits(n_train, n_valid, n_test))
    n_labelled = n_train + n_valid
    create_sources(hdf5_file, n_labelled + n_test, n_labelled)


def create_splits(n_train: int, n_valid: int, n_test: int) -> Splits:
    """Describe the splits of a file: the splits of 2010, without targets in
    'test'."""
    splits = ilsvrc2010.create_splits(n_train, n_valid, n_test)
    del splits['test']['targets']
    return splits


fill_subparser = filler_of(convert_ilsvrc2012, '--shuffle-seed', **SEED)
