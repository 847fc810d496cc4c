"""Make arrays of numbers, or errors that say why data are not numbers."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from fuel.suggestions import sources_of_fields

_RAGGED = ('has elements of several shapes, or other Python objects, which '
           'no {holder} holds: pad them (fuel.transformers.Padding), give '
           'images one size (fuel.transformers.image), or leave the source '
           'out, which_sources=(...)')
_STRINGS = ('holds strings, which no {holder} does: encode them as numbers, '
            'or leave the source out, which_sources=(...), so that it stays '
            'as it is')
_FILES = ('holds bytes, which no {holder} does: decode them, such as by '
          'ImagesFromBytes (fuel.transformers.image), or leave the source '
          'out, which_sources=(...), so that it stays as it is')
_TIMES = ('has the type {dtype}, which no {holder} has: cast it to '
          '{number}, Cast(stream, "{number}", which_sources=(...))')
_WIDE = ('has the type {dtype}, which no {holder} has: cast it to float64, '
         'Cast(stream, "float64", which_sources=(...))')
_RECORDS = 'is an array of records, which no {holder} is: {fields}'
_REASONS = {'M': _TIMES, 'm': _TIMES, 'V': _RECORDS, 'f': _WIDE, 'c': _WIDE}


def list_as_array(values: Sequence[Any], source: str, holder: str) -> Any:
    """Return a list of numbers, or of arrays of one shape, as one array.

    `holder`: the target type, as for :func:`refusal`.
    """
    if any(isinstance(value, (str, bytes)) for value in values):
        raise refusal(values[0], source, holder)
    try:
        return numpy.asarray(values)
    except ValueError:
        raise refusal(values, source, holder) from None


def refusal(value: object, source: str, holder: str) -> TypeError:
    """Return the error for data that are not numbers of one shape.

    `holder`: the type that cannot hold them, such as a tensor.
    """
    dtype = getattr(value, 'dtype', None)
    kind = getattr(dtype, 'kind', '')
    first = (value.flat[0] if isinstance(value, numpy.ndarray)
             and kind == 'O' and value.size else value)
    if isinstance(first, bytes) and kind != 'S':
        reason = _FILES
    elif isinstance(first, str) or kind in ('S', 'U', 'T'):
        reason = _STRINGS
    else:
        reason = _REASONS.get(kind, _RAGGED)
    fields = sources_of_fields(
        source, (dtype.names if isinstance(dtype, numpy.dtype) else None)
        or ())
    what = (f'{type(value).__name__} of type {dtype}' if dtype is not None
            else type(value).__name__)
    # NaT becomes NaN, which integers do not have.
    number = 'float64' if isinstance(value, (
        numpy.ndarray, numpy.generic)) and kind in ('m', 'M') and numpy.isnat(
            value).any() else 'int64'
    reason = reason.format(holder=holder, dtype=dtype, fields=fields,
                           number=number)
    return TypeError(f'source {source!r} ({what}) {reason}')
