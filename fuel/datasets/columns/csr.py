"""Columns that are sparse matrices stored by rows."""
from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import h5py
import numpy
from numpy.typing import NDArray

from fuel.datasets.columns.base import PathColumn
from fuel.datasets.columns.parts import FileParts
from fuel.datasets.columns.readers import RangesReader
from fuel.describe import SourceType
from fuel.storage import Reader
from fuel.storage.attributes import read_attribute
from fuel.storage.reader import Places
from fuel.utils.hdf5_errors import damaged
from fuel.utils.sparse import make_csr, to_dense

ARRAYS = ('data', 'indices', 'indptr')
# Names of the attributes, today and before AnnData 0.7.
FORMATS = ('encoding-type', 'h5sparse_format')
SHAPES = ('shape', 'h5sparse_shape')


@dataclass(frozen=True, repr=False)
class CSR(PathColumn):
    """Rows of a sparse matrix in the format CSR, as AnnData writes it.

    A batch is a :class:`scipy.sparse.csr_array`. An example is such an array
    of shape (1, columns).

    Parameters
    ----------
    path : str
        Path of the group with the arrays ``data``, ``indices`` and
        ``indptr``.
    dense : bool, optional
        Whether a batch is a dense array of shape (batch, columns). Defaults
        to False.

    Notes
    -----
    A matrix stored by columns (CSC) is refused, since its rows are spread
    over the whole file. Indices keep their type.
    """

    dense: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_flag('dense')

    def type_of(self, reader: Reader) -> SourceType:
        """Return type and shape of an example of its reader."""
        return super().type_of(reader)._replace(is_sparse=not self.dense)

    def open(self, parts: FileParts, name: str) -> Reader:
        """Return a reader of the rows."""
        columns = [_columns_of(parts, number, self.path)
                   for number in range(len(parts))]
        for number, count in enumerate(columns):
            if count != columns[0]:
                raise ValueError(
                    f'{self.path!r} must have the same columns in all parts, '
                    f'but {parts.describe(0)} has {columns[0]}, and '
                    f'{parts.describe(number)} has {count}')
        values, indices = [
            parts.open(f'{self.path}/{array}', name) for array in ARRAYS[:2]]
        for reader, kinds, what in ((values, 'biufc', 'numbers'),
                                    (indices, 'iu', 'integers')):
            if reader.dtype.kind not in kinds or len(reader.shape) != 1:
                array = 'data' if reader is values else 'indices'
                raise ValueError(
                    f'{parts.describe(0)}: {self.path}/{array} should be '
                    f'{what} in one axis, got {reader.dtype} of shape '
                    f'{reader.shape}')
        found = []
        for number, lengths in enumerate(zip(
                numpy.diff(values.part_bounds).tolist(),
                numpy.diff(indices.part_bounds).tolist(), strict=True)):
            indptr = parts.read(number, f'{self.path}/indptr')
            _check_indptr(f'{parts.describe(number)}, {self.path!r}', indptr,
                          *lengths)
            found.append(indptr[:-1].astype(numpy.intp)
                         + values.part_bounds[number])
        bounds = numpy.cumsum([0, *map(len, found)]).astype(numpy.intp)
        ends = numpy.concatenate([*found, values.part_bounds[-1:]]).astype(
            numpy.intp, copy=False)
        return SparseRowReader(
            [values, indices], (int(bounds[-1]), columns[0]), values.dtype,
            ends[:-1], ends[1:], bounds, parts.describe, dense=self.dense)


class SparseRowReader(RangesReader):
    """Reads sparse rows, into SciPy's sparse arrays or dense arrays.

    The numbers of the columns are checked only when a row is first read. One
    check is enough, since another version of the file would be refused.
    """

    def __init__(self, *args: Any, dense: bool) -> None:
        super().__init__(*args)
        self._is_dense = dense
        self._is_checked = numpy.zeros(len(self), bool)
        # The types of indices that SciPy accepts.
        dtype = self._readers[1].dtype
        self._index_type = dtype if dtype in ('i4', 'i8') else numpy.dtype(
            'i4' if dtype.itemsize < 4 else 'i8')
        self._most = numpy.iinfo(self._index_type).max

    def read(self, rows: Places) -> Any:
        """See :meth:`Reader.read`. One sparse row has the shape
        (1, columns)."""
        if self._is_dense or isinstance(rows, (slice, numpy.ndarray)):
            return super().read(rows)
        return self._read_range(rows, rows + 1)

    def make(self, found: Sequence[NDArray[Any]],
             counts: NDArray[numpy.intp],
             rows: NDArray[numpy.intp]) -> Any:
        """Return a batch."""
        values, indices = found
        if not self._is_checked[rows].all():
            self._check_columns(indices, counts, rows)
            self._is_checked[rows] = True
        indices = indices.astype(self._index_type, copy=False)
        ends = numpy.zeros(len(counts) + 1, self._index_type if (
            len(indices) <= self._most) else 'i8')
        counts.cumsum(out=ends[1:])
        batch = make_csr(values, indices, ends, (len(counts), self.shape[1]))
        return to_dense(batch) if self._is_dense else batch

    def _check_columns(self, indices: NDArray[Any],
                       counts: NDArray[numpy.intp],
                       rows: NDArray[numpy.intp]) -> None:
        unsigned = indices.view(f'u{indices.itemsize}')
        # Negative indices are beyond the end too.
        limit = min(self.shape[1], numpy.iinfo(indices.dtype).max + 1)
        if not unsigned.size or unsigned.max() < limit:
            return
        place = int(numpy.flatnonzero(unsigned >= limit)[0])
        example = int(numpy.searchsorted(numpy.cumsum(counts), place, 'right'))
        column = indices.view(f'i{indices.itemsize}')[place]
        raise self._damaged(
            int(rows[example]), f'it has an element in column {column}, and '
            f'there are {self.shape[1]} columns')


def _columns_of(parts: FileParts, number: int, path: str) -> int:
    """Return the number of columns of a matrix that is stored by rows."""
    where, node = parts.describe(number), parts.node(number, path)
    if not isinstance(node, h5py.Group) or not set(ARRAYS) <= set(node):
        raise ValueError(
            f'{where}: {path!r} is not a group of the arrays '
            f'{", ".join(ARRAYS)}' + (
                f'; it is an array, which Rows({path!r}) reads'
                if isinstance(node, h5py.Dataset) else ''))
    shape = next(filter(lambda value: value is not None, (
        read_attribute(node, name) for name in SHAPES)), None)
    if shape is None or numpy.shape(shape) != (2,) or (
            shape.dtype.kind not in 'iu') or (
            not 0 <= shape.min() <= shape.max() <= sys.maxsize):
        raise ValueError(
            f"{where}: the group {path!r} should have an attribute 'shape' "
            f'of two whole numbers')
    indptr = parts.find(number, f'{path}/indptr')
    rows = indptr.shape[0] - 1 if isinstance(
        indptr, h5py.Dataset) and indptr.shape else 0
    found = [str(read_attribute(node, name)) for name in FORMATS
             if name in node.attrs]
    is_by_columns = (any('csc' in one for one in found) if found
                     else rows == shape[1] != shape[0])
    if is_by_columns:
        matrix = ''.join(
            f'.{name}' if place == 0 else f'[{name!r}]'
            for place, name in enumerate(path.strip('/').split('/')))
        raise ValueError(
            f'{where}: {path!r} is stored by columns (CSC), so that each row '
            f'is spread over the whole file: write it by rows first, '
            f'adata{matrix} = adata{matrix}.tocsr()')
    if rows != shape[0]:
        raise damaged(f'{where}: {path!r} should have {shape[0]} rows, and '
                      f'indptr has {rows}')
    return int(shape[1])


def _check_indptr(where: str, indptr: NDArray[Any], num_values: int,
                  num_indices: int) -> None:
    """Refuse bounds of rows that do not cover all values in order."""
    reason = ''
    if indptr.dtype.kind not in 'iu' or indptr.ndim != 1:
        reason = (f'indptr should be integers in one axis, and is '
                  f'{indptr.dtype} of shape {indptr.shape}')
    elif num_values != num_indices:
        reason = f'there are {num_values} values and {num_indices} indices'
    elif not len(indptr) or indptr[0] != 0 or indptr[-1] != num_values:
        reason = (f'indptr should go from 0 to {num_values}, the number of '
                  f'values, and goes from {indptr[:1]} to {indptr[-1:]}')
    elif (indptr[1:] < indptr[:-1]).any():
        row = int(numpy.flatnonzero(indptr[1:] < indptr[:-1])[0])
        reason = (f'row {row} begins at {indptr[row]} and ends at '
                  f'{indptr[row + 1]}')
    if reason:
        raise damaged(f'{where}: {reason}')
