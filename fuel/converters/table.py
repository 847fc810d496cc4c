"""Sources of a table, as HDF5 stores them."""
from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import h5py
import numpy
from numpy.typing import NDArray

from fuel.converters.custom_data import ROWS_AT_ONCE
from fuel.converters.filling import fill_values
from fuel.datasets.records import EXACT
from fuel.datasets.source_dataset import SplitDataset
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream
from fuel.transformers.column_statistics import missing_in
from fuel.transformers.imputation import ImputeParameters

log = logging.getLogger(__name__)

TEXT = h5py.string_dtype()


class Column:
    """A source of a data set, as HDF5 stores it; read by rows.

    Truth values and numbers are stored as they are, lists of numbers as rows
    of variable length, text in UTF-8, and times in h5py's own type for times.
    Missing texts and lists become empty.

    `source`: name of the source.
    `parameters`: the values that replace missing values.
    `dtype`, `shape`: type and shape of the array in the file.
    """

    def __init__(self, dataset: SplitDataset, source: str,
                 parameters: ImputeParameters | None = None) -> None:
        self._dataset = dataset
        self.source = source
        self.parameters = parameters
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
                elif not isinstance(value, type(self._empty)) or (
                        isinstance(value, str) and not _has_utf8(value)):
                    raise self._refusal(value)
        if batch.dtype.kind in 'mM':
            return batch.view(self.dtype)
        return batch

    @property
    def is_scalar(self) -> bool:
        """Whether an example is a number, a truth value or a text, and
        neither a list of variable length nor a time (bool)."""
        return h5py.check_vlen_dtype(self.dtype) in (None, str) and (
            h5py.check_opaque_dtype(self.dtype) is False)

    @property
    def filled_with(self) -> list[Any]:
        """Values that replace missing values; empty if they are not replaced
        (list)."""
        return [] if self.parameters is None else list(self.parameters.fill)

    def read(self, rows: Any) -> NDArray[Any]:
        """Return rows of the data set, with missing values filled."""
        parameters = self.parameters
        mask = None if parameters is None else parameters.mask
        self._dataset.sources = (self.source,) if mask is None else (
            self.source, mask)
        batch: NDArray[Any]
        batch, *masks = self._dataset.get_data(None, rows)
        if parameters is None:
            return batch
        # Integers are converted if the value that fills them is not whole.
        is_floating = batch.dtype.kind in 'iu' and any(
            isinstance(value, float) for value in parameters.fill)
        return parameters.fill_in(
            batch, masks[0] if masks else None,
            'float64' if is_floating else None)

    def blocks(self) -> Iterator[NDArray[Any]]:
        """Read all rows, a block at a time."""
        for start in range(0, len(self), ROWS_AT_ONCE):
            yield self.read(slice(start, min(start + ROWS_AT_ONCE, len(self))))

    def _stored(self) -> tuple[Any, tuple[int, ...]]:
        """Return the type and the shape of an example in the file.

        Raises: ValueError if HDF5 has no type for the examples.
        """
        known = self._dataset.known_types()[self.source]
        dtype: Any = known.dtype
        shape = tuple([length for length in known.shape or ()
                       if length is not None])
        if dtype.kind in 'mM':
            return h5py.opaque_dtype(dtype), shape
        if self.parameters is not None and dtype.kind in 'iu':
            dtype = self.read([0]).dtype
        if dtype.kind in 'biufc' and len(shape) == len(known.shape or ()):
            return dtype, shape
        # The type of an array of objects follows from its first value.
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
                'type, or no type that also fits the other values')
        return ValueError(
            f'source {self.source!r} has {what}: leave the source out')


def _has_utf8(text: str) -> bool:
    """Return whether HDF5 can store a text: valid UTF-8 without zero bytes."""
    try:
        return b'\0' not in text.encode()
    except UnicodeEncodeError:
        return False


def columns_of(dataset: SplitDataset, sources: Sequence[str],
               fill: str | None, train: NDArray[numpy.intp],
               ) -> dict[str, Column]:
    """Return a mapping from sources to columns, for sources that have masks.

    With `fill`, missing values are filled. Without it, a column with the mask
    is added for a source that has missing values, but whose type cannot mark
    them. Lists and times stay as they are.

    `fill`: how to fill missing values; see
        `add_fill_option`.
    `train`: the rows from which the filling values are computed.
    """
    columns = {source: Column(dataset, source) for source in sources}
    have_gaps = _sources_with_gaps(dataset, [
        source for source, column in columns.items() if column.is_scalar])
    found: dict[str, Column] = {}
    for source, column in columns.items():
        found[source] = column
        mask = f'{source}_mask'
        kind = column.dtype.kind
        if source not in have_gaps:
            continue
        if fill is not None:
            dataset.sources = (source, mask)
            stream = DataStream(dataset, iteration_scheme=SequentialScheme(
                train, ROWS_AT_ONCE))
            found[source] = Column(dataset, source, fill_values(
                stream, source, kind, fill, mask))
            _warn_of_rounding(columns[source], found[source])
        elif kind in 'biu':
            found[mask] = Column(dataset, mask)
    return found


def _warn_of_rounding(column: Column, filled: Column) -> None:
    """Warn if integers become floating numbers and lose digits."""
    if column.dtype.kind not in 'iu' or filled.dtype.kind != 'f':
        return
    for block in filled.blocks():
        largest = block.flat[numpy.abs(block).argmax()]
        if abs(largest) >= EXACT:
            log.warning(
                'source %r becomes %s, since what is filled in, %s, is not '
                'whole: numbers such as %.0f are rounded. Choose --fill '
                'most-frequent or a whole VALUE to keep all digits',
                filled.source, filled.dtype, filled.filled_with[0], largest)
            return


def filled_by(columns: Mapping[str, Column]) -> dict[str, list[Any]]:
    """Return a mapping from sources to the values that replaced missing
    values."""
    return {source: column.filled_with for source, column in columns.items()
            if column.filled_with}


def read_with_mask(dataset: SplitDataset, source: str,
                   ) -> tuple[NDArray[Any], NDArray[numpy.bool_]]:
    """Return all values of a source, and a mask of the missing ones."""
    dataset.sources = (source, f'{source}_mask')
    values, mask = dataset.get_data(None, slice(0, dataset.num_examples))
    return values, missing_in(values, mask)


def _sources_with_gaps(dataset: SplitDataset,
                       sources: Sequence[str]) -> set[str]:
    """Return the sources that have missing values."""
    found: set[str] = set()
    for start in range(0, dataset.num_examples, ROWS_AT_ONCE):
        left = [source for source in sources if source not in found]
        if not left:
            break
        dataset.sources = [name for source in left
                           for name in (source, f'{source}_mask')]
        data = dataset.get_data(None, slice(
            start, min(start + ROWS_AT_ONCE, dataset.num_examples)))
        found.update([
            source for source, batch, mask in zip(
                left, data[::2], data[1::2], strict=True)
            if missing_in(batch, mask).any()])
    return found
