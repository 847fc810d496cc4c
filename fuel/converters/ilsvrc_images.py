"""The images of the ImageNet challenges: from archives into a file."""
import io
import posixpath
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import h5py
import numpy

from fuel.converters.base import progress_bar
from fuel.converters.output import Array, write_arrays
from fuel.converters.raw.archives import MAX_IMAGE, check_size
from fuel.converters.raw.files import BadInputFile, unpack_gzip
from fuel.converters.raw.tar import Archive, Member, Tar, open_tar

PATCH_FOLDERS = {'train': 'train', 'valid': 'val', 'test': 'test'}
GZIP_MAGIC = b'\x1f\x8b'
# Most bytes of the patch images, which are all in memory; the original ones
# have less than 2 MB.
MAX_PATCHES = 1 << 28
MAX_NAME = 32
# Most images, and bytes of images, that are written to the file at once.
IMAGES_AT_ONCE = 512
BYTES_AT_ONCE = 1 << 25

# File name without its folders, class, encoded image.
Image = tuple[str, Any, bytes]


def train_images(train_archive: Archive, patch_archive: Archive | None,
                 wnid_map: Mapping[str, int]) -> Iterator[Image]:
    """Read the training images: classes in the order of the archive, and the
    images of a class in the order of their names."""
    patches = extract_patch_images(patch_archive, 'train')
    num_patched = 0
    with open_tar(train_archive, in_order=False) as outer:
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


def other_images(which_set: str, image_archive: Archive,
                 patch_archive: Archive | None, groundtruth: Sequence[Any]
                 ) -> Iterator[Image]:
    """Read validation or test images, in the order of their names."""
    patches = extract_patch_images(patch_archive, which_set)
    num_patched = 0
    with open_tar(image_archive, in_order=False) as archive:
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
    return _unpacked(archive.read(member, MAX_IMAGE), archive.path,
                     member.name), False


def _unpacked(content: bytes, path: str, name: str) -> bytes:
    """Unpack an image if it is gzipped, which its name does not show."""
    if content[:2] != GZIP_MAGIC:
        return content
    try:
        return unpack_gzip(io.BytesIO(content), name, MAX_IMAGE)
    except BadInputFile as error:
        raise BadInputFile(path, f'the member {name!r} is neither an image '
                           f'nor a gzipped one ({error.problem})') from error


def load_from_tar_or_patch(tar: tarfile.TarFile, image_filename: str,
                           patch_images: Mapping[str, bytes]
                           ) -> tuple[bytes, bool]:
    """Read an image, or its patch.

    `tar`: an open archive.
    `image_filename`: the image's name in it.
    `patch_images`: see `extract_patch_images`.
    Returns `content`: the encoded image.
    Returns `patched`: whether the content is a patch.
    """
    patch = patch_images.get(posixpath.basename(image_filename))
    if patch is not None:
        return patch, True
    path = str(tar.name or 'archive')
    raw: Any = tar.extractfile(image_filename)
    return _unpacked(raw.read(), path, image_filename), False


def extract_patch_images(f: Archive | None, which_set: str
                         ) -> dict[str, bytes]:
    """Read the images that replace damaged ones.

    `f`: the archive of patch images; None if there is no archive.
    `which_set`: {'train', 'valid', 'test'}; the set that the images are for.
    Returns: a mapping from file names to encoded images.
    """
    if which_set not in PATCH_FOLDERS:
        raise ValueError("which_set must be 'train', 'valid' or 'test', got "
                         f'{which_set!r}')
    if f is None:
        return {}
    folder = PATCH_FOLDERS[which_set]
    with open_tar(f, in_order=False) as archive:
        members = [member for member in archive.members()
                   if member.name.endswith('.JPEG') and posixpath.basename(
                       posixpath.dirname(member.name)) == folder]
        check_size(archive.path, f'{folder}/*.JPEG',
                   sum(member.size for member in members), MAX_PATCHES)
        return {posixpath.basename(member.name): archive.read(member)
                for member in members}


def write_images(hdf5_file: h5py.File, images: Iterable[Image], expected: int,
                 shuffle_seed: int | None = None, offset: int = 0) -> None:
    """Write images to rows, in their order or in a random order."""
    rows = numpy.arange(expected)
    if shuffle_seed is not None:
        rows = numpy.random.RandomState(shuffle_seed).permutation(expected)
    names = numpy.zeros((expected, 1), f'S{MAX_NAME}')
    classes = numpy.zeros((expected, 1), 'int16')
    done, have_classes = 0, False
    with progress_bar('images', expected) as bar:
        for batch in _batches(images):
            batch_names, batch_classes, contents = zip(*batch, strict=True)
            places = rows[done:done + len(batch)]
            done += len(batch)
            if done > expected:
                raise ValueError(f'expected {expected} images, got more')
            names[places, 0] = list(map(_checked_name, batch_names))
            classes[places, 0] = [number or 0 for number in batch_classes]
            have_classes |= batch_classes != (None,) * len(batch)
            _write_contents(hdf5_file['encoded_images'], offset + places,
                            contents)
            bar.update(done)
    if done != expected:
        raise ValueError(f'expected {expected} images, got {done}')
    hdf5_file['filenames'][offset:offset + expected] = names
    if have_classes:
        hdf5_file['targets'][offset:offset + expected] = classes


def _batches(images: Iterable[Image]) -> Iterator[list[Image]]:
    """Iterate over lists of images; each list is written at once."""
    batch, size = [], 0
    for image in images:
        batch.append(image)
        size += len(image[2])
        if len(batch) == IMAGES_AT_ONCE or size > BYTES_AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _checked_name(name: str) -> bytes:
    if len(name) > MAX_NAME or not name.isascii():
        raise ValueError(f'expected names of at most {MAX_NAME} ASCII '
                         f'characters, got {name!r}')
    return name.encode('ascii')


def _write_contents(dataset: h5py.Dataset, rows: Array,
                    contents: Sequence[bytes]) -> None:
    """Write encoded images; if `dataset` is an array in memory, write them one
    at a time."""
    arrays = [numpy.frombuffer(content, 'uint8') for content in contents]
    if isinstance(dataset, h5py.Dataset):
        write_arrays(dataset, rows, arrays)
    else:
        for row, array in zip(rows.tolist(), arrays, strict=True):
            dataset[row] = array
