"""Options of converters of a user's own files: splits, classes, advice."""
import argparse
import sys
import functools
from argparse import ArgumentParser
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, TypeVar

import numpy
from numpy.typing import NDArray

from fuel import config
from fuel.converters.output import Array, Examples
from fuel.converters.raw.files import BadInputFile
from fuel.datasets.random_splits import held_out
from fuel.exceptions import MissingInputFiles
from fuel.storage import Reader

F = TypeVar('F', bound=Callable[..., Any])
ROWS_AT_ONCE = 1024


def advise(function: F) -> F:
    """Decorate a converter: errors about missing or bad files advise to check
    the files, not to download them."""
    @functools.wraps(function)
    def advised(*args: object, **kwargs: object) -> object:
        try:
            return function(*args, **kwargs)
        except MissingInputFiles as error:
            error.advice = 'Look at the name, and at the folder (-d)'
            raise
        except BadInputFile as error:
            error.advice = error.advice or 'Mend the file, or leave it out'
            raise
    return advised  # type: ignore[return-value]


class Rows(Examples):
    """Some or all rows of an array or a reader, copied a part at a time."""

    def __init__(self, array: Array | Reader,
                 rows: Array | None = None) -> None:
        self._array = array
        self._rows = numpy.arange(len(array)) if rows is None else rows
        super().__init__((len(self._rows), *array.shape[1:]), array.dtype)

    def blocks(self) -> Iterator[Array]:
        """Iterate over the rows, some at a time."""
        for i in range(0, len(self), ROWS_AT_ONCE):
            yield self._array[self._rows[i:i + ROWS_AT_ONCE]]


def divided(arrays: Collection[tuple[str, Array | Reader]],
            hold_out: Sequence[tuple[str, float]] | None, seed: int,
            stratify: bool, advice: str = '') -> list[tuple[str, str, Rows]]:
    """Divide sources of equal length into 'train' and splits drawn at random;
    return the data for `fill_hdf5_file`.

    `advice`: text for the error that there are no classes for `stratify`; it
        says how to name them.
    """
    splits = split_rows(len(next(iter(arrays))[1]), hold_out, seed, stratify,
                        dict(arrays).get('targets'), advice)
    return [(split, source, Rows(array, rows))
            for split, rows in splits.items() for source, array in arrays]


def split_rows(count: int, hold_out: Sequence[tuple[str, float]] | None,
               seed: int, stratify: bool, targets: Array | Reader | None,
               advice: str = '') -> dict[str, NDArray[numpy.intp]]:
    """Return the rows of each split of `count` examples; see `divided`."""
    if stratify and targets is None:
        raise ValueError('--stratify needs a source called targets, with the '
                         f'class of each example{advice}')
    return held_out(count, hold_out, seed, targets[:] if (
        stratify and targets is not None) else None)


def add_split_options(subparser: ArgumentParser,
                      stratify: bool = True) -> None:
    """Add the options for splits drawn at random.

    `stratify`: whether to add the option for shares of every class.
    """
    subparser.add_argument(
        '--hold-out', type=_hold_out, action='append', default=None,
        metavar='SPLIT=SHARE', help='make a split of this share of the '
        'examples, chosen at random, such as test=0.2, or of so many, '
        'test=5000; may be repeated '
        '(default: all examples are in the split train)')
    if stratify:
        subparser.add_argument(
            '--stratify', action='store_true', help='hold out the same share '
            'of every class')
    subparser.add_argument(
        '--seed', type=int, default=config.default_seed,
        help='seed of the choice (default: config.default_seed)')


def _hold_out(text: str) -> tuple[str, float]:
    name, _, share = text.partition('=')
    try:
        number = int(share) if share.isdecimal() else float(share)
    except ValueError:
        number = 0
    if not name or not 0 < number < (1 if isinstance(number, float) else (
            sys.maxsize)):
        raise argparse.ArgumentTypeError(
            f'expected something like test=0.2, or test=5000 for so many '
            f'examples, got {text!r}')
    return name, number


def parse_source(text: str) -> tuple[str, str | list[str]]:
    """Parse ``SOURCE=COLUMN,...``; return a source and its columns."""
    source, equals, names = text.partition('=')
    columns = names.split(',') if equals else [source]
    if not source or not all(columns):
        raise ValueError(f'expected SOURCE=COLUMN,..., got {text!r}')
    return source, columns if len(columns) > 1 else columns[0]


def as_classes(names: Sequence[str]) -> tuple[Array, list[str]]:
    """Return the class number of each name, and the sorted names.

    A class number is the place of the name in the sorted names. The numbers
    are a column of the smallest type that can hold them.
    """
    known = sorted(set(names))
    number = {name: i for i, name in enumerate(known)}
    kind = numpy.min_scalar_type(max(len(known) - 1, 0))
    return (numpy.array([[number[name]] for name in names], dtype=kind),
            known)
