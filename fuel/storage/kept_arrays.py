"""Arrays that are kept on disk for the next program that needs them.

What HDF5 says of a hundred thousand groups takes a minute to ask. It is kept
for files in one state: of any other state there is nothing. A checksum finds
what was changed, or belongs to other files. Any program could have made it:
who uses the arrays checks them too.
"""
from __future__ import annotations

import hashlib
import logging
import os
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy
from numpy.lib.format import read_array
from numpy.typing import NDArray

from fuel.config_parser import config
from fuel.storage.file_bytes import Versioned
from fuel.utils.atomic_files import atomic_path

logger = logging.getLogger(__name__)

# Written into each file; what is of another format is made again.
FORMAT = 2
#: Arrays of numbers or bytes, by name.
Arrays: TypeAlias = Mapping[str, NDArray[Any]]


def kept_arrays(files: Sequence[Versioned], key: str) -> Arrays | None:
    """Return the arrays that were kept under a key for files in their present
    state; None if there are none, or they are damaged.

    Examples
    --------
    >>> kept_arrays([], 'never kept') is None
    True
    """
    path = _path_of(files, key)
    if path is None or not os.path.exists(path):
        return None
    arrays = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                # Which has a checksum of each array.
                with archive.open(name) as member:
                    arrays[name.removesuffix('.npy')] = read_array(
                        member, allow_pickle=False)
    except (OSError, ValueError, zipfile.BadZipFile, EOFError, KeyError,
            NotImplementedError, MemoryError) as error:
        logger.warning('%s is damaged and will be made again: %s', path,
                       error)
        return None
    made = arrays.pop('format', None)
    if made is None or made.dtype.kind != 'i' or made.tolist() != FORMAT:
        return None
    checksum = arrays.pop('checksum', None)
    if checksum is None or checksum.tolist() != _checksum(path, arrays):
        logger.warning('%s was changed, or is that of other files, and will '
                       'be made again', path)
        return None
    return arrays


def keep_arrays(files: Sequence[Versioned], key: str, arrays: Arrays) -> None:
    """Keep arrays under a key for files in their present state, in the place
    of those of other states. If the disk cannot be written to, nothing is
    kept."""
    path = _path_of(files, key)
    if path is None:
        return
    folder, name = os.path.split(path)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with atomic_path(path, mode=0o600) as temporary, zipfile.ZipFile(
                temporary, 'w') as archive:
            more = {'format': numpy.array(FORMAT),
                    'checksum': numpy.array(_checksum(path, arrays))}
            for each, array in {**arrays, **more}.items():
                with archive.open(f'{each}.npy', 'w',
                                  force_zip64=True) as member:
                    numpy.save(member, array)
        for other in os.listdir(folder):
            if other != name and other.startswith(name.split('-')[0]):
                with suppress(FileNotFoundError):
                    os.unlink(os.path.join(folder, other))
    except OSError as error:
        logger.warning('%s cannot be kept: %s', path, error)


def _checksum(path: str, arrays: Arrays) -> bytes:
    """Return a checksum of all arrays, by name, and of what they are of: the
    checksums of the archive are of each array alone."""
    digest = hashlib.sha256(os.path.basename(path).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(repr((name, array.dtype.str, array.shape)).encode())
        digest.update(array.tobytes())
    return digest.hexdigest().encode()


def _path_of(files: Sequence[Versioned], key: str) -> str | None:
    """Return where arrays are kept; None if nothing is to be."""
    folder: str = config.remote_cache_path
    if folder == 'off':
        return None
    names = '\n'.join([key, *(str(file.path) for file in files)])
    state = repr([file.identity for file in files])
    return os.path.join(folder, 'indexes', '-'.join([
        hashlib.sha256(text.encode('utf-8', 'surrogateescape')).hexdigest()[
            :24] for text in (names, state)]) + '.npz')
