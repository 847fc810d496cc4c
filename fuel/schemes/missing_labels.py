"""Labels that are missing: those that stand for no class."""
from __future__ import annotations

from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.utils.other_libraries import comes_from
from fuel.utils.warn import warn_user


def find_known(labels: Any, missing: object = None) -> NDArray[Any] | None:
    """Return which labels stand for a class, None if all do.

    Labels are missing where a masked array is masked, or a categorical of
    pandas or Arrow has no value: these are left out with a warning.

    `missing`: the label that stands for none as well.
    Returns: shape of the labels.
    """
    known = ~_find_unsaid(labels)
    left_out = int(known.size - numpy.count_nonzero(known))
    if left_out:
        warn_user(
            f'{left_out} of {known.size} labels are missing, and their '
            f'examples are left out: give them a class of their own to keep '
            f'them')
    if missing is not None:
        found = numpy.ma.getdata(numpy.asarray(labels))
        # A label that differs from itself is NaN.
        known &= (found == found if missing != missing
                  else numpy.asarray(found != missing))
    return None if known.all() else known


def _find_unsaid(labels: Any) -> NDArray[Any]:
    """Return where the labels themselves say that none is known."""
    if isinstance(labels, numpy.ma.MaskedArray):
        return numpy.ma.getmaskarray(labels)
    if comes_from(labels, (
            'Series', 'Categorical', 'CategoricalIndex'), 'pandas') and (
            str(labels.dtype) == 'category'):
        return numpy.asarray(labels.isna())
    if comes_from(labels, (
            'DictionaryArray', 'ChunkedArray'), 'pyarrow') and (
            str(labels.type).startswith('dictionary')):
        return numpy.asarray(labels.cast(labels.type.value_type).is_null())
    return numpy.zeros(numpy.shape(labels), bool)
