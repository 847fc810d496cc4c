"""The origins of examples: their rows in files, and the rows of windows."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from fuel.datasets.row_orders import IndexArray, pick
from fuel.datasets.run_readers import Cuts
from fuel.datasets.sources import (
    RowPlaces, Source, find_places, knows_rows)
from fuel.schemes.iteration_scheme import num_examples_of

# Each column of origins, and its value for an example that it does not apply
# to.
BLANKS: Mapping[str, Any] = {
    'first': -1, 'stop': -1, 'step': -1, 'file': '', 'part': '',
    'row_of_part': -1}


class Origins(NamedTuple):
    """The origins of the examples of a table.

    `columns`: those of the columns in `BLANKS` that apply.
    `numbers`: number of the file of each example, among the files of its data
        set; -1 if there is none.
    """

    columns: dict[str, NDArray[Any]]
    numbers: IndexArray


def find_origins(datasets: Sequence[Any], numbers: NDArray[numpy.int64],
                 rows: NDArray[Any]) -> Origins:
    """Return the origins of examples.

    `datasets`: the data sets of the pipeline.
    `numbers`: number of the data set of each example.
    `rows`: row of each example, as its data set takes it.
    """
    columns: dict[str, NDArray[Any]] = {}
    files = numpy.full(len(rows), -1)

    def put(name: str, where: IndexArray, values: Any) -> None:
        if name not in columns:
            blank = BLANKS[name]
            columns[name] = numpy.full(
                len(rows), blank, object if blank == '' else numpy.int64)
        columns[name][where] = values

    for number in numpy.unique(numbers).tolist():
        if number >= len(datasets):
            continue
        dataset = datasets[number]
        where, examples = _known_rows(
            dataset, numpy.flatnonzero(numbers == number), rows)
        cuts = cuts_of(dataset)
        if cuts is not None:
            first, stop = cuts.rows_held(examples)
            put('first', where, first)
            put('stop', where, stop)
            if cuts.step > 1:
                put('step', where, cuts.step)
        places = _places_of(dataset, examples)
        if places is not None:
            files[where] = places.file
            put('file', where, _names(places.files, places.file))
            parts = _names(places.names, places.part)
            if (parts != '').any():
                put('part', where, parts)
            put('row_of_part', where, places.row)
    return Origins({name: columns[name] for name in BLANKS
                    if name in columns}, files)


def cuts_of(dataset: Any) -> Cuts | None:
    """Return how runs are cut into the examples of a data set; None if they
    are not."""
    found: Cuts | None = dataset.find_cuts() if knows_rows(
        dataset, 'find_cuts') else None
    return found


def _known_rows(dataset: Any, where: IndexArray, rows: NDArray[Any],
                ) -> tuple[IndexArray, IndexArray]:
    """Return the places of a data set's examples that exist, and their
    numbers."""
    if rows.dtype.hasobject:
        where = where[[isinstance(row, (int, numpy.integer))
                       for row in rows[where].tolist()]]
    numbers = rows[where].astype(numpy.intp)
    count = num_examples_of(dataset)
    is_row = (numbers >= 0) & (numbers < (
        count if isinstance(count, (int, numpy.integer)) else 0))
    return where[is_row], numbers[is_row]


def _places_of(dataset: Any, examples: IndexArray) -> RowPlaces | None:
    """Return the places of examples in files, None if they are not known."""
    if not knows_rows(dataset, 'places_of_rows'):
        return None
    found = dataset.find_source(dataset.sources[0])
    stored = found.stored if isinstance(found, Source) else found
    return None if stored is None else find_places(
        dataset, pick(stored.order, examples))


def _names(names: Sequence[str], numbers: IndexArray) -> NDArray[Any]:
    """Return the names that have some numbers."""
    used, places = numpy.unique(numbers, return_inverse=True)
    found = numpy.empty(len(used), object)
    found[:] = [str(names[number]) for number in used.tolist()]
    return found[places]
