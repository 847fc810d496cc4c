"""Counts the examples of each class of a converted file."""
import json

import h5py
import numpy

# More classes are counted, not named.
NAMED = 10


def count_classes(path: str) -> str:
    """Return a line about the classes of a file of one's own; an empty one
    if it has none, or they are not known by name."""
    try:
        with h5py.File(path, 'r') as h5file:
            targets = h5file['targets']
            names = json.loads(targets.attrs['class_names'])
            counts = numpy.bincount(targets[...].ravel(),
                                    minlength=len(names)).tolist()
            counted = list(zip(map(_shown, names), counts, strict=True))
    except (OSError, KeyError, ValueError, TypeError, AttributeError):
        return ''
    if len(names) > NAMED:
        return (f'{len(names)} classes of {min(counts)} to {max(counts)} '
                'examples')
    listed = ', '.join(f'{name} {count}' for name, count in counted)
    return f'{len(names)} class{"es" if len(names) > 1 else ""}: {listed}'


def _shown(name: str) -> str:
    """Return a name that a terminal takes for nothing else."""
    return f'{name if name.isprintable() else ascii(name):.80}'
