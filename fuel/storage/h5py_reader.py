"""Readers that use h5py, for data sets of any kind."""
from __future__ import annotations

import functools
import math
import os
from collections import OrderedDict
from typing import Any

import h5py
import numpy
from numpy.typing import NDArray

from fuel.kernels import native, take
from fuel.storage.file_bytes import identity_of, other_version, raw_file
from fuel.storage.layout import (
    SWMR_OBSTACLE, Layout, dataset_name, native_type, obstacle_of_file)
from fuel.storage.paging import BLOCK
from fuel.storage.part_index import PartIndex
from fuel.storage.mapped import Field, element_of
from fuel.storage.filters import raise_unless_damage
from fuel.storage.reader import (
    Places, Reader, StoredPieces, own_objects, part_numbers)
from fuel.storage.nodes import check_virtual
from fuel.utils.h5py_file import H5PYFile

# If a request lists at least this part of the rows between its first and last
# row, all of these are read, since HDF5 needs more time to select rows than to
# read them.
DENSE = 0.5
# Number of rows that HDF5 selects at once: the time that it needs grows faster
# than the number of rows.
SELECTION = 1000
# Number of readers of parts that are cached.
MOST_READERS = 64


class H5PYReader(Reader):
    """Reader of the rows of any data set that h5py can read.

    HDF5 requires ascending indices. So each row is read once, in ascending
    order, and the rows are put in the requested order afterwards. Rows of
    variable length are arrays in an array of objects.
    """

    def __init__(self, dataset: h5py.Dataset, layout: Layout) -> None:
        super().__init__(dataset.file.filename, dataset_name(dataset),
                         dataset.shape, dataset.dtype)
        self.layout = layout
        self._filters = layout.filters
        self._is_written = layout.obstacle == SWMR_OBSTACLE
        self._dataset = dataset
        # Checked after each read, if Fuel can read the file itself.
        self._file = (None if obstacle_of_file(dataset)
                      else raw_file(dataset))
        self.files = () if self._file is None else (self._file,)
        # If one of these files is removed later, HDF5 returns fill values.
        self._led_to = check_virtual(dataset) if dataset.is_virtual else {}
        self._rows_at_first = len(self)
        self._elements = elements = h5py.check_vlen_dtype(dataset.dtype)
        self._is_ragged = isinstance(elements, numpy.dtype)
        self._has_fields = self._is_ragged and elements.names is not None
        self._is_swapped = (
            self._is_ragged and not elements.isnative
            and _h5py_forgets_byte_order())

    def read(self, rows: Places) -> Any:
        """See :meth:`Reader.read`."""
        # If the file is open for writing, the data set may have been resized.
        self.shape = self._dataset.shape
        if isinstance(rows, slice) and len(self) < self._rows_at_first:
            # Otherwise a batch with too few rows would not be an error.
            wanted = range(*rows.indices(self._rows_at_first))
            if wanted:
                self._check_rows(*sorted((wanted[0], wanted[-1])))
        return super().read(rows)

    def pieces(self, rows: NDArray[numpy.intp]) -> StoredPieces | None:
        """See :meth:`Reader.pieces`."""
        chunks = self._dataset.chunks
        if chunks is not None:
            return StoredPieces(rows // chunks[0], True, bool(self._filters),
                                self.row_nbytes)
        if self._file is None or not self._file.is_remote:
            return None
        step = max(1, BLOCK // max(1, self.row_nbytes))
        return StoredPieces(rows // step, False, False, self.row_nbytes)

    def _check_rows(self, low: int, high: int) -> None:
        try:
            super()._check_rows(low, high)
        except IndexError as error:
            if len(self) == self._rows_at_first:
                raise
            raise IndexError(
                f'{error}; there were {self._rows_at_first} rows when it was '
                f'opened, and it was resized since: open it again') from None

    def _read_list(self, rows: NDArray[numpy.intp]) -> NDArray[Any]:
        if not rows.size or 0 in self.shape[1:]:
            self._check_list(rows)
            return numpy.empty((len(rows), *self.shape[1:]), self.dtype)
        if (rows[1:] > rows[:-1]).all():
            return self._read_increasing(rows)
        unique, places = numpy.unique(rows, return_inverse=True)
        batch = take(self._read_increasing(unique), places)
        # Repetitions of a row must not share objects.
        return batch if len(unique) == len(rows) else own_objects(batch)

    def _read_increasing(self, rows: NDArray[numpy.intp]) -> NDArray[Any]:
        first, last = int(rows[0]), int(rows[-1])
        length = last - first + 1
        if len(rows) >= DENSE * length:
            data = self._read_range(first, last + 1)
            return data if len(rows) == length else take(data, rows - first)
        self._check_rows(first, last)
        parts = [self._select(rows[start:start + SELECTION])
                 for start in range(0, len(rows), SELECTION)]
        return parts[0] if len(parts) == 1 else numpy.concatenate(parts)

    def _read_range(self, start: int, stop: int) -> NDArray[Any]:
        if start < stop:
            self._check_rows(start, stop - 1)
        if start == stop or 0 in self.shape[1:]:
            return numpy.empty((stop - start, *self.shape[1:]), self.dtype)
        data = self._select(slice(start, stop))
        if len(data) < stop - start:
            # Another thread has resized the data set after the check.
            self.shape = self._dataset.shape
            self._check_rows(start, stop - 1)
        return data

    def _select(self, selection: slice | NDArray[numpy.intp]) -> NDArray[Any]:
        try:
            data: NDArray[Any] = self._dataset[selection]
        except ValueError:
            # The file may have been overwritten and closed.
            self._check_file()
            if not self._has_fields:
                raise
            data = self._select_each(selection)
        except (OSError, RuntimeError) as error:
            self._check_file()
            raise_unless_damage(error, self.path, self.name, self._filters)
            first = (selection.start if isinstance(selection, slice)
                     else int(selection[0]))
            reason = (f'HDF5 cannot read it or a later row of the batch: '
                      f'{error}')
            if self._is_written:
                raise OSError(
                    f'{self._place_of(first)}: {reason}; a process writes to '
                    f'the file meanwhile, so open it again') from error
            raise self._damaged(first, reason) from error
        self._check_file()
        if not self._is_ragged:
            return native(data)
        # A plain object array, without h5py's metadata on the elements' type.
        result = numpy.empty(data.size, dtype=object)
        for place, element in enumerate(data.ravel()):
            result[place] = (element.byteswap() if self._is_swapped
                             else native(element))
        return result.reshape(data.shape)

    def _select_each(self, selection: slice | NDArray[numpy.intp]
                     ) -> NDArray[Any]:
        """Read rows of variable length one at a time.

        Releases of h5py such as 3.9 cannot read an empty row whose elements
        have fields.
        """
        rows = numpy.arange(len(self))[selection]
        data = numpy.empty((len(rows), *self.shape[1:]), object)
        for place in numpy.ndindex(data.shape):
            try:
                data[place] = self._dataset[(int(rows[place[0]]), *place[1:])]
            except ValueError as error:
                if 'NULL pointer' not in str(error):
                    raise
                data[place] = numpy.empty(0, self._elements)
        return data

    def _check_file(self) -> None:
        if self._file is not None:
            self._file.check()
        for path, state in self._led_to.items():
            try:
                is_same = state == identity_of(os.stat(path))
            except FileNotFoundError:
                is_same = False
            if not is_same:
                raise other_version(path)


class JoinedArrays:
    """The rows of several data sets, read through h5py.

    `index`: metadata of the arrays.
    `arrays`, `first`: shape (parts,); for each part, the number of its array,
        and the number of rows of this array before the part.
    `bounds`: the first row of each part, and the end of the last part.
    `field`, `axes`: see :func:`~fuel.storage.open_parts`.
    `shape`, `dtype`: shape and type of a row.
    """

    def __init__(self, index: PartIndex, field: Field | None, axes: int,
                 arrays: NDArray[numpy.int64], first: NDArray[numpy.int64],
                 bounds: NDArray[numpy.intp]) -> None:
        self._index = index
        self._arrays, self._first, self._axes = arrays, first, axes
        self._bounds = bounds
        self._field = field if isinstance(field, str) or field is None else (
            list(field))
        self.dtype = index.kinds[0].dtype
        self.shape = tuple(index.shape[0, axes:].tolist())
        if field is not None:
            dtype = element_of(self.dtype, field).dtype
            self.shape = *self.shape, *dtype.shape
            self.dtype = native_type(dtype.base)
        self._readers: OrderedDict[int, H5PYReader] = OrderedDict()

    def _reader(self, array: int) -> H5PYReader:
        """Return the reader of an array; a few are cached."""
        reader = self._readers.get(array)
        if reader is None:
            reader = H5PYReader(self._index.dataset(array),
                                self._index.kind_of(array).layout)
            self._readers[array] = reader
            while len(self._readers) > MOST_READERS:
                self._readers.popitem(last=False)
        return reader

    def pieces(self, rows: NDArray[numpy.intp]) -> StoredPieces | None:
        """See :meth:`Reader.pieces`."""
        index, arrays, last = self._index, self._arrays, self._axes - 1
        if not index.is_chunked[arrays].any():
            return None
        steps = index.chunk_shape[arrays, last]
        ends = self._first + numpy.diff(self._bounds)
        counts = -(-ends // numpy.maximum(1, steps))
        parts = part_numbers(self._bounds, rows)
        numbers = (numpy.cumsum(counts) - counts)[parts] + (
            rows - self._bounds[parts] + self._first[parts]) // steps[parts]
        return StoredPieces(numbers, True, index.is_filtered, math.prod(
            self.shape) * self.dtype.itemsize)

    def read(self, part: int, rows: NDArray[numpy.intp]) -> NDArray[Any]:
        """Return rows of a part; rows are counted from its first row."""
        array = int(self._arrays[part])
        rows = rows + self._first[part]
        reader = self._reader(array)
        if self._axes == 1:
            return self._pick(reader.read(rows))
        # The index of the part along the first axes.
        place = numpy.unravel_index(
            part - int(self._arrays.searchsorted(array)),
            self._index.shape[array, :self._axes - 1])
        return self._pick(reader.read(int(place[0]))[(*place[1:], rows)])

    def _pick(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return rows; of their elements, only the source's field, if it has
        one."""
        if self._field is None:
            return rows
        picked = rows[self._field]
        return picked if isinstance(self._field, str) else picked.astype(
            self.dtype)


@functools.cache
def _h5py_forgets_byte_order() -> bool:
    """Return whether h5py returns big-endian elements of variable length with
    a native type, but without swapping the bytes (h5py 3.16 does)."""
    foreign = numpy.dtype(numpy.int16).newbyteorder('S')
    with H5PYFile('probe', 'w', driver='core', backing_store=False) as file:
        file.create_dataset('x', (1,), dtype=h5py.vlen_dtype(foreign))
        file['x'][0] = numpy.array([1], dtype=numpy.int16)
        return int(file['x'][0][0]) != 1
