"""Base classes of data sets with sources in open files, and of data sets with
splits."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

import numpy

from fuel.datasets.dataset import Dataset
from fuel.datasets.options import DatasetOptions
from fuel.datasets.row_orders import (
    IndexArray, Order, RowsOf, length, pick)
from fuel.datasets.epoch_readers import (
    OpenSources, direct_batches, read_file)
from fuel.datasets.rows import (
    as_rows, check_request, check_same_length, check_same_types,
    refuse_unequal)
from fuel.datasets.sources import (
    FoundSource, RowPlaces, Source, places_in_files)
from fuel.datasets.splits import order_of_splits
from fuel.describe import SourceType, SourceTypes
from fuel.describe.pipeline import dataset_text
from fuel.epochs.read_options import ReadOptions
from fuel.exceptions import StateMismatchError
from fuel.kernels.batches import Batches
from fuel.schemes import SequentialExampleScheme
from fuel.schemes.requests import RequestIterator
from fuel.storage import Reader
from fuel.storage.file_bytes import are_current
from fuel.suggestions import did_you_mean
from fuel.typing import EpochReader, Request
from fuel.utils.checks import in_order, not_negative


class SourceDataset(Dataset):
    """Base of the data sets whose sources are read from open files.

    Subclasses implement the methods `_open_files` and `_sources_in`, and call
    `_forget` when the result of either changes.
    """

    # The compiled reader of plain batches of `sources`.
    _direct: Batches | None = None
    _open_sources: OpenSources | None = None
    # The number of calls of `_forget`, which any thread may make.
    _times_forgotten = 0

    def open_sources(self) -> OpenSources:
        """Return the readers of `sources` in the files that are open now."""
        names, opened = self.sources, self._open_files()
        found, now = self._open_sources, self._times_forgotten
        if (found is None or found.opened is not opened
                or found.names is not names):
            found = OpenSources(
                self._sources_in(opened, names), names, opened)
            self._open_sources = found
            self._direct = self._direct_batches(found)
            if now != self._times_forgotten:
                # Another thread has called `_forget` meanwhile.
                self._direct = self._open_sources = None
        return found

    def _open_files(self) -> Any:
        """Open the files, unless they are open, and return an object that
        holds them: the same object as long as they stay open."""
        raise NotImplementedError

    def _sources_in(self, opened: Any,
                    names: Sequence[str]) -> Iterable[Source]:
        """Return the readers of sources in open files."""
        raise NotImplementedError

    def _direct_batches(self, found: OpenSources) -> Batches | None:
        """Return a compiled reader of plain batches that calls no method of
        this object."""
        return direct_batches(found, self.num_examples)

    def _forget(self) -> None:
        """Drop the readers of the sources, since files, sources or examples
        have changed."""
        self._times_forgotten += 1
        self._direct = self._open_sources = None

    def _use_sources(self) -> None:
        self._forget()

    def make_reader(self, requests: RequestIterator | None,
                    options: ReadOptions, state: Any) -> EpochReader | None:
        """Return a reader of the rows of the files."""
        return read_file(self, requests, options)


class SplitDataset(Dataset):
    """Base of the data sets over rows that have splits.

    Subclasses implement the method `_read`.

    `num_rows`: number of rows.
    `which_sets`: the splits to use, concatenated in this order; None for all
        rows.
    `splits`: maps names of splits to ``(start, stop)``, a slice, or a list or
        array of rows, in any order.
    """

    takes_requests = True
    instead_of: Mapping[str, str] = {
        **Dataset.instead_of,
        'subset': "name the rows as a split, {}(..., splits={{'part': rows}}, "
                  "which_sets=('part',))"}

    def __init__(self, num_rows: int, which_sets: Sequence[str] | None,
                 splits: Mapping[str, Any] | None, /,
                 **kwargs: Unpack[DatasetOptions]) -> None:
        self.which_sets = which_sets
        self.num_stored = num_rows
        self._order = self._find_order(num_rows, splits)
        super().__init__(**kwargs)
        self.example_iteration_scheme = SequentialExampleScheme(
            self.num_examples)

    def _find_order(self, num_rows: int,
                    splits: Mapping[str, Any] | None) -> Order:
        """Return the rows of the splits in use, in their order."""
        return order_of_splits(splits, self.which_sets, num_rows)

    @property
    def num_examples(self) -> int:
        """Number of examples (int)."""
        return length(self._order)

    def known_length(self) -> int | None:
        """Return the number of examples."""
        return self.num_examples

    def details(self) -> Sequence[str]:
        """Return the splits."""
        splits = self.which_sets
        return [f'splits {", ".join(splits)}'] if splits else []

    def find_source(self, source: str) -> FoundSource:
        """Return, for each example, its row in the files."""
        return RowsOf(self._order, self.num_stored)

    def get_data(self, state: Any = None, request: Request = None,
                 ) -> tuple[Any, ...]:
        """Return the examples of a request.

        Raises
        ------
        ValueError
            If there is a state, or the request is missing, of another kind,
            empty, negative or out of range, or a row is not as expected.
        DamagedFileError
            If a file was changed while in use.
        """
        check_request(self, state, request)
        return self._read(pick(
            self._order, as_rows(request, self.num_examples)))

    def _read(self, rows: Any) -> tuple[Any, ...]:
        """Return one row of each source, or the rows of a slice or an
        array."""
        raise NotImplementedError


class RowsDataset(SourceDataset, SplitDataset):
    """Base of the data sets that have one reader for each source.

    Subclasses set `readers` before they call this constructor, implement a
    method `load` that opens the readers again, and leave the readers out of
    pickles.

    `which_sets`, `splits`: see :class:`SplitDataset`.
    `provides_sources`: defaults to the names of the readers, sorted. If
        `sources` are given, sources of another length are left out.
    """

    readers: dict[str, Reader]
    read_hooks = ('get_data', '_read')
    # The sources that files must have; None if all files must have all
    # sources of the first. The default is that of older pickles.
    _asked: Sequence[str] | None = ()

    def __init__(self, which_sets: Sequence[str] | None,
                 splits: Mapping[str, Any] | None,
                 provides_sources: Sequence[str] | None = None, /,
                 **kwargs: Unpack[DatasetOptions]) -> None:
        readers = self.readers
        names = tuple(sorted(readers) if provides_sources is None
                      else provides_sources)
        # Sources that were not asked for may have other lengths.
        asked = [name for name in names
                 if name in (kwargs.get('sources') or ())] or names
        refuse_unequal({name: len(readers[name]) for name in asked},
                       can_choose=asked is names)
        num_rows = len(readers[asked[0]])
        self.provides_sources = tuple([
            name for name in names if len(readers[name]) == num_rows])
        super().__init__(num_rows, which_sets, splits, **kwargs)

    def category_names(self, source: str, codes: IndexArray) -> Any:
        """Return the names of the categories that codes stand for.

        Parameters
        ----------
        source : str
        codes : numpy.ndarray
            As in a batch.

        Returns
        -------
        numpy.ndarray
            Of the same shape and dtype object; None where a value is missing.

        Raises
        ------
        KeyError
            If the source has no categories.
        """
        names = numpy.array([*self.categories[source], None], object)
        return names[codes]

    def known_types(self) -> SourceTypes:
        """Return types and shapes of the sources."""
        return {source: _type_of(reader)
                for source, reader in vars(self)['_readers'].items()}

    def make_reader(self, requests: RequestIterator | None,
                    options: ReadOptions, state: Any) -> EpochReader | None:
        """Return a reader of the rows of the files.

        This class overrides this method together with `_read`. A subclass that
        overrides only `_read` is read by its `_read`.
        """
        return super().make_reader(requests, options, state)

    def load(self) -> None:
        """Open the readers again."""
        raise NotImplementedError

    def _load_for(self, sources: Sequence[str] | None) -> None:
        """Open the readers that the argument `sources` needs, and keep the
        argument for the next call of `load`."""
        self._asked = sources
        self.load()

    def _open_anew(self) -> None:
        self._forget()
        vars(self).pop('_readers', None)

    def __str__(self) -> str:
        """Return the call, if the repr is one, and the known facts."""
        shown, text = repr(self), dataset_text(self)
        return text if shown.startswith('<') else f'{shown}\n{text}'

    def find_source(self, source: str) -> FoundSource:
        """Return the reader of a source."""
        return self._source_in(self.readers, source)

    def places_of_rows(self, rows: IndexArray) -> RowPlaces | None:
        """Return the file of rows."""
        reader = self.readers[self.sources[0]]
        return places_in_files([reader.path], [0, len(reader)], rows)

    def read_stored(self, name: str) -> Any:
        """Return all rows of a source, regardless of splits."""
        if name not in self.readers:
            return super().read_stored(name)
        return self.readers[name].read(slice(None))

    def renew(self) -> None:
        """Open the files again if one was changed or replaced."""
        before = self.readers
        if are_current(file for reader in before.values()
                       for file in reader.files):
            return
        self._forget()
        opened = dict(vars(self))
        try:
            self.load()
            self._check_renewed(before, self.readers)
        except BaseException:
            # The next epoch must not read files that were not checked.
            vars(self).update(opened)
            raise

    def _check_renewed(self, before: dict[str, Reader],
                       now: dict[str, Reader]) -> None:
        """Refuse files whose examples have changed."""
        for source in self.provides_sources:
            if source not in before:
                continue
            path = before[source].path
            if source not in now:
                raise StateMismatchError(
                    f'{path!r} had the source {source!r} when the data '
                    f'set was made, and now has {sorted(now)}: make the '
                    f'data set again')
            check_same_length(path, len(before[source]), len(now[source]))
            check_same_types(path, {source: _type_of(before[source])},
                             {source: _type_of(now[source])})

    def _read(self, rows: Any) -> tuple[Any, ...]:
        readers = self.readers
        return tuple([readers[source].read(rows) for source in self.sources])

    def _open_files(self) -> dict[str, Reader]:
        return self.readers

    def _sources_in(self, opened: dict[str, Reader],
                    names: Sequence[str]) -> Iterable[Source]:
        return [self._source_in(opened, name) for name in names]

    def _source_in(self, readers: Mapping[str, Reader], name: str) -> Source:
        return Source(readers[name], self._order,
                      RowsOf(self._order, self.num_stored), readers)


def as_budget(cache_bytes: int | None) -> int | None:
    """Check the argument `cache_bytes` of a data set, and return it."""
    return None if cache_bytes is None else not_negative(
        'cache_bytes', cache_bytes, 'a number of bytes, an integer')


def by_source(columns: object) -> dict[str, Any]:
    """Return a dict from the sources of a table to their columns.

    `columns`: a dict from sources to a column or a list of columns, or a list
        of columns.

    Raises: ValueError if it is neither, if there are no columns, or if a
        column is listed twice.
    """
    if isinstance(columns, Mapping):
        found = dict(columns)
    else:
        in_order('columns', columns)
        names = [columns] if isinstance(columns, str) else list(
            columns) if isinstance(columns, Iterable) else [None]
        for name in names:
            if not isinstance(name, (str, int)):
                raise ValueError(
                    f'columns must be a list of columns, or a dict from '
                    f'sources to theirs, got {columns!r:.80}')
        found = {name: name for name in names}
        if len(found) < len(names):
            raise ValueError(
                f'a column is there twice: {", ".join(map(str, names))}')
    for source, wanted in found.items():
        if isinstance(wanted, (list, tuple)) and not wanted:
            raise ValueError(f'columns: source {source!r} must have at least '
                             f'one column, got {wanted!r}')
    if not found:
        raise ValueError(f'columns must name at least one, got {columns!r}')
    return found


def texts_in(argument: str, given: object, what: str) -> Sequence[str]:
    """Return the texts in an argument: a list of texts, or one text.

    Raises: ValueError if a value is not a text.
    """
    if isinstance(given, str):
        return (given,)
    texts: list[Any] = list(given) if isinstance(
        given, Iterable) else [None]
    for text in texts:
        if not isinstance(text, str):
            raise ValueError(f'{argument} must be a list of {what}, each of '
                             f'them a text, got {given!r:.80}')
    return texts


def masks_of(masks: Sequence[str] | str,
             sources: Iterable[str]) -> dict[str, str]:
    """Return a dict from the names of masks to the sources that they mask.

    Raises: ValueError if there is no such source, or if another source has the
        name of a mask.
    """
    names = texts_in('masks', masks, 'sources')
    known = tuple(sources)
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known, '{} ')
            raise ValueError(f'masks names {name!r}, but there is no such '
                             f'source: {hint}the sources are {known}')
        if f'{name}_mask' in known:
            raise ValueError(
                f'there is a source {name}_mask already: give this source '
                f'another name with columns=..., so that the mask of '
                f'{name!r} can have the name {name}_mask')
    return {f'{name}_mask': name for name in names}


def with_masks(sources: Iterable[str],
               masks: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of sources, each followed by the name of its mask."""
    return tuple([name for source in sources for name in (
        (source, f'{source}_mask') if f'{source}_mask' in masks
        else (source,))])


def _type_of(reader: Reader) -> SourceType:
    if reader.element_type is not None:
        return SourceType(reader.element_type)
    return SourceType(reader.dtype, reader.shape[1:])
