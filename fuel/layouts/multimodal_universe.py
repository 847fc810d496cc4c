"""Recognise objects of the sky: MultimodalUniverse."""
from __future__ import annotations

from fuel.datasets.columns.rows import Rows
from fuel.layouts.call import Call
from fuel.layouts.rows import columns_of_length, places_of_files
from fuel.layouts.seen import Seen


def recognise(seen: Seen) -> Call | None:
    """Recognise names of objects, and other arrays with a row for each."""
    file = seen.files[0]
    if file.length('object_id') is None:
        return None
    columns, left_out = columns_of_length(
        places_of_files(seen, 'object_id'))
    for path in columns:
        # Spectra are padded to the widest of their file.
        shapes = {getattr(other.array(path), 'shape', ())[1:]
                  for other in seen.files}
        if len(shapes) > 1:
            columns[path] = Rows(path, ragged=True)
    return Call(columns, notes=left_out)
