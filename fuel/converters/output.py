"""Where converters write: a finished file, or none."""
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import h5py
import numpy

from fuel.converters._disk_space import check_room, promise, writing
from fuel.converters.inputs import Digests
from fuel.utils.atomic_files import atomic_path

__all__ = ['Pieces', 'Settings', 'converted_file', 'create_source',
           'label_axes', 'note_inputs', 'settings', 'tag', 'use_settings']

INPUTS_ATTRIBUTE = 'fuel_convert_inputs'
# Of a chunk, if there is a compression and no size was chosen.
CHUNK_NBYTES = 1 << 18
# Written at once.
PIECE_NBYTES = 16 << 20


@dataclass(frozen=True)
class Settings:
    """What holds for every file that is converted at present.

    Attributes
    ----------
    chunk_rows : int or None
        Examples in a chunk. None leaves sources contiguous, or takes about
        `CHUNK_NBYTES` if there is a compression.
    compression : str or None
        Name of an HDF5 filter such as ``'gzip'`` or ``'lzf'``.
    compression_level : int or None
        The filter's option, 0 to 9 for gzip.
    attributes : mapping of str to str
        Attributes of the root of the file: who made it, and how.
    """

    chunk_rows: int | None = None
    compression: str | None = None
    compression_level: int | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)


AS_BEFORE = Settings()
_settings: ContextVar[Settings] = ContextVar(
    'conversion_settings', default=AS_BEFORE)


def settings() -> Settings:
    """Return the settings that hold at present."""
    return _settings.get()


@contextmanager
def use_settings(new: Settings) -> Iterator[None]:
    """Let `new` hold while the context is entered. A converter of another
    package knows only the arguments it had in Fuel 0.2.0; what came later
    reaches the file this way."""
    token = _settings.set(new)
    try:
        yield
    finally:
        _settings.reset(token)


class Pieces:
    """Arrays that follow one another on axis 0, never joined in memory.

    Parameters
    ----------
    arrays : sequence of numpy.ndarray
        Of one type and one shape, but for axis 0.
    """

    def __init__(self, arrays: Sequence[Any]) -> None:
        if len({(a.dtype, a.shape[1:]) for a in arrays}) != 1:
            raise ValueError(
                'pieces of one source must agree in type and shape, got ' +
                ', '.join(f'{a.dtype} {a.shape}' for a in arrays))
        self.arrays = arrays
        self.dtype = arrays[0].dtype
        self.shape = (sum(len(a) for a in arrays), *arrays[0].shape[1:])

    def __len__(self) -> int:
        return int(self.shape[0])

    def write(self, dataset: h5py.Dataset, start: int) -> None:
        """Write all pieces, one after the other, from row `start` on."""
        for array in self.arrays:
            if len(array):
                dataset[start:start + len(array)] = array
                check_room()
            start += len(array)


def row_nbytes(shape: tuple[int, ...], dtype: Any) -> int:
    """Return the bytes of a row of an array, at least one."""
    return max(1, math.prod(shape[1:]) * int(numpy.dtype(dtype).itemsize))


def write_rows(dataset: h5py.Dataset, start: int, array: Any) -> None:
    """Write an array from row `start` on, a few megabytes at a time.

    So an array on a disk, mapped or of another HDF5 file, may be larger than
    memory.
    """
    if not isinstance(array, numpy.ndarray | h5py.Dataset):
        array = numpy.asarray(array)
    # Whole chunks: to add to one means to decode it again.
    rows = dataset.chunks[0] if dataset.chunks else 1
    step = rows * max(1, PIECE_NBYTES // (
        rows * row_nbytes(dataset.shape, dataset.dtype)))
    place, stop = start, start + len(array)
    while place < stop:
        end = min(stop, (place // step + 1) * step)
        dataset[place:end] = array[place - start:end - start]
        place = end


def create_source(h5file: h5py.File, name: str, shape: tuple[int, ...],
                  dtype: Any, **kwargs: Any) -> h5py.Dataset:
    """Create the data set of a source, laid out as the settings say."""
    chosen = settings()
    # HDF5 has no chunks of nothing.
    if not shape or not math.prod(shape):
        return h5file.create_dataset(name, shape=shape, dtype=dtype, **kwargs)
    if chosen.chunk_rows or chosen.compression:
        # Whole rows, where h5py's own choice may cut them.
        rows = chosen.chunk_rows or max(1, CHUNK_NBYTES // row_nbytes(
            shape, dtype))
        kwargs.setdefault('chunks', (min(rows, shape[0]), *shape[1:]))
    if chosen.compression:
        kwargs.setdefault('compression', chosen.compression)
        if chosen.compression_level is not None:
            kwargs.setdefault('compression_opts', chosen.compression_level)
    if not kwargs.keys() & {'chunks', 'compression', 'maxshape'}:
        # Found out before hours of decoding, rather than after.
        promise(math.prod(shape) * numpy.dtype(dtype).itemsize)
    return h5file.create_dataset(name, shape=shape, dtype=dtype, **kwargs)


def label_axes(h5file: h5py.File,
               labels: Mapping[str, Sequence[str]]) -> None:
    """Label the axes of sources.

    Parameters
    ----------
    h5file : h5py.File
        A file that holds the sources.
    labels : mapping of str to sequence of str
        The labels of each source, one for each axis.
    """
    for source, names in labels.items():
        for axis, name in enumerate(names):
            h5file[source].dims[axis].label = name


def tag(h5file: h5py.File, attributes: Mapping[str, str]) -> None:
    """Write text attributes of the root as bytes, as Fuel always did."""
    for name, text in attributes.items():
        h5file.attrs[name] = numpy.bytes_(text.encode('utf8'))


def note_inputs(h5file: h5py.File,
                inputs: Mapping[str, Mapping[str, Any]]) -> None:
    """Write down what a file was made of: for each name 'size' and 'sha256'
    and, of a folder, the number of 'files'."""
    tag(h5file, {INPUTS_ATTRIBUTE: json.dumps(inputs, sort_keys=True)})


@contextmanager
def converted_file(directory: str, filename: str,
                   inputs: Iterable[str] = ()) -> Iterator[h5py.File]:
    """Open an HDF5 file that appears under its name when it is complete.

    Parameters
    ----------
    directory : str
        Where the file goes.
    filename : str
        Its name.
    inputs : iterable of str
        Paths of the raw files. Their sizes and SHA-256 are computed in the
        background and written into the file.

    Yields
    ------
    h5py.File
        Open for writing. If the context is left by an exception nothing is
        left on the disk, and a file of that name is what it was.

    Raises
    ------
    OSError
        If the disk is full. It names the disk, what the file needs and what
        there is.
    """
    target = os.path.join(directory, filename)
    with (Digests(inputs) as digests, atomic_path(target) as path,
          writing(path, target) as h5file):
        yield h5file
        tag(h5file, settings().attributes)
        if digests:
            note_inputs(h5file, digests.result())
