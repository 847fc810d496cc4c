"""Reading several items at once from whatever can be indexed."""
from collections.abc import Sequence
from typing import Any

import numpy

buffer_ = memoryview


def iterable_fancy_indexing(iterable: Any, request: Any) -> Any:
    """Return the items of `iterable` that `request` names.

    Parameters
    ----------
    iterable : indexable
        Arrays and HDF5 data sets are given the request itself; a list or
        another plain sequence is read item by item.
    request : int, slice, list of int or integer array
        What to read, in this order.

    Returns
    -------
    object
        ``iterable[request]``, or a list of items for a plain sequence and
        a list of indices.

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
