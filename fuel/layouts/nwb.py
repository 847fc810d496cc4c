"""Recognise recordings of brains: NWB."""
from __future__ import annotations

from collections.abc import Sequence

from fuel.datasets.columns.base import FileColumn
from fuel.datasets.columns.ragged import Ragged
from fuel.datasets.columns.rows import Rows
from fuel.layouts.call import Call
from fuel.layouts.rows import calls_by_length
from fuel.layouts.seen import Seen, SeenFile

SPIKES = 'units/spike_times'


def recognise(seen: Seen) -> Sequence[Call] | None:
    """Recognise the version of the format; a sample is an example, or, in a
    file of spikes alone, a unit.

    Series of several clocks have a call each.
    """
    file = seen.files[0]
    if file.attribute('nwb_version') is None:
        return None
    columns: dict[int, dict[str, FileColumn]] = {}
    for array in file.arrays():
        group, _, name = array.path.rpartition('/')
        count = file.length(f'{group}/data')
        if count is not None and name in ('data', 'timestamps') and (
                _is_series(file, group)):
            columns.setdefault(count, {})[array.path] = Rows(array.path)
    if not columns and file.length(f'{SPIKES}_index') is not None:
        return [Call({SPIKES: Ragged(SPIKES, ends=f'{SPIKES}_index')})]
    return calls_by_length(columns)


def _is_series(file: SeenFile, group: str) -> bool:
    """Return whether a group is a series in time."""
    return (file.length(f'{group}/timestamps') is not None
            or file.node(f'{group}/starting_time') is not None)
