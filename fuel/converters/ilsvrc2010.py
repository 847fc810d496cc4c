"""ILSVRC 2010 (ImageNet): JPEG files in tar archives of tar archives."""
from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import h5py
import numpy

from fuel import config
from fuel.converters.ilsvrc_images import (
    Image, extract_patch_images, load_from_tar_or_patch, other_images,
    train_images, write_images)
from fuel.converters.ilsvrc_metadata import (Synsets, classes_of,
                                              read_devkit_files, read_numbers,
                                              synset_table, wnid_classes)
from fuel.converters.base import (consecutive, converted_file, filler_of,
                                  write_splits)
from fuel.converters.raw.files import Folder, input_paths
from fuel.converters.raw.matlab import read_variables
from fuel.converters.raw.tar import Archive

if TYPE_CHECKING:
    import zmq

__all__ = ['DEVKIT_ARCHIVE', 'DEVKIT_META_PATH', 'TEST_GROUNDTRUTH',
           'convert_ilsvrc2010', 'create_splits', 'extract_patch_images',
           'fill_subparser', 'image_consumer', 'load_from_tar_or_patch',
           'other_set_producer', 'prepare_hdf5_file', 'prepare_metadata',
           'process_other_set', 'process_train_set', 'read_devkit',
           'read_metadata_mat_file', 'train_set_producer']

DEVKIT_ARCHIVE = 'ILSVRC2010_devkit-1.0.tar.gz'
DEVKIT_META_PATH = 'devkit-1.0/data/meta.mat'
DEVKIT_VALID_GROUNDTRUTH_PATH = (
    'devkit-1.0/data/ILSVRC2010_validation_ground_truth.txt')
TEST_GROUNDTRUTH = 'ILSVRC2010_test_ground_truth.txt'
TRAIN_IMAGES_TAR = 'ILSVRC2010_images_train.tar'
VALID_IMAGES_TAR = 'ILSVRC2010_images_val.tar'
TEST_IMAGES_TAR = 'ILSVRC2010_images_test.tar'
PATCH_IMAGES_TAR = 'patch_images.tar'
SOURCES = ('encoded_images', 'targets', 'filenames')
# The option for the order of the training examples.
SEED: dict[str, Any] = {
    'type': int, 'metavar': 'SEED', 'help': 'seed of the order of the '
    'training examples (default: config.default_seed)'}
Splits = dict[str, dict[str, tuple[int, int]]]
IMAGE_TARS = (TRAIN_IMAGES_TAR, VALID_IMAGES_TAR, TEST_IMAGES_TAR,
              PATCH_IMAGES_TAR)
# The raw files that need no registration.
PUBLIC_FILES = (TEST_GROUNDTRUTH, DEVKIT_ARCHIVE)
ALL_FILES = PUBLIC_FILES + IMAGE_TARS


def convert_ilsvrc2010(directory: Folder, output_directory: Folder,
                       output_filename: str = 'ilsvrc2010.hdf5',
                       shuffle_seed: int | None = None) -> tuple[str]:
    """Convert ILSVRC 2010 to HDF5.

    The file has the splits 'train' (1,261,406 examples), 'valid' (50,000)
    and 'test' (150,000) with the sources 'encoded_images', the bytes of the
    JPEG files; 'targets', int16 of shape ``(examples, 1)``, the class from 0
    to 999 in the order of the development kit; and 'filenames'. The training
    examples are shuffled.

    `shuffle_seed`: seed of the order of the training examples. Default
        ``config.default_seed``.
    """
    if shuffle_seed is None:
        shuffle_seed = config.default_seed
    paths = input_paths(directory, ALL_FILES)
    groundtruth, devkit, train, valid, test, patch = paths
    n_train, valid_classes, test_classes, wnid_map = prepare_metadata(
        devkit, groundtruth)
    n_valid = len(valid_classes)
    with converted_file(output_directory, output_filename, paths) as h5file:
        prepare_hdf5_file(h5file, n_train, n_valid, len(test_classes))
        process_train_set(h5file, train, patch, n_train, wnid_map,
                          shuffle_seed)
        process_other_set(h5file, 'valid', valid, patch, valid_classes,
                          n_train)
        process_other_set(h5file, 'test', test, patch, test_classes,
                          n_train + n_valid)
    return (os.path.join(output_directory, output_filename),)


def prepare_metadata(devkit_archive: Archive, test_groundtruth_path: Archive
                     ) -> tuple[int, list[int], list[int], dict[str, int]]:
    """Gather the metadata that reading images needs.

    `devkit_archive`: the archive of the development kit.
    `test_groundtruth_path`: the classes of the test images.
    Returns `n_train`: number of training images.
    Returns `valid_groundtruth, test_groundtruth`: classes, from 0 on, of the
        images in the order of their names.
    Returns `wnid_map`: the class of each WordNet identifier.
    """
    synsets, _, raw_valid = read_devkit(devkit_archive)
    raw_test = read_numbers(test_groundtruth_path,
                            str(test_groundtruth_path))
    return (int(synsets['num_train_images'].sum()),
            classes_of(synsets, 'ILSVRC2010_ID', raw_valid,
                       str(devkit_archive)),
            classes_of(synsets, 'ILSVRC2010_ID', raw_test,
                       str(test_groundtruth_path)),
            wnid_classes(synsets))


def read_devkit(f: Archive) -> tuple[Synsets, Any, Any]:
    """Read the development kit.

    `f`: its archive.
    Returns `synsets`: see `read_metadata_mat_file`.
    Returns `cost_matrix`: distances of the classes, uint8 of shape ``(1000,
        1000)``.
    Returns `raw_valid_groundtruth`: identifiers, from 1 on, of the classes of
        the validation images.
    """
    meta, groundtruth = read_devkit_files(
        f, DEVKIT_META_PATH, DEVKIT_VALID_GROUNDTRUTH_PATH)
    return (*read_metadata_mat_file(meta), groundtruth)


def read_metadata_mat_file(meta_mat: Archive) -> tuple[Synsets, Any]:
    """Read the table of synsets and the costs of confusing them.

    `meta_mat`: ``meta.mat`` of the development kit.
    Returns `synsets`: one record for each synset, the 1000 classes first, with
        the fields ILSVRC2010_ID, WNID, wordnet_height, gloss, num_children,
        words, children (identifiers, and -1 in unused places) and
        num_train_images.
    Returns `cost_matrix`: distances of the classes, uint8 of shape ``(1000,
        1000)``.
    """
    synsets = synset_table(meta_mat, 'ILSVRC2010_ID')
    costs = read_variables(meta_mat, ['cost_matrix'], 'meta.mat')
    return synsets, costs['cost_matrix']


def prepare_hdf5_file(hdf5_file: h5py.File, n_train: int, n_valid: int,
                      n_test: int) -> None:
    """Create the sources and splits of a file.

    `hdf5_file`: open for writing.
    `n_train`, `n_valid`, `n_test`: numbers of examples.
    """
    write_splits(hdf5_file, create_splits(n_train, n_valid, n_test))
    total = n_train + n_valid + n_test
    create_sources(hdf5_file, total, total)


def create_splits(n_train: int, n_valid: int, n_test: int) -> Splits:
    """Describe the splits of a file.

    `n_train`, `n_valid`, `n_test`: numbers of examples.
    Returns: a mapping from splits to mappings from sources to ``(start,
        stop)``, for `H5PYDataset.create_split_array`.

    Examples
    --------
    >>> create_splits(5, 3, 2)['valid']['targets']
    (5, 8)
    """
    return consecutive({'train': n_train, 'valid': n_valid, 'test': n_test},
                       SOURCES)


def create_sources(hdf5_file: h5py.File, n_total: int, n_targets: int) -> None:
    """Create the three sources."""
    hdf5_file.create_dataset('encoded_images', shape=(n_total,),
                             dtype=h5py.vlen_dtype(numpy.dtype('uint8')))
    hdf5_file.create_dataset('targets', shape=(n_targets, 1), dtype='int16')
    hdf5_file.create_dataset('filenames', shape=(n_total, 1), dtype='S32')


def process_train_set(hdf5_file: h5py.File, train_archive: Archive,
                      patch_archive: Archive | None, n_train: int,
                      wnid_map: Mapping[str, int],
                      shuffle_seed: int | None = None) -> None:
    """Copy the training images.

    `hdf5_file`: prepared by `prepare_hdf5_file`.
    `train_archive`: archive of the images.
    `patch_archive`: archive of images that replace damaged ones; None if there
        are no patches.
    `n_train`: number of images.
    `wnid_map`: the class of each WordNet identifier.
    `shuffle_seed`: seed of the order of the rows. Default: the images keep the
        order of the archive.
    """
    write_images(hdf5_file, train_images(train_archive, patch_archive,
                                          wnid_map), n_train, shuffle_seed)


def process_other_set(hdf5_file: h5py.File, which_set: str,
                      image_archive: Archive, patch_archive: Archive | None,
                      groundtruth: Sequence[Any], offset: int) -> None:
    """Copy the validation or the test images.

    `hdf5_file`: prepared by `prepare_hdf5_file`.
    `which_set`: {'valid', 'test'}; the set to copy.
    `image_archive`, `patch_archive`: as for `process_train_set`.
    `groundtruth`: the class of each image, in the order of the images' names;
        if all classes are None, no classes are written.
    `offset`: number of rows before the rows of this set.
    """
    write_images(hdf5_file, other_images(which_set, image_archive,
                                          patch_archive, groundtruth),
                  len(groundtruth), None, offset)


def train_set_producer(socket: zmq.Socket[bytes], train_archive: Archive,
                       patch_archive: Archive | None,
                       wnid_map: Mapping[str, int]) -> None:
    """Send the training images through a ZeroMQ socket.

    Each image is sent by ``send_pyobj((name, class), zmq.SNDMORE)`` and
    ``send(content)``.
    """
    _send_images(socket, train_images(train_archive, patch_archive,
                                      wnid_map))


def other_set_producer(socket: zmq.Socket[bytes], which_set: str,
                       image_archive: Archive, patch_archive: Archive | None,
                       groundtruth: Sequence[Any]) -> None:
    """Send validation or test images; see `train_set_producer`."""
    _send_images(socket, other_images(which_set, image_archive,
                                      patch_archive, groundtruth))


def _send_images(socket: zmq.Socket[bytes], images: Iterable[Image]) -> None:
    import zmq
    for name, class_index, content in images:
        socket.send_pyobj((name, class_index), zmq.SNDMORE)
        socket.send(content)


def image_consumer(socket: zmq.Socket[bytes], hdf5_file: h5py.File,
                   num_expected: int, shuffle_seed: int | None = None,
                   offset: int = 0) -> None:
    """Write images that are received from a ZeroMQ socket.

    The other end of the socket must be trusted, since messages are unpickled.
    Conversions do not use sockets.

    `socket`: the socket that a producer sends to.
    `hdf5_file`: prepared by `prepare_hdf5_file`.
    `num_expected`: number of images.
    `shuffle_seed`: seed of the order of the rows. Default: the order in which
        images arrive.
    `offset`: number of rows before the rows of this set. Default 0.
    """
    import zmq

    def received() -> Iterator[Image]:
        for _ in range(num_expected):
            name, class_index = socket.recv_pyobj(zmq.SNDMORE)
            yield name, class_index, socket.recv()

    write_images(hdf5_file, received(), num_expected, shuffle_seed, offset)


fill_subparser = filler_of(convert_ilsvrc2010, '--shuffle-seed', **SEED)
