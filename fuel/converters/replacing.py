"""Refusing to replace a file of the data path with one of other data."""
from __future__ import annotations

import os
import shlex
from collections.abc import Callable

import h5py

from fuel.downloaders.registry import dataset_facts, dataset_names


def converter_of(path: str) -> str | None:
    """Return the data set that ``fuel-convert`` was run for when it wrote a
    file; None if that is not known."""
    try:
        with h5py.File(path, 'r') as h5file:
            words = shlex.split(str(h5file.attrs['fuel_convert_command']))
    except (OSError, KeyError, ValueError):
        return None
    return words[1] if len(words) > 1 else None


def refuse_to_replace(converter: str) -> Callable[[str], None]:
    """Return a function that raises an error if a converter may not write a
    file under a path of the data path: the file that is there is of another
    converter, or a built-in data set looks for that name."""
    def refuse(path: str) -> None:
        name = os.path.basename(path)
        owners = [dataset for dataset in dataset_names()
                  if name in dataset_facts(dataset)['outputs']]
        found = converter_of(path)
        if found not in (None, converter):
            reason = f"was made by 'fuel-convert {found}'"
        elif owners and converter not in owners:
            reason = f'is the file of the built-in data set {owners[0]!r}'
        else:
            return
        raise FileExistsError(
            f'{path} {reason}, and is not replaced by one of '
            f"'fuel-convert {converter}': choose another name with "
            f'-r other.hdf5, or another folder with -o')
    return refuse
