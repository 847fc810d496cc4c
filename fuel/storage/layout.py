"""Find how a data set is stored, and whether Fuel can read it directly."""
from __future__ import annotations

import functools
import math
import os
import re
import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

import h5py
import numpy

from fuel.storage.global_heap import REFERENCE, addressing
from fuel.storage.file_bytes import is_attached
from fuel.storage.nodes import row_maps, text_of_name

# The kinds of types whose bytes in memory may be equal to those in the file.
PLAIN_KINDS = 'biufcSV'

FILTER_NAMES = {
    h5py.h5z.FILTER_DEFLATE: 'gzip',
    h5py.h5z.FILTER_SHUFFLE: 'shuffle',
    h5py.h5z.FILTER_FLETCHER32: 'fletcher32',
    h5py.h5z.FILTER_SZIP: 'szip',
    h5py.h5z.FILTER_NBIT: 'nbit',
    h5py.h5z.FILTER_SCALEOFFSET: 'scaleoffset',
    h5py.h5z.FILTER_LZF: 'lzf',
    # Plug-ins, whose own names are whole sentences.
    32004: 'lz4', 32008: 'bitshuffle', 32013: 'zfp', 32015: 'zstd',
    32017: 'sz', 32018: 'fcidecomp', 32024: 'sz3', 32028: 'sperr',
}

# A plug-in, which waits for ever if the end of a chunk is missing.
BZIP2 = 307
COMPRESSORS = (h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_LZF, BZIP2)
KNOWN = (*COMPRESSORS, h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32)

LAYOUT_NAMES = {
    h5py.h5d.COMPACT: 'compact',
    h5py.h5d.CONTIGUOUS: 'contiguous',
    h5py.h5d.CHUNKED: 'chunked',
    h5py.h5d.VIRTUAL: 'virtual',
}


class ChunkFilter(NamedTuple):
    """One filter that was applied to chunks.

    `code`: number of the filter, as registered with the HDF Group.
    `options`: options of the filter, as numbers.
    """

    code: int
    name: str
    options: tuple[int, ...]

    @property
    def description(self) -> str:
        """Description of the filter, such as ``'gzip 4'`` (str)."""
        if self.code == h5py.h5z.FILTER_DEFLATE and self.options:
            return f'{self.name} {self.options[0]}'
        return self.name


def used_filters(filters: tuple[ChunkFilter, ...],
                 mask: int) -> list[ChunkFilter]:
    """Return the filters that a chunk did not skip."""
    return [one for place, one in enumerate(filters) if not mask >> place & 1]


@functools.cache
def is_known(filters: tuple[ChunkFilter, ...],
             plugins: frozenset[int] = frozenset()) -> bool:
    """Return whether Fuel can undo `filters`.

    `plugins`: codes of further compressors that can be undone here.

    One of the filters must compress or have a checksum: HDF5 may have left
    chunks at the edge of the data set unfiltered, and only the size of a chunk
    shows this. At most one filter may compress: the size of the data between
    two compressors is not known, and data are never decoded without a limit.
    """
    codes = [one.code for one in filters]
    return (all(code in KNOWN or code in plugins for code in codes)
            and any(code != h5py.h5z.FILTER_SHUFFLE for code in codes)
            and sum(code in COMPRESSORS or code in plugins
                    for code in codes) <= 1)


class Layout(NamedTuple):
    """The storage of a data set.

    `storage`: ``'contiguous'``, ``'chunked'``, ``'compact'``, ``'virtual'`` or
        ``'external'``.
    `chunk_shape`: shape of a chunk; None if the storage is not chunked.
    `filters`: the filters, in the order in which they were applied.
    `obstacle`: the reason why Fuel cannot read the data set directly; empty if
        there is none.
    `is_ragged`: whether rows have variable length.
    """

    storage: str
    chunk_shape: tuple[int, ...] | None
    filters: tuple[ChunkFilter, ...]
    obstacle: str
    is_ragged: bool = False

    @property
    def reader(self) -> str:
        """The kind of reader: ``'mapped'``, ``'ragged'``, ``'decoded'`` or
        ``'h5py'``; ``'virtual'`` if the sources of a virtual data set are
        read (str)."""
        if self.obstacle:
            return 'h5py'
        if self.storage == 'virtual':
            return 'virtual'
        if self.is_ragged:
            return 'ragged'
        return 'decoded' if self.filters else 'mapped'


def discover(dataset: h5py.Dataset, is_part: bool = False) -> Layout:
    """Return how a data set is stored, from the metadata in the file.

    `is_part`: whether the data set is a part of a source. It is not an
        obstacle if a part is empty or was never written.
    """
    properties = dataset.id.get_create_plist()
    code = properties.get_layout()
    storage = LAYOUT_NAMES.get(code, f'layout {code}')
    if storage == 'contiguous' and properties.get_external_count():
        storage = 'external'
    chunk_shape = None
    filters: tuple[ChunkFilter, ...] = ()
    if storage == 'chunked':
        chunk_shape = tuple(map(int, properties.get_chunk()))
        filters = tuple([
            _filter(properties.get_filter(place))
            for place in range(properties.get_nfilters())])
    is_ragged = dataset.dtype.kind == 'O'
    obstacle = (obstacle_of_file(dataset)
                or _obstacle_of_shape(dataset, is_part)
                or (_obstacle_of_ragged(dataset, filters) if is_ragged
                    else _obstacle_of_type(dataset.dtype,
                                           dataset.id.get_type()))
                or _obstacle_of_storage(dataset, storage, is_part))
    return Layout(storage, chunk_shape, filters, obstacle, is_ragged)


def _filter(found: tuple[Any, ...]) -> ChunkFilter:
    """Return a filter from HDF5's description of it."""
    code, _, options, name = found
    # The rest of the name may be a reference to a web page.
    label = FILTER_NAMES.get(code) or re.split(
        '[;:]', name.decode('utf-8', 'replace'))[0]
    return ChunkFilter(code, label or f'filter {code}', tuple(options))


def obstacle_of_file(dataset: h5py.Dataset) -> str:
    """Return the reason why only HDF5 can read the file, '' if there is none.

    The handle is checked, not the path: if this process has also opened the
    file for writing, HDF5 has buffers that are not written yet.
    """
    file = h5py.h5i.get_file_id(dataset.id)
    intent = file.get_intent()
    if intent & h5py.h5f.ACC_RDWR:
        return 'the file is open for writing'
    if is_attached(dataset):
        return ''
    if file.get_access_plist().get_driver() != h5py.h5fd.SEC2:
        return 'the file is read through another driver than the plain one'
    if sys.platform == 'win32':
        return 'the platform cannot read at a position'
    if intent & h5py.h5f.ACC_SWMR_READ and _is_written(file):
        return SWMR_OBSTACLE
    return ''


# The obstacle for a file that this process has open with swmr=True: only HDF5
# knows in which order a writer changes it.
SWMR_OBSTACLE = 'the file is read with swmr=True while a process writes to it'
# The first version of the superblock (the part of a file that is read first)
# that has flags, and the flags for writing.
SUPERBLOCK_WITH_FLAGS = 3
WRITE_FLAGS = 0b101


def _is_written(file: h5py.h5f.FileID) -> bool:
    """Return whether the consistency flags in a local file say that a process
    writes to it, with SWMR or without."""
    # Read from the file, since HDF5 has the flags of the time when it opened
    # the file.
    head = os.pread(int(file.get_vfd_handle()), 12,
                    file.get_create_plist().get_userblock())
    return (len(head) == 12 and head[8] >= SUPERBLOCK_WITH_FLAGS
            and bool(head[11] & WRITE_FLAGS))


def _obstacle_of_shape(dataset: h5py.Dataset, is_part: bool) -> str:
    shape = dataset.shape
    if shape is None or not shape:
        return 'it has no rows (a scalar)'
    if not is_part and not math.prod(shape):
        return 'it is empty'
    return ''


def _obstacle_of_type(dtype: numpy.dtype[Any], stored: h5py.h5t.TypeID,
                      ) -> str:
    """Return the reason why the bytes in the file are not those of a NumPy
    array; '' if they are.

    The type in the file must be equal to the type that HDF5 has for the NumPy
    type. This excludes unusual precisions and paddings, which HDF5 must
    convert.
    """
    if dtype.kind not in PLAIN_KINDS or dtype.hasobject or dtype.subdtype:
        return f'its type, {dtype}, is not stored as plain bytes'
    try:
        equal = stored.equal(h5py.h5t.py_create(dtype, logical=True))
    except TypeError:
        equal = False
    if not equal:
        return f'its type is stored otherwise than {dtype} in memory'
    return ''


def _obstacle_of_ragged(dataset: h5py.Dataset,
                        filters: tuple[ChunkFilter, ...]) -> str:
    """Return the reason why only HDF5 can find rows of variable length; ''
    if there is none."""
    if filters and not is_known(filters):
        return 'its rows have variable length, behind unusual filters'
    if not addressing(h5py.h5i.get_file_id(dataset.id))[1]:
        return 'its rows have variable length, in odd form'
    strings = h5py.check_string_dtype(dataset.dtype)
    if strings is not None and strings.length is None:
        return ''
    if _is_filled(dataset):
        return 'its rows have variable length and a fill value'
    elements = elements_of(dataset)
    if elements is None:
        return f'its type, {dataset.dtype}, is not stored as plain bytes'
    return _obstacle_of_type(elements, dataset.id.get_type().get_super())


def elements_of(dataset: h5py.Dataset) -> numpy.dtype[Any] | None:
    """Return the type of the elements of rows of variable length; None if the
    rows are not arrays."""
    elements = h5py.check_vlen_dtype(dataset.dtype)
    return elements if isinstance(elements, numpy.dtype) else None


def stored_type(dataset: h5py.Dataset) -> numpy.dtype[Any]:
    """Return the type that each element has in the file; for rows of variable
    length, the type of a reference."""
    dtype: numpy.dtype[Any] = dataset.dtype
    return REFERENCE if dtype.kind == 'O' else dtype


# The largest length of a fill value, which is an entry of an object's header.
# HDF5 copies as many bytes as a damaged fill value claims to have.
MOST_FILL_NBYTES = 1 << 16


# Used instead of a reference to the fill value of a source of variable length.
# It is not a place in a file, and damage is unlikely to produce it.
FILLED = 0, int.from_bytes(b'fillfill', 'big'), 0


def fill_value(dataset: h5py.Dataset) -> Any:
    """Return the value of chunks that were never written."""
    dtype = stored_type(dataset)
    room = numpy.zeros(1 + MOST_FILL_NBYTES // dtype.itemsize, dtype)
    value = room[:1].reshape(())
    if _is_filled(dataset):
        if dataset.dtype.kind == 'O':
            value[...] = FILLED
        else:
            dataset.id.get_create_plist().get_fill_value(value)
    return value[()]


def _is_filled(dataset: h5py.Dataset) -> bool:
    """Return whether the file defines a fill value for a data set."""
    return bool(dataset.id.get_create_plist().fill_value_defined()
                == h5py.h5d.FILL_VALUE_USER_DEFINED)


def _obstacle_of_storage(dataset: h5py.Dataset, storage: str,
                         is_part: bool) -> str:
    if storage == 'contiguous':
        if not is_part and not is_allocated(dataset.id):
            return 'nothing was ever written to it'
        return ''
    if storage == 'virtual':
        return '' if row_maps(dataset) is not None else (
            'its rows are not whole rows of other data sets')
    if storage != 'chunked':
        return f'its storage is {storage}'
    # HDF5 then returns arbitrary values for chunks that were never written.
    if dataset.id.get_create_plist().get_fill_time() == (
            h5py.h5d.FILL_TIME_NEVER):
        return 'it is never filled'
    return ''


def is_allocated(identity: h5py.h5d.DatasetID) -> bool:
    """Return whether a contiguous data set has a place in the file.

    In a file with a user block, the offset may be a number even if no space
    was allocated.
    """
    return (identity.get_offset() is not None
            and identity.get_space_status()
            == h5py.h5d.SPACE_STATUS_ALLOCATED)


def native_type(dtype: numpy.dtype[Any]) -> numpy.dtype[Any]:
    """Return a type in the machine's byte order."""
    native = dtype.newbyteorder('=')
    # `isnative` does not look into fields that are arrays.
    return dtype if dtype == native else native


def dataset_name(dataset: h5py.Dataset) -> str:
    """Return the name of a data set for errors: the name of the source."""
    name = dataset.name or '<no name>'
    # h5py returns a name that is not UTF-8 as bytes.
    return (text_of_name(name) if isinstance(name, bytes) else name
            ).lstrip('/')


@dataclass(frozen=True)
class Description:
    """The storage of a data set, as text and numbers.

    Attributes
    ----------
    storage : str
        ``'contiguous'``, ``'chunked'``, ``'compact'``, ``'virtual'`` or
        ``'external'``.
    chunk_shape : tuple of int or None
        Shape of a chunk; None if the storage is not chunked.
    filters : tuple of str
        The filters, in the order in which they were applied, such as
        ``('shuffle', 'gzip 4')``.
    stored_nbytes, decoded_nbytes : int
        Numbers of bytes in the file and in the decoded array. For elements of
        variable length, without the data of the elements.
    reader : str
        How Fuel reads the data set: ``'mapped'``, ``'ragged'``,
        ``'decoded'`` or ``'h5py'``.
    obstacle : str
        The reason why the data set is read through h5py; empty if it is read
        directly.
    """

    storage: str
    chunk_shape: tuple[int, ...] | None
    filters: tuple[str, ...]
    stored_nbytes: int
    decoded_nbytes: int
    reader: str
    obstacle: str

    def __str__(self) -> str:
        parts = [self.storage]
        if self.chunk_shape is not None:
            parts[0] += f' {self.chunk_shape}'
        parts.append(' + '.join(self.filters) or 'no filter')
        parts.append(f'{self.stored_nbytes} bytes stored, '
                     f'{self.decoded_nbytes} decoded')
        parts.append(f'read by h5py: {self.obstacle}' if self.obstacle
                     else f'read directly ({self.reader})')
        return ', '.join(parts)


def describe(dataset: h5py.Dataset) -> Description:
    """Return a description of the storage of a data set, and of how Fuel
    reads it.

    Returns
    -------
    Description
        ``str`` of it is one line of text.

    Examples
    --------
    >>> import h5py, numpy, os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, 'a.hdf5')
    >>> with h5py.File(path, 'w') as file:
    ...     x = file.create_dataset('x', data=numpy.zeros((6, 4)),
    ...                             chunks=(2, 4))
    >>> with h5py.File(path, 'r') as file:
    ...     print(describe(file['x']))
    chunked (2, 4), no filter, 192 bytes stored, 192 decoded, read \
directly (mapped)
    >>> folder.cleanup()
    """
    layout = discover(dataset)
    size = dataset.size or 0
    return Description(
        layout.storage, layout.chunk_shape,
        tuple(one.description for one in layout.filters),
        int(dataset.id.get_storage_size()), size * dataset.dtype.itemsize,
        layout.reader, layout.obstacle)
