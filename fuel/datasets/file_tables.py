"""Tables of the files in a folder."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.datasets.folder_index import FolderIndex
from fuel.utils.arguments import try_call

# Tables of the files, as Hugging Face names them, the class that reads each,
# and its arguments; and the column with the path of each file.
NAME = 'file_name'
AS_TEXT = {'dtypes': {NAME: object}}
TABLES: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    'metadata.csv': ('fuel.datasets.csv', 'CSVDataset', AS_TEXT),
    'metadata.jsonl': ('fuel.datasets.jsonl', 'JSONLDataset', AS_TEXT),
    'metadata.parquet': ('fuel.interop.arrow', 'ArrowDataset', {})}


def find_tables(index: FolderIndex) -> list[str]:
    """Return the paths of the tables of files, relative to the folder."""
    text = index.names.content.tobytes()
    return [] if not any(name.encode() in text for name in TABLES) else [
        index.name_of(file) for file in numpy.flatnonzero(
            index.names.end_with(list(TABLES))).tolist()
        if index.names[file] in TABLES]


def read_tables(index: FolderIndex, names: Sequence[str],
                ) -> tuple[Any, NDArray[numpy.intp]]:
    """Return the data set of the rows of tables, and the number of the file
    of each row."""
    paths = [os.path.join(index.path, name) for name in names]
    kinds = {os.path.basename(name) for name in names}
    if len(kinds) > 1:
        raise ValueError(f'{index.path!r} has tables of two kinds, '
                         f'{", ".join(names)}: leave one kind of them')
    module, kind, options = TABLES[kinds.pop()]
    try:
        build = getattr(import_module(module), kind)
    except ImportError as error:
        raise ImportError(f'{paths[0]}: {error}', name=error.name) from None
    try:
        table = build(paths, **options)
        columns = table.sources
    except ValueError:
        columns = try_call((NAME,), lambda: build(paths).sources)
        if NAME in columns:
            raise
    if NAME not in columns:
        raise ValueError(
            f'{", ".join(paths)}: a table of files has a column {NAME!r}, '
            f'relative to the table, and the columns of this one are '
            f'{", ".join(map(repr, columns))}: rename the column that has '
            f'the names of the files')
    if not table.num_examples:
        raise ValueError(f'{", ".join(paths)} has no rows')
    rows = numpy.arange(table.num_examples)
    table.sources = (NAME,)
    listed, = table.get_data(None, rows)
    table.sources = table.provides_sources
    places = table.places_of_rows(rows)
    numbers = {index.name_of(file): file for file in range(len(index.names))}
    files = numpy.empty(len(rows), numpy.intp)
    for row, (file, name) in enumerate(zip(
            places.file.tolist(), listed, strict=True)):
        wanted = os.path.normpath(os.path.join(
            os.path.dirname(names[file]), str(name))).replace(os.sep, '/')
        if wanted not in numbers:
            raise FileNotFoundError(
                f'{paths[file]}, row {int(places.row[row])}: there is no '
                f'file {str(name)!r} beside it: restore the file, or delete '
                f'the row from the table')
        files[row] = numbers[wanted]
    return table, files
