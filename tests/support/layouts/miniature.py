"""A small file of a layout, and what must come out of it."""
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy


@dataclass
class Written:
    """Files that were written.

    Parameters
    ----------
    files : str or list of str
        What :func:`fuel.load` is given.
    values : dict
        For each source its examples in order: an array, a list of arrays of
        different shapes, or a sparse matrix.
    runs : list of int, optional
        Bounds of the runs. Defaults to none that are of interest.
    splits : dict
        The examples of each split that the files name.

    """

    files: Any
    values: Mapping[str, Any]
    runs: Sequence[int] | None = None
    splits: Mapping[str, Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Miniature:
    """A layout, and what writes a small file of it.

    Parameters
    ----------
    name : str
        Of the test.
    layout : str
        That is recognised.
    write : callable
        Takes a folder and a generator of random numbers.

    """

    name: str
    layout: str
    write: Callable[[Path, numpy.random.Generator], Written]

    def __str__(self):
        return self.name


def bounds_of(lengths):
    """Return the bounds of runs of some lengths."""
    return [0, *numpy.cumsum(lengths).tolist()]


def joined(arrays):
    """Return the rows of several arrays as one."""
    return numpy.concatenate(list(arrays))
