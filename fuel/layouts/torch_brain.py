"""Recognise recordings of brains as torch_brain has them."""
from __future__ import annotations

from collections.abc import Sequence

from fuel.datasets.columns.base import FileColumn
from fuel.datasets.columns.rows import Rows
from fuel.layouts.call import Call
from fuel.layouts.rows import calls_by_length
from fuel.layouts.seen import Seen

SERIES = ('IrregularTimeSeries', 'RegularTimeSeries')


def recognise(seen: Seen) -> Sequence[Call] | None:
    """Recognise what the root and its groups say that they are; a sample is
    an example. Series of several clocks have a call each."""
    file = seen.files[0]
    if file.text('object') != 'Data':
        return None
    counts: dict[str, int] = {}
    columns: dict[int, dict[str, FileColumn]] = {}
    for array in file.arrays():
        group, _, name = array.path.rpartition('/')
        if file.text('object', group or '/') in SERIES and (
                name != 'timestamp_indices_1s'):
            # Those of a series belong together, whatever their lengths.
            count = counts.setdefault(group, array.shape[0])
            columns.setdefault(count, {})[array.path] = Rows(array.path)
    return calls_by_length(columns)
