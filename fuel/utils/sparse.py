"""Sparse batches: rows kept as their values that are not zero.

A batch of n examples is a :class:`scipy.sparse.csr_array` of shape
(n, columns), an example one of shape (1, columns). SciPy may choose the type
of indices anew where it makes an array; here they keep the type they have.
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
    `indptr`: start of each row in these, then the end of the last.
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
        """Return the rows with their zeros."""


def is_sparse(value: object) -> TypeGuard[SparseRows]:
    """Return whether a value is a sparse batch or example."""
    if type(value) is numpy.ndarray:
        return False
    # Without the module there can be no such array, and it takes long to load.
    sparse = sys.modules.get('scipy.sparse')
    return (sparse is not None and isinstance(value, sparse.csr_array)
            and value.ndim == 2)


def make_csr(data: NDArray[Any], indices: IntegerArray, indptr: IntegerArray,
             shape: tuple[int, int]) -> SparseRows:
    """Return a sparse batch of arrays that were checked before.

    Parameters
    ----------
    data : array of numbers, shape (elements,)
        The values, row after row.
    indices : array of int32 or int64, shape (elements,)
        The column of each, from 0 to below ``shape[1]``.
    indptr : array of int32 or int64, shape (rows + 1,)
        Where each row begins in `data`, then where the last ends: from 0 to
        `elements`, never decreasing.
    shape : tuple of int
        Numbers of rows and columns.

    Returns
    -------
    scipy.sparse.csr_array
        Of these arrays themselves, without a check. SciPy's functions take
        only the machine's byte order, and one type of indices: an array of
        another byte order is copied, and int32 beside int64.
    """
    empty = _empty(*shape)
    # As copy.copy would, which takes several times as long.
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
    """Return an empty batch to copy: making a new one takes far longer."""
    from scipy.sparse import csr_array
    batch: SparseRows = csr_array((rows, columns))
    # Of any length, since each copy gets others.
    batch.indptr = batch.indptr[:1].copy()
    return batch


def _native(array: NDArray[Any], dtype: numpy.dtype[Any]) -> NDArray[Any]:
    """Return an array as a type in the machine's byte order."""
    if array.dtype == dtype and dtype.isnative:
        return array
    return array.astype(dtype.newbyteorder('='))


def count_rows(data: Any) -> int:
    """Return the number of examples in the data of a source.

    Raises
    ------
    TypeError
        If they have no length.
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
    """Return the examples from `start` to before `stop` of a source."""
    if is_sparse(data):
        return slice_rows(data, start, stop)
    return data[start:stop]


def arrays_of(batch: SparseRows) -> tuple[NDArray[Any], ...]:
    """Return the arrays that a sparse batch is kept in."""
    return batch.data, batch.indices, batch.indptr


def count_bytes(data: Any) -> int:
    """Return the number of bytes of the arrays of data; 0 of other data."""
    if is_sparse(data):
        return sum(array.nbytes for array in arrays_of(data))
    nbytes: int = getattr(data, 'nbytes', 0)
    return nbytes


def require_dense(data: Any, source: str, user: str,
                  then: str = '') -> None:
    """Refuse sparse data where the numbers of a dense array are needed.

    Parameters
    ----------
    data : object
        Those of a source, of any kind.
    source : str
    user : str
        Who needs them, for the error.
    then : str, optional
        What is called of the stream with dense data, for the error.

    Raises
    ------
    TypeError
        If they are sparse; the text says how to make them dense.
    """
    if is_sparse(data):
        raise TypeError(
            f'{user} takes no sparse data, but source {source!r} has a '
            f'csr_array of shape {data.shape}: make arrays of them before, '
            f'with ToDense(stream, which_sources=({source!r},)){then}')


def require_plain(data: Any, source: str, user: str, then: str = '') -> None:
    """Refuse sparse data, and masked arrays; see :func:`require_dense`."""
    if type(data) is not numpy.ndarray or data.dtype == object:
        require_dense(data, source, user, then)
        require_unmasked(data, source, user)


def slice_rows(batch: SparseRows, start: int, stop: int) -> SparseRows:
    """Return copies of the rows from `start` to before `stop`."""
    indptr = batch.indptr[start:stop + 1]
    first, last = indptr.item(0), indptr.item(-1)
    return make_csr(
        batch.data[first:last].copy(), batch.indices[first:last].copy(),
        indptr - indptr[:1], (stop - start, batch.shape[1]))


def take_rows(batch: SparseRows, rows: Any) -> SparseRows:
    """Return copies of rows, chosen as one axis of an array is indexed."""
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
        If they differ in columns.
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
    """Return row pointers in their former type, if it can hold them."""
    fits = indptr[-1] <= numpy.iinfo(dtype).max
    return indptr.astype(dtype, copy=False) if fits else indptr


def copy_rows(batch: SparseRows) -> SparseRows:
    """Return a copy of a batch with memory of its own."""
    return slice_rows(batch, 0, batch.shape[0])


def cast_rows(batch: SparseRows, dtype: numpy.dtype[Any]) -> SparseRows:
    """Return a batch with values of a type, copied only where needed."""
    if batch.data.dtype == dtype:
        return batch
    return make_csr(
        batch.data.astype(dtype), batch.indices, batch.indptr, batch.shape)


def canonical_rows(batch: SparseRows) -> SparseRows:
    """Return a batch with ascending columns in each row, none of them twice.

    It is the batch itself if it is like that.
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
    """Return a sparse batch as an array of its shape and type.

    `out`: the array to write to, in C order. Defaults to a new one.
    """
    if batch.data.dtype != numpy.float16:
        return batch.toarray(out=out)
    # A type that SciPy does not know.
    dense = cast_rows(batch, numpy.dtype(numpy.float32)).toarray()
    if out is None:
        return dense.astype(numpy.float16)
    out[...] = dense
    return out
