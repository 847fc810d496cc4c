"""Allocate the arrays of the last stage of a pipeline.

A stage that makes a new array of known shape calls :func:`empty` to allocate
it. In a worker process the array may then lie in the memory that the consumer
reads, which saves a copy. Anywhere else it is an ordinary array.
"""
from __future__ import annotations

import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy
from numpy.typing import NDArray

import fuel.kernels.memory as memory_


class Outputs(ABC):
    """Memory in which the stages of one batch may place their arrays.

    `takes_rows`: whether the rows that the data set reads are placed in this
        memory too. They are if no stage makes other rows of them.
    """

    takes_rows = False

    @abstractmethod
    def give(self, nbytes: int) -> NDArray[numpy.uint8] | None:
        """Return memory of `nbytes` bytes; None if no such memory is left.

        The returned array must be the base of all its views.
        """


class Placement(Outputs):
    """Regions of one slot, in which the stages of one batch place arrays.

    `memory`: the slot.
    `regions`: offset and size of each region, in bytes. Regions that extend
        beyond the end of the slot are left out.
    `references`: weak references to the arrays that :meth:`give` returned.
    """

    def __init__(self, memory: NDArray[Any],
                 regions: Sequence[tuple[int, int]],
                 takes_rows: bool = False) -> None:
        self.memory = memory
        self.regions = [(offset, nbytes) for offset, nbytes in regions
                        if offset + nbytes <= memory.nbytes]
        self.takes_rows = takes_rows
        self.references: list[Any] = []
        self._given: list[tuple[int, int]] = []

    def give(self, nbytes: int) -> NDArray[numpy.uint8] | None:
        """Return a region of `nbytes` bytes; None if there is none."""
        fitting = [region for region in self.regions if region[1] == nbytes]
        if not fitting:
            return None
        offset = fitting[0][0]
        self.regions.remove(fitting[0])
        # An array that is made of a memoryview is the base of all its views,
        # and of their views. So the region is in use exactly as long as this
        # array lives. (A slice of another array would not be their base: NumPy
        # makes the other array the base.)
        memory: Any = self.memory[offset:offset + nbytes]
        region = numpy.asarray(memoryview(memory))
        self.references.append(weakref.ref(region))
        self._given.append((offset, offset + nbytes))
        return region

    def get_kept(self) -> list[tuple[int, int]]:
        """Return start and end of each region that is still referenced."""
        return [extent for reference, extent in zip(
            self.references, self._given, strict=True)
            if reference() is not None]

    def is_free(self) -> bool:
        """Return whether none of the regions is still referenced."""
        return all(reference() is None for reference in self.references)


class _Local(threading.local):
    """The memory that is offered to the stages of a thread."""

    outputs: Outputs | None = None


_local = _Local()


class placed:  # noqa: N801 - used as a function
    """Offer memory to the stages that run in this thread."""

    def __init__(self, outputs: Outputs | None) -> None:
        self.outputs = outputs

    def __enter__(self) -> None:
        _local.outputs = self.outputs
        if self.outputs is not None and self.outputs.takes_rows:
            memory_.place_rows(partial(_place, self.outputs))

    def __exit__(self, *_: object) -> None:
        _local.outputs = None
        if self.outputs is not None and self.outputs.takes_rows:
            memory_.place_rows(None)


def empty(shape: Any, dtype: Any) -> NDArray[Any]:
    """Return a new array, whose contents are arbitrary."""
    outputs = _local.outputs
    if outputs is not None:
        array = _place(outputs, shape, numpy.dtype(dtype))
        if array is not None:
            return array
    return memory_.empty(shape, dtype)


def _place(outputs: Outputs, shape: Any,
           dtype: numpy.dtype[Any]) -> NDArray[Any] | None:
    if dtype.hasobject:
        return None
    dimensions = (shape,) if isinstance(shape, int) else tuple(shape)
    nbytes = dtype.itemsize
    for length in dimensions:
        nbytes *= int(length)
    region = outputs.give(nbytes) if nbytes else None
    return None if region is None else region.view(dtype).reshape(dimensions)
