"""Which rows of an HDF5 file a data set has: splits, subset and sources."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import h5py
import numpy

from fuel.datasets.hdf5.file_dataset import FileDataset
from fuel.datasets.hdf5.format import SplitFormat, costliest_source, summarize
from fuel.datasets.row_orders import Selection
from fuel.datasets.rows import check_same_length, check_same_types
from fuel.schemes import SequentialExampleScheme
from fuel.storage.paging import BLOCK
from fuel.utils import Subset


class SelectedRows(SplitFormat, FileDataset):
    """Finds the rows of each source, again where the file was changed."""

    which_sets: tuple[str, ...]
    user_given_subset: Any
    _selection: Selection | None

    def _use_sources(self) -> None:
        if vars(self).get('_selection') is not None:
            # The rows, and what is in memory, are in the order of sources.
            self._select()
            if self.load_in_memory:
                self.load()

    @property
    def num_examples(self) -> int:
        """Number of examples (int)."""
        if self._selection is None:
            return self._select().num_examples
        return self._selection.num_examples

    @property
    def subsets(self) -> list[Subset]:
        """The rows of each source in ascending order (list of Subset)."""
        selection = self._selected()
        assert selection.subsets is not None
        return selection.subsets

    @subsets.setter
    def subsets(self, subsets: Sequence[Subset]) -> None:
        before = self._selection
        selection = Selection(self.sources, subsets, slice(None))
        selection.is_assigned = True
        self._set_selection(selection)
        if before and not before.has_rows_of(selection):
            # Loaded again when they are needed.
            for name in ('_data_sources', '_source_shapes'):
                if self.load_in_memory:
                    vars(self).pop(name, None)

    def chunk_of_examples(self, source: str | None = None) -> Any:
        """Tell which chunks of the file the examples lie in.

        Parameters
        ----------
        source : str, optional
            Defaults to the source whose chunks cost most to read: the one
            with the largest examples, among the compressed ones if there
            are any.

        Returns
        -------
        numpy.ndarray, shape (num_examples,), dtype intp
            Numbers of chunks along the first axis.

        Raises
        ------
        ValueError
            If there is no such source, or it is not chunked. One that is in
            a remote file has pieces of a megabyte all the same, which are
            fetched at a time.
        """
        with self._reading() as h5file:
            if source is None:
                source = costliest_source(h5file, self.sources)
            if source not in self.sources:
                raise ValueError(f'there is no source {source!r}; the '
                                 f'sources are {self.sources}')
            chunks = getattr(h5file[source], 'chunks', None)
            if chunks is None and self.storage_options is not None:
                chunks = _pieces_to_fetch(h5file[source])
            if chunks is None:
                raise ValueError(
                    f'source {source!r} of {self.path!r} is not chunked: '
                    f'any order of its examples is as fast as another')
            rows = numpy.arange(len(h5file[source]))
        order = self._selected().orders[self.sources.index(source)]
        return rows[order] // chunks[0]

    def _selected(self) -> Selection:
        selection = self._selection
        if selection is None or selection.subsets is None:
            return self._select()
        return selection

    def _select(self) -> Selection:
        """Find the rows of each source in the file."""
        before = self._selection
        with self._reading() as h5file:
            subsets = self.get_subsets(h5file, self.which_sets, self.sources)
            selection = Selection(
                self.sources, subsets, self.user_given_subset)
            selection.identity = self._access.open().identity
            if before and before.identity != selection.identity:
                check_same_types(
                    self.path, self.known_types(),
                    summarize(h5file, self.provides_sources).types)
        if before and not before.is_assigned:
            check_same_length(self.path, before.num_examples,
                              selection.num_examples)
        return self._set_selection(selection)

    def _set_selection(self, selection: Selection) -> Selection:
        if (self._selection is None or self._selection.num_examples
                != selection.num_examples):
            self.example_iteration_scheme = SequentialExampleScheme(
                selection.num_examples)
        self._selection = selection
        self._direct = None
        return selection


def _pieces_to_fetch(dataset: h5py.Dataset) -> tuple[int, ...] | None:
    """Return the shape of a part of a contiguous data set that takes one
    request; None of what is no data set."""
    if not isinstance(dataset, h5py.Dataset) or not dataset.shape:
        return None
    row_nbytes = dataset.dtype.itemsize * math.prod(dataset.shape[1:])
    return max(1, BLOCK // max(1, row_nbytes)), *dataset.shape[1:]
