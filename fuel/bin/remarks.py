"""Remarks on a converted file: its classes, and raw files that are others
than those that a built-in data set is known by."""
import json

import h5py
import numpy

from fuel.converters.output import INPUTS_ATTRIBUTE
from fuel.downloaders.registry import dataset_names, raw_files

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


def differences(dataset: str, path: str) -> str:
    """Return a line about the raw files of a converted file that differ from
    the registry, an empty one if none is known to."""
    if dataset not in dataset_names():
        return ''
    try:
        with h5py.File(path, 'r') as h5file:
            inputs = json.loads(h5file.attrs[INPUTS_ATTRIBUTE])
    except (OSError, KeyError, ValueError):
        return ''
    found = []
    for file in raw_files(dataset):
        given = inputs.get(str(file))
        if given is None:
            continue
        if file.size is not None and given['size'] != file.size:
            found.append(f'{file} ({given["size"]} bytes instead of '
                         f'{file.size})')
        elif file.sha256 is not None and given['sha256'] != file.sha256:
            found.append(f'{file} (another SHA-256)')
    if not found:
        return ''
    return (f'not the original {", ".join(found)}: what is measured on this '
            f'{dataset} cannot be compared with that of others')
