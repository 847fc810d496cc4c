"""The lengths of the examples of data sets, without reading the examples."""
from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy
from numpy.typing import ArrayLike, NDArray

from fuel.datasets.checks import refuse_unknown_sources
from fuel.datasets.dataset import Dataset
from fuel.datasets.sources import Source
from fuel.epochs.stage import stage_of
from fuel.schemes.iteration_scheme import num_examples_of
from fuel.transformers.balanced.parts import plain_array
from fuel.transformers.several import Merge
from fuel.typing import DatasetLike, StreamLike
from fuel.utils.masked import as_kept, is_masked
from fuel.utils.overrides import covers

#: Lengths of the rows of a data set: an array, the name of a source, or None
#: for the lengths of its runs; or a tuple of these, one for each data set.
Given: TypeAlias = (
    'ArrayLike | str | tuple[ArrayLike | str | None, ...] | None')

# The longest length: sums of a step are 64-bit integers.
LONGEST = 2 ** 48


def datasets_below(stream: StreamLike) -> list[Any]:
    """Return the data sets from which the examples of a stream come, in the
    order in which they are read.

    Of merged streams, the first one says which example it is.
    """
    found: dict[int, Any] = {}
    waiting = [stream]
    while waiting:
        stage = stage_of(waiting.pop())
        if stage.dataset is not None and not stage.inputs:
            found.setdefault(id(stage.dataset), stage.dataset)
        inputs = stage.inputs
        waiting += inputs[:1] if isinstance(
            stage.stream, Merge) else inputs[::-1]
    return list(found.values())


class LengthTable:
    """The lengths of the rows of each data set of a pipeline.

    `tables`: for each data set, an array with the length of each row.
    """

    def __init__(self, name: str, given: Given,
                 datasets: Sequence[Any]) -> None:
        """Read the lengths.

        `name`: name of the argument, for errors.
        `given`: see :data:`Given`.
        """
        self.name = name
        if isinstance(given, tuple) and not (given and isinstance(
                given[0], (int, numpy.integer))):
            each = given
        elif given is None or isinstance(given, str):
            each = (given,) * len(datasets)
        else:
            each = given,
        if len(each) != len(datasets):
            raise ValueError(
                f'{name} must be a tuple with one array for each of the '
                f'{len(datasets)} data sets, '
                f'{", ".join(type(one).__name__ for one in datasets)}, in '
                f'this order, got {len(each)}')
        self.tables = [self._table(dataset, one) for dataset, one in zip(
            datasets, each, strict=True)]

    def _table(self, dataset: DatasetLike, given: Any,
               ) -> NDArray[numpy.int64]:
        """Return the lengths of a data set's rows."""
        kind = type(dataset).__name__
        if given is None:
            found = dataset.find_lengths() if isinstance(
                dataset, Dataset) else None
            if found is None:
                raise ValueError(
                    f'the examples of {kind} are not runs of rows, so their '
                    f'lengths are not known without reading them: pass '
                    f'{self.name}, an array with the length of each example '
                    'or the name of a source that has it')
        else:
            found = _read_alone(dataset, given, self.name) if isinstance(
                given, str) else given
        return _checked(f'{self.name} of {kind}', found,
                        num_examples_of(dataset))


def _read_alone(dataset: Any, source: str, name: str) -> NDArray[Any]:
    """Return a source of all examples, without reading other sources."""
    if not isinstance(dataset, Dataset):
        raise ValueError(
            f'{type(dataset).__name__} is not a class of Fuel, so a source '
            f'of it cannot be read alone: pass {name} as an array')
    refuse_unknown_sources((source,), dataset.provides_sources)
    if source in dataset.sources and covers(
            dataset, 'find_source', dataset.read_hooks):
        found = dataset.find_source(source)
        if isinstance(found, Source):
            return as_kept(found.reader.read(found.rows))
    alone = copy.copy(dataset)
    alone.sources = source,
    return alone.read_labels(source)


def _checked(what: str, found: Any, count: Any) -> NDArray[numpy.int64]:
    """Return lengths as an array; raise ValueError if they are none."""
    if is_masked(found) and numpy.ma.getmaskarray(found).any():
        row = int(numpy.flatnonzero(numpy.ma.getmaskarray(found))[0])
        raise ValueError(f'{what}: row {row} has no length')
    lengths = plain_array(found)
    if lengths.ndim == 2 and lengths.shape[1] == 1:
        lengths = lengths[:, 0]
    if lengths.ndim != 1 or (
            lengths.dtype.kind not in 'iu' and lengths.size):
        raise ValueError(
            f'{what} must be integers, one for each row, got an array of '
            f'shape {lengths.shape} and dtype {lengths.dtype}: a source of '
            'sequences is none of lengths')
    if isinstance(count, (int, numpy.integer)) and len(lengths) != count:
        raise ValueError(
            f'{what} must have one length for each of the {count} rows, got '
            f'{len(lengths)}')
    wrong = numpy.flatnonzero((lengths < 0) | (lengths > LONGEST))
    if len(wrong):
        raise ValueError(
            f'{what}: row {wrong[0]} has the length {lengths[wrong[0]]}')
    return lengths.astype(numpy.int64, copy=False)
