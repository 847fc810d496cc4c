"""A data set over objects that can be indexed, such as arrays."""
from __future__ import annotations

import operator
import warnings
from collections.abc import Iterable
from typing import Any, Unpack

import numpy

from fuel.datasets.checks import (
    as_named, refuse_labels, refuse_unknown_sources)
from fuel.datasets.dataset import Dataset
from fuel.datasets.options import DatasetOptions
from fuel.datasets.epoch_readers import read_collections
from fuel.datasets.row_orders import RowsOf
from fuel.datasets.sources import FoundSource, MemoryReader, Source
from fuel.datasets.rows import (
    check_equal_lengths, check_range, check_request, get_rows)
from fuel.describe import SourceTypes
from fuel.describe.source_types import type_of_rows
from fuel.epochs.read_options import ReadOptions
from fuel.schemes import SequentialExampleScheme
from fuel.schemes.requests import RequestIterator
from fuel.typing import EpochReader
from fuel.utils.other_libraries import short_repr
from fuel.utils.sparse import is_sparse


class IndexableDataset(Dataset):
    """A data set over objects that can be indexed, such as arrays.

    Parameters
    ----------
    indexables : dict or indexable
        Maps source names to indexables, all of the same length.  A single
        indexable becomes the source ``'data'``.
    start, stop : int, optional
        Use only the examples from `start` to ``stop - 1``.
    sources, axis_labels
        Arguments of :class:`Dataset`.

    Attributes
    ----------
    indexables : list
        The indexables of `sources`, in that order, from `start` to `stop`.
    num_examples : int

    Raises
    ------
    ValueError
        If an object cannot be indexed, if the lengths differ, or if `start`
        and `stop` do not lie within the length.

    Notes
    -----
    Each indexable is also an attribute with the name of its source. The
    indexables are pickled with the data set; see
    :func:`~fuel.utils.do_not_pickle_attributes` for large ones.

    Examples
    --------
    >>> import numpy
    >>> dataset = IndexableDataset({'x': numpy.arange(4) ** 2, 'y': 'abcd'})
    >>> dataset.get_data(request=[2, 0])
    (array([4, 0]), ['c', 'a'])
    """

    indexables: list[Any]
    read_hooks = ('get_data', 'sources', '_get_indexable')
    takes_requests = True
    unsaved_arguments = ('indexables',)

    def __init__(self, indexables: Any, start: int | None = None,
                 stop: int | None = None,
                 **kwargs: Unpack[DatasetOptions]) -> None:
        self.provides_sources, collections = as_named(indexables)
        refuse_labels(self.provides_sources, collections)
        for source, part in zip(
                self.provides_sources, collections, strict=True):
            if not hasattr(part, '__getitem__'):
                raise ValueError(
                    f'source {source!r} must take indices in brackets, as '
                    f'arrays and lists do, got {part!r} '
                    f'({type(part).__name__})'
                    + (': put it into an IterableDataset, which only iterates '
                       'over it' if isinstance(part, Iterable)
                       else ''))
            if is_sparse(part):
                raise TypeError(
                    f'source {source!r} is a csr_array: IndexableDataset '
                    'holds no sparse rows, but HDF5Dataset reads them as the '
                    'column CSR; or pass its toarray()')
        check_equal_lengths(self.provides_sources, collections)
        for name, value in (('start', start), ('stop', stop)):
            try:
                _ = None if value is None else operator.index(value)
            except TypeError:
                raise TypeError(
                    f'{name} must be an integer, got {short_repr(value)}: '
                    'to give several sources, pass a dict, as in '
                    "IndexableDataset({'features': x, 'targets': y})"
                    ) from None
        _warn_of_columns(indexables)
        if start is not None or stop is not None:
            check_range(start, stop, len(collections[0]))
            collections = [part[start:stop] for part in collections]
        super().__init__(**kwargs)
        named = dict(zip(self.provides_sources, collections, strict=True))
        self.indexables = [named[source] for source in self.sources]
        self._names = tuple(self.sources)
        self.start, self.stop = start, stop

    def __getattr__(self, name: str) -> Any:
        if name in (vars(self).get('_names') or ()):
            return self._get_indexable(name)
        return super().__getattr__(name)  # type: ignore[misc]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(vars(self).get('_names') or ())})

    def _get_indexable(self, source: str) -> Any:
        """Return the indexable of a source, even if `sources` was
        reordered."""
        names = vars(self).get('_names')
        if names is None:
            # A subclass has set `indexables`, in the order of `sources`.
            names = tuple(self.sources)
        if source not in names:
            refuse_unknown_sources((source,), names)
        return self.indexables[names.index(source)]

    @property
    def example_iteration_scheme(self) -> Any:
        """The scheme that visits single examples; in order, unless one was
        assigned."""
        if hasattr(self, '_example_iteration_scheme'):
            return self._example_iteration_scheme
        return SequentialExampleScheme(self.num_examples)

    @example_iteration_scheme.setter
    def example_iteration_scheme(self, scheme: Any) -> None:
        self._example_iteration_scheme = scheme

    @property
    def num_examples(self) -> int:
        """Number of examples (int)."""
        return len(self.indexables[0])

    def known_types(self) -> SourceTypes:
        """Return types and shapes of the sources that are arrays."""
        found = {source: type_of_rows(rows) for source, rows in zip(
            vars(self)['_names'], vars(self)['indexables'], strict=True)}
        return {source: known for source, known in found.items() if known}

    def known_length(self) -> int | None:
        """Return the number of examples; None if they are not loaded."""
        rows = vars(self).get('indexables')
        return len(rows[0]) if rows else None

    def has_rows_at_hand(self) -> bool:
        """Return whether all sources are arrays in memory."""
        return len(self.known_types()) == len(self.sources)

    def find_source(self, source: str) -> FoundSource:
        """Return the reader of a source."""
        rows = self._get_indexable(source)
        if not hasattr(rows, '__len__'):
            return None
        everything = slice(0, self.num_examples)
        return Source(MemoryReader(source, rows), everything,
                      RowsOf(everything, self.num_examples))

    def make_reader(self, requests: RequestIterator | None,
                    options: ReadOptions, state: Any) -> EpochReader | None:
        """Return a compiled reader of arrays and lists, or None."""
        if state is not None or vars(self).get('_names') != tuple(
                self.sources):
            return None
        return read_collections(
            self, requests, options, self.indexables, 'indexables')

    def get_data(self, state: Any = None, request: Any = None) -> Any:
        """Return the examples of a request.

        Parameters
        ----------
        request : int, slice, list of int or integer numpy.ndarray
            For an integer, a single example is returned.

        Returns
        -------
        tuple
            A new array for each source, or a new list if the data are a list.

        Raises
        ------
        ValueError
            If there is a state, or the request is missing, of another kind,
            empty or out of range.
        """
        check_request(self, state, request)
        return tuple([get_rows(self._get_indexable(source), request)
                      for source in self.sources])


def _warn_of_columns(indexables: object) -> None:
    """Warn about a tuple of arrays: each array is an example, but may have
    been meant as a source."""
    if isinstance(indexables, tuple) and len(indexables) > 1 and all(
            isinstance(part, numpy.ndarray) and part.ndim
            for part in indexables):
        lengths = {len(part) for part in indexables}
        if len(lengths) == 1 and lengths.pop() > len(indexables):
            warnings.warn(
                f'a tuple of {len(indexables)} arrays is a single source of '
                f'as many examples: if each is a source, write '
                "IndexableDataset({'features': x, 'targets': y}); if not, a "
                'list is not warned of', stacklevel=3)
