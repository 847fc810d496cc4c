"""The files of a data set: paths, URLs and patterns, as they are given."""
from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from typing import TypeAlias

from fuel.datasets.columns.part_names import MAGIC, natural_key
from fuel.remote.location import RemotePath, as_path
from fuel.remote.urls import StorageOptions

#: A path, URL or pattern of paths, or several of them.
Files: TypeAlias = 'str | os.PathLike[str] | Sequence[str | os.PathLike[str]]'


def as_files(files: Files, storage_options: StorageOptions | None,
              ) -> str | list[str]:
    """Return files as they were given, without credentials in a repr."""
    if isinstance(files, (str, os.PathLike)):
        return as_path(os.fsdecode(files), storage_options)
    found = [as_path(os.fsdecode(file), storage_options) for file in files]
    if not found:
        raise ValueError('at least one file is needed, got none')
    return found


def expand(files: str | Sequence[str]) -> list[str]:
    """Return the paths of files, of a pattern in natural order."""
    if not isinstance(files, str):
        return [path for file in files for path in expand(file)]
    if isinstance(files, RemotePath) and '*' in files.reveal()[0]:
        raise ValueError(
            f'patterns are for local files, got {files!r}: list the URLs')
    if isinstance(files, RemotePath) or not MAGIC.search(files) or (
            os.path.exists(files)):
        return [files]
    found = sorted(glob.glob(files, recursive=True), key=natural_key)
    if not found:
        raise FileNotFoundError(
            f'there is no file like {os.path.abspath(files)!r}')
    return found
