"""Recognise objects of the sky: MultimodalUniverse."""
from __future__ import annotations

from fuel.layouts.call import Call
from fuel.layouts.rows import (
    columns_of_length, places_of_files, ragged_columns)
from fuel.layouts.seen import Seen


def recognise(seen: Seen) -> Call | None:
    """Recognise names of objects, and other arrays with a row for each."""
    file = seen.files[0]
    if file.length('object_id') is None:
        return None
    columns, left_out = columns_of_length(
        places_of_files(seen, 'object_id'),
        always=[array.path for array in file.arrays()])
    # Spectra are padded to the widest of their file.
    return Call({**columns, **ragged_columns(seen, columns)}, notes=left_out,
                independent_rows='objects have no order')
