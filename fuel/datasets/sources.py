"""Sources of data sets: the reader of the rows, and the row of each example.

Each data set with random access describes its sources in this way. Epochs,
windows, costs, stored pieces and provenance need nothing else.
"""
from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy

from fuel.datasets.checks import refuse_unknown_sources
from fuel.datasets.row_orders import (
    IndexArray, Order, RowsOf, rows_of_order)
from fuel.datasets.rows import get_rows
from fuel.describe.source_types import SourceType, type_of_rows
from fuel.storage import Reader
from fuel.storage.file_bytes import Ends
from fuel.storage.reader import Places, StoredPieces, no_ranges
from fuel.utils.overrides import covers, is_own
from fuel.utils.sparse import require_dense

# Number of first rows in memory whose lengths are compared.
LOOKED_AT = 100


class Source(NamedTuple):
    """The reader of a source, and the row of each example.

    `reader`: reads the rows.
    `rows`: for each example, its row in `reader`.
    `stored`: for each example, its row in the file. It determines which
        examples follow each other in the file. Equal to `rows` unless the file
        was read into memory.
    `held`: an object that keeps the file open.
    `shapes`: the reader of the shapes of the examples, if the examples differ
        in shape; else None.
    """

    reader: Reader
    rows: Order
    stored: RowsOf
    held: object = None
    shapes: Reader | None = None


#: A source; only the rows of its examples, if only `get_data` can read them;
#: None if the rows are not known either.
FoundSource: TypeAlias = Source | RowsOf | None


class RowPlace(NamedTuple):
    """File, part and number of a row.

    `file`: path of the file; for a data set without files, the name of its
        class.
    `part`: path of the group that is the part; '' if the part is the whole
        file.
    `row`: number of the row in the part.
    """

    file: str
    part: str
    row: int


class RowPlaces(NamedTuple):
    """Files, parts and numbers of several rows.

    `files`: paths of files.
    `names`: paths of the groups that are parts; ('',) if each file is a part.
    `file`, `part`: for each row, its place in `files`, and in `names`.
    `row`: for each row, its number in the part.
    """

    files: Sequence[str]
    names: Sequence[str]
    file: IndexArray
    part: IndexArray
    row: IndexArray

    def first(self) -> RowPlace:
        """Return the place of the first row."""
        return RowPlace(self.files[int(self.file[0])],
                        self.names[int(self.part[0])], int(self.row[0]))


def places_in_files(files: Sequence[str], bounds: Any, rows: IndexArray,
                    ) -> RowPlaces:
    """Return the places of rows in files that follow each other.

    `bounds`: the first row of each file, and the number of rows.
    """
    file, row = split_rows(bounds, rows)
    return RowPlaces(files, ('',), file, numpy.zeros_like(file), row)


def knows_rows(dataset: object, hook: str) -> bool:
    """Return whether a data set has a hook that finds rows, and no subclass
    overrides how rows are read without overriding the hook."""
    return covers(dataset, hook, ('get_data', '_read', 'place_of_row'))


def find_places(dataset: Any, rows: IndexArray) -> RowPlaces | None:
    """Return the places of rows in the files of a data set; None if they are
    not known.

    `rows`: rows of the files, as :meth:`Dataset.find_source` names them.
    """
    found: RowPlaces | None = dataset.places_of_rows(rows) if knows_rows(
        dataset, 'places_of_rows') else None
    return found


def split_rows(bounds: Any, rows: IndexArray) -> tuple[IndexArray, IndexArray]:
    """Return the part of each row, and its number in the part.

    `bounds`: the first row of each part, and the number of rows.
    """
    bounds = numpy.asarray(bounds)
    # There may be runs without rows after the last row.
    parts = (bounds.searchsorted(rows, 'right') - 1).clip(0, len(bounds) - 2)
    return parts, rows - bounds[parts]


class Provenance(NamedTuple):
    """The file, run and row that an example comes from.

    Parameters
    ----------
    file : str
        Path of the file, as it was passed to the data set; for a data set
        without files, the name of its class.
    run : int
        Number of the run, among the runs of the argument `runs`; by default
        among those of ``dataset.runs``.
    row : int
        Number of the example's first row in the files. Rows of padding do not
        count.
    part : str
        Path of the group in the file, if the parts of the data set are groups;
        else ''.
    row_of_part : int
        Number of the same row in that group, or in the file if `part` is ''.
    """

    file: str
    run: int
    row: int
    part: str
    row_of_part: int


class MemoryReader(Reader):
    """Rows of an array, a list or another object in memory.

    `rows`: the list or array of rows.
    """

    def __init__(self, name: str, rows: Any) -> None:
        known = type_of_rows(rows) or SourceType(None)
        super().__init__('memory', name, (len(rows), *_shape(known)),
                         _dtype(known))
        self.rows = rows

    def read(self, rows: Places) -> Any:
        """See :meth:`Reader.read`."""
        if isinstance(rows, numpy.ndarray) and not len(rows):
            return get_rows(self.rows, [0])[:0]
        return get_rows(self.rows, rows)

    def byte_ranges(self, rows: IndexArray) -> tuple[Ends, Ends]:
        """Return no ranges: all rows are in memory."""
        return no_ranges()

    def _read_list(self, rows: IndexArray) -> Any:
        return self.read(rows)

    def _read_range(self, start: int, stop: int) -> Any:
        return self.read(slice(start, stop))


def lengths_vary(reader: Reader) -> bool:
    """Return whether rows are arrays of different lengths; of rows in memory,
    the first ones are looked at."""
    if reader.element_type is not None or not isinstance(reader, MemoryReader):
        return reader.element_type is not None
    first = reader.rows[:LOOKED_AT] if isinstance(
        reader.rows, (list, numpy.ndarray)) and reader.dtype.hasobject else ()
    return len({len(row) for row in first if isinstance(row, list) or (
        isinstance(row, numpy.ndarray) and row.ndim)}) > 1


class Requests:
    """Reads a data set with `get_data`, which returns all sources at once.

    Each thread keeps the data of the other sources, since these are usually
    requested next.
    """

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        self._kept = threading.local()

    def read(self, source: str, rows: IndexArray) -> Any:
        """Return some examples of a source."""
        kept = vars(self._kept)
        data: dict[str, Any] = kept.get('data', {})
        if source not in data or not numpy.array_equal(kept['rows'], rows):
            # Free the old data before reading new data.
            kept.clear()
            data = dict(zip(self.dataset.sources, self._request(rows),
                            strict=True))
            refuse_unknown_sources((source,), self.dataset.sources)
            kept.update(data=data, rows=rows)
        return data.pop(source)

    def _request(self, rows: IndexArray) -> Any:
        if not len(rows):
            return [part[:0] for part in self._request(numpy.zeros(
                1, numpy.intp))]
        dataset = self.dataset
        request = rows if is_own(type(dataset)) else rows.tolist()
        state = dataset.open()
        try:
            return dataset.get_data(state, request)
        finally:
            if state is not None:
                dataset.close(state)


class RequestedReader(Reader):
    """Rows of a source that only the data set's `get_data` can read."""

    def __init__(self, requests: Requests, name: str, count: int,
                 known: SourceType | None) -> None:
        known = known or SourceType(None)
        super().__init__(
            type(requests.dataset).__name__, name, (count, *_shape(known)),
            _dtype(known))
        self._requests = requests

    def _read_list(self, rows: IndexArray) -> Any:
        data = self._requests.read(self.name, rows)
        require_dense(data, self.name, 'a data set of runs', '.as_dataset()')
        return data


def pieces_of_examples(dataset: Any, source: str | None) -> StoredPieces:
    """Return the stored pieces that the examples of a source lie in.

    `dataset`: a :class:`Dataset`.
    `source`: None for the source with the pieces that cost most to read.

    Raises: see :meth:`Dataset.chunk_of_examples`.
    """
    sources: tuple[str, ...] = dataset.sources
    if source is not None and source not in sources:
        raise ValueError(
            f'there is no source {source!r}; the sources are {sources}')
    names = sources if source is None else (source,)
    found = {name: dataset.find_stored_rows(name) for name in names}
    if all(rows is None for rows in found.values()):
        raise TypeError(
            f'{type(dataset).__name__} does not say how its rows are stored; '
            f'for blocks of its examples, pass block_size to a scheme')
    pieces: dict[str, StoredPieces | None] = {
        name: rows.reader.pieces(rows_of_order(rows.rows))
        if isinstance(rows, Source) else None
        for name, rows in found.items()}
    costliest = max(names, key=lambda name: _cost_of(pieces[name]))
    chosen = pieces[costliest]
    if chosen is None:
        raise ValueError(
            f'source {costliest!r} of {dataset.place_of_row(0).file!r} is not '
            f'chunked: any order of its examples is as fast as another')
    return chosen


def _cost_of(pieces: StoredPieces | None) -> tuple[bool, bool, bool, float]:
    return (False, False, False, 0.) if pieces is None else (
        True, *pieces.cost)


def _shape(known: SourceType) -> tuple[int, ...]:
    """Return the shape of an example; () if it is not known."""
    shape = tuple([n for n in known.shape or () if n is not None])
    return shape if len(shape) == len(known.shape or ()) else ()


def _dtype(known: SourceType) -> numpy.dtype[Any]:
    return numpy.dtype(object) if known.dtype is None else known.dtype
