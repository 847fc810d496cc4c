"""Describe the data sets in files of other formats than Fuel's own."""
from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import h5py
import numpy

from fuel.bin.describe import storage_facts
from fuel.datasets.columns.base import FileColumn
from fuel.datasets.columns.part_names import (
    Files, as_files, expand, is_pattern)
from fuel.datasets.columns.opening import OpenColumns
from fuel.datasets.splits import ALL, rows_of_split
from fuel.datasets.dataset import Dataset
from fuel.datasets.files import FilesDataset
from fuel.datasets.hdf5_dataset import HDF5Dataset
from fuel.datasets.row_orders import Order, length
from fuel.datasets.run_bounds import cut_runs, runs_in
from fuel.datasets.runs import Runs
from fuel.datasets.shards.base import ShardDataset
from fuel.describe import SourceType
from fuel.layouts.call import Call
from fuel.layouts.folders import FolderFiles, as_pattern
from fuel.layouts.formats import format_of, is_zarr
from fuel.layouts.opening import named_splits, open_files
from fuel.layouts.recognition import find_call, seen_files
from fuel.layouts.seen import SeenFile
from fuel.remote.urls import StorageOptions, is_url
from fuel.utils.arguments import try_call


def is_hdf5_file(name: str) -> bool:
    """Return whether a name is that of one HDF5 file. A URL, or the name of a
    missing file, counts as one; a folder, a pattern or a file of another
    format does not."""
    if os.path.exists(name):
        return not os.path.isdir(name) and format_of(name) == 'hdf5'
    return is_url(name) or not is_pattern(name)


@contextmanager
def open_described(files: str, storage_options: StorageOptions | None,
                   dtype: str | None = None,
                   ) -> Iterator[tuple[Dataset, dict[str, Any]]]:
    """Open the data set in a file of any format, or in a folder; close it at
    the end of the block.

    `dtype`: the type of the numbers in files of nothing but numbers.

    Yields: the data set, and a dict ready for JSON of 'name', 'call',
        'examples', 'runs', 'splits', 'sources' and 'left out'.
    Raises: OSError or ValueError if it cannot be opened.
    """
    options: dict[str, Any] = {} if storage_options is None else {
        'storage_options': storage_options}
    stored: Mapping[str, Any] = {}
    notes: Sequence[str] = ()
    if dtype is not None:
        options['dtype'] = dtype
    written = '' if dtype is None else f', dtype={dtype!r}'
    found = _hdf5_files(files) if dtype is None else None
    if found is None:
        try:
            dataset = open_files(files, ALL, None, options)
        except TypeError as error:
            # The class needs an argument that only its user can know.
            raise ValueError(str(error)) from error
        name = type(dataset).__name__
    else:
        given, splits = found
        with seen_files(given, storage_options) as seen:
            name, call = find_call(seen)
            stored, notes = _stored(seen.files[0], call), call.notes
            if call.splits is None and not splits and len(
                    by_name := named_splits(files, expand(as_files(
                        given, storage_options)))) > 1:
                splits = {'splits': by_name}
            dataset = call.open(**splits, **options)
    with dataset:
        facts = {'name': name, **_facts(dataset), 'left out': list(notes)}
        if repr(dataset).startswith('<'):
            facts['call'] = f'fuel.load({files!r}{written})'
        for source, known in facts['sources'].items():
            known['layout'] = stored.get(source)
        yield dataset, facts


def _hdf5_files(files: str) -> tuple[Files, dict[str, Any]] | None:
    """Return HDF5 files, and the arguments that name their splits; None for
    files of another format."""
    if not os.path.isdir(files) or is_zarr(files):
        is_hdf5 = is_url(files) or format_of(
            expand(as_files(files, None))[0]) == 'hdf5'
        return (files, {}) if is_hdf5 else None
    found = FolderFiles(files)
    if not found.has_data or found.are_tables():
        return None
    by_split = found.by_split()
    every = [path for paths in by_split.values() for path in paths]
    if format_of(every[0]) != 'hdf5':
        return None
    if '' in by_split:
        return as_pattern(every), {}
    return every, {'splits': by_split}


def _facts(dataset: Dataset) -> dict[str, Any]:
    """Return the facts about a data set."""
    runs = runs_in(dataset)
    known, kinds = dataset.known_types(), _kinds_of(dataset)
    return {
        'call': repr(dataset), 'examples': dataset.num_examples,
        'runs': None if runs is None else len(runs) - 1,
        'splits': _split_sizes(dataset),
        'sources': {source: _source(known[source], kinds.get(source, 'text'))
                    for source in dataset.sources if source in known}}


def _split_sizes(dataset: Dataset) -> dict[str, int]:
    """Return the number of examples of each split that the files name."""
    below = dataset.dataset if isinstance(dataset, Runs) else dataset
    if not isinstance(below, HDF5Dataset):
        return {}
    columns: OpenColumns = below.readers
    orders = {split: _order_of(columns, split) for split in columns.splits}
    if below is dataset:
        return {split: length(order) for split, order in orders.items()}
    runs = columns.parts.find_runs()
    return {split: len(cut_runs(runs, order)[1])
            for split, order in orders.items()}


def _order_of(columns: OpenColumns, split: str) -> Order:
    """Return the rows of a split; no rows for an empty split, which cannot be
    opened."""
    rows = rows_of_split(columns.parts, split, columns.splits[split])
    return columns.order_of((split,)) if numpy.size(rows) else slice(0, 0)


def _kinds_of(dataset: Dataset) -> dict[str, str]:
    """Return what the objects are that sources of shards and folders have, by
    the first example."""
    if not isinstance(dataset, (FilesDataset, ShardDataset)):
        return {}
    names = {bytes: 'bytes', numpy.ndarray: 'arrays', dict: 'JSON',
             list: 'JSON', str: 'text'}
    first = try_call(None, lambda: dataset.get_data(None, [0]))
    if first is None:
        return dict.fromkeys(dataset.sources, 'objects')
    return {source: names.get(type(value), 'objects') for source, (
        value,) in zip(dataset.sources, first, strict=True)}


def _source(known: SourceType, kind: str) -> dict[str, Any]:
    """Return the type and the shape of the examples of a source, ready for
    JSON.

    `kind`: what the objects are, if the source has objects.
    """
    dtype, shape = known.dtype, known.shape
    return {
        'type': 'unknown' if dtype is None else
        kind if dtype.hasobject else str(dtype),
        'shape': None if shape is None else list(shape),
        'sparse': known.is_sparse, 'layout': None}


def _stored(file: SeenFile, call: Call) -> dict[str, Any]:
    """Return a mapping from sources to the storage of their arrays; if a file
    has parts, in its first part."""
    first = ''
    if call.parts is not None:
        # Any part will do, since all parts are alike.
        first = f'{_first_group(file, call.parts)}/'
    return {source: _storage(file, first, column)
            for source, column in call.columns.items()}


def _first_group(file: SeenFile, pattern: str) -> str:
    """Return the path of a group that matches a pattern of parts; '' if none
    of the names that were read matches."""
    group = ''
    for level in pattern.split('/'):
        names = file.matching(group or '/', level)
        if not names:
            return ''
        group = f'{group}/{names[0]}'
    return group


def _storage(file: SeenFile, first: str,
             column: FileColumn) -> Mapping[str, Any] | None:
    """Return the storage of the array of a column; None for a single value."""
    path = f'{first}{column.paths()[0]}'
    for below in ('', '/data', '/codes'):
        node = file.node(f'{path}{below}')
        if isinstance(node, h5py.Dataset) and node.shape:
            return storage_facts(node)
    return None
