"""Rows that are stored in groups which are decoded whole.

Row groups of Parquet and chunks of Zarr are such groups, and so are the record
batches of Arrow: other libraries decode them, and what was decoded is kept.
"""
from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

from fuel.kernels import take
from fuel.storage.reader import Reader, own_objects
from fuel.utils.forks import Step, each_at_fork

#: Returns the rows of a group, by its number.
ReadGroup: TypeAlias = Callable[[int], NDArray[Any]]
#: Raises an error if what stores some rows has changed since it was opened.
CheckRows: TypeAlias = Callable[[NDArray[numpy.intp]], None]

# What an object in an array takes beside its data, about.
OBJECT_BYTES = 64


class GroupCache:
    """Decoded rows of the sources of a data set that are read, within one
    budget of bytes.

    A source of which all rows fit takes its bytes when it is first read; the
    groups of others share what is left, and those not used for longest are
    forgotten. Each source keeps the group that it read last.

    `budget`: bytes.
    `lock`: held by whoever reads.
    """

    def __init__(self, budget: int) -> None:
        self._free = budget
        # Groups, with their bytes, by source and number.
        self._groups: OrderedDict[
            tuple[str, int], tuple[NDArray[Any], int]] = OrderedDict()
        self._newest: dict[str, int] = {}
        self.unlock()
        _caches.add(self)

    def unlock(self) -> None:
        """Make a new lock, for a child made by a fork."""
        self.lock = threading.RLock()

    def take(self, nbytes: int) -> bool:
        """Take bytes for all rows of a source; return whether they fit."""
        groups = sum(size for _, size in self._groups.values())
        if nbytes > self._free + groups:
            return False
        self._free -= nbytes
        self._forget()
        return True

    def find(self, source: str, group: int) -> NDArray[Any] | None:
        """Return a group, if it is remembered."""
        found = self._groups.get((source, group))
        if found is None:
            return None
        self._groups.move_to_end((source, group))
        self._newest[source] = group
        return found[0]

    def keep(self, source: str, group: int, rows: NDArray[Any]) -> None:
        """Remember a group."""
        size = _size(rows)
        self._groups[source, group] = rows, size
        self._newest[source] = group
        self._free -= size
        self._forget()

    def _forget(self) -> None:
        """Forget groups until there is room, the oldest first."""
        for source, group in list(self._groups) if self._free < 0 else ():
            if self._newest[source] != group:
                self._free += self._groups.pop((source, group))[1]
                if self._free >= 0:
                    return


class GroupedReader(Reader):
    """Rows of one source, in groups.

    Where all rows fit in the budget they become one array, each group decoded
    when it is first needed. Otherwise groups are remembered, and those not
    used for longest are dropped.

    `lengths`: number of rows in each group.
    `read_group`: decodes a group. The array may be read-only, and a view.
    `cache`: of what is decoded, of all sources.
    `check`: called with rows that were read, before they are returned.
    """

    def __init__(self, path: str, name: str, shape: tuple[int, ...],
                 dtype: numpy.dtype[Any], lengths: Sequence[int],
                 read_group: ReadGroup, cache: GroupCache,
                 check: CheckRows | None = None) -> None:
        super().__init__(path, name, shape, dtype)
        self._starts = numpy.concatenate(
            [[0], numpy.cumsum(lengths, dtype=numpy.intp)]).astype(numpy.intp)
        self._read_group = read_group
        self._cache = cache
        self._check = check
        # All rows, of which the groups that are missing are to be decoded.
        self._rows: NDArray[Any] | None = None
        self._missing: NDArray[numpy.bool_] | None = None

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
        elif not self.dtype.hasobject and self._cache.take(
                self.dtype.itemsize * math.prod(self.shape)):
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
        found = self._cache.find(self.name, group)
        if found is None:
            found = self._decode(group)
            self._cache.keep(self.name, group, found)
        return found

    def _read_list(self, rows: NDArray[numpy.intp]) -> NDArray[Any]:
        if not len(rows):
            return numpy.empty((0, *self.shape[1:]), self.dtype)
        self._check_rows(int(rows.min()), int(rows.max()))
        with self._cache.lock:
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


_caches = each_at_fork(Step.OWNERSHIP, in_child=GroupCache.unlock)
