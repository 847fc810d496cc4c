"""Recognise D4RL's files of offline reinforcement learning."""
from __future__ import annotations

from fuel.layouts.call import Call
from fuel.layouts.rows import columns_of_length, places_of_files
from fuel.layouts.seen import Seen

NAMES = ('observations', 'actions', 'rewards', 'terminals')
NO_TIMEOUTS = ("there is no array 'timeouts', so an episode that a time limit "
               'ended goes on in the next one')


def recognise(seen: Seen) -> Call | None:
    """Recognise four arrays of steps, of one length."""
    file = seen.files[0]
    lengths = {file.length(name) for name in NAMES}
    if len(lengths) != 1 or None in lengths:
        return None
    columns, left_out = columns_of_length(
        places_of_files(seen, 'observations'), besides=['metadata'])
    if 'timeouts' in columns:
        return Call(columns, runs={'ends': ('terminals', 'timeouts')},
                    notes=left_out)
    return Call(columns, runs={'ends': 'terminals'}, notes=(
        *left_out, NO_TIMEOUTS))
