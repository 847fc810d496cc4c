"""Rows that are stored in groups which are decoded whole.

Row groups of Parquet and chunks of Zarr are such groups, and so are the record
batches of Arrow: other libraries decode them, and what was decoded is kept.
"""
from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

from fuel.kernels import take
from fuel.storage.reader import Reader, own_objects
from fuel.utils.forks import Step, at_fork, for_each

#: Returns the rows of a group, by its number.
ReadGroup: TypeAlias = Callable[[int], NDArray[Any]]
#: Raises an error if what stores some rows has changed since it was opened.
CheckRows: TypeAlias = Callable[[NDArray[numpy.intp]], None]

# What an object in an array takes beside its data, about.
OBJECT_BYTES = 64


class GroupedReader(Reader):
    """Rows of one source, in groups.

    Where all rows fit in the budget they become one array, each group decoded
    when it is first needed. Otherwise groups are remembered, and those not
    used for longest are dropped.

    `lengths`: number of rows in each group.
    `read_group`: decodes a group. The array may be read-only, and a view.
    `budget`: bytes for what is decoded.
    `check`: called with rows that were read, before they are returned.
    """

    def __init__(self, path: str, name: str, shape: tuple[int, ...],
                 dtype: numpy.dtype[Any], lengths: Sequence[int],
                 read_group: ReadGroup, budget: int,
                 check: CheckRows | None = None) -> None:
        super().__init__(path, name, shape, dtype)
        self._starts = numpy.concatenate(
            [[0], numpy.cumsum(lengths, dtype=numpy.intp)]).astype(numpy.intp)
        self._read_group = read_group
        self._budget = budget
        self._check = check
        self._used = 0
        self._groups: OrderedDict[int, NDArray[Any]] = OrderedDict()
        # All rows, of which the groups that are missing are to be decoded.
        self._rows: NDArray[Any] | None = None
        self._missing: NDArray[numpy.bool_] | None = None
        self._unlock()
        _readers.add(self)

    def _unlock(self) -> None:
        """Make a new lock, for a child made by a fork."""
        self._lock = threading.RLock()

    @property
    def num_groups(self) -> int:
        """Number of groups (int)."""
        return len(self._starts) - 1

    def _resident_rows(self) -> NDArray[Any] | None:
        """Return the array of all rows, None if there is none to be."""
        if self._rows is not None:
            return self._rows
        if self.num_groups == 1:
            self._rows = self._decode(0)
        elif not self.dtype.hasobject and (
                self.dtype.itemsize * int(numpy.prod(self.shape))
                <= self._budget):
            self._rows = numpy.empty(self.shape, self.dtype)
            self._missing = numpy.ones(self.num_groups, bool)
        return self._rows

    def _decode(self, group: int) -> NDArray[Any]:
        """Return the rows of a group, checked."""
        rows = self._read_group(group)
        length = int(self._starts[group + 1] - self._starts[group])
        if rows.shape != (length, *self.shape[1:]):
            raise self._damaged(
                int(self._starts[group]),
                f'group {group} has the shape {rows.shape} in the place of '
                f'{(length, *self.shape[1:])}')
        return rows

    def _fill(self, rows: NDArray[Any], missing: NDArray[numpy.bool_],
              groups: NDArray[numpy.intp]) -> None:
        """Decode those of some groups that are missing in all rows."""
        for group in numpy.unique(groups[missing[groups]]).tolist():
            rows[self._starts[group]:self._starts[group + 1]] = self._decode(
                group)
            missing[group] = False
        if not missing.any():
            self._missing = None

    def _group(self, group: int) -> NDArray[Any]:
        """Return the rows of a group, decoded unless it is remembered."""
        found = self._groups.get(group)
        if found is not None:
            self._groups.move_to_end(group)
            return found
        found = self._decode(group)
        self._groups[group] = found
        self._used += _size(found)
        while self._used > self._budget and len(self._groups) > 1:
            _, dropped = self._groups.popitem(last=False)
            self._used -= _size(dropped)
        return found

    def _read_list(self, rows: NDArray[numpy.intp]) -> NDArray[Any]:
        if not len(rows):
            return numpy.empty((0, *self.shape[1:]), self.dtype)
        self._check_rows(int(rows.min()), int(rows.max()))
        with self._lock:
            batch = self._copy(rows)
        if self._check is not None:
            self._check(rows)
        return own_objects(batch)

    def _copy(self, rows: NDArray[numpy.intp]) -> NDArray[Any]:
        resident = self._resident_rows()
        if resident is not None and self._missing is None:
            return take(resident, rows)
        groups = numpy.searchsorted(self._starts, rows, side='right') - 1
        if resident is not None and self._missing is not None:
            self._fill(resident, self._missing, groups)
            return take(resident, rows)
        batch = numpy.empty((len(rows), *self.shape[1:]), self.dtype)
        for group in numpy.unique(groups).tolist():
            places = numpy.flatnonzero(groups == group)
            batch[places] = self._group(group)[
                rows[places] - self._starts[group]]
        return batch

    def _read_range(self, start: int, stop: int) -> NDArray[Any]:
        return self._read_list(numpy.arange(start, stop, dtype=numpy.intp))


def _size(rows: NDArray[Any]) -> int:
    """Return about how many bytes decoded rows take."""
    if not rows.dtype.hasobject:
        return rows.nbytes
    return rows.nbytes + sum(
        OBJECT_BYTES + (element.nbytes if isinstance(element, numpy.ndarray)
                        else len(element) if hasattr(element, '__len__')
                        else 0)
        for element in rows)


_readers: weakref.WeakSet[GroupedReader] = weakref.WeakSet()
at_fork(Step.OWNERSHIP, in_child=for_each(_readers, GroupedReader._unlock))
