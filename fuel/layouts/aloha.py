"""Recognise episodes of ALOHA robots, a file each."""
from __future__ import annotations

from fuel.layouts.call import Call
from fuel.layouts.rows import (
    columns_of_length, places_of_files, ragged_columns)
from fuel.layouts.seen import Seen

IMAGES = 'observations/images/'


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
    # Bytes of JPEG are padded to the longest of their file.
    images = [path for path in columns if path.startswith(IMAGES)
              and len(file.row_shape(path) or ()) == 1]
    return Call({**columns, **ragged_columns(seen, images)}, notes=left_out)
