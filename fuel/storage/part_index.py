"""Metadata of the arrays in which the parts of a source are stored."""
from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import h5py
import numpy
from numpy.typing import NDArray

from fuel.kernels.gather import MISSING, OUTSIDE
from fuel.storage.chunk_table import UnreadableTableError, read_chunk_table
from fuel.storage.file_bytes import FileBytes, raw_file
from fuel.storage.layout import (
    ChunkFilter, Layout, dataset_name, discover, elements_of, fill_value,
    is_allocated, native_type, obstacle_of_file, stored_type)

#: Mapping from names to arrays of numbers or bytes.
Arrays: TypeAlias = Mapping[str, NDArray[Any]]


class ArrayKind(NamedTuple):
    """Metadata that several arrays have in common.

    `layout`: storage of the arrays; the shapes of their chunks may differ.
    `dtype`: type of an element in h5py.
    `stored`: type that an element has in the file.
    `elements`: type of the elements of rows of variable length that are
        arrays; None for other rows.
    `fill`: stored value of the elements of a chunk that was never written;
        None if Fuel cannot read the arrays directly.
    `value`: for rows of variable length, the row for which `fill` stands.
    """

    layout: Layout
    dtype: numpy.dtype[Any]
    stored: numpy.dtype[Any]
    elements: numpy.dtype[Any] | None
    fill: Any
    value: Any = None

    def is_like(self, other: ArrayKind) -> bool:
        """Return whether rows of arrays of both kinds have the same type."""
        return native_type(self.dtype) == native_type(other.dtype) and (
            self.elements == other.elements)


class PartIndex:
    """Metadata of the arrays in which the parts of a source are stored.

    The metadata of each array are read from HDF5 once. Later, HDF5 is used
    only for rows that it must read itself.

    `datasets`: the arrays, as data sets of HDF5.
    `axes`: number of axes that count rows.
    `builder`: a builder to which all arrays were added; None to read their
        metadata now.
    `files`: the files of the arrays; None for a file that only HDF5 can read.
    `kinds`: the distinct kinds of the arrays.
    `obstacle`: the reason why Fuel cannot read the arrays directly; empty if
        there is none.
    `file`, `kind`: shape (arrays,); number of the file, and of the kind, of
        each array.
    `shape`: shape (arrays, number of axes); shape of each array.
    `chunk_shape`: shape (arrays, number of axes); shape of the chunks of each
        array. An array that is not chunked is one chunk.
    `is_chunked`: shape (arrays,), dtype bool; whether each array is chunked.
    `is_divided`: shape (arrays,), dtype bool; whether each array was divided
        by `divide_contiguous`.

    These are set only if there is no obstacle:

    `first_chunks`: shape (arrays + 1,); number of the first chunk of each
        array, and the number of chunks.
    `addresses`: shape (chunks,); address of each chunk in its file, or
        `MISSING` or `OUTSIDE`.
    `sizes`: shape (chunks,); number of bytes of each chunk in the file.
    `masks`: shape (chunks,); bit i is set if the chunk skipped filter i.

    Raises: ValueError if arrays differ in type or in number of axes.
    """

    file: NDArray[numpy.int64]
    kind: NDArray[numpy.int64]
    shape: NDArray[numpy.int64]
    chunk_shape: NDArray[numpy.int64]
    is_chunked: NDArray[numpy.bool_]
    first_chunks: NDArray[numpy.int64]
    addresses: NDArray[numpy.int64]
    sizes: NDArray[numpy.int64]
    masks: NDArray[numpy.uint32]

    def __init__(self, datasets: Sequence[h5py.Dataset], axes: int = 1,
                 builder: IndexBuilder | None = None) -> None:
        if builder is None:
            builder = IndexBuilder(axes)
            for dataset in datasets:
                builder.add(dataset.id)
        self.datasets = datasets
        self.files = builder.files
        self.kinds = builder.kinds
        for name, values in builder.arrays().items():
            setattr(self, name, values)
        self.is_divided = numpy.zeros(len(datasets), bool)
        self.obstacle = builder.obstacle

    @classmethod
    def of(cls, datasets: Sequence[h5py.Dataset],
           files: Sequence[FileBytes], kinds: Sequence[ArrayKind],
           arrays: Mapping[str, NDArray[Any]]) -> PartIndex:
        """Return an index of directly readable arrays, from kept metadata.

        `arrays`: the attributes that are arrays, without `is_divided`.
        """
        index = cls.__new__(cls)
        index.datasets = datasets
        index.files, index.kinds = list(files), list(kinds)
        for name, values in arrays.items():
            setattr(index, name, values)
        index.is_divided = numpy.zeros(len(datasets), bool)
        index.obstacle = ''
        return index

    @property
    def is_ragged(self) -> bool:
        """Whether rows have variable length (bool)."""
        return self.kinds[0].layout.is_ragged

    @property
    def has_virtual(self) -> bool:
        """Whether some of the arrays are virtual (bool)."""
        return any(kind.layout.storage == 'virtual' for kind in self.kinds)

    @property
    def is_filtered(self) -> bool:
        """Whether filters were applied to the chunks of some array (bool)."""
        return any(kind.layout.filters for kind in self.kinds)

    def kind_of(self, array: int) -> ArrayKind:
        """Return the kind of an array."""
        return self.kinds[int(self.kind[array])]

    def array_of(self, chunk: int) -> int:
        """Return the number of the array that has a chunk."""
        if len(self.first_chunks) == 2:
            # There is a single array, so a search is not needed.
            return 0
        return int(self.first_chunks.searchsorted(chunk, 'right')) - 1

    def first_chunk(self, array: int) -> int:
        """Return the number of the first chunk of an array."""
        return int(self.first_chunks[array])

    def filters(self, array: int) -> tuple[ChunkFilter, ...]:
        """Return the filters of the chunks of an array."""
        return self.kind_of(array).layout.filters

    def file_size(self, array: int) -> int:
        """Return the size of the file that has an array."""
        file = self.files[int(self.file[array])]
        assert file is not None
        return file.size

    def dataset(self, array: int) -> h5py.Dataset:
        """Return an array as an open data set of HDF5."""
        return self.datasets[array]

    def place_of(self, array: int) -> str:
        """Return a text with the file and path of an array, for errors."""
        return where(self.dataset(array))

    def open_files(self) -> list[FileBytes]:
        """Return the files that Fuel can read itself: all of the files, if
        there is no obstacle."""
        return [file for file in self.files if file is not None]

    def divide_contiguous(self, axes: int) -> PartIndex:
        """Return an index in which contiguous arrays are divided into chunks
        of some rows.

        This is for an index in which other arrays have filtered chunks: the
        chunks of all arrays are then cached in the same way.

        `axes`: number of axes that count rows.
        """
        divided = copy.copy(self)
        divided.chunk_shape = self.chunk_shape.copy()
        pieces = []
        for array, is_chunked in enumerate(self.is_chunked.tolist()):
            first, end = self.first_chunks[array:array + 2].tolist()
            table = [one[first:end] for one in (
                self.addresses, self.sizes, self.masks)]
            if not is_chunked:
                table = divided._divided(array, axes, table)
            pieces.append(table)
        divided.is_divided = ~self.is_chunked
        divided.is_chunked = numpy.ones_like(self.is_chunked)
        divided.addresses, divided.sizes, divided.masks = [
            numpy.concatenate(column) for column in zip(*pieces, strict=True)]
        divided.first_chunks = numpy.cumsum([0, *[
            len(table[0]) for table in pieces]])
        return divided

    def _divided(self, array: int, axes: int,
                 table: list[NDArray[Any]]) -> list[NDArray[Any]]:
        """Divide an array that is one chunk, and set its `chunk_shape`.

        `table`: address, size and mask of the one chunk, as arrays.
        Returns: addresses, sizes and masks of the new chunks.
        """
        shape = self.shape[array]
        itemsize = self.kind_of(array).stored.itemsize
        row_nbytes = int(shape[axes:].prod()) * itemsize
        length = int(shape[axes - 1])
        rows = max(1, min(length, PIECE // max(1, row_nbytes)))
        self.chunk_shape[array, :axes - 1] = 1
        self.chunk_shape[array, axes - 1] = rows
        starts = numpy.arange(0, length, rows)
        count = int(shape[:axes - 1].prod())
        sizes = numpy.tile(
            numpy.minimum(rows, length - starts) * row_nbytes, count)
        places = (numpy.arange(count)[:, None] * length
                  + starts).ravel() * row_nbytes
        address = int(table[0][0])
        addresses = (address + places if address >= 0
                     else numpy.full(len(places), address))
        return [addresses.astype(numpy.int64), sizes.astype(numpy.int64),
                numpy.zeros(len(places), numpy.uint32)]


# Approximate bytes of the chunks into which a contiguous array is divided.
PIECE = 1 << 18
# The mask of the only chunk of an array that is not chunked.
NO_MASK = numpy.zeros(1, numpy.uint32)


class IndexBuilder:
    """Reads the metadata of arrays from HDF5, with as few calls as possible.

    `axes`: number of axes that count rows.
    `obstacle`, `files`, `kinds`: see :class:`PartIndex`.
    """

    def __init__(self, axes: int) -> None:
        self._axes = axes
        self.obstacle = ''
        self.files: list[FileBytes | None] = []
        self.kinds: list[ArrayKind] = []
        self._kind_numbers: dict[Any, int] = {}
        # Mapping from the identifiers of files' handles to numbers of files.
        # The handles are kept, or HDF5 would use their identifiers again.
        self._file_numbers: dict[int, int] = {}
        self._raw_numbers: dict[FileBytes, int] = {}
        self._handles: list[h5py.h5f.FileID] = []
        # For each array: number of its file, number of its kind, and whether
        # it is chunked.
        self._arrays: list[tuple[int, int, bool]] = []
        self._shapes: list[tuple[int, ...]] = []
        self._chunk_shapes: list[tuple[int, ...]] = []
        # Addresses, sizes and masks of the chunks of each array.
        self._chunks: list[tuple[Any, Any, Any]] = []
        # Properties, type, number of the file and number of the kind of an
        # earlier array. Most arrays are like the array before them.
        self._last: tuple[Any, Any, int, int] | None = None
        self._first: h5py.h5d.DatasetID | None = None
        # A group, and the number of its file.
        self._above: tuple[h5py.Group | None, int] = None, 0

    def add(self, identity: h5py.h5d.DatasetID,
            above: h5py.Group | None = None) -> None:
        """Read the metadata of one more array.

        `identity`: handle of the array.
        `above`: a group of the same file, if one is known.

        Raises: ValueError if the array has another type or another number of
            axes than the first one.
        """
        known, file = self._above
        if above is None or above is not known:
            file = self._file_of(identity)
            self._above = above, file
        number = self._number_of_last(identity, file)
        if number is None:
            number = self._kind_of(h5py.Dataset(identity))
            self._last = (identity.get_create_plist(), identity.get_type(),
                          file, number)
        shape = identity.shape
        kind = self.kinds[number]
        if self._first is None:
            self._first = identity
        if (number and not kind.is_like(self.kinds[0])) or (
                self._shapes and len(shape) != len(self._shapes[0])):
            raise unequal(h5py.Dataset(self._first), h5py.Dataset(identity),
                          self._axes)
        is_chunked = kind.layout.storage == 'chunked'
        chunk_shape = (
            identity.get_create_plist().get_chunk() if is_chunked else shape)
        self._arrays.append((file, number, is_chunked))
        self._shapes.append(shape)
        self._chunk_shapes.append(chunk_shape)
        self.obstacle = self.obstacle or kind.layout.obstacle
        if kind.layout.storage == 'virtual':
            self.obstacle = 'one of its parts is virtual'
        if kind.stored != self.kinds[0].stored:
            self.obstacle = 'its parts are stored in different byte orders'
        if not self.obstacle:
            self._read_chunks(identity, self.files[file], kind, chunk_shape)

    def _file_of(self, identity: h5py.h5d.DatasetID) -> int:
        """Return the number of the file that has an array."""
        handle = h5py.h5i.get_file_id(identity)
        number = self._file_numbers.get(handle.id)
        if number is None:
            dataset = h5py.Dataset(identity)
            file = None if obstacle_of_file(dataset) else raw_file(dataset)
            number = len(self.files)
            if file is not None:
                number = self._raw_numbers.setdefault(file, number)
            if number == len(self.files):
                self.files.append(file)
            self._file_numbers[handle.id] = number
            self._handles.append(handle)
        return number

    def _number_of_last(self, identity: h5py.h5d.DatasetID,
                        file: int) -> int | None:
        """Return the number of the kind of the array before, if this array is
        like it; otherwise None."""
        if self._last is None or self._last[2] != file:
            return None
        properties, dtype, _, number = self._last
        if not dtype.equal(identity.get_type()):
            return None
        # An array that is one piece of the file has no filters, and needs no
        # fill value. So its properties are not read: this would take as long
        # as opening the array.
        layout = self.kinds[number].layout
        is_like = (layout.storage == 'contiguous' and not layout.is_ragged
                   and is_allocated(identity))
        if is_like or properties.equal(identity.get_create_plist()):
            return number
        return None

    def _kind_of(self, dataset: h5py.Dataset) -> int:
        """Return the number of the kind of an array; add a new kind."""
        kind = array_kind(dataset)
        # Fill values may be NaN, or arrays.
        key = (kind.layout, kind.dtype, kind.stored, kind.elements,
               kind.value, numpy.array(kind.fill).tobytes())
        number = self._kind_numbers.setdefault(key, len(self.kinds))
        if number == len(self.kinds):
            self.kinds.append(kind)
        return number

    def _read_chunks(self, identity: h5py.h5d.DatasetID,
                     file: FileBytes | None, kind: ArrayKind,
                     chunk_shape: tuple[int, ...]) -> None:
        """Read the addresses, sizes and masks of the chunks of an array.

        If Fuel cannot read the chunks itself, the obstacle is set.
        """
        assert file is not None
        if kind.layout.storage != 'chunked':
            address = (identity.get_offset() if is_allocated(identity)
                       else MISSING)
            size = identity.get_storage_size()
            if address != MISSING and address + size > file.size:
                address = OUTSIDE
            self._chunks.append((
                numpy.array([address], numpy.int64),
                numpy.array([size], numpy.int64), NO_MASK))
            return
        try:
            table = read_chunk_table(h5py.Dataset(identity), file)
        except UnreadableTableError as error:
            self.obstacle = str(error)
            return
        nbytes = math.prod(chunk_shape) * kind.stored.itemsize
        if not kind.layout.filters and (
                (table.addresses >= 0) & (table.sizes < nbytes)).any():
            self.obstacle = 'its chunks have an unexpected size'
            return
        self._chunks.append(table)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return a mapping from names to the arrays of the index; if there is
        an obstacle, without the arrays of chunks."""
        file, kind, is_chunked = numpy.array(self._arrays).T
        found = {'file': file, 'kind': kind,
                 'is_chunked': is_chunked.astype(bool),
                 'shape': numpy.array(self._shapes, numpy.int64),
                 'chunk_shape': numpy.array(self._chunk_shapes, numpy.int64)}
        if not self.obstacle:
            found['first_chunks'] = numpy.cumsum([0, *[
                len(chunks[0]) for chunks in self._chunks]])
            for name, column in zip(('addresses', 'sizes', 'masks'), zip(
                    *self._chunks, strict=True), strict=True):
                found[name] = numpy.concatenate(column)
        return found


def array_kind(dataset: h5py.Dataset) -> ArrayKind:
    """Return the kind of an array."""
    layout = discover(dataset, is_part=True)._replace(chunk_shape=None)
    is_filled = layout.is_ragged and not layout.obstacle
    return ArrayKind(
        layout, dataset.dtype, stored_type(dataset), elements_of(dataset),
        None if layout.obstacle else fill_value(dataset),
        dataset.fillvalue if is_filled else None)


def where(dataset: h5py.Dataset) -> str:
    """Return a text with the file and path of an array, for errors."""
    return f'{dataset.file.filename}, data set {dataset_name(dataset)!r}'


def unequal(first: h5py.Dataset, other: h5py.Dataset, axes: int) -> ValueError:
    """Return the error that the rows of two parts differ in type or shape.

    `axes`: number of axes that count rows.
    """
    return ValueError(
        f'all parts must have rows of one type and shape, but {where(first)} '
        f'has {native_type(first.dtype)} of shape {first.shape[axes:]}, and '
        f'{where(other)} has {native_type(other.dtype)} of shape '
        f'{other.shape[axes:]}')


# The attributes of an index that are kept, and their types.
KEPT: Mapping[str, str] = {
    'file': 'int64', 'kind': 'int64', 'shape': 'int64',
    'chunk_shape': 'int64', 'is_chunked': 'bool', 'first_chunks': 'int64',
    'addresses': 'int64', 'sizes': 'int64', 'masks': 'uint32'}
# Kept attributes with one value for each array, and for each chunk.
OF_ARRAYS = ('shape', 'chunk_shape', 'is_chunked')
OF_CHUNKS = ('addresses', 'sizes', 'masks')


def index_arrays(index: PartIndex, files: Sequence[FileBytes]) -> Arrays:
    """Return the arrays from which :func:`restored_index` makes the index.

    `index`: an index in which no array is divided.
    Returns: {} if HDF5 must read some arrays, or if an array is in a file that
        is not one of `files`.
    """
    numbers = {file: number for number, file in enumerate(files)}
    if index.obstacle or any(
            file not in numbers for file in index.open_files()):
        return {}
    places = numpy.array([numbers[file] for file in index.open_files()])
    # The number of one array of each kind, from which the kind is read again.
    _, first = numpy.unique(index.kind, return_index=True)
    return {name: getattr(index, name) for name in KEPT} | {
        'file': places[index.file], 'examples': first}


def restored_index(arrays: Arrays, files: Sequence[FileBytes],
                   datasets: Sequence[h5py.Dataset]) -> PartIndex | None:
    """Return the index from which :func:`index_arrays` made `arrays`.

    `arrays`: the result of :func:`index_arrays`, which may be damaged.
    Returns: None if the arrays are not sound, if Fuel cannot read the data
        sets directly now, or if HDF5 has other metadata of the first or the
        last data set.
    """
    if not _are_sound(arrays, files, len(datasets)):
        return None
    kinds = [array_kind(datasets[int(array)]) for array in arrays['examples']]
    if any(kind.layout.obstacle or kind.stored != kinds[0].stored
           for kind in kinds):
        return None
    index = PartIndex.of(datasets, files, kinds, {
        name: arrays[name] for name in KEPT})
    if not _are_whole(index):
        return None
    ends = [0, len(datasets) - 1]
    now = PartIndex([datasets[array] for array in ends])
    is_same = not now.obstacle and all(
        _is_like(index, array, now, number)
        for number, array in enumerate(ends))
    return index if is_same else None


def _is_like(index: PartIndex, array: int, now: PartIndex,
             number: int) -> bool:
    """Return whether two indexes have the same metadata of an array.

    `array`: number of the array in `index`.
    `number`: number of the array in `now`.
    """
    mine = slice(*index.first_chunks[array:array + 2].tolist())
    other = slice(*now.first_chunks[number:number + 2].tolist())
    return (
        index.files[int(index.file[array])] is now.files[
            int(now.file[number])]
        and index.kind_of(array).stored == now.kind_of(number).stored
        and all(numpy.array_equal(
            getattr(index, name)[array], getattr(now, name)[number])
            for name in OF_ARRAYS)
        and all(numpy.array_equal(
            getattr(index, name)[mine], getattr(now, name)[other])
            for name in OF_CHUNKS))


def _are_whole(index: PartIndex) -> bool:
    """Return whether all chunks without filters are stored in full, and no
    chunk is too large for an address."""
    nbytes = index.chunk_shape.astype(float).prod(axis=1) * (
        index.kinds[0].stored.itemsize)
    is_plain = numpy.array([not kind.layout.filters for kind in index.kinds])
    numbers = numpy.repeat(
        numpy.arange(len(index.file)), numpy.diff(index.first_chunks))
    is_cut = (index.sizes < nbytes[numbers]) & (index.addresses >= 0)
    return bool((nbytes < 2. ** 62).all()) and not (
        is_cut & is_plain[index.kind[numbers]]).any()


def _are_sound(arrays: Arrays, files: Sequence[FileBytes],
               count: int) -> bool:
    """Return whether arrays can be an index of data sets in `files`.

    They must fit each other, and all chunks must end within their files.

    `count`: number of the data sets of the index.
    """
    if {*KEPT, 'examples'} - arrays.keys() or any(
            arrays[name].dtype != dtype for name, dtype in KEPT.items()):
        return False
    file, kind, first, examples = (
        arrays[name] for name in ('file', 'kind', 'first_chunks', 'examples'))
    limits = ((file, len(files)), (kind, len(examples)), (examples, count))
    if not _have_shapes(arrays, count) or any(
            len(one) and not 0 <= one.min() <= one.max() < limit
            for one, limit in limits):
        return False
    shape, chunk_shape = arrays['shape'], arrays['chunk_shape']
    grid = numpy.where(
        arrays['is_chunked'][:, None],
        -(-shape // numpy.maximum(chunk_shape, 1)), 1).prod(axis=1)
    if (first[0] != 0 or first[-1] != len(arrays['addresses'])
            or shape.min() < 0 or chunk_shape.min() < 0
            or (numpy.diff(first) != grid).any()
            or (chunk_shape != shape)[~arrays['is_chunked']].any()):
        return False
    return _are_inside(arrays['addresses'], arrays['sizes'], numpy.repeat(
        numpy.array([one.size for one in files], numpy.int64)[file],
        numpy.diff(first)))


def _have_shapes(arrays: Arrays, count: int) -> bool:
    """Return whether the arrays of an index have shapes that fit each other.

    `count`: number of the data sets of the index.
    """
    shape = arrays['shape'].shape
    wanted = {
        'file': (count,), 'kind': (count,), 'is_chunked': (count,),
        'first_chunks': (count + 1,), 'chunk_shape': shape,
        **dict.fromkeys(OF_CHUNKS, arrays['addresses'].shape)}
    return (len(shape) == 2 and shape[0] == count
            and arrays['addresses'].ndim == arrays['examples'].ndim == 1
            and arrays['examples'].dtype.kind == 'i'
            and all(arrays[name].shape == one
                    for name, one in wanted.items()))


def _are_inside(addresses: NDArray[Any], sizes: NDArray[Any],
                ends: NDArray[Any]) -> bool:
    """Return whether all chunks end within their files.

    `ends`: for each chunk, the size of its file.
    """
    stops = numpy.where(addresses >= 0, addresses + sizes, 0)
    return bool((addresses >= OUTSIDE).all() and (sizes >= 0).all()
                and (stops >= 0).all() and (stops <= ends).all())
