"""Recognise episodes of robots and other agents: robomimic, ALOHA, Minari,
D4RL, stable-worldmodel."""
from __future__ import annotations

import numpy

from fuel.datasets.columns.base import FileColumn
from fuel.datasets.columns.rows import Rows
from fuel.layouts.call import (
    Call, Place, columns_of_length, note_of, places_of_files, ragged_columns)
from fuel.layouts.seen import Array, Seen
from fuel.utils.hdf5_errors import damaged

# Arrays of each layout that must have a row for each step. Opening one with
# another number of rows is an error.
ROBOMIMIC_OF_SAMPLES = (
    'actions', 'dones', 'next_obs', 'obs', 'rewards', 'robot_states',
    'states')
ALOHA_ARRAYS = ('action', 'observations/qpos')
ALOHA_IMAGES = 'observations/images/'
# Arrays that have one row more than the episode has steps.
MINARI_WITH_LAST = ('observations', 'infos')
MINARI_OF_STEPS = (
    'actions', 'observations', 'rewards', 'terminations', 'truncations')
D4RL_ARRAYS = ('observations', 'actions', 'rewards', 'terminals')
D4RL_OF_STEPS = (*D4RL_ARRAYS, 'infos', 'next_observations', 'timeouts')
D4RL_NO_TIMEOUTS = (
    "there is no array 'timeouts', so an episode that a time limit ended "
    'goes on in the next one')


def recognise_robomimic(seen: Seen) -> Call | None:
    """Recognise groups ``data/demo_<number>`` that state their numbers of
    samples."""
    file = seen.files[0]
    demos = file.outer_groups('data', 'demo_[0-9]+')
    counts = [file.integer('num_samples', demo) for demo in demos]
    if not demos or None in counts:
        return None
    columns, left_out = columns_of_length([
        Place(file, demo, file.length(f'{demo}/actions') or count or 0)
        for demo, count in zip(demos, counts, strict=True)],
        always=ROBOMIMIC_OF_SAMPLES)
    return Call(columns, parts='data/demo_*', notes=left_out,
                stated=('num_samples', 'actions'),
                splits='mask' if file.is_group('mask') else None)


def recognise_aloha(seen: Seen) -> Call | None:
    """Recognise arrays of actions and positions of joints, and the attribute
    that says whether they are simulated."""
    file = seen.files[0]
    if file.attribute('sim') is None or any(
            file.length(path) is None for path in ALOHA_ARRAYS):
        return None
    columns, left_out = columns_of_length(
        places_of_files(seen, 'action'), always=['action', 'observations'])
    # Bytes of JPEG images are padded to the longest image of their file.
    images = [path for path in columns if path.startswith(ALOHA_IMAGES)
              and len(file.row_shape(path) or ()) == 1]
    return Call({**columns, **ragged_columns(seen, images)}, notes=left_out)


def recognise_minari(seen: Seen) -> Call | None:
    """Recognise groups ``episode_<number>`` that state their steps."""
    file = seen.files[0]
    episodes = file.outer_groups('/', 'episode_[0-9]+')
    steps = [file.integer('total_steps', episode) for episode in episodes]
    if not steps or steps[0] is None or None in steps:
        return None
    for episode in episodes:
        # The number of steps is checked before it determines which arrays have
        # one row more. Actions may be a group of several arrays.
        file.check_length(
            'total_steps', episode, f'{episode}/terminations')
    columns: dict[str, FileColumn] = {}
    others: dict[str, Array] = {}
    for episode, count in zip(episodes, steps, strict=True):
        for array in file.arrays(episode):
            path, length = array.path, array.shape[0]
            if path.startswith('options/'):
                # Values of the whole episode.
                continue
            if path.split('/')[0] in MINARI_WITH_LAST and length - 1 == count:
                columns[path] = Rows(path, stop=-1)
                columns[f'next_{path}'] = Rows(path, start=1)
            elif length == count or path.split('/')[0] in MINARI_OF_STEPS:
                columns[path] = Rows(path)
            else:
                others[path] = array
    stated = 'total_steps', 'terminations'
    return Call(columns, parts='episode_*', stated=stated, notes=note_of(
        [array for path, array in others.items() if path not in columns],
        f'they have neither {steps[0]} nor {steps[0] + 1} rows'))


def recognise_d4rl(seen: Seen) -> Call | None:
    """Recognise the four arrays of steps that D4RL has."""
    file = seen.files[0]
    if any(file.length(name) is None for name in D4RL_ARRAYS):
        return None
    columns, left_out = columns_of_length(
        places_of_files(seen, 'observations'), besides=['metadata'],
        always=D4RL_OF_STEPS)
    if 'timeouts' in columns:
        return Call(columns, runs={'ends': ('terminals', 'timeouts')},
                    notes=left_out)
    return Call(columns, runs={'ends': 'terminals'}, notes=(
        *left_out, D4RL_NO_TIMEOUTS))


def recognise_stable_worldmodel(seen: Seen) -> Call | None:
    """Recognise the arrays ``ep_len`` and ``ep_offset``."""
    first = seen.files[0]
    if any(first.length(name) is None for name in ('ep_len', 'ep_offset')):
        return None
    for file in seen.files:
        lengths, offsets = [file.read(name).astype(numpy.int64)
                            for name in ('ep_len', 'ep_offset')]
        if not numpy.array_equal(
                offsets, numpy.cumsum(lengths) - lengths):
            raise damaged(
                f"{file.path!r}: 'ep_offset' should be the sum of the "
                f"'ep_len' before, and is not")
    lengths = first.read('ep_len')
    # Other arrays have at most a row for each episode.
    of_steps = [array.path for array in first.arrays()
                if array.shape[0] > len(lengths)]
    columns, left_out = columns_of_length(
        [Place(first, '/', int(lengths.sum()))],
        besides=['ep_len', 'ep_offset'], always=of_steps)
    return Call(columns, runs={'lengths': 'ep_len'}, notes=left_out)
