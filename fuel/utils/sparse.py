"""Sparse batches: arrays that store only the values which are not zero.

A batch of n examples is a :class:`scipy.sparse.csr_array` of shape
(n, columns). An example has the shape (1, columns). SciPy may change the type
of the indices when it makes an array; the functions here keep it.
"""
from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeGuard

import numpy
from numpy.typing import NDArray

from fuel.utils.masked import (
    is_masked, masked_row, masked_rows, require_unmasked)

IntegerArray = NDArray[numpy.integer[Any]]


class SparseRows(Protocol):
    """The part of a :class:`scipy.sparse.csr_array` that Fuel uses.

    `data`, `indices`: value and column of each element, row after row.
    `indptr`: start of each row in these arrays, then the end of the last row.
    """

    data: NDArray[Any]
    indices: IntegerArray
    indptr: IntegerArray
    shape: tuple[int, int]
    has_canonical_format: bool

    def sum_duplicates(self) -> None:
        """Sort each row by column, and add the values of equal columns."""

    def __getitem__(self, rows: Any, /) -> Any: ...

    def toarray(self, *, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return the rows as a dense array."""


def is_sparse(value: object) -> TypeGuard[SparseRows]:
    """Return whether a value is a sparse batch or example."""
    if type(value) is numpy.ndarray:
        return False
    # If the module is not loaded, there cannot be such an array, and loading
    # the module takes long.
    sparse = sys.modules.get('scipy.sparse')
    return (sparse is not None and isinstance(value, sparse.csr_array)
            and value.ndim == 2)


def make_csr(data: NDArray[Any], indices: IntegerArray, indptr: IntegerArray,
             shape: tuple[int, int]) -> SparseRows:
    """Return a sparse batch made of arrays that were checked before.

    Parameters
    ----------
    data : array of numbers, shape (elements,)
        The values, row after row.
    indices : array of int32 or int64, shape (elements,)
        The column of each value, from 0 to ``shape[1] - 1``.
    indptr : array of int32 or int64, shape (rows + 1,)
        The start of each row in `data`, then the end of the last row: numbers
        from 0 to `elements` that never decrease.
    shape : tuple of int
        Numbers of rows and columns.

    Returns
    -------
    scipy.sparse.csr_array
        It holds these arrays without a check. SciPy's functions need the
        machine's byte order, and the same type for `indices` and `indptr`. So
        an array of another byte order is copied. If one of the two is int32
        and the other int64, the int32 array is copied.
    """
    empty = _empty(*shape)
    # This does the same as copy.copy, which takes several times as long.
    batch: SparseRows = type(empty).__new__(type(empty))
    vars(batch).update(vars(empty))
    index_type = indices.dtype
    if index_type != indptr.dtype:
        index_type = numpy.result_type(indices, indptr)
    batch.data = _native(data, data.dtype)
    batch.indices = _native(indices, index_type)
    batch.indptr = _native(indptr, index_type)
    return batch


@functools.lru_cache(16)
def _empty(rows: int, columns: int) -> SparseRows:
    """Return an empty batch to copy, since making a new one takes longer."""
    from scipy.sparse import csr_array
    batch: SparseRows = csr_array((rows, columns))
    # Short, since each copy gets other arrays.
    batch.indptr = batch.indptr[:1].copy()
    return batch


def _native(array: NDArray[Any], dtype: numpy.dtype[Any]) -> NDArray[Any]:
    """Return an array in a type, with the machine's byte order."""
    if array.dtype == dtype and dtype.isnative:
        return array
    return array.astype(dtype.newbyteorder('='))


def count_rows(data: Any) -> int:
    """Return the number of examples in the data of a source.

    Raises
    ------
    TypeError
        If the data have no length.
    """
    return data.shape[0] if is_sparse(data) else len(data)


def row_of(data: Any, place: int) -> Any:
    """Return one example of the data of a source."""
    if is_sparse(data):
        return slice_rows(data, place, place + 1)
    return masked_row(data, place) if is_masked(data) else data[place]


def iterate_rows(data: Any) -> Iterable[Any]:
    """Return the examples of the data of a source."""
    if is_sparse(data):
        return [row_of(data, place) for place in range(data.shape[0])]
    if is_masked(data) and data.ndim:
        return masked_rows(data)
    return data  # type: ignore[no-any-return]


def rows_between(data: Any, start: int, stop: int) -> Any:
    """Return the examples ``start:stop`` of the data of a source."""
    if is_sparse(data):
        return slice_rows(data, start, stop)
    return data[start:stop]


def arrays_of(batch: SparseRows) -> tuple[NDArray[Any], ...]:
    """Return the three arrays that a sparse batch consists of."""
    return batch.data, batch.indices, batch.indptr


def count_bytes(data: Any) -> int:
    """Return the number of bytes of an array or a sparse batch; 0 for other
    data."""
    if is_sparse(data):
        return sum(array.nbytes for array in arrays_of(data))
    nbytes: int = getattr(data, 'nbytes', 0)
    return nbytes


def require_dense(data: Any, source: str, user: str,
                  then: str = '') -> None:
    """Raise TypeError if data are sparse, where a dense array is needed.

    Parameters
    ----------
    data : object
        The data of a source, of any kind.
    source : str
        Name of the source, for the error.
    user : str
        Name of the function or class that needs dense data, for the error.
    then : str, optional
        Text of a call, which the error appends to the code that makes the data
        dense.

    Raises
    ------
    TypeError
        If the data are sparse; the text says how to make them dense.
    """
    if is_sparse(data):
        raise TypeError(
            f'{user} does not take sparse data, but source {source!r} is a '
            f'csr_array of shape {data.shape}: convert it to an array first, '
            f'with ToDense(stream, which_sources=({source!r},)){then}')


def require_plain(data: Any, source: str, user: str, then: str = '') -> None:
    """Raise TypeError for sparse data and for masked arrays; see
    :func:`require_dense`."""
    if type(data) is not numpy.ndarray or data.dtype == object:
        require_dense(data, source, user, then)
        require_unmasked(data, source, user)


def slice_rows(batch: SparseRows, start: int, stop: int) -> SparseRows:
    """Return copies of the rows ``start:stop``."""
    indptr = batch.indptr[start:stop + 1]
    first, last = indptr.item(0), indptr.item(-1)
    return make_csr(
        batch.data[first:last].copy(), batch.indices[first:last].copy(),
        indptr - indptr[:1], (stop - start, batch.shape[1]))


def take_rows(batch: SparseRows, rows: Any) -> SparseRows:
    """Return copies of rows; `rows` is any index of one axis of an array."""
    data = batch.data
    if data.dtype == numpy.float16:
        # A type that SciPy does not know.
        batch = make_csr(
            data.view(numpy.int16), batch.indices, batch.indptr, batch.shape)
    rows = numpy.arange(batch.shape[0])[rows]
    taken: SparseRows = batch[rows]
    return make_csr(
        taken.data.view(data.dtype),
        taken.indices.astype(batch.indices.dtype, copy=False),
        taken.indptr.astype(batch.indices.dtype, copy=False), taken.shape)


def stack_rows(batches: Sequence[SparseRows]) -> SparseRows:
    """Return copies of the rows of batches, one batch after the other.

    Raises
    ------
    ValueError
        If the batches have different numbers of columns.
    """
    columns = sorted({batch.shape[1] for batch in batches})
    if len(columns) > 1:
        raise ValueError(
            f'sparse rows of {columns[0]} and of {columns[-1]} columns are '
            'to be one batch: a source has the same columns in each example')
    ends = numpy.concatenate([
        numpy.diff(batch.indptr) for batch in batches]).cumsum()
    indptr = numpy.concatenate([[0], ends])
    return make_csr(
        numpy.concatenate([
            batch.data[:batch.indptr[-1]] for batch in batches]),
        numpy.concatenate([
            batch.indices[:batch.indptr[-1]] for batch in batches]),
        _narrowed(indptr, batches[0].indptr.dtype),
        (len(ends), columns[0]))


def _narrowed(indptr: IntegerArray, dtype: numpy.dtype[Any]) -> IntegerArray:
    """Return row pointers in a type, unless this type is too small."""
    fits = indptr[-1] <= numpy.iinfo(dtype).max
    return indptr.astype(dtype, copy=False) if fits else indptr


def copy_rows(batch: SparseRows) -> SparseRows:
    """Return a copy of a batch with memory of its own."""
    return slice_rows(batch, 0, batch.shape[0])


def cast_rows(batch: SparseRows, dtype: numpy.dtype[Any]) -> SparseRows:
    """Return a batch with values of a type; the batch itself if it has this
    type, otherwise a new batch that shares the indices."""
    if batch.data.dtype == dtype:
        return batch
    return make_csr(
        batch.data.astype(dtype), batch.indices, batch.indptr, batch.shape)


def canonical_rows(batch: SparseRows) -> SparseRows:
    """Return a batch in which the columns of each row ascend and are distinct.

    If this is already so, the batch itself is returned.
    """
    if batch.has_canonical_format:
        return batch
    dtype = batch.data.dtype
    if dtype == numpy.float16:
        # A type that SciPy does not know.
        batch = cast_rows(batch, numpy.dtype(numpy.float32))
    batch = copy_rows(batch)
    batch.sum_duplicates()
    return cast_rows(batch, dtype)


def to_dense(batch: SparseRows,
             out: NDArray[Any] | None = None) -> NDArray[Any]:
    """Return a sparse batch as a dense array of the same shape and type.

    `out`: the array to write to, in C order. Defaults to a new array.
    """
    if batch.data.dtype != numpy.float16:
        return batch.toarray(out=out)
    # A type that SciPy does not know.
    dense = cast_rows(batch, numpy.dtype(numpy.float32)).toarray()
    if out is None:
        return dense.astype(numpy.float16)
    out[...] = dense
    return out
