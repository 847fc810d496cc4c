"""Recognise MATLAB's files since version 7.3, whose axes are reversed."""
from __future__ import annotations

from collections.abc import Sequence

from fuel.datasets.columns.rows import Rows
from fuel.layouts.call import Call
from fuel.layouts.seen import Seen


def recognise(seen: Seen) -> Sequence[Call] | None:
    """Recognise arrays that say what they are in MATLAB.

    The examples are along the axis that all have in common, the first or the
    last; if that is both, there is a call for each.
    """
    file = seen.files[0]
    arrays = [array for array in file.arrays() if not array.path.startswith(
        ('#refs#/', '#subsystem#/'))]
    if not arrays or any(file.attribute('MATLAB_class', array.path) is None
                         for array in arrays):
        return None
    arrays = [array for array in arrays if file.attribute(
        'MATLAB_class', array.path) not in ('cell', 'char', 'struct')]
    calls = [Call({array.path: Rows(array.path, axis=axis)
                   for array in arrays})
             for axis in (0, -1)
             if len({array.shape[axis] for array in arrays}) == 1]
    # Of one axis, the first is the last.
    return calls[:1] if all(
        len(array.shape) == 1 for array in arrays) else calls or None
