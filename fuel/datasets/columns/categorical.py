"""Columns whose values are numbers that stand for names."""
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
from fuel.datasets.columns.rows import stored_names
from fuel.storage import Reader, open_parts
from fuel.storage.attributes import read_attribute
from fuel.storage.nodes import Node
from fuel.storage.reader import part_numbers
from fuel.utils.hdf5_errors import damaged

TYPES = ('int8', 'int16', 'int32')


@dataclass(frozen=True, repr=False)
class Categorical(PathColumn):
    """Categories: numbers that stand for names, and -1 where one is missing.

    Parameters
    ----------
    path : str
        Path of a group of ``codes`` and ``categories``, as AnnData writes it,
        or of an array of codes.
    names : str or list of str, optional
        Path of the array of names, or the names themselves. Defaults to the
        categories in the group, or to the names that an attribute of the
        array refers to.

    Notes
    -----
    Codes have the smallest type among int8, int16 and int32 that can number
    all names. The names are in ``dataset.categories[source]``. If parts have
    different names, the names are united in the order in which they occur, so
    that a code means the same name in all parts. Codes do not depend on
    splits.
    """

    names: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.names, str):
            self.check_path('names', self.names)
        elif self.names is not None and not isinstance(
                self.names, (Sequence, numpy.ndarray)):
            raise TypeError(
                f'names of Categorical({self.path!r}) must be the path of '
                f'the array of names, or a list of names, got '
                f'{self.names!r}')

    def open(self, parts: FileParts, name: str) -> Reader:
        """Return a reader of the codes."""
        path, field = self.path, None
        if parts.find(0, path) is None and '/' in path:
            # A field of a table, as AnnData before 0.7 wrote it.
            table, _, last = path.rpartition('/')
            node = parts.find(0, table)
            if isinstance(node, h5py.Dataset) and last in (
                    node.dtype.names or ()):
                path, field = table, last
        arrays = [self._codes(parts, number, parts.node(number, path))
                  for number in range(len(parts))]
        reader = open_parts(arrays, name, field=field,
                            cache_bytes=parts.cache_bytes)
        if reader.dtype.kind not in 'iu':
            raise ValueError(
                f'{parts.describe(0)}: the codes of {self.path!r} must be '
                f'integers, got {reader.dtype}')
        united = UnitedNames(reader, [
            self._names(parts, number, array, field)
            for number, array in enumerate(arrays)], parts)
        changed = ChangedReader(
            reader, dtype=united.dtype, change=united.recode)
        changed.categories = united.names
        return changed

    def _codes(self, parts: FileParts, number: int,
               node: Node) -> h5py.Dataset:
        """Return the codes of a group, or the array itself."""
        codes = (parts.find(number, f'{self.path}/codes')
                 if isinstance(node, h5py.Group) else node)
        if not isinstance(codes, h5py.Dataset) or not codes.shape:
            raise ValueError(
                f'{parts.describe(number)}: {self.path!r} should be an array '
                f'of codes, or a group of codes and categories')
        return codes

    def _names(self, parts: FileParts, number: int, array: h5py.Dataset,
               field: str | None) -> list[Any]:
        """Return the names in a part."""
        if self.names is not None and not isinstance(self.names, str):
            return list(self.names)
        path = self.names or (f'{self.path}/categories' if field is None
                              else f'/uns/{field}_categories')
        found = parts.find(number, path)
        if isinstance(found, h5py.Group):
            # A group of text with missing values.
            found = parts.find(number, f'{path}/values')
        if found is None:
            found = names_referred_to(array)
        if not isinstance(found, h5py.Dataset) or len(found.shape) != 1 or (
                found.dtype.kind == 'O'
                and h5py.check_string_dtype(found.dtype) is None):
            raise ValueError(
                f'{parts.describe(number)}: there are no names for '
                f'{self.path!r}, which should be a group of codes and '
                f'categories; give the path of the array of names, '
                f'Categorical({self.path!r}, names=...)')
        return stored_names(found)


def names_referred_to(array: h5py.Dataset) -> Node | None:
    """Return the array that the attribute ``categories`` of codes refers to,
    as AnnData 0.7 writes it; None without such an attribute."""
    if 'categories' not in array.attrs:
        return None
    reference = read_attribute(array, 'categories')
    return array.file[reference] if (
        isinstance(reference, h5py.Reference) and reference) else None


class UnitedNames:
    """The names of all parts, and codes that mean the same in all parts.

    `reader`: reader of the codes as they are stored.
    `names`: as an argument, the names in each part; as an attribute, the name
        of each united code.
    `dtype`: type of the united codes.
    """

    def __init__(self, reader: Reader, names: Sequence[Sequence[Any]],
                 parts: FileParts) -> None:
        united: dict[Any, int] = {}
        tables = []
        for number, known in enumerate(names):
            if len({*known}) < len(known):
                raise damaged(
                    f'{parts.describe(number)}, source {reader.name!r}: '
                    f'a category is there twice')
            # Code -1 comes first and stays -1.
            tables.append([-1, *[united.setdefault(name, len(united))
                                 for name in known]])
        self.names = tuple(united)
        dtype = next(dtype for dtype in TYPES
                     if len(united) <= numpy.iinfo(dtype).max + 1)
        self.dtype = numpy.dtype(dtype)
        self._source, self._bounds = reader.name, reader.part_bounds
        self._tables = numpy.array(
            [code for table in tables for code in table], dtype)
        self._counts = numpy.array([len(table) for table in tables])
        self._firsts = numpy.cumsum(self._counts) - self._counts
        self._describe = parts.describe

    def recode(self, rows: NDArray[Any],
               numbers: NDArray[numpy.intp]) -> NDArray[Any]:
        """Return the united codes of rows.

        `rows`: the codes as they are stored.
        `numbers`: the numbers of the rows.
        """
        places = rows.astype(numpy.intp)
        places += 1
        parts: Any = 0
        if len(self._counts) > 1:
            parts = part_numbers(self._bounds, numbers).reshape(
                -1, *[1] * (rows.ndim - 1))
        # Unsigned codes have no value that stands for a missing name.
        lowest = 0 if rows.dtype.kind == 'i' else 1
        wrong = (places < lowest) | (places >= self._counts[parts])
        if wrong.any():
            place = numpy.argwhere(wrong)[0]
            row = int(numbers[place[0]])
            part = int(part_numbers(self._bounds, numbers[place[:1]])[0])
            raise damaged(
                f'{self._describe(part)}, source {self._source!r}, row '
                f'{row - self._bounds[part]}: it has the code '
                f'{rows[tuple(place)]}, and there are '
                f'{self._counts[part] - 1} categories')
        codes: NDArray[Any] = self._tables[self._firsts[parts] + places]
        return codes
