"""HDF5 files that converters write: layout, checks and atomic writing."""
from __future__ import annotations

import errno
import json
import math
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import h5py
import numpy
from numpy.typing import DTypeLike, NDArray

from fuel.converters._failsafe_file import Sink
from fuel.converters.raw.files import Folder, digested
from fuel.datasets.hdf5.format import INPUTS_ATTRIBUTE, target_columns
from fuel.typing import ArrayWriter
from fuel.utils.atomic_files import atomic_path
from fuel.utils.disk import allocated
from fuel.utils.h5py_file import H5PYFile

# Bytes of a chunk, if there is a compression and no size was chosen.
CHUNK_NBYTES = 1 << 18
# Bytes that are written at once.
PIECE_NBYTES = 16 << 20
# Axis labels that several data sets share.
IMAGES = ('batch', 'channel', 'height', 'width')
LABELS = ('batch', 'index')

Array = NDArray[Any]


class Examples:
    """Examples of one source and split, which need not be in memory at once.

    `shape`: length of each axis; axis 0 counts examples.
    `dtype`: type of the elements.
    """

    def __init__(self, shape: tuple[int, ...], dtype: DTypeLike) -> None:
        self.shape = shape
        self.dtype = numpy.dtype(dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def blocks(self) -> Iterator[Array]:
        """Iterate over the examples, many at a time."""
        raise NotImplementedError

    def write(self, dataset: ArrayWriter, start: int) -> None:
        """Write the examples from row `start` of a source on."""
        for block in self.blocks():
            rows = slice(start, start + len(block))
            if h5py.check_vlen_dtype(self.dtype) is None:
                dataset[rows] = block
            else:
                write_arrays(dataset, rows, list(block))
            start = rows.stop


@dataclass(frozen=True)
class Layout:
    """Storage of the sources of a converted file: chunks and compression.

    `chunk_rows`: examples in a chunk. With None, a chunk has about
        `CHUNK_NBYTES` if there is a compression; otherwise sources are
        contiguous.
    `compression`: name of an HDF5 filter such as ``'gzip'`` or ``'lzf'``.
    `compression_level`: the filter's option, 0 to 9 for gzip.
    `flat_targets`: whether targets are stored without their axis of one
        element.
    """

    chunk_rows: int | None = None
    compression: str | None = None
    compression_level: int | None = None
    flat_targets: bool = False


@dataclass(frozen=True)
class OutputFolder(os.PathLike[str]):
    """A folder for converted files, with options for the files.

    A built-in converter accepts it as its `output_directory`.

    `path`: the folder.
    `layout`: the storage of sources.
    `attributes`: attributes of the root of each file, such as the command that
        wrote the file.
    `check_target`: called with the path of each file before it is written;
        raises an error if no file may be written there.
    """

    path: str
    layout: Layout = Layout()
    attributes: Mapping[str, str] = field(default_factory=dict)
    check_target: Callable[[str], None] | None = None

    def __fspath__(self) -> str:
        return self.path


class _DiskSpace:
    """Free space on the disk of a file that is being written."""

    def __init__(self, path: str, target: str) -> None:
        self._path = path
        self._target = target
        self._promised = 0
        self.sink = Sink(path)

    def check(self) -> None:
        """Raise the error of the first write that failed."""
        error = self.sink.error
        if isinstance(error, OSError):
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise self._full(self.sink.end) from error
            raise OSError(error.errno, f'cannot be written '
                          f'({error.strerror})', self._target) from error
        if error is not None:
            raise error

    def promise(self, size: int) -> None:
        """Reserve `size` bytes; raise an error if the bytes that are reserved
        in all do not fit on the disk."""
        self._promised += size
        if self._promised > self._room():
            raise self._full(self._promised)

    def _room(self) -> int:
        """Return the largest size that the file can reach on its disk."""
        return allocated(os.stat(self._path)) + shutil.disk_usage(
            os.path.dirname(self._path)).free

    def _full(self, size: int) -> OSError:
        size = max(size, self._promised)
        disk = os.path.dirname(self._path)
        while not os.path.ismount(disk):
            disk = os.path.dirname(disk)
        return OSError(
            errno.ENOSPC, f'no room on the disk of {disk!r}: the file needs '
            f'at least {size} bytes, and there are {self._room()} for it; '
            'make room, write to another disk, or compress it', self._target)


class _CheckedDataset(h5py.Dataset):  # type: ignore[misc]
    """A source that reports a full disk when rows are written to it."""

    def __init__(self, dataset: h5py.Dataset, disk: _DiskSpace) -> None:
        super().__init__(dataset.id)
        self.disk = disk

    def __setitem__(self, key: object, value: object) -> None:
        super().__setitem__(key, value)
        self.disk.check()


class ConvertedFile(H5PYFile):  # type: ignore[misc]
    """An HDF5 file, open for writing, that survives a full disk.

    HDF5 crashes the process if the last changes of a file cannot be written
    when the file is closed. Here the error of a failed write is recorded, and
    raised by the next write to a source and by `check_room`.
    """

    def __init__(self, disk: _DiskSpace, layout: Layout) -> None:
        self.layout = layout
        self.disk = disk
        # Rows that begin at a cache line are the fastest to read.
        super().__init__(disk.sink, mode='w', alignment_threshold=4096,
                         alignment_interval=64)

    def create_dataset(self, *args: Any, **kwargs: Any) -> h5py.Dataset:
        """Create a data set, as `h5py.Group.create_dataset` does."""
        return _CheckedDataset(super().create_dataset(*args, **kwargs),
                               self.disk)

    def __getitem__(self, name: object) -> Any:
        item = super().__getitem__(name)
        if isinstance(item, h5py.Dataset):
            return _CheckedDataset(item, self.disk)
        return item


def check_room(dataset: object) -> None:
    """Raise an error if data written through h5py's low-level calls did not
    fit on the disk."""
    if isinstance(dataset, _CheckedDataset):
        dataset.disk.check()


class Pieces(Examples):
    """Several arrays as one, concatenated on axis 0 without a copy in memory.

    Parameters
    ----------
    arrays : sequence of numpy.ndarray
        Arrays of one type, with equal shapes except on axis 0.
    """

    def __init__(self, arrays: Sequence[Array]) -> None:
        if len({(a.dtype, a.shape[1:]) for a in arrays}) != 1:
            raise ValueError(
                'pieces of one source must agree in type and shape, got ' +
                ', '.join(f'{a.dtype} {a.shape}' for a in arrays))
        super().__init__((sum(map(len, arrays)), *arrays[0].shape[1:]),
                         arrays[0].dtype)
        self.arrays = arrays

    def blocks(self) -> Iterator[Array]:
        """Iterate over the arrays."""
        return filter(len, self.arrays)


def row_nbytes(shape: Sequence[int], dtype: DTypeLike) -> int:
    """Return the bytes of a row of an array, at least one."""
    return max(1, math.prod(shape[1:]) * int(numpy.dtype(dtype).itemsize))


def write_rows(dataset: h5py.Dataset, start: int,
               array: Array | h5py.Dataset) -> None:
    """Write an array from row `start` on, a few megabytes at a time.

    An array on a disk may be larger than memory.
    """
    if not isinstance(array, numpy.ndarray | h5py.Dataset):
        array = numpy.asarray(array)
    # Whole chunks, since a chunk that is written in parts is decoded again.
    rows = dataset.chunks[0] if dataset.chunks else 1
    step = rows * max(1, PIECE_NBYTES // (
        rows * row_nbytes(dataset.shape, dataset.dtype)))
    place, stop = start, start + len(array)
    while place < stop:
        end = min(stop, (place // step + 1) * step)
        dataset[place:end] = array[place - start:end - start]
        place = end


def write_arrays(dataset: Any, rows: slice | Array,
                 arrays: Sequence[Array]) -> None:
    """Write flat arrays of any lengths into rows of a source of variable
    length, in any order."""
    # h5py would treat arrays of equal length as a table, and refuse them.
    cells = numpy.empty(len(arrays), dtype=dataset.dtype)
    for i, array in enumerate(arrays):
        cells[i] = array
    target = dataset.id.get_space()
    if isinstance(rows, slice):
        target.select_hyperslab((rows.start,), (len(cells),))
    else:
        target.select_elements(numpy.asarray(rows, 'uint64')[:, None])
    dataset.id.write(h5py.h5s.create_simple((len(cells),)), target, cells,
                     h5py.h5t.py_create(dataset.dtype))
    check_room(dataset)


def create_source(h5file: h5py.File, name: str, shape: Sequence[int],
                  dtype: DTypeLike, layout: Layout | None = None
                  ) -> h5py.Dataset:
    """Create the data set of a source.

    Parameters
    ----------
    h5file : h5py.File
        A file open for writing.
    name : str
        Name of the source.
    shape : sequence of int
        Length of each axis; axis 0 counts examples.
    dtype : dtype
        Type of the elements.
    layout : object, optional
        Storage of the arrays. Default: the layout of a file made by
        `converted_file`, else contiguous.
    """
    checked = isinstance(h5file, ConvertedFile)
    if layout is None:
        layout = h5file.layout if checked else Layout()
    options: dict[str, Any] = {}
    nbytes = math.prod(shape) * numpy.dtype(dtype).itemsize
    # HDF5 has no empty chunks.
    if shape and nbytes:
        if layout.chunk_rows or layout.compression:
            # Chunks of whole rows; h5py's own choice may cut rows.
            rows = layout.chunk_rows or max(
                1, CHUNK_NBYTES // row_nbytes(shape, dtype))
            options['chunks'] = (min(rows, shape[0]), *shape[1:])
        if layout.compression:
            options['compression'] = layout.compression
            if layout.compression_level is not None:
                options['compression_opts'] = layout.compression_level
        if not options and checked:
            # A full disk is reported before hours of decoding, not after them.
            h5file.disk.promise(nbytes)
    return h5file.create_dataset(name, shape=tuple(shape), dtype=dtype,
                                 **options)


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


def write_names(h5file: h5py.File, kind: str,
                sources: Mapping[str, Sequence[Any] | Mapping[str, Any]],
                ) -> None:
    """Write names of classes or columns, or values, to the attribute `kind`
    of sources.

    They are one text in JSON, since the size of other attributes of texts is
    limited.
    """
    for source, names in sources.items():
        h5file[source].attrs[kind] = json.dumps(
            names if isinstance(names, dict) else list(names))


def write_inputs(h5file: h5py.File,
                 inputs: Mapping[str, Mapping[str, object]]) -> None:
    """Write the inputs of a file: for each name its 'size' and 'sha256'.

    For a folder, also the number of 'files', and of files 'left_out'.
    """
    h5file.attrs[INPUTS_ATTRIBUTE] = json.dumps(inputs, sort_keys=True)


@contextmanager
def converted_file(directory: Folder, filename: str,
                   inputs: Iterable[str] = ()) -> Iterator[ConvertedFile]:
    """Open an HDF5 file that appears under its name when it is complete.

    Parameters
    ----------
    directory : path-like
        The folder of the file; an `OutputFolder` has options for the file.
    filename : str
        Name of the file.
    inputs : iterable of str
        Paths of the raw files. Their sizes and SHA-256 are computed in the
        background and written into the file.

    Yields
    ------
    ConvertedFile
        The file, open for writing. If an exception leaves the context, no
        new file remains, and an existing file of that name is unchanged.

    Raises
    ------
    OSError
        If the disk is full. The text names the disk, the bytes that the file
        needs, and the free bytes.
    """
    folder = (directory if isinstance(directory, OutputFolder)
              else OutputFolder(os.fspath(directory)))
    target = os.path.join(folder.path, filename)
    if folder.check_target is not None:
        folder.check_target(target)
    with (digested(inputs) as digests, atomic_path(target) as path,
          _open(path, target, folder.layout) as h5file):
        yield h5file
        if folder.layout.flat_targets:
            _flatten(h5file)
        h5file.attrs.update(folder.attributes)
        if found := digests():
            write_inputs(h5file, found)


def _flatten(h5file: ConvertedFile) -> None:
    """Write targets again without their axis of one element."""
    for source in target_columns(h5file, list(h5file)):
        column = h5file[source]
        label, values = column.dims[0].label, column[:, 0]
        attributes = dict(column.attrs)
        attributes.pop('DIMENSION_LABELS', None)
        del h5file[source]
        flat = create_source(h5file, source, values.shape, values.dtype)
        write_rows(flat, 0, values)
        flat.attrs.update(attributes)
        label_axes(h5file, {source: (label,)})


@contextmanager
def _open(path: str, target: str, layout: Layout) -> Iterator[ConvertedFile]:
    """Open a file for writing and empty it; errors call it `target`."""
    disk = _DiskSpace(os.path.realpath(path), target)
    try:
        with ConvertedFile(disk, layout) as h5file:
            yield h5file
    except Exception:
        disk.check()  # the cause of the errors that HDF5 met
        raise
    finally:
        disk.sink.close()
    disk.check()
