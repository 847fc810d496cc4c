"""Columns whose first axes count rows together."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy

from fuel.datasets.columns.base import PathColumn
from fuel.datasets.columns.parts import FileParts
from fuel.datasets.row_orders import IndexArray
from fuel.storage import Reader
from fuel.storage.attributes import labels_of_batch, own_labels


@dataclass(frozen=True, repr=False)
class Flat(PathColumn):
    """Rows of an array whose first axes count them together.

    An array (trajectory, time, ...) has a row for each trajectory and time,
    and each trajectory is a run unless other runs are named.

    Parameters
    ----------
    path : str
        Of the array, in the file or below each part.
    axes : int, optional
        How many axes become one. Defaults to 2.
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
        """Return how many indices of the first axes each part has."""
        return numpy.array([math.prod(array.shape[:self.axes - 1])
                            for array in parts.arrays(self.path)], numpy.intp)
