"""Recognise fields of weather, a file a year: makani, ERA5."""
from __future__ import annotations

import numpy

from fuel.datasets.columns.rows import Rows
from fuel.layouts.call import Call
from fuel.layouts.seen import Seen

SCALES = ('timestamp', 'channel', 'lat', 'lon')


def recognise(seen: Seen) -> Call | None:
    """Recognise arrays whose four axes are time, channel, latitude and
    longitude."""
    file = seen.files[0]
    found = [array.path for array in file.arrays() if len(array.shape) == 4
             and tuple([(scale or '').rpartition('/')[2] for scale in
                        file.scales(array.path)]) == SCALES]
    if not found:
        return None
    times = str(file.scales(found[0])[0]).lstrip('/')
    columns = {path: Rows(path) for path in [*found, times]}
    return Call(columns, runs='all' if _are_even(seen, times) else None)


def _are_even(seen: Seen, times: str) -> bool:
    """Return whether the time goes on evenly from file to file."""
    steps = numpy.diff(numpy.concatenate([
        file.read(times).ravel() for file in seen.files]))
    return bool(len(steps) == 0 or (steps[0] > 0
                                    and (steps == steps[0]).all()))
