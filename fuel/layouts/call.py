"""The call that opens files of a layout, and columns of all arrays of one
length."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

from fuel.datasets.columns.base import (
    Columns, FileColumn, named_columns, shown_call)
from fuel.datasets.columns.parts import check_stated
from fuel.datasets.columns.rows import Rows
from fuel.datasets.dataset import Dataset
from fuel.datasets.hdf5_dataset import HDF5Dataset
from fuel.datasets.run_bounds import RunsGiven
from fuel.datasets.runs import Runs
from fuel.layouts.seen import Array, Seen, SeenFile

class LeftOutSources(str):
    """A note on the sources that a layout leaves out, such as ``'left out,
    since they do not have 12 rows: ...'``.

    Asking for one of these sources is an error with this text.

    Parameters
    ----------
    text : str
        The note.
    sources : sequence of str, optional
        The names of all sources that are left out; the text may list only
        some of them.
    """

    sources: tuple[str, ...]

    def __new__(cls, text: str, sources: Sequence[str] = ()) -> Self:
        """Make a note."""
        note = super().__new__(cls, text)
        note.sources = tuple(sources)
        return note


@dataclass(frozen=True)
class Call:
    """A call of :class:`~fuel.datasets.HDF5Dataset`, which a recogniser
    returns.

    ``repr`` is the call, ready to paste.

    Parameters
    ----------
    columns : dict of str to column
        Sources and their columns, such as
        :class:`~fuel.datasets.columns.Rows`.
    parts, runs, splits, sources, missing : optional
        Arguments of :class:`~fuel.datasets.HDF5Dataset`.
    are_runs : bool, optional
        Whether each example is a whole run, as in
        :class:`~fuel.datasets.Runs`. Defaults to False.
    independent_rows : str, optional
        Advice for the warning of `Windows` that windows join unrelated rows.
        It is for rows that are independent, such as cells. Defaults to '':
        rows may be steps of a run.
    notes : tuple of str, optional
        Facts about the files that a user should know. A note on sources that
        are left out is a :class:`~fuel.layouts.LeftOutSources`.
    split : str, optional
        The split that all rows of the columns belong to, if other columns
        hold other splits. Defaults to '': none.
    stated : tuple of str, optional
        The attribute of each part that states its number of rows, and an
        array with as many rows, such as ``('num_samples', 'actions')``. If
        the numbers differ, opening the files is an error. Defaults to ():
        none.
    files : str or list of str, optional
        The files. Fuel sets them.
    """

    columns: Mapping[str, FileColumn]
    parts: str | None = None
    runs: RunsGiven | None = None
    splits: Mapping[str, Any] | str | None = None
    sources: tuple[str, ...] | None = None
    missing: str | None = None
    are_runs: bool = False
    independent_rows: str = ''
    notes: tuple[str, ...] = ()
    split: str = ''
    stated: tuple[str, str] | tuple[()] = ()
    files: str | Sequence[str] = ''

    def arguments(self) -> dict[str, Any]:
        """Return the arguments that are given by name (dict)."""
        given = {'parts': self.parts, 'runs': self.runs,
                 'splits': self.splits, 'sources': self.sources,
                 'missing': self.missing}
        return {name: value for name, value in given.items()
                if value is not None}

    def open(self, **kwargs: Any) -> Dataset:
        """Return the data set.

        Parameters
        ----------
        **kwargs
            Arguments of :class:`~fuel.datasets.HDF5Dataset`, which add to the
            arguments of the call or replace them. In `columns`, the name of a
            source of the call stands for its column.
        """
        arguments = {**self.arguments(), **kwargs}
        columns = arguments.pop('columns', None)
        if columns is not None and 'sources' not in kwargs:
            # The sources of the call belong to its own columns.
            arguments.pop('sources', None)
        dataset = HDF5Dataset(
            self.files, dict(self.columns) if columns is None
            else self._named(columns), **arguments)
        self._check_stated(dataset)
        if 'runs' not in kwargs:
            dataset.independent_rows = self.independent_rows
        return Runs(dataset) if self.are_runs else dataset

    def _check_stated(self, dataset: HDF5Dataset) -> None:
        """Refuse parts that state another number of rows than they have."""
        columns = [dataset.columns[source] for source in dataset.sources]
        # Other columns, passed by the user, may leave out rows.
        own = [column for column in columns
               if column in self.columns.values()]
        if not own or not self.stated:
            return
        name, array = self.stated
        whole = [column.paths()[0] for column in own if column.is_plain]
        try:
            check_stated(dataset.readers.parts, name,
                         array if array in whole else [*whole, array][0])
        except BaseException:
            dataset.close(None)
            raise

    def _named(self, columns: Columns) -> Columns:
        """Return columns in which the name of a source of the call is replaced
        by its column."""
        given = named_columns(columns)
        named = {source: self.columns.get(column, column) if isinstance(
            column, str) else column for source, column in given}
        # HDF5Dataset refuses a list that has a name twice.
        return named if len(named) == len(given) else [
            column for _, column in given]

    def of(self, files: str | Sequence[str]) -> Call:
        """Return the call for some files."""
        return replace(self, files=files)

    def __repr__(self) -> str:
        call = shown_call('HDF5Dataset', self.files, self.columns,
                          self.arguments())
        return f'Runs({call})' if self.are_runs else call


# Most arrays that a note names.
SHOWN = 10


class Place(NamedTuple):
    """A place at which examples are counted: a file, or a group in it.

    `rows`: number of the examples.
    """

    file: SeenFile
    group: str
    rows: int


def columns_of_length(places: Sequence[Place], besides: Sequence[str] = (),
                      always: Sequence[str] = (),
                      ) -> tuple[dict[str, FileColumn],
                                 tuple[LeftOutSources, ...]]:
    """Return a column for each array that has a row for each example, and a
    note on the other arrays.

    An array is included if it has these rows in one of several places, such as
    the first and the last part. If another place lacks the array, opening the
    files is an error.

    `besides`: paths that are left out, together with the arrays below them.
    `always`: paths of arrays, or groups of arrays, that are always included:
        if their rows differ in number, opening the files is an error.
    """
    hidden, known = [tuple([f'{path}/' for path in paths])
                     for paths in (besides, always)]
    columns: dict[str, FileColumn] = {}
    others: dict[str, Array] = {}
    for file, group, count in places:
        for array in file.arrays(group):
            if f'{array.path}/'.startswith(hidden):
                continue
            if array.shape[0] == count or f'{array.path}/'.startswith(known):
                columns[array.path] = Rows(array.path)
            else:
                others[array.path] = array
    return columns, note_of(
        [array for path, array in others.items() if path not in columns],
        f'they do not have {places[0].rows} rows')


def ragged_columns(seen: Seen, paths: Iterable[str]) -> dict[str, FileColumn]:
    """Return columns of the arrays whose rows differ in shape between files,
    such as arrays padded to the longest row of each file."""
    return {path: Rows(path, ragged=True) for path in paths
            if len({file.row_shape(path) for file in seen.files}) > 1}


def places_of_files(seen: Seen, counting: str) -> list[Place]:
    """Return the first and the last file, with the number of rows of an
    array."""
    return [Place(file, '/', file.length(counting) or 0)
            for file in (seen.files[0], seen.files[-1])]


def note_of(arrays: Sequence[Array], reason: str,
            ) -> tuple[LeftOutSources, ...]:
    """Return a tuple with one note on the arrays that are left out; an empty
    tuple if there are no such arrays."""
    if not arrays:
        return ()
    shown = ', '.join(f'{array.path!r} {array.shape}'
                      for array in arrays[:SHOWN])
    more = ', ...' * (len(arrays) > SHOWN)
    return (LeftOutSources(f'left out, since {reason}: {shown}{more}',
                    [array.path for array in arrays]),)


def calls_by_length(columns: Mapping[int, Mapping[str, FileColumn]],
                    ) -> list[Call] | None:
    """Return a call for the columns of each length; None if there are no
    columns."""
    return [Call(columns[length]) for length in sorted(columns)] or None
