"""What a data set of tables is made of: files, or a table in memory."""
from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import pyarrow
import pyarrow.dataset
import pyarrow.fs

#: A path, several of them, or a table in memory.
Tables: TypeAlias = Any
ENDINGS = ('.parquet', '.arrow', '.feather')


class Located(NamedTuple):
    """A file, and the columns that its folders tell (``year=2024``)."""

    path: str
    constants: Mapping[str, pyarrow.Scalar]


def paths_of(data: Any) -> list[Located] | None:
    """Return the files that `data` names, None if it is a table."""
    if isinstance(data, (str, os.PathLike)):
        path = os.fspath(data)
        return _in_folder(path) if os.path.isdir(path) else [Located(path, {})]
    if isinstance(data, (list, tuple)):
        if not data:
            raise ValueError('at least one file is needed, got none')
        return [path for each in data for path in paths_of(each) or ()]
    return None


def _in_folder(path: str) -> list[Located]:
    """Return the files of a folder, by the rules of PyArrow's data sets."""
    factory = pyarrow.dataset.FileSystemDatasetFactory(
        pyarrow.fs.LocalFileSystem(),
        pyarrow.fs.FileSelector(path, recursive=True),
        # Which only says how the files would be read that are found.
        pyarrow.dataset.ParquetFileFormat(),
        pyarrow.dataset.FileSystemFactoryOptions(
            partition_base_dir=path,
            partitioning=pyarrow.dataset.HivePartitioning.discover()))
    schema = factory.inspect(fragments=0)
    found = []
    for each in factory.finish(schema).get_fragments():
        if each.path.endswith(ENDINGS):
            values = pyarrow.dataset.get_partition_keys(
                each.partition_expression)
            found.append(Located(each.path, {
                field.name: pyarrow.scalar(values[field.name], field.type)
                for field in schema if field.name in values}))
    if not found:
        raise FileNotFoundError(
            f'{path} has no file that ends in {", ".join(ENDINGS)}')
    return sorted(found, key=lambda each: each.path)


def as_table(data: Any) -> pyarrow.Table:
    """Return a table of whatever holds one in memory."""
    if isinstance(data, pyarrow.Table):
        return data
    if isinstance(data, pyarrow.RecordBatch):
        return pyarrow.Table.from_batches([data])
    if hasattr(data, 'with_format'):
        # A data set of Hugging Face, which may be a selection of rows.
        return data.with_format('arrow')[:]
    if type(data).__module__.partition('.')[0] == 'pandas':
        return pyarrow.Table.from_pandas(data, preserve_index=False)
    if hasattr(data, '__arrow_c_stream__'):
        return pyarrow.table(data)
    raise TypeError(
        'data must be the path of a Parquet or Arrow file, a list of them, a '
        'folder, or a table (of PyArrow, pandas, Hugging Face datasets, or '
        f'any library that exports Arrow), got {type(data).__name__}')
