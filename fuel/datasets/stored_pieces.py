"""The pieces of files that the examples of a data set lie in."""
from __future__ import annotations

from typing import Any

from fuel.datasets.row_orders import IndexArray, rows_of_order
from fuel.datasets.row_sources import RowSource
from fuel.storage.reader import StoredPieces


def pieces_of_examples(dataset: Any, source: str | None) -> StoredPieces:
    """Return the pieces that the examples of a source lie in.

    `dataset`: a :class:`Dataset`.
    `source`: None for the one whose pieces cost most to read.

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
    pieces = {name: _pieces_of(rows) for name, rows in found.items()}
    costliest = max(names, key=lambda name: _cost_of(pieces[name]))
    chosen = pieces[costliest]
    if chosen is None:
        raise ValueError(
            f'source {costliest!r} of {dataset.place_of_row(0).file!r} is not '
            f'chunked: any order of its examples is as fast as another')
    return chosen


def _pieces_of(found: RowSource | None) -> StoredPieces | None:
    if found is None or found.reader is None:
        return None
    rows: IndexArray = rows_of_order(found.order)
    return found.reader.pieces(rows)


def _cost_of(pieces: StoredPieces | None) -> tuple[bool, bool, bool, float]:
    return (False, False, False, 0.) if pieces is None else (
        True, *pieces.cost)
