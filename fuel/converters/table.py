"""Sources of a table, as HDF5 stores them."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import h5py
import numpy
from numpy.typing import NDArray

from fuel.converters.custom_data import ROWS_AT_ONCE
from fuel.datasets.rows_dataset import SplitDataset

TEXT = h5py.string_dtype()


class Column:
    """A source of a data set, as HDF5 stores it: read by rows.

    Truth values and numbers are stored as they are, lists of numbers as rows
    of variable length, text in UTF-8, and times as bytes that h5py takes for
    times. Text and lists that are missing are empty.

    `dtype`, `shape`: in the file.
    """

    def __init__(self, dataset: SplitDataset, source: str) -> None:
        self._dataset = dataset
        self._source = source
        self._empty: Any = None
        self.shape: tuple[int, ...] = (dataset.num_examples,)
        self.dtype, shape = self._stored()
        self.shape += shape

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        batch = self.read(rows)
        if self._empty is not None:
            for place, value in enumerate(batch):
                if value is None:
                    batch[place] = self._empty
                elif not isinstance(value, type(self._empty)):
                    raise self._refusal(value)
        if batch.dtype.kind in 'mM':
            return batch.view(self.dtype)
        return batch

    def read(self, rows: Any) -> NDArray[Any]:
        """Return rows as the data set has them."""
        self._dataset.sources = (self._source,)
        batch: NDArray[Any]
        batch, = self._dataset.get_data(None, rows)
        return batch

    def blocks(self) -> Iterator[NDArray[Any]]:
        """Return all rows as the data set has them, some at a time."""
        for start in range(0, len(self), ROWS_AT_ONCE):
            yield self.read(slice(start, min(start + ROWS_AT_ONCE, len(self))))

    def _stored(self) -> tuple[Any, tuple[int, ...]]:
        """Return the type and the shape of an example in the file.

        Raises: ValueError if HDF5 has no type for it.
        """
        known = self._dataset.known_types()[self._source]
        dtype: Any = known.dtype
        shape = tuple([length for length in known.shape or ()
                       if length is not None])
        if dtype.kind in 'mM':
            return h5py.opaque_dtype(dtype), shape
        if dtype.kind in 'biufc' and len(shape) == len(known.shape or ()):
            return dtype, shape
        # What is in an array of objects, only its objects tell.
        first = next((value for block in self.blocks() for value in block
                      if value is not None), None)
        if isinstance(first, str):
            self._empty = ''
            return TEXT, ()
        if isinstance(first, numpy.ndarray) and first.ndim == 1 and (
                first.dtype.kind in 'biuf'):
            self._empty = numpy.empty(0, first.dtype)
            return h5py.vlen_dtype(first.dtype), ()
        raise self._refusal(first)

    def _refusal(self, value: Any) -> ValueError:
        what = ('no value in any example' if value is None
                else f'values such as {value!r:.80}, for which HDF5 has no '
                'type, or not beside its others')
        return ValueError(f'source {self._source!r} has {what}: leave it out')
