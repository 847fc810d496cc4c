"""Recognise Minari's episodes of reinforcement learning."""
from __future__ import annotations

from fuel.datasets.columns.base import FileColumn
from fuel.datasets.columns.rows import Rows
from fuel.layouts.call import Call
from fuel.layouts.rows import note_of
from fuel.layouts.seen import Array, Seen

# Of these, an episode has one row more than steps.
WITH_LAST = ('observations', 'infos')
# Another number of rows is an error when they are opened.
OF_STEPS = ('actions', 'observations', 'rewards', 'terminations',
            'truncations')


def recognise(seen: Seen) -> Call | None:
    """Recognise groups ``episode_<number>`` that count their steps."""
    file = seen.files[0]
    episodes = file.groups('/', 'episode_[0-9]+')
    episodes = [episodes[0], episodes[-1]] if episodes else []
    steps = [file.integer('total_steps', episode) for episode in episodes]
    if not steps or steps[0] is None or None in steps:
        return None
    for episode in episodes:
        # Before it says which arrays have a row more. Actions may be a
        # group, of several arrays.
        file.check_length(
            'total_steps', episode, f'{episode}/terminations')
    columns: dict[str, FileColumn] = {}
    others: dict[str, Array] = {}
    for episode, count in zip(episodes, steps, strict=True):
        for array in file.arrays(episode):
            path, length = array.path, array.shape[0]
            if path.startswith('options/'):
                # Of the episode as a whole.
                continue
            if path.split('/')[0] in WITH_LAST and length - 1 == count:
                columns[path] = Rows(path, stop=-1)
                columns[f'next_{path}'] = Rows(path, start=1)
            elif length == count or path.split('/')[0] in OF_STEPS:
                columns[path] = Rows(path)
            else:
                others[path] = array
    stated = 'total_steps', 'terminations'
    return Call(columns, parts='episode_*', stated=stated, notes=note_of(
        [array for path, array in others.items() if path not in columns],
        f'they have neither {steps[0]} nor {steps[0] + 1} rows'))
