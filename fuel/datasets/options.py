"""The keyword arguments that data sets pass on to their base classes.

There is one class for each base class, with the same inheritance; see
:mod:`fuel.transformers.options`.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

from fuel.remote.urls import StorageOptions
from fuel.typing import AxisLabels, Indices

__all__ = ['BuiltInOptions', 'DatasetOptions', 'HDF5Options',
           'IndexableOptions', 'TextOptions']


class DatasetOptions(TypedDict, total=False):
    """Keywords of `Dataset`."""

    sources: Sequence[str] | None
    axis_labels: AxisLabels | None


class IndexableOptions(DatasetOptions, total=False):
    """Keywords of `IndexableDataset`, after the data."""

    start: int | None
    stop: int | None


class HDF5Options(DatasetOptions, total=False):
    """Keywords of `H5PYDataset` after the splits, except `load_in_memory`."""

    subset: Indices | None
    driver: str | None
    sort_indices: bool
    cache_bytes: int | None
    storage_options: StorageOptions | None
    splits: Mapping[str, Any] | None
    flat_targets: bool


class BuiltInOptions(HDF5Options, total=False):
    """Keywords of the data sets that Fuel converts itself."""

    load_in_memory: bool | None


class TextOptions(TypedDict, total=False):
    """Keywords of `TextFile`, after the files and the dictionary."""

    bos_token: str | None
    eos_token: str | None
    unk_token: str | None
    level: str
    preprocess: Callable[[str], str] | None
    encoding: str | None
    storage_options: StorageOptions | None
