"""The base of the data sets whose sources are read by `fuel.storage`."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fuel.datasets.row_orders import Order
from fuel.datasets.row_readers import direct_batches, read_file
from fuel.datasets.rows import check_equal_lengths
from fuel.datasets.split_dataset import SplitDataset
from fuel.describe import SourceType, SourceTypes
from fuel.epochs.read_options import ReadOptions
from fuel.kernels.batches import Batches
from fuel.schemes.requests import RequestIterator
from fuel.storage import Reader
from fuel.typing import EpochReader


class RowsDataset(SplitDataset):
    """Base of the data sets whose sources are rows that readers return.

    Subclasses set `which_sets` and `readers` before they call this
    constructor, have a method `load` that opens the readers again, and leave
    them out of pickles.

    `splits`: see :class:`SplitDataset`.
    `provides_sources`: defaults to the names of the readers, sorted.
    """

    readers: dict[str, Reader]
    which_sets: Sequence[str] | None
    # What reads plain batches of `sources`, in an epoch.
    _direct: Batches | None = None

    def __init__(self, splits: Mapping[str, Any] | None,
                 provides_sources: Sequence[str] | None = None,
                 **kwargs: Any) -> None:
        self.provides_sources = tuple(
            sorted(self.readers) if provides_sources is None
            else provides_sources)
        lengths = [range(len(self.readers[source]))
                   for source in self.provides_sources]
        check_equal_lengths(self.provides_sources, lengths)
        super().__init__(len(lengths[0]), self.which_sets, splits, **kwargs)

    def _use_sources(self) -> None:
        self._direct = None

    def known_types(self) -> SourceTypes:
        """Return types and shapes of the sources."""
        return {source: SourceType(reader.dtype, reader.shape[1:])
                for source, reader in vars(self)['_readers'].items()}

    def make_reader(self, requests: RequestIterator | None,
                    options: ReadOptions, state: Any) -> EpochReader | None:
        """Return a reader of the rows of the files."""
        return read_file(self, requests, options, self._parts)

    def _read(self, rows: Any) -> tuple[Any, ...]:
        readers = self.readers
        return tuple([readers[source].read(rows) for source in self.sources])

    def _parts(self) -> list[tuple[Reader, Order]]:
        """Return a reader and the order of rows for each source."""
        sources, readers = self.sources, self.readers
        parts = [(readers[source], self._order) for source in sources]
        self._direct = direct_batches(
            [(reader, None, order) for reader, order in parts],
            self.num_examples, held=readers)
        if sources is not self.sources:
            # Another thread has chosen others meanwhile.
            self._direct = None
        return parts
