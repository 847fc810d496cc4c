"""What is recognised in files that are not in Fuel's own format."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import h5py

from fuel.bin.describe import storage_facts
from fuel.datasets.columns.base import FileColumn
from fuel.datasets.columns.file_paths import Files
from fuel.datasets.dataset import Dataset
from fuel.datasets.hdf5_dataset import HDF5Dataset
from fuel.datasets.run_bounds import runs_in
from fuel.describe import SourceType
from fuel.layouts.call import Call
from fuel.layouts.folders import files_by_split
from fuel.layouts.formats import format_of, is_zarr
from fuel.layouts.opening import open_files
from fuel.layouts.recognition import find_call, seen_files
from fuel.layouts.seen import SeenFile
from fuel.remote.urls import StorageOptions


def layout_facts(files: Files, storage_options: StorageOptions | None,
                 ) -> dict[str, Any]:
    """Describe the data set that HDF5 files hold: JSON-ready 'name', 'call',
    'examples', 'runs', 'splits', 'sources' and 'left out'; or the 'problem'
    with them."""
    try:
        with seen_files(files, storage_options) as seen:
            name, call = find_call(seen)
            dataset = call.open(**_options(storage_options))
            stored = _stored(seen.files[0], call)
            splits = {} if call.are_runs else {
                split: call.open(which_sets=(split,), **_options(
                    storage_options)).num_examples
                for split in _split_names(dataset)}
    except (OSError, ValueError) as error:
        return {'problem': str(error)}
    facts = {'name': name, **_facts(dataset), 'splits': splits,
             'left out': list(call.notes)}
    for source, known in facts['sources'].items():
        known['layout'] = stored.get(source)
    dataset.close(None)
    return facts


def dataset_facts(files: str, storage_options: StorageOptions | None,
                  ) -> dict[str, Any]:
    """Describe the data set that a folder, or a file of any format, holds,
    as above."""
    if os.path.isdir(files) and not is_zarr(files):
        by_split = files_by_split(files)
        every = [path for paths in by_split.values() for path in paths]
        if format_of(every[0]) == 'hdf5':
            facts = layout_facts(every, storage_options)
            if '' not in by_split and 'problem' not in facts:
                dataset = open_files(files, None, None, {})
                facts |= {'call': repr(dataset), 'splits': {
                    split: open_files(files, split, None, {}).num_examples
                    for split in by_split}}
            return facts
    dataset = open_files(files, None, None, _options(storage_options))
    facts = {'name': type(dataset).__name__, **_facts(dataset),
             'left out': []}
    dataset.close(None)
    return facts


def _options(storage_options: StorageOptions | None) -> dict[str, Any]:
    return {} if storage_options is None else {
        'storage_options': storage_options}


def _facts(dataset: Dataset) -> dict[str, Any]:
    """Return what a data set says of itself."""
    runs = runs_in(dataset)
    known = dataset.known_types()
    return {
        'call': repr(dataset), 'examples': dataset.num_examples,
        'runs': None if runs is None else len(runs) - 1,
        'splits': {},
        'sources': {source: _source(known[source])
                    for source in dataset.sources if source in known}}


def _split_names(dataset: Dataset) -> Sequence[str]:
    return dataset.split_names if isinstance(dataset, HDF5Dataset) else ()


def _source(known: SourceType) -> dict[str, Any]:
    """Return what is known of an example of a source."""
    dtype, shape = known.dtype, known.shape
    return {
        'type': 'unknown' if dtype is None else
        'text' if dtype.hasobject else str(dtype),
        'shape': None if shape is None else list(shape),
        'sparse': known.is_sparse, 'layout': None}


def _stored(file: SeenFile, call: Call) -> dict[str, Any]:
    """Return how the arrays of the first part are stored, by source."""
    first = ''
    if call.parts is not None:
        # Any part: they are alike.
        first = f'{_first_group(file, call.parts)}/'
    return {source: _storage(file, first, column)
            for source, column in call.columns.items()}


def _first_group(file: SeenFile, pattern: str) -> str:
    """Return the path of one group that fits a pattern of parts, '' if the
    names that are looked at have none."""
    group = ''
    for level in pattern.split('/'):
        names = file.matching(group or '/', level)
        if not names:
            return ''
        group = f'{group}/{names[0]}'
    return group


def _storage(file: SeenFile, first: str,
             column: FileColumn) -> Mapping[str, Any] | None:
    """Return how the array of a column is stored, None of a single value."""
    path = f'{first}{column.paths()[0]}'
    for below in ('', '/data', '/codes'):
        node = file.node(f'{path}{below}')
        if isinstance(node, h5py.Dataset) and node.shape:
            return storage_facts(node)
    return None
