"""Recognise episodes of ALOHA robots, a file each."""
from __future__ import annotations

from fuel.layouts.call import Call
from fuel.layouts.rows import (
    columns_of_length, places_of_files, ragged_columns)
from fuel.layouts.seen import Seen

ARRAYS = ('action', 'observations/qpos')
IMAGES = 'observations/images/'


def recognise(seen: Seen) -> Call | None:
    """Recognise actions and positions of joints, and the attribute that says
    whether they are simulated."""
    file = seen.files[0]
    if file.attribute('sim') is None or any(
            file.length(path) is None for path in ARRAYS):
        return None
    columns, left_out = columns_of_length(
        places_of_files(seen, 'action'), always=['action', 'observations'])
    # Bytes of JPEG are padded to the longest of their file.
    images = [path for path in columns if path.startswith(IMAGES)
              and len(file.row_shape(path) or ()) == 1]
    return Call({**columns, **ragged_columns(seen, images)}, notes=left_out)
