"""Where the last stage of a pipeline puts its arrays.

A stage that makes a new array of known shape asks :func:`empty` for it.  In
a worker process the array may then lie in the memory that the consumer
reads, so that nothing is copied; anywhere else it is an ordinary array.
"""
from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

import fuel.kernels.memory as memory_

_local = threading.local()


class Placement:
    """Regions of one slot, offered to the stages of one batch.

    `references`: to the arrays that were given out.
    """

    def __init__(self, memory: NDArray[Any],
                 regions: Sequence[tuple[int, int]]) -> None:
        self.memory = memory
        self.regions = list(regions)
        self.references: list[Any] = []
        self._given: list[tuple[int, int]] = []

    def give(self, shape: tuple[int, ...], dtype: numpy.dtype[Any],
             nbytes: int) -> NDArray[Any] | None:
        """Return an array in a region, if one has its size."""
        fitting = [region for region in self.regions if region[1] == nbytes]
        if not fitting:
            return None
        offset = fitting[0][0]
        self.regions.remove(fitting[0])
        # Made of a memoryview, this is the base of every view of it, and of
        # views of these: the region is in use exactly as long as it lives.
        # (An array in memory of another array is not: views skip it.)
        memory: Any = self.memory[offset:offset + nbytes]
        region = numpy.asarray(memoryview(memory))
        self.references.append(weakref.ref(region))
        self._given.append((offset, offset + nbytes))
        return region.view(dtype).reshape(shape)

    def get_kept(self) -> list[tuple[int, int]]:
        """Return from where to where arrays lie that somebody holds."""
        return [extent for reference, extent in zip(
            self.references, self._given, strict=True)
            if reference() is not None]

    def is_free(self) -> bool:
        """Return whether nobody holds an array that was given out."""
        return all(reference() is None for reference in self.references)


class placed:  # noqa: N801 - used as a function
    """Offer the regions of a slot to the stages that run in this thread."""

    def __init__(self, placement: Placement | None) -> None:
        self.placement = placement

    def __enter__(self) -> None:
        _local.placement = self.placement

    def __exit__(self, *_: object) -> None:
        _local.placement = None


def empty(shape: Any, dtype: Any) -> NDArray[Any]:
    """Return a new array, whose contents are arbitrary."""
    placement = getattr(_local, 'placement', None)
    if placement is not None:
        array = _place(placement, shape, numpy.dtype(dtype))
        if array is not None:
            return array
    return memory_.empty(shape, dtype)


def _place(placement: Placement, shape: Any,
           dtype: numpy.dtype[Any]) -> NDArray[Any] | None:
    if dtype.hasobject:
        return None
    dimensions = (shape,) if isinstance(shape, int) else tuple(shape)
    nbytes = dtype.itemsize
    for length in dimensions:
        nbytes *= int(length)
    return placement.give(dimensions, dtype, nbytes) if nbytes else None
