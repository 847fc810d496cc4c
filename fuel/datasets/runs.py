"""Data sets whose examples are runs of another data set's rows."""
from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

import numpy

from fuel.datasets.checks import is_sequential, refuse_paths
from fuel.datasets.columns.base import written_call
from fuel.datasets.dataset import Dataset
from fuel.datasets.row_orders import (
    IndexArray, RowsOf, pick, same)
from fuel.datasets.sources import (
    FoundSource, MemoryReader, Provenance, RequestedReader, Requests,
    RowPlace, RowPlaces, Source, find_places)
from fuel.datasets.source_dataset import RowsDataset
from fuel.datasets.run_bounds import (
    RunsGiven, cut_runs, find_bounds, rows_described, runs_in)
from fuel.datasets.run_readers import (
    Cuts, FirstRowReader, RunReader, SpanReader, read_sources)
from fuel.describe import SourceType, SourceTypes
from fuel.describe.source_types import types_of
from fuel.epochs.read_options import ReadOptions
from fuel.epochs.readers import kept_checksums
from fuel.exceptions import StateMismatchError
from fuel.schemes.iteration_scheme import num_examples_of
from fuel.schemes.requests import RequestIterator
from fuel.storage import Reader
from fuel.typing import AxisLabels, DatasetLike, EpochReader, Sources
from fuel.utils import do_not_pickle_attributes
from fuel.utils.arguments import kept_values, labels_in
from fuel.utils.overrides import covers
from fuel.utils.signatures import signature_of

__all__ = ['Provenance', 'Runs']

#: For each source of a data set, its reader or the order of its rows; None if
#: neither is known.
StoredSources: TypeAlias = Mapping[str, FoundSource]


@do_not_pickle_attributes('readers')
class RunDataset(RowsDataset):
    """Base of the data sets whose examples are cut out of runs.

    Subclasses set the attributes that `_cut` and `_make_reader` use, then call
    this constructor.

    `dataset`: the data set that has the rows.
    `runs`: see :class:`Runs`.
    """

    readers: dict[str, SpanReader]  # type: ignore[assignment]
    instead_of: Mapping[str, str] = {
        'subset': 'choose examples by a scheme, or rows in the data set that '
                  '{} reads'}
    # The names of the sources that are made of a source of the data set below,
    # if they differ from its name.
    _made: Mapping[str, Sources] = {}

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
        found = stored_sources(dataset)
        bounds, self._numbers = find_runs(dataset, found, runs)
        first = found[dataset.sources[0]]
        stored = first.stored if isinstance(first, Source) else first
        self._stored_rows: IndexArray = bounds[:-1] if stored is None else (
            pick(stored.order, bounds[:-1]))
        self._cuts = self._cut(bounds)
        self._find_readers(found)
        super().__init__(
            None, None, tuple(self.readers),
            sources=sources, axis_labels=self._find_labels()
            if axis_labels is None else axis_labels)

    @abstractmethod
    def _cut(self, bounds: IndexArray) -> Cuts:
        """Cut the runs into examples."""

    @abstractmethod
    def _make_reader(self, source: str, below: Source) -> SpanReader:
        """Return the reader of a source's examples."""

    def _make_readers(self, source: str,
                      below: Source) -> dict[str, SpanReader]:
        """Return the readers of the sources that are made of a source."""
        return {source: self._make_reader(source, below)}

    def _names_of(self, source: str) -> Sources:
        """Return the names of the sources that are made of a source."""
        return self._made.get(source, (source,))

    def _added_readers(self, first: Source) -> dict[str, SpanReader]:
        """Return the readers of sources that are not in the data set below."""
        return {}

    @property
    def run_numbers(self) -> IndexArray:
        """The number of the run of each example (array of int)."""
        counts = numpy.diff(self._cuts.first_examples)
        return numpy.repeat(self._numbers, counts)

    def find_uncut_runs(self) -> tuple[IndexArray, IndexArray]:
        """Return the bounds of each run's examples, and the run's number.

        The number is the one that the run had before a split cut it, here or
        in the data set below.
        """
        numbers = self._numbers
        if self._given is None and isinstance(self.dataset, Dataset):
            below = self.dataset.find_uncut_runs()
            numbers = numbers if below is None else below[1][numbers]
        return self._cuts.first_examples, numbers

    def provenance(self, example: int) -> Provenance:
        """Return the file, the run and the first row of an example.

        Parameters
        ----------
        example : int
            Number of the example.

        Returns
        -------
        Provenance
            File, group, number of the run, and first row.

        Raises
        ------
        IndexError
            If there is no such example.
        """
        runs, rows = self._first_rows(self._cuts.as_examples(example))
        run, row = int(runs[0]), int(rows[0])
        place = (self.dataset.place_of_row(row) if isinstance(
            self.dataset, Dataset)
            else RowPlace(type(self.dataset).__name__, '', row))
        return Provenance(place.file, int(self._numbers[run]), row,
                          place.part, place.row)

    def place_of_row(self, row: int) -> RowPlace:
        """Return file, part and number of an example's first row.

        `row`: number of the example.
        """
        found = self.provenance(row)
        return RowPlace(found.file, found.part, found.row_of_part)

    def places_of_rows(self, rows: IndexArray) -> RowPlaces | None:
        """Return files, parts and numbers of the first rows of examples."""
        return find_places(self.dataset, self._first_rows(rows)[1])

    def find_cuts(self) -> Cuts:
        """Return how the runs are cut into the examples."""
        return self._cuts

    def _first_rows(self, examples: IndexArray,
                    ) -> tuple[IndexArray, IndexArray]:
        """Return the run and the first row in the files of examples."""
        cuts = self._cuts
        runs = cuts.find(examples).runs
        first = cuts.rows_held(examples)[0] - cuts.bounds[runs]
        last = numpy.maximum(cuts.lengths[runs] - 1, 0)
        return runs, self._stored_rows[runs] + numpy.minimum(first, last)

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
        """For each source of categories, the names of its codes (dict), as in
        the data set below."""
        below = self.dataset.categories if isinstance(
            self.dataset, Dataset) else {}
        return {name: names for source, names in below.items()
                if source in self._below for name in self._names_of(source)}

    def kept_checksums(self) -> Sequence[str]:
        """Return the checksums that the data set of the rows has."""
        found: Sequence[str] = kept_checksums(self.dataset)
        return found

    def has_rows_at_hand(self) -> bool:
        """Return whether an example is read without opening a file."""
        return isinstance(self.dataset, Dataset) and (
            self.dataset.has_rows_at_hand())

    def details(self) -> Sequence[str]:
        """Return the number of runs, and the details of the data set below."""
        below = self.dataset
        count = len(self._cuts.lengths)
        return [f'{count} run{"s" * (count != 1)} of {type(below).__name__}',
                *(below.details() if isinstance(below, Dataset) else ())]

    def _shown_arguments(self) -> Mapping[str, object]:
        """Return the arguments that are not defaults, without `runs`."""
        found = {}
        for parameter in signature_of(type(self)).parameters.values():
            name = parameter.name
            value = vars(self).get('_sources' if name == 'sources' else name)
            if value and value != parameter.default and name != 'dataset':
                found[name] = value
        return found

    def __repr__(self) -> str:
        """Return the call that makes the data set, if the repr of the data set
        below is such a call."""
        below = repr(self.dataset)
        if below.startswith('<'):
            return super().__repr__()
        runs = {} if self._given is None else {'runs': self._given}
        return written_call(type(self).__name__, [below], {
            **self._shown_arguments(), **runs})

    def find_source(self, source: str) -> Source | None:
        """Return the reader of a source's examples."""
        held = self._follow()
        return self._source_in(self.readers, source)._replace(held=held)

    def make_reader(self, requests: RequestIterator | None,
                    options: ReadOptions, state: Any) -> EpochReader | None:
        """Return a reader of the examples.

        This class overrides this method together with `_read`. A subclass that
        overrides only `_read` is read by its `_read`.
        """
        return super().make_reader(requests, options, state)

    def renew(self) -> None:
        """Open the files below again if one was changed or replaced."""
        if isinstance(self.dataset, Dataset):
            self.dataset.renew()
        self._follow()

    def close(self, state: Any) -> None:
        """Close the data set below; the next request opens it again."""
        self._forget()
        vars(self).pop('_readers', None)
        if isinstance(self.dataset, Dataset):
            self.dataset.close(None)

    def reset(self, state: Any) -> Any:
        """Return the state for a fresh start; the files below stay open."""
        return state

    def load(self) -> None:
        """Find the readers of the data set below.

        Its runs must be the same as when this data set was made.
        """
        found = stored_sources(self.dataset)
        bounds, _ = find_runs(self.dataset, found, self._given)
        if not numpy.array_equal(bounds, self._cuts.bounds):
            raise StateMismatchError(
                f'the runs of {type(self.dataset).__name__} have other '
                f'bounds than when {type(self).__name__} was made: its '
                f'files were made again; make the data set again too')
        self._find_readers(found)

    def _find_readers(self, stored: StoredSources) -> None:
        bounds = self._cuts.bounds
        # A run without rows has a value only if the data set below defines the
        # runs.
        own_runs = self._given is None or (
            bool(self._cuts.lengths.all())
            and lie_within(bounds, runs_in(self.dataset)))
        found = find_sources(self.dataset, self._below, stored)
        # Kept for descriptions, which open no file.
        self._once = frozenset(
            name for name, source in found.items()
            if own_runs and source.reader.is_per_run)
        readers: dict[str, SpanReader] = {}
        for more in (*[self._make_readers(name, source)
                       for name, source in found.items()],
                     self._added_readers(next(iter(found.values())))):
            for name in more.keys() & readers.keys():
                raise ValueError(
                    f'there would be two sources {name!r}: leave out sources '
                    f'with sources=..., or rename those of the data set below')
            readers.update(more)
        self._forget()
        self.readers = readers

    def _follow(self) -> object:
        """Find the readers again if those of the data set below have changed.

        Returns: an object that keeps the files of that data set open.
        """
        readers, held, is_same = self.readers, [], True
        for name in self.sources:
            rows, origin = readers[name].rows, readers[name].origin or name
            if origin not in self._below or type(rows) is RequestedReader:
                continue
            source = self.dataset.find_source(origin)
            if not isinstance(source, Source):
                is_same = False
                continue
            held.append(source.held)
            is_same = is_same and (source.reader is rows or is_same_reader(
                rows, source.reader))
        if not is_same:
            self.load()
        return held

    def _read(self, rows: Any) -> tuple[Any, ...]:
        # `_held` keeps the files open, even if another thread closes them.
        _held = self._follow()
        readers = self.readers
        spans = self._cuts.find(self._cuts.as_examples(rows))
        data = read_sources([readers[source] for source in self.sources],
                            spans)
        return tuple([part[0] for part in data] if isinstance(rows, int)
                     else data)

    def _find_labels(self) -> AxisLabels | None:
        """Return the labels of the axes, with a label for the axis of rows."""
        known = labels_in(self.dataset)
        if not known:
            return None
        return {name: self._label(source, labels)
                for source, labels in known.items()
                if labels and not isinstance(labels, str)
                for name in self._names_of(source)}

    def _label(self, source: str, labels: Sequence[str]) -> Sequence[str]:
        """Return the labels of a source's axes, with the time axis of a run.

        A source with one value for each run keeps its labels.
        """
        if source in self._once:
            return labels
        return (labels[0], 'time', *labels[1:])


class Runs(RunDataset):
    """A data set whose examples are whole runs of rows of another data set.

    Parameters
    ----------
    dataset : Dataset
        A data set with random access.
    runs : dict or str, optional
        The bounds of the runs: ``{'lengths': ...}``, the number of rows of
        each run; ``{'offsets': ...}``, the bounds, from 0 to the number of
        rows; ``{'ends': ...}``, for each row whether it is the last row of its
        run (with several such arrays, a run ends where any of them says so;
        rows after the last end are a run too); or ``{'numbers': ...}``, for
        each row the number or name of its run. The value is an array or the
        name of an array. The array describes the runs of the examples, or the
        runs of all rows of the files. ``'all'``: all rows are one run.
        Defaults to ``dataset.runs`` if the data set has that attribute, else
        to ``'all'``.
    sources, axis_labels : optional
        As for :class:`Dataset`.

    Attributes
    ----------
    num_examples : int
    run_numbers : numpy.ndarray, shape (num_examples,)
        The number of the run of each example, among the runs of the argument
        `runs`, or of ``dataset.runs`` by default.

    Raises
    ------
    TypeError
        If the data set is read in order, or a chosen source is sparse.
    ValueError
        If a row lies outside of all runs, or if rows with the same number in
        `numbers` do not follow each other.

    Notes
    -----
    In a batch, a source is an array of objects that has an array of shape
    ``(rows, ...)`` for each run. If the rows are a list, the source
    is a list of lists. If a source has one value for each run, an example has
    that value once.

    If a data set uses a split of its rows, the split cuts runs: an example is
    then a stretch of consecutive rows of one run that are in the split.

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

    def find_lengths(self) -> IndexArray:
        """Return the number of rows of each run."""
        return self._cuts.lengths

    def _cut(self, bounds: IndexArray) -> Cuts:
        return Cuts(bounds)

    def _make_reader(self, source: str, below: Source) -> SpanReader:
        kind = FirstRowReader if source in self._once else RunReader
        return kind(below, self._cuts)


def dense_sources(dataset: DatasetLike,
                  chosen: Sequence[str] | None) -> tuple[str, ...]:
    """Return the sources of a data set that are not sparse.

    `chosen`: names of sources; None for all, so any sparse source is refused.

    Raises: TypeError if a sparse source is chosen or all sources are sparse,
        since a run of sparse rows cannot be an example.
    """
    types = types_of(dataset)
    sparse = [name for name in dataset.sources
              if name in types and types[name].is_sparse]
    for name in sparse:
        if chosen is None or name in chosen or (
                len(sparse) == len(dataset.sources)):
            raise TypeError(
                f'runs and windows are of dense rows, but source {name!r} '
                'is sparse: leave it out with sources=..., or make a data set '
                f'of arrays, ToDense(stream, which_sources=({name!r},))'
                '.as_dataset(), or CSR(..., dense=True) of an HDF5Dataset')
    return tuple([name for name in dataset.sources if name not in sparse])


def stored_sources(dataset: DatasetLike) -> StoredSources:
    """Return the result of `find_source` for each source of a data set."""
    return {name: dataset.find_source(name) if isinstance(dataset, Dataset)
            else None for name in dataset.sources}


def find_sources(dataset: DatasetLike, sources: Sequence[str],
                 stored: StoredSources) -> dict[str, Source]:
    """Return the readers of some sources of a data set.

    `stored`: the result of :func:`stored_sources`.
    """
    if isinstance(dataset, Dataset) and covers(
            dataset, 'find_source', dataset.read_hooks):
        found = {name: source for name in sources
                 if isinstance(source := stored[name], Source)}
        if len(found) == len(sources):
            return found
    requests, types = Requests(dataset), types_of(dataset)
    count = int(num_examples_of(dataset))
    everything = slice(0, count)
    return {name: Source(RequestedReader(
        requests, name, count, types.get(name)), everything,
        RowsOf(everything, count)) for name in sources}


def is_same_reader(old: Reader, new: Reader) -> bool:
    """Return whether two readers read the same rows."""
    if isinstance(old, RequestedReader) and isinstance(new, RequestedReader):
        return True
    if isinstance(old, MemoryReader) and isinstance(new, MemoryReader):
        return old.rows is new.rows
    return old is new


def lie_within(bounds: IndexArray, runs: IndexArray | None) -> bool:
    """Return whether each run of `bounds` lies within one run of `runs`."""
    if runs is None:
        return False
    starts, stops = bounds[:-1], bounds[1:]
    has_rows = stops > starts
    return bool((
        numpy.searchsorted(runs, starts, 'right')
        == numpy.searchsorted(runs, stops, 'left'))[has_rows].all())


def find_runs(dataset: Any, sources: StoredSources, runs: RunsGiven | None,
              ) -> tuple[IndexArray, IndexArray]:
    """Return the bounds of the runs of a data set's examples, and the number
    that each run had before splits cut it.

    `sources`: the result of :func:`stored_sources`.
    """
    count = int(num_examples_of(dataset))
    kept = [RowsOf(slice(0, count), count)]
    for source in sources.values():
        stored = source.stored if isinstance(source, Source) else source
        if stored is not None and not any(
                rows == stored.num_rows and same(stored.order, order)
                for order, rows in kept):
            kept.insert(-1, stored)
    if runs is None:
        runs = 'all' if (given := runs_in(dataset)) is None else {
            'offsets': numpy.asarray(given)}
        bounds = find_bounds(runs, [count], _read_nothing)
        numbers = numpy.arange(len(bounds) - 1)
    elif runs == 'all':
        bounds, numbers = numpy.array([0, count]), numpy.zeros(1, numpy.intp)
    else:
        read = functools.cache(lambda part, name: _read_stored(dataset, name))
        rows = rows_described(runs, read)
        order, num_stored = next(
            (one for one in kept if one[1] == rows), kept[0])
        bounds, numbers = cut_runs(
            find_bounds(runs, [num_stored], read), order)
    for order, num_stored in kept:
        cut, _ = cut_runs(numpy.array([0, num_stored]), order)
        if len(cut) > 2:
            is_bound = numpy.zeros(count + 1, bool)
            is_bound[bounds] = is_bound[cut] = True
            joined = numpy.flatnonzero(is_bound)
            numbers = numbers[
                numpy.searchsorted(bounds, joined[:-1], 'right') - 1]
            bounds = joined
    return bounds, numbers


def _read_stored(dataset: DatasetLike, name: str) -> Any:
    if not isinstance(dataset, Dataset):
        raise ValueError(
            f'{type(dataset).__name__} is not a class of Fuel and has no '
            f'arrays by name: pass an array in the place of {name!r}')
    return dataset.read_stored(name)


def _read_nothing(part: int, name: object) -> NoReturn:
    raise AssertionError(name)
