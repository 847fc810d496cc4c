"""Columns that are the rows of arrays."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import h5py
from numpy.typing import NDArray

from fuel.datasets.columns.base import FileColumn
from fuel.datasets.columns.parts import Parts
from fuel.datasets.columns.readers import ChangedReader
from fuel.storage import Reader
from fuel.storage.part_index import open_parts
from fuel.suggestions import did_you_mean


@dataclass(frozen=True, repr=False)
class Rows(FileColumn):
    """Rows of an array.

    Parameters
    ----------
    path : str
        Of the array, in the file or below each part.
    field : str or list of str, optional
        Of an array of a compound type: one field, or several as such a type.
        Defaults to whole elements.
    axis : int, optional
        The axis that counts examples. Defaults to the first; MATLAB has
        them along the last, -1.
    start, stop : int, optional
        Of each part, which rows to read, as of a slice. Where an episode
        has one more observation than actions, ``stop=-1`` leaves out the
        last one, and ``start=1`` gives the next observation of each step.
    ragged : bool, optional
        Whether parts may differ in the other axes too, so that a batch is an
        array of arrays. Defaults to False.

    Notes
    -----
    Text of variable length becomes ``str``; of fixed length it is NumPy's
    bytes, as wide as the widest part's.
    """

    path: str
    field: str | Sequence[str] | None = None
    axis: int = 0
    start: int | None = None
    stop: int | None = None
    ragged: bool = False

    @property
    def first_row(self) -> int:
        """Which row of a part is its first one."""
        return max(0, self.start or 0)

    def paths(self) -> Sequence[str]:
        """Return the path of the array."""
        return [self.path]

    def open(self, parts: Parts, name: str) -> Reader:
        """Return a reader of the rows."""
        arrays = parts.arrays(self.path)
        known = arrays[0].dtype.names or ()
        for field in ([] if self.field is None else [self.field] if isinstance(
                self.field, str) else self.field):
            if field not in known:
                raise ValueError(
                    f'{parts.describe(0)}: {self.path!r} has no field '
                    f'{field!r}{did_you_mean(field, known, " ({})")}; it has '
                    f'{", ".join(map(repr, known)) or "no fields"}')
        reader = open_parts(
            arrays, name, field=self.field, start=self.start, stop=self.stop,
            cache_bytes=parts.cache_bytes)
        return with_text(reader, arrays[0])


def stored_names(array: h5py.Dataset) -> list[Any]:
    """Return a whole array of names or numbers, text as ``str``."""
    return [value.decode('utf-8', 'surrogateescape')
            if isinstance(value, bytes) else value
            for value in array[()].tolist()]


def with_text(reader: Reader, array: h5py.Dataset) -> Reader:
    """Return a reader whose text of variable length is ``str``."""
    strings = h5py.check_string_dtype(array.dtype)
    is_text = strings is not None and strings.length is None
    return TextReader(reader) if is_text else reader


class TextReader(ChangedReader):
    """Text of variable length, as ``str``."""

    def change(self, rows: NDArray[Any], _: Any) -> NDArray[Any]:
        """See :meth:`ChangedReader.change`."""
        flat = rows.reshape(-1)
        for place, text in enumerate(flat.tolist()):
            if isinstance(text, bytes):
                flat[place] = text.decode('utf-8', 'surrogateescape')
        return rows
