"""Columns of the rows of arrays, counted by one axis or several axes."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import h5py
import numpy
from numpy.typing import NDArray

from fuel.datasets.columns.base import PathColumn
from fuel.datasets.columns.parts import FileParts, read_whole
from fuel.datasets.columns.readers import ChangedReader, with_text
from fuel.datasets.row_orders import IndexArray
from fuel.storage import Reader, open_parts
from fuel.storage.attributes import labels_of_batch, own_labels
from fuel.storage.chunk_cache import default_budget
from fuel.storage.file_bytes import raw_file
from fuel.storage.layout import (
    dataset_name, discover, native_type, stored_type)
from fuel.storage.mapped import ArrayReader, MappedReader, one_part
from fuel.storage.reader import (
    PartsReader, StoredPieces, as_objects, own_objects, part_numbers)
from fuel.suggestions import did_you_mean
from fuel.utils.checks import any_integer

# The numbers of pieces of each part begin at a multiple of this.
PIECES_OF_PART = 1 << 40


@dataclass(frozen=True, repr=False)
class Rows(PathColumn):
    """Rows of an array.

    Parameters
    ----------
    path : str
        Path of the array, in the file or below each part.
    field : str or list of str, optional
        Field of an array of a compound type, or a list of fields, which are
        read as a compound type. Defaults to whole elements.
    axis : int, optional
        The axis that counts examples. Defaults to the first; in files of
        MATLAB it is the last, -1.
    start, stop : int, optional
        Slice of the rows to read in each part. If an episode has one more
        observation than actions, ``stop=-1`` leaves out the last observation,
        and ``start=1`` gives the next observation of each step.
    ragged : bool, optional
        Whether parts may also differ in the lengths of the other axes; a batch
        is then an array of arrays. Defaults to False.

    Notes
    -----
    Text of variable length becomes ``str``. Text of fixed length becomes bytes
    of NumPy, as wide as in the widest part.
    """

    field: str | Sequence[str] | None = None
    axis: int = 0
    start: int | None = None
    stop: int | None = None
    ragged: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_flag('ragged')
        fields = [self.field] if isinstance(self.field, str) else self.field
        if fields is not None and (
                not isinstance(fields, (list, tuple)) or not all(
                    isinstance(field, str) for field in fields)):
            raise TypeError(
                f'field of Rows({self.path!r}) must be the name of a field, '
                f'or a list of names, got {self.field!r}')
        for name in ('axis', 'start', 'stop'):
            value = getattr(self, name)
            if value is not None or name == 'axis':
                # A plain integer, which the repr shows.
                object.__setattr__(self, name, any_integer(
                    f'{name} of Rows({self.path!r})', value))

    @property
    def is_plain(self) -> bool:
        """Whether the column can be written as its path alone (bool)."""
        return self == Rows(self.path)

    def first_rows(self, parts: FileParts) -> IndexArray | int:
        """Return, for each part, the row of its array that is the first row of
        the part; one number if it is the same in all parts."""
        start = self.start or 0
        if start >= 0:
            return start
        # Counted from the end, which differs from array to array.
        return numpy.array([
            max(0, start + array.shape[self._axis_of(parts, number, array)])
            for number, array in enumerate(parts.arrays(self.path))],
            numpy.intp)

    def indexed(self) -> Sequence[str]:
        """Return the path of the array; none if each part has a reader of
        its own."""
        return [] if self.axis or self.ragged else [self.path]

    def open(self, parts: FileParts, name: str) -> Reader:
        """Return a reader of the rows."""
        arrays = parts.arrays(self.path)
        first = arrays[0]
        self._check_field(parts, first)
        # Types may differ only if they are text of fixed length.
        types = {array.dtype for array in arrays} if (
            first.dtype.kind == 'S' and len(parts) > 1) else {first.dtype}
        are_bytes = all(dtype.kind == 'S' for dtype in types)
        if self.axis == 0 and not self.ragged and not (
                are_bytes and len(types) > 1):
            return parts.open(self.path, name, field=self.field,
                              start=self.start, stop=self.stop)
        return self._open_apart(parts, name, arrays, are_bytes)

    def _open_apart(self, parts: FileParts, name: str,
                    arrays: Sequence[h5py.Dataset],
                    are_bytes: bool) -> Reader:
        """Return a reader of parts that have one reader each."""
        axes = [self._axis_of(parts, number, array)
                for number, array in enumerate(arrays)]
        shapes = [(*array.shape[:axis], *array.shape[axis + 1:])
                  for axis, array in zip(axes, arrays, strict=True)]
        first = _picked_type(arrays[0].dtype, self.field)
        for number, array in enumerate(arrays):
            dtype = _picked_type(array.dtype, self.field)
            if (dtype != first and not are_bytes) or (
                    shapes[number] != shapes[0] and not self.ragged):
                raise ValueError(
                    f'source {name!r}: all parts must have rows of one type '
                    f'and shape, but {parts.describe(0)} has {first} of '
                    f'shape {shapes[0]}, and {parts.describe(number)} has '
                    f'{dtype} of shape {shapes[number]}')
        if are_bytes:
            first = max((array.dtype for array in arrays),
                        key=lambda dtype: dtype.itemsize)
        counts = [len(range(array.shape[axis])[self.start:self.stop])
                  for axis, array in zip(axes, arrays, strict=True)]

        def open_part(number: int) -> Reader:
            array = arrays[number]
            if axes[number] == 0:
                return with_text(open_parts(
                    [array], name, field=self.field, start=self.start,
                    stop=self.stop, cache_bytes=parts.cache_bytes), array)
            reader = AxisReader(array, axes[number], parts.cache_bytes)
            rows = range(len(reader))[self.start:self.stop]
            return with_text(_pick(reader, rows, self.field), array)

        return open_apart(parts, name, counts, None if self.ragged
                          else shapes[0], native_type(first), open_part)

    def labels(self, parts: FileParts) -> tuple[str, ...] | None:
        """Return the labels of the axes of a batch, None without any."""
        array = parts.array(0, self.path)
        found = list(own_labels(array))
        found.insert(0, found.pop(self._axis_of(parts, 0, array)))
        return labels_of_batch(found)

    def _axis_of(self, parts: FileParts, number: int,
                 array: h5py.Dataset) -> int:
        """Return the axis that counts rows, from 0."""
        if not -array.ndim <= self.axis < array.ndim:
            raise ValueError(
                f'{parts.describe(number)}: {self.path!r} has {array.ndim} '
                f'axes, and none is number {self.axis}')
        return self.axis % int(array.ndim)

    def _check_field(self, parts: FileParts, array: h5py.Dataset) -> None:
        known = array.dtype.names or ()
        fields = [self.field] if isinstance(self.field, str) else (
            self.field or ())
        for field in fields:
            if field not in known:
                raise ValueError(
                    f'{parts.describe(0)}: {self.path!r} has no field '
                    f'{field!r}{did_you_mean(field, known, " ({})")}; it has '
                    f'{", ".join(map(repr, known)) or "no fields"}')


def _picked_type(dtype: numpy.dtype[Any],
                 field: str | Sequence[str] | None) -> numpy.dtype[Any]:
    """Return the type of fields of a compound type."""
    if field is None:
        return dtype
    if isinstance(field, str):
        return dtype[field]
    return numpy.dtype([(name, dtype[name]) for name in field])


def _pick(reader: Reader, rows: range,
          field: str | Sequence[str] | None) -> Reader:
    """Return a reader of a range of another reader's rows, with all or some of
    their fields."""
    dtype = native_type(_picked_type(reader.dtype, field))

    def change(found: NDArray[Any], _: IndexArray) -> NDArray[Any]:
        if field is None:
            return found
        if isinstance(field, str):
            return numpy.ascontiguousarray(found[field])
        return found[list(field)].astype(dtype)

    return ChangedReader(
        reader, (len(rows), *reader.shape[1:]), dtype,
        places=lambda places: places + rows.start, change=change,
        bounds=numpy.array([0, len(rows)], numpy.intp))


def stored_names(array: h5py.Dataset) -> list[Any]:
    """Return a whole array of names or numbers, text as ``str``."""
    return [value.decode('utf-8', 'surrogateescape')
            if isinstance(value, bytes) else value
            for value in read_whole(array).tolist()]


class OpenedParts:
    """Parts with one reader each, which is opened when it is needed.

    `bounds`: the first row of each part, and the end of the last.
    `open_part`: takes the number of a part; returns the reader of the part.
    `is_ragged`: whether rows have different shapes.
    """

    def __init__(self, parts: FileParts, bounds: NDArray[numpy.intp],
                 open_part: Callable[[int], Reader], is_ragged: bool) -> None:
        self._parts, self._bounds = parts, bounds
        self._open_part = open_part
        self._is_ragged = is_ragged
        self._readers: dict[int, Reader] = {}

    def _reader(self, number: int) -> Reader:
        reader = self._readers.get(number)
        if reader is None:
            reader = self._readers[number] = self._open_part(number)
        return reader

    def pieces(self, rows: NDArray[numpy.intp]) -> StoredPieces | None:
        """See :meth:`Reader.pieces`; a part without pieces counts as one
        piece."""
        parts = part_numbers(self._bounds, rows)
        numbers = parts * PIECES_OF_PART
        known: list[StoredPieces] = []
        for part in numpy.unique(parts).tolist():
            places = numpy.flatnonzero(parts == part)
            found = self._reader(part).pieces(
                rows[places] - self._bounds[part])
            if found is not None:
                numbers[places] += found.numbers
                known.append(found)
        if not known:
            return None
        return max(known, key=lambda found: found.cost)._replace(
            numbers=numbers)

    def read(self, part: int, rows: NDArray[numpy.intp]) -> Any:
        """Return rows of a part, counted from its first row."""
        found = self._reader(part).read(rows)
        self._parts.check(part)
        if not self._is_ragged:
            return found
        return as_objects([numpy.array(row) for row in found])


def open_apart(parts: FileParts, name: str, counts: Sequence[int],
               example_shape: tuple[int, ...] | None,
               element_type: numpy.dtype[Any],
               open_part: Callable[[int], Reader]) -> Reader:
    """Return a reader of parts, each with a reader of its own.

    `counts`: number of rows of each part.
    `example_shape`: shape of a row; None if it differs from part to part, so
        that a batch is an array of arrays.
    `element_type`: type of the elements of a row.
    `open_part`: see :class:`OpenedParts`.
    """
    bounds = numpy.cumsum([0, *counts]).astype(numpy.intp)
    is_ragged = example_shape is None
    reader = PartsReader(
        parts.path_of(0), name, example_shape or (),
        numpy.dtype(object) if is_ragged else element_type,
        OpenedParts(parts, bounds, open_part, is_ragged), bounds,
        parts.files.all_bytes())
    reader.element_type = element_type if is_ragged else None
    return reader


class AxisReader(Reader):
    """Rows along another axis than the first.

    Rows of a contiguous array are copied out of the file. Any other array is
    read as a whole, once, if it fits into the budget for decoded chunks.
    """

    def __init__(self, array: h5py.Dataset, axis: int,
                 cache_bytes: int | None) -> None:
        shape = array.shape
        super().__init__(array.file.filename, dataset_name(array),
                         (shape[axis], *shape[:axis], *shape[axis + 1:]),
                         array.dtype)
        self._array, self._axis = array, axis
        self._rows = _map_axis(array, axis)
        budget = default_budget() if cache_bytes is None else cache_bytes
        self._is_kept = array.size * array.dtype.itemsize <= budget

    def _read_list(self, rows: NDArray[numpy.intp]) -> NDArray[Any]:
        self._check_list(rows)
        if self._rows is None and self._is_kept:
            self._rows = ArrayReader(
                self.path, self.name, self._moved(self._array[()]))
        if self._rows is not None:
            found: NDArray[Any] = self._rows.read(rows)
            return found
        unique, places = numpy.unique(rows, return_inverse=True)
        found = self._moved(
            self._array[(slice(None),) * self._axis + (unique,)])
        return own_objects(found.take(places, axis=0))

    def pieces(self, rows: NDArray[numpy.intp]) -> StoredPieces | None:
        """See :meth:`Reader.pieces`."""
        chunks = self._array.chunks
        if chunks is None or self._is_kept:
            return None
        return StoredPieces(rows // chunks[self._axis], True,
                            self._array.compression is not None,
                            self.row_nbytes)

    def _moved(self, found: NDArray[Any]) -> NDArray[Any]:
        moved: NDArray[Any] = numpy.ascontiguousarray(
            numpy.moveaxis(found, self._axis, 0), self.dtype)
        return moved


def _map_axis(array: h5py.Dataset, axis: int) -> Reader | None:
    """Return a reader of an array if it is contiguous in the file; else None.

    The kernel reads the array as chunks that have all rows each: one chunk for
    each index of the axes before the axis of rows.
    """
    layout = discover(array)
    if layout.reader != 'mapped' or layout.chunk_shape is not None:
        return None
    file, dtype = raw_file(array), stored_type(array)
    count, before, after = (array.shape[axis], array.shape[:axis],
                            array.shape[axis + 1:])
    nbytes = count * math.prod(after) * dtype.itemsize
    offset = array.id.get_offset()
    if offset + math.prod(before) * nbytes > file.size:
        return None
    addresses = offset + nbytes * numpy.arange(
        math.prod(before), dtype=numpy.int64)
    try:
        return MappedReader(file, dataset_name(array), one_part(
            (count, *before, *after), dtype, addresses,
            (count, *[1] * len(before), *after)))
    except ValueError:
        # A row would consist of too many pieces.
        return None


@dataclass(frozen=True, repr=False)
class Flat(PathColumn):
    """Rows of an array that are counted by its first axes together.

    An array with the axes (trajectory, time, ...) has a row for each time of
    each trajectory. Each trajectory is a run, unless the user names other
    runs.

    Parameters
    ----------
    path : str
        Path of the array, in the file or below each part.
    axes : int, optional
        Number of axes that become one. Defaults to 2.
    """

    divides_parts: ClassVar[bool] = True

    axes: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.axes) is not int or self.axes < 1:
            raise ValueError(
                f'axes of Flat({self.path!r}) must be an integer of at least '
                f'1, got {self.axes!r}')

    def open(self, parts: FileParts, name: str) -> Reader:
        """Return a reader of the rows."""
        return parts.open(self.path, name, axes=self.axes)

    def labels(self, parts: FileParts) -> tuple[str, ...] | None:
        """Return the labels of the axes of a batch, None without any."""
        return labels_of_batch(
            own_labels(parts.array(0, self.path))[self.axes - 1:])

    def bounds_of_parts(self, parts: FileParts, reader: Reader) -> IndexArray:
        """Return the first row of each part, and the number of rows."""
        bounds: IndexArray = reader.part_bounds[numpy.cumsum(
            [0, *self.divisions(parts).tolist()])]
        return bounds

    def divisions(self, parts: FileParts) -> IndexArray:
        """Return the number of divisions of each part: the number of indices
        of all counting axes except the last."""
        return numpy.array([math.prod(array.shape[:self.axes - 1])
                            for array in parts.arrays(self.path)], numpy.intp)
