"""Columns of numbers that are packed into fewer bits, as in netCDF."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import h5py
import numpy
from numpy.typing import NDArray

from fuel.datasets.columns.base import PathColumn
from fuel.datasets.columns.parts import FileParts
from fuel.datasets.columns.readers import ChangedReader
from fuel.storage import Reader
from fuel.storage.attributes import read_attribute
from fuel.storage.reader import part_numbers

MISSING = ('_FillValue', 'missing_value')


@dataclass(frozen=True, repr=False)
class Scaled(PathColumn):
    """Numbers that are packed as in netCDF: value = stored * scale + offset.

    Parameters
    ----------
    path : str
        Path of an array with the attributes ``scale_factor``,
        ``add_offset``, ``_FillValue`` and ``missing_value`` of netCDF. An
        attribute that is missing has no effect.

    Notes
    -----
    The type is NumPy's common type of the stored numbers and both attributes:
    float64 if the attributes are float64, float32 if the attributes are
    float32 and the stored numbers int16. A missing value is NaN. Each file has
    its own attributes.
    """

    def open(self, parts: FileParts, name: str) -> Reader:
        """Return a reader of the rows."""
        arrays = parts.arrays(self.path)
        reader = parts.open(self.path, name)
        if reader.dtype.kind not in 'iuf':
            raise ValueError(
                f'{parts.describe(0)}: {self.path!r} must have numbers to be '
                f'scaled, got {reader.dtype}')
        packings = [Packing(parts.describe(number), array)
                    for number, array in enumerate(arrays)]
        if not any(packing.given for packing in packings):
            return reader
        packed = PackedParts(reader, packings)
        return ChangedReader(reader, dtype=packed.dtype, change=packed.unpack)


class Packing:
    """The attributes that say how an array is packed.

    `given`: the attributes that the array has, by name, with one axis each.
    """

    def __init__(self, where: str, array: h5py.Dataset) -> None:
        self.given: dict[str, NDArray[Any]] = {}
        for name in ('scale_factor', 'add_offset', *MISSING):
            value = read_attribute(array, name)
            if value is None:
                continue
            numbers = numpy.atleast_1d(value)
            if numbers.dtype.kind not in 'iuf' or numbers.ndim > 1 or (
                    len(numbers) != 1 and name not in MISSING):
                raise ValueError(
                    f'{where}, {array.name!r}: the attribute {name!r} should '
                    f'be a number, got {value!r}')
            self.given[name] = numbers

    def number(self, name: str, default: float) -> Any:
        """Return the number of an attribute."""
        return self.given[name][0] if name in self.given else default

    def missing(self, dtype: numpy.dtype[Any]) -> list[Any]:
        """Return the numbers that stand for missing values in an array of a
        type."""
        numbers = [one for name in MISSING
                   for one in self.given.get(name, numpy.empty(0)).tolist()]
        # The array cannot contain numbers that its type does not hold.
        return [one for one in dict.fromkeys(numbers) if one == one and (
            dtype.kind == 'f' or ((isinstance(one, int) or one.is_integer())
                                  and numpy.iinfo(dtype).min <= one
                                  <= numpy.iinfo(dtype).max))]


class PackedParts:
    """Parts that are packed, each in its own way.

    `reader`: reader of the numbers as they are stored.
    `dtype`: type of the unpacked numbers.
    """

    def __init__(self, reader: Reader, packings: Sequence[Packing]) -> None:
        types = [packing.given[name].dtype for packing in packings
                 for name in ('scale_factor', 'add_offset')
                 if name in packing.given]
        dtype = numpy.result_type(reader.dtype, *types)
        missing = [packing.missing(reader.dtype) for packing in packings]
        if any(missing):
            # Integers have no NaN.
            dtype = numpy.result_type(dtype, numpy.float32) if (
                dtype.kind != 'f') else dtype
        self.dtype = dtype
        self._bounds = reader.part_bounds
        self._scales, self._offsets = [
            numpy.array([packing.number(name, default)
                         for packing in packings], dtype)
            for name, default in (('scale_factor', 1), ('add_offset', 0))]
        # One packing for all parts, or one for each part.
        width = max(map(len, missing))
        self._missing = numpy.array(
            [[one[place % len(one)] if one else 0 for place in range(width)]
             for one in missing], reader.dtype)
        self._has_missing = numpy.array([bool(one) for one in missing])
        self._is_scaled = bool((self._scales != 1).any())
        self._is_moved = bool((self._offsets != 0).any())

    def unpack(self, rows: NDArray[Any],
               numbers: NDArray[numpy.intp]) -> NDArray[Any]:
        """Return unpacked numbers.

        `rows`: the numbers as they are stored.
        `numbers`: the numbers of the rows.
        """
        parts: Any = 0
        shape: tuple[int, ...] = ()
        if len(self._scales) > 1:
            parts = part_numbers(self._bounds, numbers)
            shape = -1, *[1] * (rows.ndim - 1)
        is_missing = [
            (rows == self._missing[parts, place].reshape(shape))
            & self._has_missing[parts].reshape(shape)
            for place in range(self._missing.shape[1])]
        result = rows.astype(self.dtype, copy=False)
        if self._is_scaled:
            result *= self._scales[parts].reshape(shape)
        if self._is_moved:
            result += self._offsets[parts].reshape(shape)
        for where in is_missing:
            result[where] = numpy.nan
        return result
