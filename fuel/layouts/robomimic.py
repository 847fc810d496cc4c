"""Recognise demonstrations of robots: robomimic, LIBERO, mimicgen."""
from __future__ import annotations

from fuel.layouts.call import Call
from fuel.layouts.rows import columns_of_length
from fuel.layouts.seen import Seen


def recognise(seen: Seen) -> Call | None:
    """Recognise groups ``data/demo_<number>`` that count their samples."""
    file = seen.files[0]
    demos = file.groups('data', 'demo_[0-9]+')
    if not demos or any(file.attribute('num_samples', demo) is None
                        for demo in (demos[0], demos[-1])):
        return None
    count = file.length(f'{demos[0]}/actions')
    if count is None:
        count = int(file.attribute('num_samples', demos[0]))
    columns, left_out = columns_of_length(file, count, demos[0])
    return Call(columns, parts='data/demo_*', notes=left_out,
                splits='mask' if file.is_group('mask') else None)
