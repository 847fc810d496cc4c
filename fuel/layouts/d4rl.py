"""Recognise D4RL's files of offline reinforcement learning."""
from __future__ import annotations

from fuel.layouts.call import Call
from fuel.layouts.rows import columns_of_length, places_of_files
from fuel.layouts.seen import Seen

NAMES = ('observations', 'actions', 'rewards', 'terminals')
OF_STEPS = (*NAMES, 'infos', 'next_observations', 'timeouts')
NO_TIMEOUTS = ("there is no array 'timeouts', so an episode that a time limit "
               'ended goes on in the next one')


def recognise(seen: Seen) -> Call | None:
    """Recognise four arrays of steps."""
    file = seen.files[0]
    if any(file.length(name) is None for name in NAMES):
        return None
    columns, left_out = columns_of_length(
        places_of_files(seen, 'observations'), besides=['metadata'],
        always=OF_STEPS)
    if 'timeouts' in columns:
        return Call(columns, runs={'ends': ('terminals', 'timeouts')},
                    notes=left_out)
    return Call(columns, runs={'ends': 'terminals'}, notes=(
        *left_out, NO_TIMEOUTS))
