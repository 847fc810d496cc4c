"""Draw the pipelines that a run tries unless ``--full`` is given."""
import random
from functools import cache
from types import CodeType, FunctionType

from support import pipelines
from support.pipelines import PIPELINES

# Of all pipelines, those that are drawn by chance alone.
SHARE_BY_CHANCE = .1

# Regression tests name them.
NAMED = (
    'Cache of Batch', 'CenterCrop', 'ImagesFromBytes',
    'ImagesFromBytes skipping', 'MinimumImageDimensions', 'Mix',
    'Noisy left-overs', 'Normalize', 'Padding',
    'RandomFixedSizeCrop seeded', 'RandomHorizontalFlip',
    'RandomResizedCrop', 'Rename', 'Resize', 'ShuffledScheme', 'ToBytes',
    'sparse Cache')


def draw(seed, besides=()):
    """Return the names of pipelines that a seed draws.

    They have each kind of `kinds` at least once, and all of `NAMED`.

    Parameters
    ----------
    seed : int or str
    besides : collection of str
        The names of pipelines that are not drawn.

    Returns
    -------
    set of str

    """
    every = [name for name in PIPELINES if name not in besides]
    by_chance = random.Random(seed).sample(every, len(every))
    drawn = {*NAMED, *by_chance[:round(SHARE_BY_CHANCE * len(every))]}
    drawn.difference_update(besides)
    lacking = set().union(*map(kinds, every)).difference(*map(kinds, drawn))
    for name in by_chance:
        if kinds(name) & lacking:
            drawn.add(name)
            lacking -= kinds(name)
    return drawn


def draw_some(names, seed):
    """Return a third of some names."""
    return set(random.Random(seed).sample(names, round(len(names) / 3)))


@cache
def kinds(name):
    """Return the names of the classes that a function of a pipeline names,
    and the first word of its own name: a class, or 'sharded' and the like."""
    found, seen = {name.partition(' ')[0]}, set()
    pending = [PIPELINES[name].__code__]
    while pending:
        code = pending.pop()
        seen.add(code)
        for thing in map(vars(pipelines).get, code.co_names):
            if isinstance(thing, type):
                found.add(thing.__name__)
            elif (isinstance(thing, FunctionType)
                  and thing.__module__ == pipelines.__name__):
                pending.append(thing.__code__)
        pending += [part for part in code.co_consts
                    if isinstance(part, CodeType)]
        pending = [part for part in pending if part not in seen]
    return found
