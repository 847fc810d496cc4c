"""The columns of a data set that names none."""
from __future__ import annotations

from collections.abc import Sequence

from fuel.datasets.columns.part_names import SHOWN, natural_key
from fuel.datasets.columns.parts import FileParts
from fuel.datasets.columns.rows import Rows
from fuel.storage.nodes import find_arrays
from fuel.utils.hdf5_errors import naming_file


def default_columns(parts: FileParts, besides: Sequence[str],
                    wanted: Sequence[str]) -> dict[str, Rows]:
    """Return a column for each array of the first part that has the common
    length.

    `besides`: paths that are no sources, nor what is below them.
    `wanted`: arrays that must be there, one of which says the length.
    """
    hidden = tuple([f'{path.strip("/")}/' for path in besides])
    lengths: dict[int, list[str]] = {}
    with naming_file(parts.path_of(0)):
        for path, array in find_arrays(
                parts.group(0), parts.files.open_linked):
            if array.size and not f'{path}/'.startswith(hidden):
                lengths.setdefault(len(array), []).append(path)
    for paths in lengths.values():
        if len(lengths) == 1 or {*wanted} & {*paths}:
            return {path: Rows(path)
                    for path in sorted(paths, key=natural_key)}
    if not lengths:
        raise ValueError(f'{parts.describe(0)} has no arrays with an example '
                         f'in each row')
    found = [f'of {count}: {", ".join(map(repr, paths[:SHOWN]))}'
             + ', ...' * (len(paths) > SHOWN)
             for count, paths in sorted(lengths.items())]
    raise ValueError(
        f'{parts.describe(0)} has arrays of several lengths, so their rows '
        f'are not examples of one data set ({"; ".join(found[:SHOWN])}'
        f'{"; ..." * (len(found) > SHOWN)}); name those that are, as '
        f'columns=[...]')
