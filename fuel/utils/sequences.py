"""Check single indices and slices, and read rows by lists of indices.

Lists of indices are checked in `fuel.kernels.rows`.
"""
from collections.abc import Sequence
from numbers import Integral
from typing import Any, TypeAlias, TypeGuard

import numpy
from numpy.typing import NDArray

from fuel.kernels.rows import as_indices

IndexArray: TypeAlias = NDArray[numpy.intp]
IndexList: TypeAlias = Sequence[int] | NDArray[numpy.integer[Any]]

buffer_ = memoryview


def iterable_fancy_indexing(iterable: Any, request: Any) -> Any:
    """Return the items of `iterable` that `request` names.

    Parameters
    ----------
    iterable : indexable
        An array or an HDF5 data set is indexed with the request itself. A
        list or another plain sequence is read item by item.
    request : int, slice, list of int or integer array
        The items to read, in this order.

    Returns
    -------
    object
        ``iterable[request]``. For a plain sequence and a list of indices, a
        list of items.

    Examples
    --------
    >>> from fuel.utils import iterable_fancy_indexing
    >>> iterable_fancy_indexing(['a', 'b', 'c'], [2, 0])
    ['c', 'a']
    """
    if isinstance(iterable, Sequence):
        if isinstance(request, numpy.ndarray) and request.ndim:
            return [iterable[index] for index in request.tolist()]
        if isinstance(request, Sequence):
            return [iterable[index] for index in request]
    return iterable[request]


def sorted_fancy_indexing(indexable: Any, request: IndexList) -> Any:
    """Read rows in ascending order; return them in the requested order.

    Some objects, such as HDF5 data sets, can only be indexed by ascending
    lists without repetitions. This function supports any list.

    Parameters
    ----------
    indexable : fancy-indexable object
        The sequence to index.
    request : list of int or integer array
        Indices in any order; an index may be repeated.

    Returns
    -------
    object
        One row for each index, in the order of the request. Rows do not share
        memory with each other.

    Examples
    --------
    >>> import numpy
    >>> from fuel.utils import Subset
    >>> Subset.sorted_fancy_indexing(numpy.arange(10, 20), [3, 1, 3])
    array([13, 11, 13])
    """
    indices = numpy.asarray(request)
    if indices.dtype.kind not in 'iu' or indices.ndim != 1:
        indices = as_indices(request, len(indexable))
    if increases(indices):
        return iterable_fancy_indexing(indexable, indices)
    unique, position = numpy.unique(indices, return_inverse=True)
    rows = iterable_fancy_indexing(indexable, unique)
    if isinstance(rows, numpy.ndarray) and rows.dtype.kind == 'O':
        return _own_objects(rows, position)
    return iterable_fancy_indexing(rows, position)


def reads_ascending_only(indexable: object) -> bool:
    """Return whether an object can only be indexed by ascending lists."""
    if isinstance(indexable, (numpy.ndarray, Sequence)):
        return False
    import h5py
    return isinstance(indexable, h5py.Dataset)


def increases(indices: IndexArray) -> bool:
    """Return whether each index is larger than the one before."""
    return bool((indices[1:] > indices[:-1]).all())


def _own_objects(rows: NDArray[Any], position: IndexArray) -> Any:
    """Return rows of objects by position; if an array is repeated, the
    repetitions are copies."""
    result = rows[position]
    seen: set[int] = set()
    for i, source in enumerate(position.tolist()):
        if source in seen and isinstance(result[i], numpy.ndarray):
            result[i] = result[i].copy()
        seen.add(source)
    return result


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer of any width, not a boolean."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_integer(index: object, num_examples: int) -> int:
    """Return an index as an int; raise ValueError if it is not in
    ``range(num_examples)``."""
    if not is_integer(index):
        raise ValueError(
            'a request: expected an integer, a slice, or a list or array of '
            f'integers, got {_describe(index)}')
    value = int(index)
    if not 0 <= value < num_examples:
        raise ValueError(
            f'a request: expected 0 <= index < {num_examples}, got {value}')
    return value


def plain_slice(slice_: slice, name: str) -> slice:
    """Return a slice of ints or None; raise ValueError for negative parts.

    `name`: name of the slice, for the error.
    """
    parts: list[int | None] = []
    for part in ('start', 'stop', 'step'):
        value = getattr(slice_, part)
        if value is None:
            parts.append(None)
            continue
        if not is_integer(value):
            raise ValueError(
                f'{name}: expected {part} to be an integer or None, got '
                f'{_describe(value)} in {slice_}')
        if value < 0 or (part == 'step' and value == 0):
            kind = 'negative' if value else 'zero'
            raise ValueError(
                f'{name}: {part} must not be {kind}, got {slice_}; count '
                'from the start, in steps of at least 1')
        parts.append(int(value))
    return slice(*parts)


def check_slice(slice_: slice, num_examples: int) -> slice:
    """Return a slice of ints or None; raise ValueError if it is empty,
    negative or out of range."""
    slice_ = plain_slice(slice_, 'a request')
    start = slice_.start or 0
    stop = num_examples if slice_.stop is None else slice_.stop
    if stop > num_examples:
        reason = f'there are only {num_examples} examples'
    elif start >= stop:
        reason = 'it holds no example'
    else:
        return slice_
    raise ValueError(
        f'a request must be a slice within the {num_examples} examples, got '
        f'{slice_}: {reason}')


def _describe(value: object) -> str:
    text = repr(value)
    if len(text) > 60:
        text = text[:57] + '...'
    return f'{text} ({type(value).__name__})'
