"""The attribute of the root that says which rows are whose."""
from collections.abc import Mapping
from typing import Any

import h5py
import numpy

__all__ = ['INTERFACE_VERSION', 'create_split_array']

INTERFACE_VERSION = '0.3'


def create_split_array(
        splits: Mapping[str, Mapping[str, tuple[Any, ...]]]) -> Any:
    """Return an array with one row for each pair of split and source."""
    sources = sorted({name for split in splits.values() for name in split})
    rows: list[tuple[Any, ...]] = []
    for split, parts in splits.items():
        for source in sources:
            start, stop, *rest = parts.get(source, (0, 0))
            indices, comment = (*rest, None, '')[:2] if len(rest) < 2 else rest
            rows.append((split.encode('utf8'), source.encode('utf8'), start,
                         stop, indices or h5py.Reference(), source in parts,
                         (comment or '.').encode('utf8')))
    widths = [max(len(row[i]) for row in rows) for i in (0, 1, 6)]
    return numpy.array(rows, dtype=[
        ('split', f'S{widths[0]}'), ('source', f'S{widths[1]}'),
        ('start', 'int64'), ('stop', 'int64'),
        ('indices', h5py.ref_dtype), ('available', bool),
        ('comment', f'S{widths[2]}')])
