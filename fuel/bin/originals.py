"""Raw files that are not those that a built-in data set is known by."""
import json

import h5py

from fuel.converters.output import INPUTS_ATTRIBUTE
from fuel.downloaders.registry import dataset_names, raw_files


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
