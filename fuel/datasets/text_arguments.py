"""Checks of arguments that text data sets and vocabularies share."""
from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from fuel.remote.location import as_path
from fuel.remote.urls import StorageOptions

#: Names of text files.
Paths: TypeAlias = Iterable[str | os.PathLike[str]]


def as_files(files: Paths, storage_options: StorageOptions | None = None,
             ) -> list[str]:
    """Return names of files as a list, at least one of them."""
    if isinstance(files, (str, bytes, os.PathLike)):
        raise ValueError(
            f'files must be a list of names, got the single name {files!r}: '
            f'write [{files!r}]')
    names = [as_path(os.fspath(path), storage_options) for path in files]
    if not names:
        raise ValueError('files must name at least one text file')
    return names


def check_level(level: str) -> None:
    """Refuse what is neither words nor characters."""
    if level not in ('word', 'character'):
        raise ValueError(f"level must be 'word' or 'character', got {level!r}")


def check_token(name: str, token: str | None,
                vocabulary: Mapping[str, int]) -> None:
    """Refuse a token with a meaning of its own that has no number."""
    if token is not None and token not in vocabulary:
        raise ValueError(
            f'{name} is {token!r}, which is not among the '
            f'{len(vocabulary)} tokens of the dictionary: add it there, or '
            f'pass {name}=None')
