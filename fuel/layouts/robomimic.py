"""Recognise demonstrations of robots: robomimic, LIBERO, mimicgen."""
from __future__ import annotations

from fuel.layouts.call import Call
from fuel.layouts.rows import Place, columns_of_length
from fuel.layouts.seen import Seen

OF_SAMPLES = ('actions', 'dones', 'next_obs', 'obs', 'rewards',
              'robot_states', 'states')


def recognise(seen: Seen) -> Call | None:
    """Recognise groups ``data/demo_<number>`` that count their samples."""
    file = seen.files[0]
    demos = file.groups('data', 'demo_[0-9]+')
    demos = [demos[0], demos[-1]] if demos else []
    counts = [file.integer('num_samples', demo) for demo in demos]
    if not demos or None in counts:
        return None
    columns, left_out = columns_of_length([
        Place(file, demo, file.length(f'{demo}/actions') or count or 0)
        for demo, count in zip(demos, counts, strict=True)],
        always=OF_SAMPLES)
    return Call(columns, parts='data/demo_*', notes=left_out,
                stated=('num_samples', 'actions'),
                splits='mask' if file.is_group('mask') else None)
