"""Data sets whose sources are rows that readers return."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fuel.datasets.dataset import Dataset
from fuel.datasets.row_orders import Order, length, pick
from fuel.datasets.row_readers import read_file
from fuel.datasets.rows import as_rows, check_equal_lengths
from fuel.datasets.splits import order_of_splits
from fuel.describe import SourceType, SourceTypes
from fuel.epochs.read_options import ReadOptions
from fuel.schemes import SequentialExampleScheme
from fuel.schemes.requests import RequestIterator
from fuel.storage import Reader
from fuel.typing import EpochReader


class RowsDataset(Dataset):
    """Base of the data sets over files of rows.

    Subclasses set `which_sets` and `readers` before they call this
    constructor, have a method `load` that opens the readers again, and leave
    them out of pickles.

    Parameters
    ----------
    splits : dict or None
        Maps names of splits to ``(start, stop)`` or to a list or array of
        rows, in any order.
    provides_sources : tuple of str, optional
        Defaults to the names of the readers, sorted.
    **kwargs
        Arguments of :class:`Dataset`.

    Attributes
    ----------
    num_examples : int
    readers : dict of str to Reader
    """

    readers: dict[str, Reader]
    which_sets: Sequence[str] | None
    takes_requests = True

    def __init__(self, splits: Mapping[str, Any] | None,
                 provides_sources: Sequence[str] | None = None,
                 **kwargs: Any) -> None:
        self.provides_sources = tuple(
            sorted(self.readers) if provides_sources is None
            else provides_sources)
        lengths = [range(len(reader)) for reader in self._provided()]
        check_equal_lengths(self.provides_sources, lengths)
        self._order = order_of_splits(
            splits, self.which_sets, len(lengths[0]))
        super().__init__(**kwargs)
        self.example_iteration_scheme = SequentialExampleScheme(
            self.num_examples)

    def _provided(self) -> list[Reader]:
        return [self.readers[source] for source in self.provides_sources]

    def known_types(self) -> SourceTypes:
        """Return types and shapes of the sources."""
        return {source: SourceType(reader.dtype, reader.shape[1:])
                for source, reader in vars(self)['_readers'].items()}

    def known_length(self) -> int | None:
        """Return the number of examples."""
        return self.num_examples

    def details(self) -> Sequence[str]:
        """Return the splits."""
        splits = self.which_sets
        return [f'splits {", ".join(splits)}'] if splits else []

    @property
    def num_examples(self) -> int:
        """Number of examples (int)."""
        return length(self._order)

    def make_reader(self, requests: RequestIterator | None,
                    options: ReadOptions, state: Any) -> EpochReader | None:
        """Return a reader of the rows of the files."""
        return read_file(self, requests, options, self._parts)

    def get_data(self, state: Any = None, request: Any = None,
                 ) -> tuple[Any, ...]:
        """Return the examples of a request.

        Raises
        ------
        ValueError
            If the request is of another kind, empty, negative or out of
            range.
        DamagedFileError
            If a file was changed while in use.
        """
        rows = pick(self._order, as_rows(request, self.num_examples))
        readers = self.readers
        return tuple([readers[source].read(rows) for source in self.sources])

    def _parts(self) -> list[tuple[Reader, Order]]:
        """Return a reader and the order of rows for each source."""
        return [(self.readers[source], self._order)
                for source in self.sources]
