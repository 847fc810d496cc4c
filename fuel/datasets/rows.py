"""Copies of rows of anything that can be indexed.

Data that a data set returns belong to the caller: writing into them must not
change the data set.  So no function here returns a view.
"""
from __future__ import annotations

import copy
import operator
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from numbers import Integral
from typing import Any

import numpy

from fuel.describe import SourceTypes
from fuel.exceptions import StateMismatchError
from fuel.kernels import as_indices, native, own_record, take, take_row
from fuel.utils.masked import is_constant, is_masked, masked_row
from fuel.utils.sequences import check_slice
from fuel.utils.sparse import copy_rows, is_sparse

_PLAIN = frozenset((int, float, bool, str, bytes, type(None)))
_MUTABLE = (numpy.ndarray, numpy.void, list, dict, set, bytearray)


def own(value: Any) -> Any:
    """Return a copy of arrays, lists and dicts at any depth; return other
    objects as they are."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, numpy.ndarray):
        if is_constant(value):
            # NumPy's constant for a masked value: a copy would be a number.
            return value
        array = native(numpy.array(value, copy=True, subok=True))
        return _own_elements(array) if array.dtype.hasobject else array
    if isinstance(value, numpy.void):
        return own_record(value)
    if type(value) is list or type(value) is tuple:
        return _own_sequence(value)
    if type(value) is dict:
        return {key: own(part) for key, part in value.items()}
    if isinstance(value, (tuple, *_MUTABLE)):
        # The type of named tuples, ordered dicts and the like is kept.
        return copy.deepcopy(value)
    return copy_rows(value) if is_sparse(value) else value


def _own_sequence(value: Any) -> Any:
    if not any(issubclass(kind, (*_MUTABLE, tuple))
               for kind in set(map(type, value))):
        return value[:]
    parts = [own(part) for part in value]
    return parts if type(value) is list else tuple(parts)


def _own_elements(array: Any) -> Any:
    if array.dtype.names is None:
        for place in numpy.ndindex(array.shape):
            array[place] = own(array[place])
    return array


def is_batch(request: Any) -> bool:
    """Return whether a request is a list, tuple, range or array with axes,
    rather than an index or a slice."""
    return isinstance(request, (list, tuple, range)) or (
        isinstance(request, numpy.ndarray) and request.ndim > 0)


def as_rows(request: Any, num_examples: int) -> Any:
    """Check a request; return an index, a slice or an array of indices."""
    if type(request) is list or is_batch(request):
        indices = as_indices(request, num_examples)
        if not len(indices):
            raise ValueError(
                'a request must name at least one example, got an empty one')
        return indices
    if isinstance(request, slice):
        return check_slice(request, num_examples)
    return int(as_indices([request], num_examples)[0])


def check_request(dataset: object, state: object, request: object) -> None:
    """Refuse a state, or a missing request, for a data set with random
    access."""
    if state is not None or request is None:
        raise ValueError(
            f'{type(dataset).__name__} needs a request and has no state, '
            f'got state {state!r} and request {request!r}')


def only_in_order(dataset: object, what: str, state: object,
                  request: object) -> ValueError:
    """Return the error about a request, or a missing state, for a data set
    that is read in order."""
    return ValueError(
        f'{type(dataset).__name__} reads {what} in order: get_data takes the '
        f'state that open() returned and no request, got state {state!r} and '
        f'request {request!r}')


def get_rows(indexable: Any, request: Any) -> Any:
    """Return a copy of rows of an indexable."""
    if type(indexable) is numpy.ndarray:
        return _rows_of_array(indexable, request)
    if isinstance(indexable, numpy.memmap):
        return _rows_of_array(indexable.view(numpy.ndarray), request)
    if isinstance(indexable, (list, tuple)):
        return _rows_of_list(indexable, request)
    if is_masked(indexable) and indexable.ndim:
        request = as_rows(request, len(indexable))
        return own(masked_row(indexable, request) if isinstance(request, int)
                   else indexable[request])
    if is_batch(request) or isinstance(request, slice) or (
            isinstance(request, (Integral, numpy.bool_))
            and hasattr(indexable, '__len__')):
        request = as_rows(request, len(indexable))
        if isinstance(request, numpy.ndarray):
            request = request.tolist()
    try:
        return own(indexable[request])
    except TypeError:
        if not isinstance(request, list):
            raise
        return [own(indexable[index]) for index in request]


def _rows_of_array(array: Any, request: Any) -> Any:
    if type(request) is list and request:
        # By far the commonest request; take() checks the indices itself.
        rows = take(array, request)
    else:
        positions = as_rows(request, len(array))
        if isinstance(positions, slice):
            return own(array[positions])
        if isinstance(positions, int):
            rows = take_row(array, positions)
            return own(rows) if array.dtype.hasobject else rows
        rows = take(array, positions)
    return _own_elements(rows) if array.dtype.hasobject else rows


def _rows_of_list(rows: Any, request: Any) -> Any:
    positions = as_rows(request, len(rows))
    if isinstance(positions, numpy.ndarray):
        return own([rows[index] for index in positions.tolist()])
    return own(rows[positions])


def check_equal_lengths(names: Iterable[object], collections: Iterable[Any],
                        what: str = 'sources') -> None:
    """Refuse collections that differ in their number of examples."""
    lengths = {}
    for name, collection in zip(names, collections, strict=True):
        with suppress(TypeError):
            lengths[name] = len(collection)
    if len({*lengths.values()}) > 1:
        refuse_unequal(lengths, what)


def refuse_unequal(lengths: Mapping[Any, int], what: str = 'sources',
                   where: str = '', can_choose: bool = False) -> None:
    """Refuse sources or parts that differ in their number of examples.

    `where`: text for the error that names the file of the sources.
    `can_choose`: whether the error advises ``sources=`` with the sources of
        one length.
    """
    counts = Counter(lengths.values())
    if len(counts) > 1:
        most = max(counts, key=lambda length: (counts[length], length))
        alike = tuple([name for name in lengths if lengths[name] == most])
        raise ValueError(
            f'{where}all {what} must have the same number of examples, got ' +
            ', '.join(f'{name}: {length}'
                      for name, length in lengths.items())
            + f'; sources={alike} reads those alone' * can_choose)


def check_range(start: int | None, stop: int | None,
                num_examples: int) -> None:
    """Refuse a `start` and a `stop` that do not lie within the examples."""
    first = 0 if start is None else operator.index(start)
    last = num_examples if stop is None else operator.index(stop)
    if not 0 <= first <= last <= num_examples:
        raise ValueError(
            f'start and stop must lie within the {num_examples} examples, '
            f'start before stop, got start={start!r} and stop={stop!r}')


def check_same_length(path: str, before: int, now: int) -> None:
    """Refuse a file that has another number of examples than it had when
    the data set was made."""
    if before != now:
        raise StateMismatchError(
            f'{path!r} had {before} examples when the data set was made, and '
            f'now has {now}: it is another file, or was made again; make the '
            f'data set again too')


def check_same_types(path: str, before: SourceTypes, now: SourceTypes) -> None:
    """Refuse a file if a source has another type or shape than it had when
    the data set was made."""
    for source in before.keys() & now.keys():
        if before[source] != now[source]:
            raise StateMismatchError(
                f'{path!r} had examples of {before[source].dtype}, shape '
                f'{before[source].shape}, in {source!r} when the data set was '
                f'made, and now has {now[source].dtype}, shape '
                f'{now[source].shape}: it is another file, or was made '
                f'again; make the data set again too')
