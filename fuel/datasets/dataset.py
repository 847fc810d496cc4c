"""The interface to data, in memory or on disk."""
from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Never, SupportsIndex, TypeGuard

import numpy
from numpy.typing import NDArray

from fuel.datasets.checks import (
    is_sequential, not_a_stream, refuse_unknown_sources)
from fuel.datasets.row_orders import IndexArray
from fuel.datasets.sources import (
    FoundSource, RowPlace, RowPlaces, pieces_of_examples)
from fuel.datasets.run_bounds import runs_in
from fuel.datasets.run_readers import Cuts

from fuel.describe import SourceTypes
from fuel.describe.pipeline import dataset_text
from fuel.describe.preview import Preview
from fuel.epochs.read_options import ReadOptions
from fuel.epochs.readers import RequestedData
from fuel.schemes import SequentialExampleScheme
from fuel.schemes.requests import RequestIterator, as_requests
from fuel.streams import DataStream
from fuel.typing import AxisLabels, EpochReader, StreamLike
from fuel.utils.arguments import (
    NamedArguments, checked_labels, unknown_argument)
from fuel.utils.checks import positive
from fuel.utils.other_libraries import (
    DATASET_KEYWORDS, FOR_DATASETS, no_member)
from fuel.utils.overrides import covers
from fuel.utils.masked import as_kept, concatenated
from fuel.utils.sparse import row_of, rows_between

# Number of examples that are read at a time if all examples are read.
_ROWS = 4096


class Dataset(NamedArguments):
    """A data set: the interface to some data.

    ``len(dataset)`` is the number of examples, ``dataset[3]`` is a copy of one
    example, ``dataset[2:5]`` a copy of several, and a loop over a data set
    visits all examples in order.  Data sets hold no position: a stream that
    iterates over a data set keeps the state that :meth:`open` returns, and
    passes it to each read.  So one data set may serve several streams at once.

    Parameters
    ----------
    sources : tuple of str, optional
        Which sources to return, in which order.  Defaults to all of
        `provides_sources`.
    axis_labels : dict, optional
        Maps source names to tuples of strings, with one string for each axis.
        Defaults to None: no labels are known.

    Attributes
    ----------
    provides_sources : tuple of str
        All sources of the data set.  Subclasses set the attribute on the
        class, or before they call this constructor.
    sources : tuple of str
        The sources that :meth:`get_data` returns.
    num_examples : int, float or None
        Number of examples, where it is known.
    takes_requests : bool or None
        Class attribute.  True if :meth:`get_data` needs a request: reading
        the data set without an iteration scheme is then an error.  False if
        it refuses requests.  Defaults to None: not known.
    class_names : tuple of str or None
        Names of the classes: ``class_names[number]`` is the name of the
        class with that number.  None if the names are not known.
    categories : dict of str to tuple
        For each source of categories, the names of its codes.
    axis_labels : dict or None
    default_transformers : tuple
        The usual stages for these data, as tuples of a
        :class:`~fuel.transformers.Transformer` class, a list of arguments
        and a dict of keyword arguments.

    Raises
    ------
    ValueError
        If the class provides no sources, or lacks one of `sources`.

    Notes
    -----
    A data set whose state is not None may offer two hooks, which let a
    stream save its position as plain data: ``get_position(state)`` returns
    the position, ready for JSON, and ``open_at(position)`` returns a state
    that resumes there.

    Examples
    --------
    >>> import numpy
    >>> class Squares(Dataset):
    ...     provides_sources = ('roots', 'squares')
    ...     def get_data(self, state=None, request=None):
    ...         roots = numpy.array(request)
    ...         return self.filter_sources((roots, roots ** 2))
    >>> Squares(sources=('squares',)).get_data(request=[3, 4])
    (array([ 9, 16]),)
    """

    # Methods that are not called if `make_reader` returns a reader.
    read_hooks: tuple[str, ...] = ('get_data',)
    instead_of = DATASET_KEYWORDS
    provides_sources: Any = None
    #: True if `get_data` needs a request; None where it is not known.
    takes_requests: bool | None = None
    num_examples: Any = None
    class_names: Any = None
    categories: Any = MappingProxyType({})
    # Text of the warning about windows over rows that are not steps of a run.
    independent_rows = ''
    # Advice for errors: what makes single items of rows that are sequences.
    single_rows = ''
    default_transformers: Any = ()
    axis_labels: Any = None
    unsaved_arguments: tuple[str, ...] = ('axis_labels', 'sources')

    def __init__(self, sources: Sequence[str] | None = None,
                 axis_labels: AxisLabels | None = None,
                 **unknown: Never) -> None:
        if unknown:
            raise unknown_argument(type(self), unknown)
        if not self.provides_sources:
            raise ValueError(
                f'{type(self).__name__} must set provides_sources to the '
                'names of its sources')
        if sources is not None:
            refuse_unknown_sources(sources, self.provides_sources)
            self.sources = sources
        self.axis_labels = checked_labels(self, axis_labels)

    def __repr__(self) -> str:
        return dataset_text(self)

    def _repr_html_(self) -> str:
        from fuel.describe.html import dataset_html
        return dataset_html(self)

    def preview(self, count: int = 40) -> Preview:
        """Return some examples to look at: images, texts, rows of a table,
        curves and histograms.

        The examples are spread evenly over the data set; if it is read in
        order, they are its first ones. Running epochs and the global random
        generators are not disturbed. Only these examples are read; of a remote
        file, at most 8. An error is shown and not raised.

        Parameters
        ----------
        count : int, optional
            Number of examples.  Defaults to 40; fewer if this number of
            examples would take more than 256 MB.

        Returns
        -------
        fuel.describe.preview.Preview
            ``print`` shows it as text, a notebook as pictures, and
            ``save('examples.png')`` draws it into a file.

        Examples
        --------
        >>> import numpy
        >>> from fuel.datasets import IndexableDataset
        >>> dataset = IndexableDataset({
        ...     'length': numpy.linspace(1, 2, 6),
        ...     'kind': numpy.arange(6) % 2})
        >>> dataset.preview(count=3)
        IndexableDataset: 3 of 6 examples
           length  kind
        0  1       0
        2  1.4     0
        5  2       1
        kind: 0 (2), 1 (1)
        """
        from fuel.describe.samples import preview_dataset
        return preview_dataset(self, positive('count', count))

    def is_read_once(self) -> bool:
        """Return whether the data can be read only once.

        A hook for previews: a preview would use up the data.
        """
        return False

    def known_types(self) -> SourceTypes:
        """Return the known types of an example of each source.

        A hook for descriptions. It reads no data.

        Returns
        -------
        dict of str to fuel.describe.SourceType
        """
        return {}

    def kept_checksums(self) -> Sequence[str]:
        """Return the checksums of the data that the files have.

        A hook for the id of the data in saved states. It reads no data: a
        checksum that would have to be computed is left out.
        """
        return ()

    def known_length(self) -> int | None:
        """Return the number of examples if it is known without reading.

        A hook for descriptions. None if it is not known.
        """
        count = vars(self).get('num_examples')
        return count if isinstance(count, int) else None

    def details(self) -> Sequence[str]:
        """Return short texts about the data: file, storage and the like.

        A hook for descriptions. It reads no data.
        """
        return ()

    def has_rows_at_hand(self) -> bool:
        """Return whether an example is read without opening a file."""
        return False

    if not TYPE_CHECKING:
        def __getattr__(self, name: str) -> object:
            if name in ('produces_examples', 'get_epoch_iterator'):
                raise not_a_stream(self)
            if name in FOR_DATASETS:
                raise no_member(self, name, FOR_DATASETS,
                                self.sources or ('data',), 'batch')
            # Raises the error about the missing attribute again, with its own
            # text.
            return object.__getattribute__(self, name)

    def __len__(self) -> int:
        """Return the number of examples."""
        count = _length_of(self)
        if count is None:
            raise TypeError(
                f'{type(self).__name__} does not know how many examples it '
                'has before it was read')
        return count

    def __bool__(self) -> bool:
        # A data set without examples is true too.
        return True

    def __getitem__(self, index: object) -> tuple[Any, ...]:
        """Return one example, or several as a batch.

        Parameters
        ----------
        index : int, slice, list of int or integer numpy.ndarray
            Negative numbers count from the end.

        Returns
        -------
        tuple
            A copy of the data of each of `sources`, in that order.

        Raises
        ------
        IndexError
            If there is no such example.
        TypeError
            If the index is anything else, such as a mask of booleans, or if
            the data set is read in order.

        """
        return _examples_at(self, index)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Return an iterator over the examples in order."""
        return _all_examples(self)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close(None)

    @property
    def sources(self) -> Any:
        """The sources that a read returns, in order (tuple of str)."""
        if '_sources' in vars(self):
            return self._sources
        return self.provides_sources

    @sources.setter
    def sources(self, sources: Any) -> None:
        self._sources = sources
        self._use_sources()

    def _use_sources(self) -> None:
        """Update the attributes that depend on `sources`: a hook that is
        called after `sources` was assigned."""

    @property
    def example_iteration_scheme(self) -> Any:
        """The scheme that visits single examples (IterationScheme or None).

        Raises AttributeError if the data set does not have such a scheme.
        """
        if not hasattr(self, '_example_iteration_scheme'):
            raise AttributeError(
                f'{type(self).__name__} does not provide an example '
                'iteration scheme')
        return self._example_iteration_scheme

    @example_iteration_scheme.setter
    def example_iteration_scheme(self, scheme: Any) -> None:
        self._example_iteration_scheme = scheme

    def get_example_stream(self) -> DataStream:
        """Return a stream of single examples."""
        return DataStream(
            self, iteration_scheme=self.example_iteration_scheme)

    def apply_default_transformers(self, stream: Any) -> Any:
        """Return `stream` with the default transformers applied to it."""
        for cls, args, kwargs in self.default_transformers:
            stream = cls(stream, *args, **self._restrict(kwargs, stream))
        return stream

    def _restrict(self, kwargs: dict[str, Any], stream: StreamLike) -> Any:
        """Return the keyword arguments of a transformer, without the names of
        sources that the stream lacks.

        The default transformers name all sources of the data set; the stream
        may have fewer.
        """
        which = kwargs.get('which_sources')
        if not isinstance(which, (tuple, list)):
            return kwargs
        return {**kwargs, 'which_sources': tuple([
            source for source in which if source in stream.sources
            or source not in self.provides_sources])}

    def open(self) -> Any:
        """Return a new state for reading, or None."""
        return None

    def next_epoch(self, state: Any) -> Any:
        """Return the state for the next epoch.

        Returns
        -------
        object
            By default the result of :meth:`reset`.
        """
        return self.reset(state)

    def reset(self, state: Any) -> Any:
        """Close a state and return a fresh one."""
        self.close(state)
        return self.open()

    def close(self, state: Any) -> None:
        """Close a state, such as an open file."""

    def get_data(self, state: Any = None, request: Any = None) -> Any:
        """Return the data of a request.

        Parameters
        ----------
        state : object, optional
            The state that :meth:`open` returned.
        request : object, optional
            Which examples, in a form that the data set understands.

        Returns
        -------
        tuple
            One item for each of `sources`.

        Raises
        ------
        StopIteration
            If data are read in order and there are no more.
        """
        raise NotImplementedError(
            f'{type(self).__name__} must implement get_data')

    def open_epoch(self, requests: Iterator[Any] | None,
                   options: ReadOptions | None = None,
                   state: Any = None) -> EpochReader:
        """Return a reader of the data of one epoch.

        A stream calls this method once an epoch.  The reader calls
        :meth:`get_data` for each request.  If :meth:`make_reader` returns a
        faster reader, that reader is used instead, unless a subclass overrides
        one of the methods that `read_hooks` names.

        Parameters
        ----------
        requests : iterator or None
            The requests of the epoch.  A reader looks at their position
            before each read.  None if the data set takes no requests.
        options : ReadOptions, optional
            Options that the stages downstream set, such as conversions.
        state : object, optional
            The state that :meth:`open` returned.

        Examples
        --------
        >>> from fuel.datasets import IndexableDataset
        >>> reader = IndexableDataset([5, 6, 7]).open_epoch(iter([[2, 0]]))
        >>> reader.read()
        ([7, 5],)
        """
        if requests is not None:
            requests = as_requests(requests)
        reader: EpochReader | None = None
        if covers(self, 'make_reader', self.read_hooks):
            reader = self.make_reader(
                requests, options or ReadOptions(), state)
        return reader or RequestedData(self, requests, state)

    def make_reader(self, requests: RequestIterator | None,
                    options: ReadOptions, state: Any) -> EpochReader | None:
        """Return a reader that is faster than calling `get_data`, or None.

        A hook for :meth:`open_epoch`, with the same arguments.
        """
        return None

    def find_source(self, source: str) -> FoundSource:
        """Return the reader of a source, or the order of its rows in files.

        If only :meth:`get_data` can read the source, the result is the order
        of its rows; it is None if the order is not known either. A hook for
        data sets over other data sets, such as
        :class:`~fuel.datasets.Windows`.
        """
        return None

    def find_stored_rows(self, source: str) -> FoundSource:
        """Return the reader of a source's rows as they are stored.

        A hook for :meth:`chunk_of_examples`. A data set overrides it if its
        :meth:`find_source` does not read the stored rows.
        """
        return self.find_source(source)

    def chunk_of_examples(self, source: str | None = None) -> IndexArray:
        """Return the number of the stored piece that each example lies in.

        A stored piece is a chunk of HDF5 or Zarr, a row group of Parquet, or a
        record batch of Arrow. A contiguous source in a remote file has pieces
        of a megabyte, and each piece is fetched as a whole.

        Parameters
        ----------
        source : str, optional
            Defaults to the source with the pieces that cost most to read:
            chunks cost more than contiguous data, decoded chunks more than
            others, and large examples more than small ones.

        Returns
        -------
        numpy.ndarray, shape (num_examples,), dtype intp
            Numbers of pieces along the first axis. An example of several rows,
            such as a window, has the number of the piece of its first row.

        Raises
        ------
        ValueError
            If there is no such source, or if its rows are not stored in
            pieces but in memory or in a contiguous array: every order of
            the examples is then equally fast.
        TypeError
            If the data set does not say how its rows are stored.
        """
        return pieces_of_examples(self, source).numbers

    def place_of_row(self, row: int) -> RowPlace:
        """Return the file and the part of a row, and its number in the part.

        A hook for :class:`~fuel.datasets.Windows`.
        """
        found = self.places_of_rows(numpy.array([row]))
        return RowPlace(type(self).__name__, '', row) if found is None else (
            found.first())

    def places_of_rows(self, rows: IndexArray) -> RowPlaces | None:
        """Return the files and the parts of rows, and their numbers in the
        parts; None if there are no files.

        A hook for tables of orders, as `place_of_row` for many rows.
        """
        return None

    def find_cuts(self) -> Cuts | None:
        """Return how runs of another data set are cut into the examples; None
        if the examples are not cut from runs.

        A hook for tables of orders.
        """
        return None

    def find_uncut_runs(self) -> tuple[IndexArray, IndexArray] | None:
        """Return the bounds of the runs of the examples, and the number that
        each run had before a split cut it; None if there are no runs.

        A hook for :func:`~fuel.datasets.random_split`. By default no run is
        cut, and the bounds are the attribute ``runs``.
        """
        if (bounds := runs_in(self)) is None:
            return None
        bounds = numpy.asarray(bounds)
        return bounds, numpy.arange(len(bounds) - 1)

    def find_lengths(self) -> IndexArray | None:
        """Return the number of rows of each example, if the examples are runs
        of rows; None otherwise.

        A hook for :class:`~fuel.transformers.BalancedBatches`.
        """
        return None

    def read_stored(self, name: str) -> Any:
        """Return a whole array of the files by its name, regardless of splits.

        A hook for :class:`~fuel.datasets.Windows`. By default the names are
        those of `sources`.
        """
        refuse_unknown_sources((name,), self.sources)
        return _read_whole(self, name)

    def read_labels(self, source: str) -> NDArray[Any]:
        """Return the class of each example, for schemes and splits.

        Parameters
        ----------
        source : str
            One of `sources`.

        Returns
        -------
        numpy.ndarray
            One class for each example. If some are missing (None, or the
            code -1 of a source of `categories`), the array is a
            :class:`numpy.ma.MaskedArray` that masks them.

        Raises
        ------
        ValueError
            If there is no such source.
        """
        refuse_unknown_sources((source,), self.sources)
        labels = _read_whole(self, source)
        if labels.dtype.kind in 'if' and source in self.categories:
            missing = labels < 0
        elif labels.dtype.hasobject:
            missing = numpy.frompyfunc(lambda one: one is None, 1, 1)(
                labels).astype(bool)
        else:
            return labels
        return numpy.ma.masked_array(
            labels, missing) if missing.any() else labels

    def renew(self) -> None:
        """Reopen files that were changed or replaced.

        A hook that is called before an epoch begins.
        """

    def filter_sources(self, data: Iterable[Any]) -> tuple[Any, ...]:
        """Return the data of `sources` from the data of all sources.

        Parameters
        ----------
        data : sequence
            One item for each of `provides_sources`.

        Returns
        -------
        tuple
            One item for each of `sources`, in that order.
        """
        named = dict(zip(self.provides_sources, data, strict=True))
        try:
            return tuple([named[source] for source in self.sources])
        except KeyError:
            refuse_unknown_sources(self.sources, self.provides_sources)
            raise


def _read_whole(dataset: Dataset, source: str) -> NDArray[Any]:
    """Return the examples of one source, all in one array."""
    place = list(dataset.sources).index(source)
    return concatenated([
        as_kept(dataset[start:start + _ROWS][place])
        for start in range(0, len(dataset), _ROWS)])


def _length_of(dataset: object) -> int | None:
    """Return the number of examples of a data set; None if not known."""
    count = getattr(dataset, 'num_examples', None)
    try:
        # This raises a TypeError for NaN, which stands for an unknown number.
        return None if count is None else operator.index(count)
    except TypeError:
        return None


def _has_own_length(dataset: object) -> bool:
    return getattr(type(dataset), '__len__', None) is not Dataset.__len__


def _all_examples(dataset: Dataset) -> Iterator[tuple[Any, ...]]:
    """Yield the examples of a data set in order."""
    requests = None
    in_order = is_sequential(dataset)
    if in_order is None:
        in_order = _length_of(dataset) is None and not _has_own_length(dataset)
    if not in_order:
        if not hasattr(dataset, 'example_iteration_scheme'):
            yield from (_read(dataset, row) for row in range(len(dataset)))
            return
        requests = SequentialExampleScheme(
            len(dataset)).get_request_iterator()
    state = dataset.open()
    reader = dataset.open_epoch(requests, state=state)
    try:
        while True:
            try:
                example = tuple(reader.read())
            except StopIteration:
                return
            yield example
    finally:
        reader.close()
        if state is not None:
            dataset.close(state)


def _examples_at(dataset: Dataset, index: object) -> tuple[Any, ...]:
    """Return the example, or the batch of examples, at an index."""
    name = type(dataset).__name__
    if is_sequential(dataset):
        raise TypeError(
            f'{name} is read in order and takes no index, got {index!r:.80}: '
            'iterate over it, or put the examples that are needed often into '
            'an IndexableDataset')
    if isinstance(index, slice):
        rows: int | list[int] = list(range(*index.indices(len(dataset))))
    elif _is_number(index):
        rows = _checked(dataset, index)
    elif isinstance(index, (Sequence, numpy.ndarray)) and not isinstance(
            index, (str, bytes)):
        rows = [_checked(dataset, row) for row in _as_rows(name, index)]
    else:
        raise TypeError(
            f'an index of {name} is an integer, a slice or a list of '
            f'integers, got {index!r:.80} ({type(index).__name__})'
            + (f': the data of this source are dataset[:]['
               f'{list(dataset.sources).index(index)}]'
               if index in dataset.sources else ''))
    if rows == []:
        return tuple([rows_between(part, 0, 0)
                      for part in _read(dataset, [0])])
    return _read(dataset, rows)


def _read(dataset: Dataset, request: int | list[int]) -> tuple[Any, ...]:
    # Every data set takes a list of indices. Only a data set with an example
    # iteration scheme takes a single index.
    is_alone = isinstance(request, int) and not hasattr(
        dataset, 'example_iteration_scheme')
    state = dataset.open()
    try:
        data = dataset.get_data(state, [request] if is_alone else request)
        return tuple([row_of(part, 0) for part in data]
                     if is_alone else data)
    finally:
        if state is not None:
            dataset.close(state)


def _is_number(index: object) -> TypeGuard[SupportsIndex]:
    return hasattr(index, '__index__') and not isinstance(
        index, (bool, numpy.bool_, numpy.ndarray))


def _as_rows(name: str, index: Iterable[Any]) -> list[Any]:
    """Return the numbers in a list or an array; masks are refused."""
    rows = index.tolist() if isinstance(index, numpy.ndarray) else list(index)
    if not isinstance(rows, list):
        rows = [rows]
    for row in rows:
        if isinstance(row, (bool, numpy.bool_)):
            raise TypeError(
                f'{name} takes numbers of examples, not a mask of booleans: '
                'write dataset[numpy.flatnonzero(mask)]')
        if not _is_number(row):
            raise TypeError(
                f'{name} takes a flat list of integers, and {row!r:.80} '
                f'({type(row).__name__}) is not one')
    return rows


def _checked(dataset: Dataset, index: SupportsIndex) -> int:
    """Return the number of an example, counted from the end if negative."""
    number = operator.index(index)
    count = _length_of(dataset)
    if count is None:
        if number >= 0:
            return number
        # Raises a TypeError that says why.
        count = len(dataset)
    if not count:
        raise IndexError(
            f'{type(dataset).__name__} has no examples, and so none with the '
            f'number {number}')
    if not -count <= number < count:
        raise IndexError(
            f'{type(dataset).__name__} has the examples 0 to {count - 1}, '
            f'and {number} is none of them')
    return number % count
