"""Recognise episodes of ALOHA robots, a file each."""
from __future__ import annotations

from fuel.layouts.call import Call
from fuel.layouts.rows import columns_of_length, places_of_files
from fuel.layouts.seen import Seen


def recognise(seen: Seen) -> Call | None:
    """Recognise actions and positions of joints of one length, and the
    attribute that says whether they are simulated."""
    file = seen.files[0]
    count = file.length('action')
    if (count is None or file.length('observations/qpos') != count
            or file.attribute('sim') is None):
        return None
    columns, left_out = columns_of_length(
        places_of_files(seen, 'action'))
    return Call(columns, notes=left_out)
