"""Find the files, or the table in memory, that a data set reads."""
from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence, Sized
from typing import Any, NamedTuple, TypeAlias

import pyarrow
import pyarrow.dataset
import pyarrow.fs

from fuel.datasets.columns.part_names import expand, natural_key
from fuel.datasets.splits import (
    files_by_folder, files_by_name, must_name_splits)
from fuel.describe.samples import label_source
from fuel.layouts.formats import TABLES_OF_ARROW
from fuel.remote.location import as_path, fixed_path
from fuel.remote.urls import StorageOptions
from fuel.utils.other_libraries import class_for, is_hugging_face_cache

#: A path, several of them, or a table in memory.
Tables: TypeAlias = object
# Formats of Hugging Face that choose a library, and do not change values.
FORMATS = (None, 'arrow', 'numpy', 'pandas', 'polars')


class Located(NamedTuple):
    """A file, and the columns that the names of its folders give.

    `path`: path of the file.
    `constants`: the value of each column, such as `year` for ``year=2024``.
    """

    path: str
    constants: Mapping[str, pyarrow.Scalar]


def paths_of(data: Tables, storage_options: StorageOptions | None = None,
             ) -> list[Located] | None:
    """Return the files that `data` names; None if `data` is a table."""
    if isinstance(data, Located):
        return [data]
    if isinstance(data, (str, os.PathLike)):
        path = as_path(os.fspath(data), storage_options)
        return _in_folder(path) if os.path.isdir(path) else [
            Located(fixed_path(each), {}) for each in expand(path)]
    if isinstance(data, (list, tuple)):
        if not data:
            raise ValueError('at least one file is needed, got none')
        return [path for each in data
                for path in paths_of(each, storage_options) or ()]
    if storage_options is not None:
        raise ValueError(
            f'storage_options are for URLs, such as s3://bucket/name, and '
            f'data is a {type(data).__name__}: leave them out')
    return None


def tables_by_split(data: Tables, located: Sequence[Located],
                    names: Sequence[str] | None, how: str,
                    ) -> dict[str, list[Located]]:
    """Return the files of each split of a folder.

    The dict is empty if `data` is not a folder, or if all files of the folder
    are read.

    The name of a file, or of a folder above it, names the split. If there is
    no such name, each folder is a split.

    `located`: the files in the folder.
    `names`: the splits to read; None if none is named.
    `how`: see `must_name_splits`.

    Raises: ValueError if there are several splits, and none is named.
    """
    if not isinstance(data, (str, os.PathLike)) or not os.path.isdir(data):
        return {}
    root, by_path = os.fspath(data), {each.path: each for each in located}
    found = files_by_name(list(by_path), root)
    if names is None:
        if len(found) > 1:
            raise must_name_splits(repr(str(root)), found, how)
        return {}
    found = found or files_by_folder(list(by_path), root, names)
    return {split: [by_path[path] for path in paths]
            for split, paths in found.items()}


def _in_folder(path: str) -> list[Located]:
    """Return the files of a folder, in the natural order of their paths.

    PyArrow's data sets decide which files of the folder count.
    """
    factory = pyarrow.dataset.FileSystemDatasetFactory(
        pyarrow.fs.LocalFileSystem(),
        pyarrow.fs.FileSelector(path, recursive=True),
        # Required; it matters only if the factory reads the files.
        pyarrow.dataset.ParquetFileFormat(),
        pyarrow.dataset.FileSystemFactoryOptions(
            partition_base_dir=path,
            partitioning=pyarrow.dataset.HivePartitioning.discover()))
    schema = factory.inspect(fragments=0)
    found = []
    for each in factory.finish(schema).get_fragments():
        if each.path.lower().endswith(TABLES_OF_ARROW) and not (
                is_hugging_face_cache(each.path)):
            values = pyarrow.dataset.get_partition_keys(
                each.partition_expression)
            found.append(Located(fixed_path(each.path), {
                field.name: pyarrow.scalar(values[field.name], field.type)
                for field in schema if field.name in values}))
    if not found:
        raise FileNotFoundError(
            f'{path} has no file that ends in {", ".join(TABLES_OF_ARROW)}')
    return sorted(found, key=lambda each: natural_key(each.path))


def as_divided_table(data: Any) -> tuple[
        pyarrow.Table, dict[str, tuple[int, int]]]:
    """Return several data sets of Hugging Face as one table, and their rows.

    The second value is a dict from the name of each data set to its first row
    and the row after its last row.
    """
    tables = {name: as_table(part) for name, part in data.items()}
    advice = (f': pass one of them, such as '
              f'data[{next(iter(tables), "train")!r}]')
    try:
        whole = pyarrow.concat_tables(tables.values())
    except pyarrow.ArrowInvalid as error:
        raise ValueError(
            f'the data sets {", ".join(tables)} of Hugging Face have '
            f'different columns{advice}') from error
    for table in tables.values():
        column = differs(classes_of(whole.schema), classes_of(table.schema))
        if column is not None:
            raise ValueError(
                f'the data sets {", ".join(tables)} of Hugging Face have '
                f'different names for the classes of {column!r}{advice}')
    splits, start = {}, 0
    for name, table in tables.items():
        splits[name] = start, start + len(table)
        start += len(table)
    return whole, splits


def is_divided(data: Tables) -> bool:
    """Return whether data are a dict of data sets of Hugging Face."""
    return isinstance(data, Mapping) and type(
        data).__module__.partition('.')[0] == 'datasets'


def classes_of(schema: pyarrow.Schema) -> dict[str, tuple[str, ...]]:
    """Return the class names of each column, from Hugging Face's metadata."""
    try:
        features = json.loads(schema.metadata[b'huggingface'])[
            'info']['features']
        return {column: tuple(map(str, feature['names']))
                for column, feature in features.items()
                if feature.get('_type') == 'ClassLabel'}
    except (AttributeError, KeyError, TypeError, ValueError):
        # The schema has no such metadata, or metadata of another version.
        return {}


def class_names_of(categories: Mapping[str, tuple[str, ...]],
                   sources: Sequence[str]) -> tuple[str, ...] | None:
    """Return the class names of the source that holds classes, or None.

    The source that holds classes is 'targets', 'labels' or 'fine_labels'. If
    there is no source of these names, it is the only source with class names.
    """
    label = label_source(sources)
    if label is None:
        named = [source for source in categories if source in sources]
        label = named[0] if len(named) == 1 else None
    return None if label is None else categories.get(label)


def differs(classes: Mapping[str, tuple[str, ...]],
            others: Mapping[str, tuple[str, ...]]) -> str | None:
    """Return the first column whose class names differ in two tables.

    The result is None if there is no such column.
    """
    return next((column for column, names in classes.items()
                 if others.get(column, names) != names), None)


def as_table(data: Tables) -> pyarrow.Table:
    """Return the PyArrow table of an object that holds a table in memory."""
    if isinstance(data, pyarrow.Table):
        return data
    if isinstance(data, pyarrow.RecordBatch):
        return pyarrow.Table.from_batches([data])
    library = type(data).__module__.partition('.')[0]
    if library == 'datasets':
        return _of_hugging_face(data)
    if library == 'pandas':
        return pyarrow.Table.from_pandas(data, preserve_index=False)
    if hasattr(data, '__arrow_c_stream__'):
        return pyarrow.table(data)
    raise TypeError(
        'data must be the path of a Parquet or Arrow file, a list of them, a '
        'folder, or a table (of PyArrow, pandas, Hugging Face datasets, or '
        f'any library that exports Arrow), got {type(data).__name__}')


def _of_hugging_face(data: Any) -> pyarrow.Table:
    """Return the table of a data set of Hugging Face.

    The table has only the rows and columns that are selected.
    """
    kind, has_rows = type(data).__name__, isinstance(data, Sized)
    if isinstance(data, Mapping):
        raise TypeError(
            f'data must be one data set, got a {kind} of {list(data)}: name '
            f'those to read, such as which_sets=({next(iter(data), "train")!r}'
            f',)')
    if not has_rows:
        raise TypeError(
            f'data must have rows that are numbered, got the {kind} of '
            f'Hugging Face, which is a stream: load it without '
            f'streaming=True, or {class_for(data)}')
    asked = data.format
    if asked['type'] not in FORMATS or asked['format_kwargs']:
        raise ValueError(
            f'data has the format {asked["type"]!r} of Hugging Face (of '
            'set_format, set_transform or the like), which is not applied '
            'here: pass data.with_format(None), and do what it does in a '
            'stage, such as Mapping or Cast')
    # After a cast, Hugging Face may return the columns in another order.
    chosen = data.column_names if asked['output_all_columns'] else (
        asked['columns'])
    return data.with_format('arrow')[:].select([
        name for name in data.column_names if name in chosen])
