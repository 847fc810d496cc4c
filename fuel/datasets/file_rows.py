"""The base of data sets whose rows are those of one or more files."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.datasets.columns.part_names import (
    as_list, files_in_order, shown_paths)
from fuel.datasets.rows import check_same_length
from fuel.datasets.source_dataset import RowsDataset
from fuel.datasets.sources import RowPlaces, places_in_files
from fuel.remote.location import WithStorageOptions
from fuel.storage import Reader


class FileRowsDataset(RowsDataset, WithStorageOptions):
    """Base of the data sets whose rows are those of one or more files.

    Subclasses set `path`: a path, a list of paths, or a dict from sources to
    these.
    """

    unsaved_arguments = ('path', 'storage_options')
    path: str | list[str] | dict[str, str | list[str]]

    def _check_renewed(self, before: dict[str, Reader],
                       now: dict[str, Reader]) -> None:
        for source in before.keys() & now.keys():
            for file, count, new in zip(
                    before[source].files,
                    numpy.diff(before[source].part_bounds).tolist(),
                    numpy.diff(now[source].part_bounds).tolist(),
                    strict=False):
                check_same_length(file.path, count, new)
        # If there are more files, or fewer, this refuses the number of rows.
        super()._check_renewed(before, now)

    def kept_arguments(self) -> Mapping[str, object]:
        """Return the arguments that a saved state must fit; if there are
        several files, also their names in order."""
        paths: Any = self.path
        if isinstance(paths, dict):
            several = [paths[source] for source in sorted(paths)]
            paths = [] if all(isinstance(one, str) for one in several) else [
                path for one in several for path in as_list(one)]
        return {**super().kept_arguments(), **files_in_order(paths)}

    def places_of_rows(self, rows: NDArray[numpy.intp]) -> RowPlaces:
        """Return the files of rows, and their numbers in them."""
        reader = self.readers[self.sources[0]]
        return places_in_files(
            [file.path for file in reader.files], reader.part_bounds, rows)

    def details(self) -> Sequence[str]:
        """Return the files and the splits."""
        files = shown_paths(self.path) if isinstance(
            self.path, list) else [str(self.path)]
        return [*files, *super().details()]
