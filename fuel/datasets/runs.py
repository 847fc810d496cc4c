"""Data sets over the runs of another: whole runs."""
from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from fuel.datasets.checks import is_sequential, refuse_paths
from fuel.datasets.columns.shown import written_call
from fuel.datasets.dataset import Dataset
from fuel.datasets.row_orders import IndexArray
from fuel.datasets.row_sources import (
    Provenance, RequestedReader, RowPlace, RowSource)
from fuel.datasets.rows_below import (
    RunRows, dense_sources, find_runs, find_sources, first_rows,
    is_same_reader, lie_within, stored_rows)
from fuel.datasets.rows_dataset import RowsDataset
from fuel.datasets.run_bounds import RunsGiven, runs_in
from fuel.datasets.run_readers import (
    Cuts, FirstRowReader, RunReader, SpanReader)
from fuel.describe import SourceType, SourceTypes
from fuel.describe.pipeline import dataset_text
from fuel.describe.source_types import types_of
from fuel.epochs.read_options import ReadOptions
from fuel.exceptions import StateMismatchError
from fuel.schemes.iteration_scheme import num_examples_of
from fuel.schemes.requests import RequestIterator
from fuel.typing import AxisLabels, DatasetLike, EpochReader, Sources
from fuel.utils import do_not_pickle_attributes
from fuel.utils.arguments import kept_values, labels_in
from fuel.utils.signatures import signature_of

__all__ = ['Provenance', 'Runs']


@do_not_pickle_attributes('readers')
class RunDataset(RowsDataset):
    """Base of the data sets whose examples are rows of runs.

    Subclasses set what they need, then call this constructor.

    `dataset`: has the rows.
    `runs`: see :class:`Runs`.
    """

    readers: dict[str, SpanReader]  # type: ignore[assignment]
    instead_of: Mapping[str, str] = {
        'subset': 'choose examples by a scheme, or rows in the data set that '
                  '{} reads'}

    def __init__(self, dataset: DatasetLike, runs: RunsGiven | None,
                 sources: Sequence[str] | None,
                 axis_labels: AxisLabels | None) -> None:
        refuse_paths(dataset, type(self).__name__)
        if is_sequential(dataset) or not isinstance(
                num_examples_of(dataset), (int, numpy.integer)):
            raise TypeError(
                f'{type(self).__name__} needs a data set with random access, '
                f'and {type(dataset).__name__} is read in order: put its '
                f'examples into an IndexableDataset, or into a file')
        self.dataset: Any = dataset
        self._below = dense_sources(dataset, sources)
        self._chosen = sources
        self._given = runs
        bounds, self._numbers = find_runs(self.dataset, runs)
        self._stored_rows = stored_rows(self.dataset, bounds)
        self._cuts = self._cut(bounds)
        self._find_readers()
        super().__init__(
            None, None, (*self._below, *self._added_sources()),
            sources=sources, axis_labels=self._find_labels()
            if axis_labels is None else axis_labels)

    @abstractmethod
    def _cut(self, bounds: IndexArray) -> Cuts:
        """Return where the examples lie in the runs."""

    @abstractmethod
    def _make_reader(self, source: str, below: RunRows) -> SpanReader:
        """Return what reads the examples of a source."""

    def _added_sources(self) -> Sources:
        """Return the names of the sources that the data set below lacks."""
        return ()

    def _added_readers(self, first: RunRows) -> dict[str, SpanReader]:
        """Return what reads the sources that the data set below lacks."""
        return {}

    @property
    def run_numbers(self) -> IndexArray:
        """The number of the run of each example (array of int)."""
        counts = numpy.diff(self._cuts.first_examples)
        return numpy.repeat(self._numbers, counts)

    def find_uncut_runs(self) -> tuple[IndexArray, IndexArray]:
        """Return the bounds of the examples of each run, and the number that
        the run had before a split cut it, here or in the data set below."""
        numbers = self._numbers
        if self._given is None and isinstance(self.dataset, Dataset):
            below = self.dataset.find_uncut_runs()
            numbers = numbers if below is None else below[1][numbers]
        return self._cuts.first_examples, numbers

    def provenance(self, example: int) -> Provenance:
        """Return where an example comes from.

        Parameters
        ----------
        example : int
            Its number.

        Returns
        -------
        Provenance
            File, group, number of the run, and first row.

        Raises
        ------
        IndexError
            If there is no such example.
        """
        cuts = self._cuts
        runs, starts = cuts.find(cuts.as_examples(example))
        run, start = int(runs[0]), max(0, int(starts[0]))
        start = min(start, max(0, int(cuts.lengths[run]) - 1))
        row = int(self._stored_rows[run]) + start
        place = (self.dataset.place_of_row(row) if isinstance(
            self.dataset, Dataset)
            else RowPlace(type(self.dataset).__name__, '', row))
        return Provenance(place.file, int(self._numbers[run]), row,
                          place.part, place.row)

    def place_of_row(self, row: int) -> RowPlace:
        """Return where an example begins."""
        found = self.provenance(row)
        return RowPlace(found.file, found.part, found.row_of_part)

    def kept_arguments(self) -> Mapping[str, object]:
        """Return the arguments that a saved state must fit, by name."""
        below = self.dataset
        names, *values = kept_values(below)
        return {
            'runs': self._cuts.bounds, 'rows': self._stored_rows,
            'dataset': type(below),
            **{f'dataset {name}': value for name, value in zip(
                names.splitlines(), values, strict=True)}}

    @property
    def class_names(self) -> Any:
        """Names of the classes of the data set below (tuple of str), or
        None."""
        return self.dataset.class_names if isinstance(
            self.dataset, Dataset) else None

    @property
    def categories(self) -> dict[str, tuple[Any, ...]]:
        """For each source of categories of the data set below, the name of
        each code (dict)."""
        below = self.dataset.categories if isinstance(
            self.dataset, Dataset) else {}
        return {source: names for source, names in below.items()
                if source in self._below}

    def has_rows_at_hand(self) -> bool:
        """Return whether an example is read without opening a file."""
        return isinstance(self.dataset, Dataset) and (
            self.dataset.has_rows_at_hand())

    def details(self) -> Sequence[str]:
        """Return how many runs there are, and where the rows are."""
        below = self.dataset
        count = len(self._cuts.lengths)
        return [f'{count} run{"s" * (count != 1)} of {type(below).__name__}',
                *(below.details() if isinstance(below, Dataset) else ())]

    def _shown_arguments(self) -> Mapping[str, object]:
        """Return the arguments that are not defaults, but for `runs`."""
        found = {}
        for parameter in signature_of(type(self)).parameters.values():
            name = parameter.name
            value = vars(self).get('_sources' if name == 'sources' else name)
            if value and value != parameter.default and name != 'dataset':
                found[name] = value
        return found

    def __repr__(self) -> str:
        """Return the call that makes the data set, if the one below shows
        the call that makes it."""
        below = repr(self.dataset)
        if below.startswith('<'):
            return super().__repr__()
        runs = {} if self._given is None else {'runs': self._given}
        return written_call(type(self).__name__, [below], {
            **self._shown_arguments(), **runs})

    def __str__(self) -> str:
        """Return the same, and what is known of the data set."""
        shown, text = repr(self), dataset_text(self)
        return text if shown.startswith('<') else f'{shown}\n{text}'

    def find_source(self, source: str) -> RowSource | None:
        """Return what reads the examples of a source."""
        held = self._follow()
        everything = slice(0, self.num_examples)
        return RowSource(self.readers[source], everything, everything,
                         self.num_examples, held)

    def make_reader(self, requests: RequestIterator | None,
                    options: ReadOptions, state: Any) -> EpochReader | None:
        """Return a reader of the rows below, which does what `_read` does
        here."""
        return super().make_reader(requests, options, state)

    def renew(self) -> None:
        """Open the files below again if one was changed or replaced."""
        if isinstance(self.dataset, Dataset):
            self.dataset.renew()
        self._follow()

    def close(self, state: Any) -> None:
        """Close the data set below; the next request opens it again."""
        self._direct = None
        vars(self).pop('_readers', None)
        if isinstance(self.dataset, Dataset):
            self.dataset.close(None)

    def reset(self, state: Any) -> Any:
        """Return the state for a fresh start; the files below stay open."""
        return state

    def load(self) -> None:
        """Find what reads the rows of the data set below, which has the same
        runs as when this one was made."""
        bounds, _ = find_runs(self.dataset, self._given)
        if not numpy.array_equal(bounds, self._cuts.bounds):
            raise StateMismatchError(
                f'the runs of {type(self.dataset).__name__} begin and end '
                f'elsewhere than when {type(self).__name__} was made: its '
                f'files were made again; make the data set again too')
        self._find_readers()

    def _find_readers(self) -> None:
        bounds = self._cuts.bounds
        # A run without rows has a value only if it is the data set's own.
        own_runs = self._given is None or (
            bool(self._cuts.lengths.all())
            and lie_within(bounds, runs_in(self.dataset)))
        found = {
            name: RunRows(reader, first_rows(order, bounds),
                         reader.is_per_run and own_runs)
            for name, (reader, order, _)
            in find_sources(self.dataset, self._below).items()}
        readers = {name: self._make_reader(name, source)
                   for name, source in found.items()}
        readers.update(self._added_readers(next(iter(found.values()))))
        # Asked for descriptions, which open no file.
        self._once = frozenset(
            name for name, source in found.items() if source.is_once)
        self._direct = None
        self.readers = readers

    def _follow(self) -> object:
        """Read on with the readers that the data set below has now.

        Returns: what keeps its files open.
        """
        readers, held, is_same = self.readers, [], True
        for name in self.sources:
            rows = readers[name].rows
            if name not in self._below or type(rows) is RequestedReader:
                continue
            source = self.dataset.find_source(name)
            held.append(source.held)
            is_same = is_same and (source.reader is rows or is_same_reader(
                rows, source.reader))
        if not is_same:
            self.load()
        return held

    def _read(self, rows: Any) -> tuple[Any, ...]:
        # Held here, the files stay open if another thread closes them.
        _held = self._follow()
        readers = self.readers
        spans = self._cuts.find(self._cuts.as_examples(rows))
        data = [readers[source].read_spans(spans) for source in self.sources]
        return tuple([part[0] for part in data] if isinstance(rows, int)
                     else data)

    def _find_labels(self) -> AxisLabels | None:
        """Return the labels of the axes, with that of the rows."""
        known = labels_in(self.dataset)
        if not known:
            return None
        return {source: self._label(source, labels)
                for source, labels in known.items()
                if labels and not isinstance(labels, str)}

    def _label(self, source: str, labels: Sequence[str]) -> Sequence[str]:
        """Return the labels of a source, of which each example has a row."""
        if source in self._once:
            return labels
        return (labels[0], 'time', *labels[1:])


class Runs(RunDataset):
    """A data set whose examples are whole runs of another's rows.

    Parameters
    ----------
    dataset : Dataset
        Any with random access.
    runs : dict or str, optional
        Where runs begin and end: ``{'lengths': ...}``, the number of rows of
        each; ``{'offsets': ...}``, from 0 to the number of rows;
        ``{'ends': ...}``, of each row whether it ends its run (several: any
        of them; rows after the last end are a run too); ``{'numbers': ...}``,
        of each row the number or name of its run; each the name of an array
        or an array, of the examples or of all rows of the files. ``'all'``:
        one run. Defaults to ``dataset.runs``, if there is such an attribute,
        else to ``'all'``.
    sources, axis_labels : optional
        As for :class:`Dataset`.

    Attributes
    ----------
    num_examples : int
    run_numbers : numpy.ndarray, shape (num_examples,)
        The number of the run of each example, among those of the argument
        `runs`, else of ``dataset.runs``.

    Raises
    ------
    TypeError
        If the data set is read in order, or a source is sparse that
        `sources` does not leave out.
    ValueError
        If a row lies outside of all runs, or a number comes back.

    Notes
    -----
    A batch has an array of objects for each source: an array for each run,
    of shape ``(rows, ...)``; a list of lists where the rows are a list.
    A source that is one value for each run comes once.

    A split of rows cuts runs: an example is as many rows as follow each
    other, in one run, in the split.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IndexableDataset
    >>> rows = IndexableDataset({'x': numpy.arange(6)})
    >>> episodes = Runs(rows, runs={'lengths': [1, 3, 2]})
    >>> episodes.get_data(None, 1)
    (array([1, 2, 3]),)
    """

    def __init__(self, dataset: DatasetLike, *,
                 runs: RunsGiven | None = None,
                 sources: Sequence[str] | None = None,
                 axis_labels: AxisLabels | None = None) -> None:
        super().__init__(dataset, runs, sources, axis_labels)

    def known_types(self) -> SourceTypes:
        """Return types and shapes of the sources."""
        return {
            source: known if source in self._once else SourceType(
                known.dtype, None if known.shape is None
                else (None, *known.shape))
            for source, known in types_of(self.dataset).items()}

    def _cut(self, bounds: IndexArray) -> Cuts:
        return Cuts(bounds)

    def _make_reader(self, source: str, below: RunRows) -> SpanReader:
        kind = FirstRowReader if below.is_once else RunReader
        return kind(below.reader, self._cuts, below.first_rows)
