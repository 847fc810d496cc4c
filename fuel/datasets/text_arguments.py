"""What text data sets and vocabularies are given: names of files, levels,
tokens, and dictionaries of them, from pickles, lists and dicts."""
from __future__ import annotations

import io
import os
import pickle
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from fuel.remote.location import fixed_path
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
    names = [fixed_path(os.fspath(path), storage_options) for path in files]
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


def split_lines(text: str) -> list[str]:
    """Return lines, ended as those of `TextFile` are: other characters that
    separate lines may be tokens."""
    if '\r' in text:
        text = text.replace('\r\n', '\n').replace('\r', '\n')
    lines = text.split('\n')
    return lines if lines[-1] else lines[:-1]


class _PlainUnpickler(pickle.Unpickler):
    """Loads built-in types only, so that loading runs no other code."""

    def find_class(self, module: str, name: str) -> object:
        raise pickle.UnpicklingError(
            f'it names {module}.{name}, but a pickled vocabulary may hold '
            'nothing but a dict of strings to integers')


def unpickle(content: bytes) -> object:
    """Return what a pickle of built-in types holds."""
    # What Python 2 pickled as bytes is text.
    return _PlainUnpickler(io.BytesIO(content), encoding='utf-8').load()


def number_tokens(tokens: list[object], name: str) -> dict[str, int]:
    """Return the numbers of tokens in a list, from 0 on."""
    numbers: dict[str, int] = {}
    for i, token in enumerate(tokens):
        if not isinstance(token, str) or not token:
            raise ValueError(f'{name}: entry {i + 1} is {token!r}, but must '
                             'be a token')
        if token in numbers:
            raise ValueError(
                f'{name}: {token!r} is there twice, as entry '
                f'{numbers[token] + 1} and as entry {i + 1}')
        numbers[token] = i
    return numbers


def check_dictionary(found: object, name: str) -> dict[str, int]:
    """Return what is a dictionary of tokens; refuse anything else."""
    if not isinstance(found, dict):
        raise ValueError(
            f'{name} must hold a dictionary of tokens, but holds '
            f'{found!r:.60} ({type(found).__name__})')
    for token, number in found.items():
        if not isinstance(token, str) or type(number) is not int:
            raise ValueError(
                f'{name} must map strings to integers, but maps {token!r} '
                f'to {number!r}')
    return found
