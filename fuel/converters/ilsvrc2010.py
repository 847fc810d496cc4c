"""ILSVRC 2010 (ImageNet): JPEG files in tar archives of tar archives."""
import gzip
import io
import os
import posixpath
import zlib
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import h5py
import numpy

from fuel import config
from fuel.converters._archives import open_tar, read_member, walk_tar
from fuel.converters._inputs import BadInputFile, input_paths
from fuel.converters._matlab import read_matlab
from fuel.converters._ragged import write_rows
from fuel.converters._tar_index import Member, Tar, open_members
from fuel.converters.base import (check_exists, converted_file, progress_bar,
                                  write_splits)

__all__ = ['DEVKIT_ARCHIVE', 'DEVKIT_META_PATH', 'TEST_GROUNDTRUTH',
           'convert_ilsvrc2010', 'extract_patch_images', 'fill_subparser',
           'image_consumer', 'load_from_tar_or_patch', 'other_set_producer',
           'prepare_hdf5_file', 'prepare_metadata', 'process_other_set',
           'process_train_set', 'read_devkit', 'read_metadata_mat_file',
           'train_set_producer']

DEVKIT_ARCHIVE = 'ILSVRC2010_devkit-1.0.tar.gz'
DEVKIT_META_PATH = 'devkit-1.0/data/meta.mat'
DEVKIT_VALID_GROUNDTRUTH_PATH = (
    'devkit-1.0/data/ILSVRC2010_validation_ground_truth.txt')
TEST_GROUNDTRUTH = 'ILSVRC2010_test_ground_truth.txt'
TRAIN_IMAGES_TAR = 'ILSVRC2010_images_train.tar'
VALID_IMAGES_TAR = 'ILSVRC2010_images_val.tar'
TEST_IMAGES_TAR = 'ILSVRC2010_images_test.tar'
PATCH_IMAGES_TAR = 'patch_images.tar'
ALL_FILES = [DEVKIT_ARCHIVE, TEST_GROUNDTRUTH, TRAIN_IMAGES_TAR,
             VALID_IMAGES_TAR, TEST_IMAGES_TAR, PATCH_IMAGES_TAR]
NUM_CLASSES = 1000
PATCH_FOLDERS = {'train': 'train', 'valid': 'val', 'test': 'test'}
GZIP_MAGIC = b'\x1f\x8b'
# How much is written to the file at once.
IMAGES_AT_ONCE = 512
BYTES_AT_ONCE = 1 << 25

# File name without its folders, class, encoded image.
Image = tuple[str, Any, bytes]
Synsets = numpy.ndarray[Any, Any]


@check_exists(required_files=ALL_FILES)
def convert_ilsvrc2010(directory: str, output_directory: str,
                       output_filename: str = 'ilsvrc2010.hdf5',
                       shuffle_seed: int | None = None) -> tuple[str]:
    """Convert ILSVRC 2010 to HDF5.

    The file has the splits 'train' (1,261,406 examples), 'valid' (50,000)
    and 'test' (150,000) with the sources 'encoded_images', the bytes of the
    JPEG files; 'targets', int16 of shape ``(examples, 1)``, the class from 0
    to 999 in the order of the development kit; and 'filenames'. The training
    examples are shuffled.

    Parameters
    ----------
    directory : str
        Folder of the raw files: the archives of the development kit, the
        training, validation, test and patch images, and the classes of the
        test images.
    output_directory : str
        Folder of the converted file.
    output_filename : str, optional
        Name of the converted file. Default ``'ilsvrc2010.hdf5'``.
    shuffle_seed : int, optional
        Seed of the order of the training examples. Default
        ``config.default_seed``.

    Returns
    -------
    tuple of str
        The path of the converted file.
    """
    if shuffle_seed is None:
        shuffle_seed = config.default_seed
    paths = input_paths(directory, ALL_FILES)
    devkit, groundtruth, train, valid, test, patch = paths
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


def prepare_metadata(devkit_archive: Any, test_groundtruth_path: Any
                     ) -> tuple[int, list[int], list[int], dict[str, int]]:
    """Gather what must be known before images are read.

    Parameters
    ----------
    devkit_archive : str or file
        The archive of the development kit.
    test_groundtruth_path : str or file
        The classes of the test images.

    Returns
    -------
    n_train : int
        Number of training images.
    valid_groundtruth, test_groundtruth : list of int
        Classes, from 0 on, of the images in the order of their names.
    wnid_map : dict of str to int
        The class of each WordNet identifier.
    """
    synsets, _, raw_valid = read_devkit(devkit_archive)
    raw_test = numpy.loadtxt(test_groundtruth_path, dtype='int16', ndmin=1)
    class_of = class_numbers(synsets, 'ILSVRC2010_ID')
    return (int(synsets['num_train_images'].sum()),
            [class_of[number] for number in raw_valid.tolist()],
            [class_of[number] for number in raw_test.tolist()],
            wnid_classes(synsets))


def wnid_classes(synsets: Synsets) -> dict[str, int]:
    """Return the class of each WordNet identifier of the leaves."""
    return {wnid.decode('ascii'): number for number, wnid in
            enumerate(synsets['WNID'][:NUM_CLASSES].tolist())}


def class_numbers(synsets: Synsets, field: str) -> dict[int, int]:
    """Return the class of each identifier that ground truth is given by."""
    return {identifier: number
            for number, identifier in enumerate(synsets[field].tolist())}


def read_devkit(f: Any) -> tuple[Synsets, Any, Any]:
    """Read the development kit.

    Parameters
    ----------
    f : str or file
        Its archive.

    Returns
    -------
    synsets : numpy.ndarray
        See `read_metadata_mat_file`.
    cost_matrix : numpy.ndarray
        Distances of the classes, uint8 of shape ``(1000, 1000)``.
    raw_valid_groundtruth : numpy.ndarray
        Identifiers, from 1 on, of the classes of the validation images.
    """
    meta, groundtruth = read_devkit_files(
        f, DEVKIT_META_PATH, DEVKIT_VALID_GROUNDTRUTH_PATH)
    return (*read_metadata_mat_file(meta), groundtruth)


def read_devkit_files(f: Any, meta_path: str, groundtruth_path: str
                      ) -> tuple[Any, Any]:
    """Return the metadata, as an open file, and the numbers in the ground
    truth of a development kit."""
    is_path = not hasattr(f, 'read')
    where = str(f) if is_path else str(getattr(f, 'name', 'archive'))
    wanted = (meta_path, groundtruth_path)
    with open_tar(where, None if is_path else f) as archive:
        found = {member.name: io.BytesIO(read_member(where, archive, member))
                 for member in walk_tar(where, archive)
                 if member.name in wanted}
    for name in wanted:
        if name not in found:
            raise BadInputFile(where, f'there is no member {name!r}')
    return found[meta_path], numpy.loadtxt(found[groundtruth_path],
                                           dtype='int16', ndmin=1)


def read_metadata_mat_file(meta_mat: Any) -> tuple[Synsets, Any]:
    """Read the table of synsets and the costs of confusing them.

    Parameters
    ----------
    meta_mat : str or file
        ``meta.mat`` of the development kit.

    Returns
    -------
    synsets : numpy.ndarray
        One record for each synset, the 1000 classes first, with the fields
        ILSVRC2010_ID, WNID, wordnet_height, gloss, num_children, words,
        children (identifiers, and zeros for the rest) and
        num_train_images.
    cost_matrix : numpy.ndarray
        Distances of the classes, uint8 of shape ``(1000, 1000)``.
    """
    content = read_matlab(meta_mat, 'meta.mat', squeeze_me=True)
    return (synset_table(content['synsets'], 'ILSVRC2010_ID'),
            content['cost_matrix'])


def synset_table(raw: Any, id_field: str) -> Synsets:
    """Return MATLAB's structures as a table of numbers and bytes."""
    raw = numpy.atleast_1d(raw)
    texts = {field: [str(text).encode('utf8') for text in raw[field]]
             for field in ('WNID', 'gloss', 'words')}
    children = [numpy.atleast_1d(ids) for ids in raw['children']]
    widest = max(1, *map(len, children))
    width = {field: max(1, *map(len, column))
             for field, column in texts.items()}
    table = numpy.zeros(len(raw), dtype=[
        (id_field, 'int16'), ('WNID', f'S{width["WNID"]}'),
        ('wordnet_height', 'int8'), ('gloss', f'S{width["gloss"]}'),
        ('num_children', 'int8'), ('words', f'S{width["words"]}'),
        # Identifiers go up to 1676, which is no matter for a byte.
        ('children', 'int16', (widest,)), ('num_train_images', 'uint16')])
    for field in (id_field, 'wordnet_height', 'num_children',
                  'num_train_images'):
        table[field] = [int(value) for value in raw[field]]
    for field, column in texts.items():
        table[field] = column
    for row, ids in zip(table, children, strict=True):
        row['children'][:len(ids)] = ids
    return table


def prepare_hdf5_file(hdf5_file: Any, n_train: int, n_valid: int,
                      n_test: int) -> None:
    """Create the sources and splits of a file.

    Parameters
    ----------
    hdf5_file : h5py.File
        Open for writing.
    n_train, n_valid, n_test : int
        Numbers of examples.
    """
    borders = numpy.cumsum([0, n_train, n_valid, n_test]).tolist()
    write_splits(hdf5_file, {
        split: dict.fromkeys(('encoded_images', 'targets', 'filenames'),
                             (start, stop))
        for split, start, stop in zip(('train', 'valid', 'test'), borders,
                                      borders[1:], strict=False)})
    create_sources(hdf5_file, borders[-1], borders[-1])


def create_sources(hdf5_file: Any, n_total: int, n_targets: int) -> None:
    """Create the three sources."""
    hdf5_file.create_dataset('encoded_images', shape=(n_total,),
                             dtype=h5py.vlen_dtype(numpy.dtype('uint8')))
    hdf5_file.create_dataset('targets', shape=(n_targets, 1), dtype='int16')
    hdf5_file.create_dataset('filenames', shape=(n_total, 1), dtype='S32')


def process_train_set(hdf5_file: Any, train_archive: Any, patch_archive: Any,
                      n_train: int, wnid_map: Mapping[str, int],
                      shuffle_seed: int | None = None) -> None:
    """Copy the training images.

    Parameters
    ----------
    hdf5_file : h5py.File
        Prepared by `prepare_hdf5_file`.
    train_archive, patch_archive : str or file
        Archives of the images, and of those that take the place of some.
        There are no patches if the latter is None.
    n_train : int
        Number of images.
    wnid_map : mapping of str to int
        The class of each WordNet identifier.
    shuffle_seed : int, optional
        Seed of the order. Default: that of the archive.
    """
    _write_images(hdf5_file, train_images(train_archive, patch_archive,
                                          wnid_map), n_train, shuffle_seed)


def process_other_set(hdf5_file: Any, which_set: str, image_archive: Any,
                      patch_archive: Any, groundtruth: Sequence[Any],
                      offset: int) -> None:
    """Copy the validation or the test images.

    Parameters
    ----------
    hdf5_file : h5py.File
        Prepared by `prepare_hdf5_file`.
    which_set : {'valid', 'test'}
        Which.
    image_archive, patch_archive : str or file
        As for `process_train_set`.
    groundtruth : sequence of (int or None)
        The class of each image, in the order of their names; None writes
        none.
    offset : int
        Number of rows before those of this set.
    """
    _write_images(hdf5_file, other_images(which_set, image_archive,
                                          patch_archive, groundtruth),
                  len(groundtruth), None, offset)


def train_images(train_archive: Any, patch_archive: Any,
                 wnid_map: Mapping[str, int]) -> Iterator[Image]:
    """Read the training images: classes in the order of the archive, the
    images of a class in the order of their names."""
    patches = extract_patch_images(patch_archive, 'train')
    num_patched = 0
    with open_members(train_archive) as outer:
        for tar_member in outer.members():
            wnid = posixpath.basename(tar_member.name).partition('.')[0]
            if wnid not in wnid_map:
                raise BadInputFile(outer.path, f'{tar_member.name!r} belongs '
                                   'to no class of the development kit')
            inner = outer.inner(tar_member)
            for member in sorted(inner.members()):
                content, patched = _load(inner, member, patches)
                num_patched += patched
                yield (posixpath.basename(member.name), wnid_map[wnid],
                       content)
    _check_patches('train', num_patched, patches)


def other_images(which_set: str, image_archive: Any, patch_archive: Any,
                 groundtruth: Sequence[Any]) -> Iterator[Image]:
    """Read validation or test images, in the order of their names."""
    patches = extract_patch_images(patch_archive, which_set)
    num_patched = 0
    with open_members(image_archive) as archive:
        members = sorted(archive.members())
        if len(members) != len(groundtruth):
            raise BadInputFile(archive.path, f'expected {len(groundtruth)} '
                               f'images, got {len(members)}')
        for member, class_index in zip(members, groundtruth, strict=True):
            content, patched = _load(archive, member, patches)
            num_patched += patched
            yield posixpath.basename(member.name), class_index, content
    _check_patches(which_set, num_patched, patches)


def _check_patches(which_set: str, used: int,
                   patches: Mapping[str, bytes]) -> None:
    if used != len(patches):
        raise ValueError(f'not all patch images were used: the set '
                         f'{which_set!r} has {len(patches)}, {used} of them '
                         'took the place of an image')


def _load(archive: Tar, member: Member, patches: Mapping[str, bytes]
          ) -> tuple[bytes, bool]:
    patch = patches.get(posixpath.basename(member.name))
    if patch is not None:
        return patch, True
    return _unpacked(archive.read(member), archive.path, member.name), False


def _unpacked(content: bytes, path: str, name: str) -> bytes:
    """Unpack an image that is gzipped, which its name does not say."""
    if content[:2] != GZIP_MAGIC:
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, OSError, zlib.error) as error:
        raise BadInputFile(path, f'the member {name!r} is neither an image '
                           f'nor a gzipped one ({error})') from error


def load_from_tar_or_patch(tar: Any, image_filename: str,
                           patch_images: Mapping[str, bytes]
                           ) -> tuple[bytes, bool]:
    """Read an image, or what takes its place.

    Parameters
    ----------
    tar : tarfile.TarFile
        An open archive.
    image_filename : str
        The image's name in it.
    patch_images : mapping of str to bytes
        See `extract_patch_images`.

    Returns
    -------
    content : bytes
        The encoded image.
    patched : bool
        Whether it is a patch.
    """
    patch = patch_images.get(posixpath.basename(image_filename))
    if patch is not None:
        return patch, True
    path = str(tar.name or 'archive')
    return _unpacked(tar.extractfile(image_filename).read(), path,
                     image_filename), False


def extract_patch_images(f: Any, which_set: str) -> dict[str, bytes]:
    """Read the images that take the place of damaged ones.

    Parameters
    ----------
    f : str, file or None
        The archive of patch images; None if there is none.
    which_set : {'train', 'valid', 'test'}
        Whose images.

    Returns
    -------
    dict of str to bytes
        Encoded images by file name.

    Raises
    ------
    ValueError
        If there is no such set.
    """
    if which_set not in PATCH_FOLDERS:
        raise ValueError("which_set must be 'train', 'valid' or 'test', got "
                         f'{which_set!r}')
    if f is None:
        return {}
    folder = PATCH_FOLDERS[which_set]
    with open_members(f) as archive:
        return {posixpath.basename(member.name): archive.read(member)
                for member in archive.members()
                if member.name.endswith('.JPEG') and posixpath.basename(
                    posixpath.dirname(member.name)) == folder}


def train_set_producer(socket: Any, train_archive: Any, patch_archive: Any,
                       wnid_map: Mapping[str, int]) -> None:
    """Send the training images through a ZeroMQ socket: for each
    ``send_pyobj((name, class), zmq.SNDMORE)`` and ``send(content)``."""
    _send_images(socket, train_images(train_archive, patch_archive,
                                      wnid_map))


def other_set_producer(socket: Any, which_set: str, image_archive: Any,
                       patch_archive: Any, groundtruth: Sequence[Any]
                       ) -> None:
    """Send validation or test images; see `train_set_producer`."""
    _send_images(socket, other_images(which_set, image_archive,
                                      patch_archive, groundtruth))


def _send_images(socket: Any, images: Iterable[Image]) -> None:
    import zmq
    for name, class_index, content in images:
        socket.send_pyobj((name, class_index), zmq.SNDMORE)
        socket.send(content)


def image_consumer(socket: Any, hdf5_file: Any, num_expected: int,
                   shuffle_seed: int | None = None, offset: int = 0) -> None:
    """Write images that come from a ZeroMQ socket.

    Only for a socket whose other end is ours: what comes is unpickled.
    Conversions do not use sockets.

    Parameters
    ----------
    socket : zmq.Socket
        Where a producer sends.
    hdf5_file : h5py.File
        Prepared by `prepare_hdf5_file`.
    num_expected : int
        Number of images.
    shuffle_seed : int, optional
        Seed of the order of the rows. Default: that of arrival.
    offset : int, optional
        Number of rows before those of this set. Default 0.
    """
    import zmq

    def received() -> Iterator[Image]:
        for _ in range(num_expected):
            name, class_index = socket.recv_pyobj(zmq.SNDMORE)
            yield name, class_index, socket.recv()

    _write_images(hdf5_file, received(), num_expected, shuffle_seed, offset)


def _write_images(hdf5_file: Any, images: Iterable[Image], expected: int,
                  shuffle_seed: int | None = None, offset: int = 0) -> None:
    """Write images to rows in their order, or in a random one."""
    rows = numpy.arange(expected)
    if shuffle_seed is not None:
        rows = numpy.random.RandomState(shuffle_seed).permutation(expected)
    rows += offset
    done, size, waiting = 0, 0, []
    with progress_bar('images', expected) as bar:
        for image in images:
            waiting.append(image)
            size += len(image[2])
            if done + len(waiting) > expected:
                raise ValueError(f'expected {expected} images, got more')
            if len(waiting) == IMAGES_AT_ONCE or size > BYTES_AT_ONCE:
                _write(hdf5_file, rows[done:done + len(waiting)], waiting)
                done, size, waiting = done + len(waiting), 0, []
                bar.update(done)
        _write(hdf5_file, rows[done:done + len(waiting)], waiting)
    if done + len(waiting) != expected:
        raise ValueError(f'expected {expected} images, got '
                         f'{done + len(waiting)}')


def _write(hdf5_file: Any, rows: Any, images: Sequence[Image]) -> None:
    contents = [numpy.frombuffer(content, dtype='uint8')
                for _, _, content in images]
    names = numpy.array([[name.encode('ascii')] for name, _, _ in images],
                        dtype='S32').reshape(-1, 1)
    encoded = hdf5_file['encoded_images']
    if isinstance(encoded, h5py.Dataset):
        write_rows(encoded, rows, contents)
    else:
        for row, content in zip(rows.tolist(), contents, strict=True):
            encoded[row] = content
    order = numpy.argsort(rows)
    _scatter(hdf5_file['filenames'], rows[order], names[order])
    labelled = [i for i in order.tolist() if images[i][1] is not None]
    _scatter(hdf5_file['targets'], rows[labelled],
             numpy.array([[images[i][1]] for i in labelled], dtype='int16'))


def _scatter(dataset: Any, rows: Any, values: Any) -> None:
    """Write a column to ascending rows."""
    if not len(rows):
        return
    if not isinstance(dataset, h5py.Dataset):
        dataset[rows] = values
    elif rows[-1] - rows[0] == len(rows) - 1:
        dataset[int(rows[0]):int(rows[-1]) + 1] = values
    else:
        space = dataset.id.get_space()
        space.select_elements(numpy.stack(
            [rows, numpy.zeros_like(rows)], axis=1).astype('uint64'))
        dataset.id.write(h5py.h5s.create_simple((len(rows),)), space,
                         numpy.ascontiguousarray(values[:, 0]))


def fill_subparser(subparser: ArgumentParser) -> Callable[..., Any]:
    """Set up the parser of ``fuel-convert ilsvrc2010``."""
    add_seed(subparser)
    return convert_ilsvrc2010


def add_seed(subparser: ArgumentParser) -> None:
    """Add the option for the order of the training examples."""
    subparser.add_argument(
        '--shuffle-seed', type=int, default=config.default_seed,
        metavar='SEED', help='seed of the order of the training examples '
        '(default: config.default_seed)')
