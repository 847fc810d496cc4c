"""Recognise episodes of stable-worldmodel, one after the other."""
from __future__ import annotations

import numpy

from fuel.exceptions import DamagedFileError
from fuel.layouts.call import Call
from fuel.layouts.rows import Place, columns_of_length
from fuel.layouts.seen import Seen


def recognise(seen: Seen) -> Call | None:
    """Recognise the arrays ``ep_len`` and ``ep_offset``."""
    first = seen.files[0]
    if any(first.length(name) is None for name in ('ep_len', 'ep_offset')):
        return None
    for file in seen.files:
        lengths, offsets = [file.read(name).astype(numpy.int64)
                            for name in ('ep_len', 'ep_offset')]
        if not numpy.array_equal(
                offsets, numpy.cumsum(lengths) - lengths):
            raise DamagedFileError(
                f"{file.path!r}: 'ep_offset' should be the sum of the "
                f"'ep_len' before, and is not; the file is damaged: restore "
                f'it from its origin')
    lengths = first.read('ep_len')
    # Others have at most a row for each episode.
    of_steps = [array.path for array in first.arrays()
                if array.shape[0] > len(lengths)]
    columns, left_out = columns_of_length(
        [Place(first, '/', int(lengths.sum()))],
        besides=['ep_len', 'ep_offset'], always=of_steps)
    return Call(columns, runs={'lengths': 'ep_len'}, notes=left_out)
