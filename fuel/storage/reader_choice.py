"""Choose the fastest reader for one or several data sets."""
from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import h5py
import numpy
from numpy.typing import NDArray

from fuel.kernels.part_table import ALL_ROWS, PART
from fuel.storage.file_bytes import join_files, starts_of
from fuel.storage.layout import dataset_name, discover
from fuel.storage.mapped import (
    DirectReader, Field, MappedReader, PartKind, Parts, element_of)
from fuel.storage.part_index import PartIndex, unequal
from fuel.storage.reader import PartsReader, Reader
from fuel.storage.nodes import (
    StoredRows, check_virtual, open_sources, row_maps)

logger = logging.getLogger(__name__)


def choose_reader(dataset: h5py.Dataset, cache_bytes: int | None = None,
                  ) -> Reader:
    """Return the fastest reader that a data set's storage allows.

    `dataset`: the data set, with one or more axes. Its file must stay open
        while it is read. Direct readers work after the file is closed too, but
        without HDF5's lock on it.
    `cache_bytes`: bytes of decoded chunks that may be cached for this file, by
        all its readers in this process together. If readers were opened with
        different values, the largest value counts. Defaults to the setting
        ``chunk_cache_bytes``.

    Examples
    --------
    >>> import h5py, numpy, os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, 'a.hdf5')
    >>> with h5py.File(path, 'w') as file:
    ...     file['x'] = numpy.arange(5)
    >>> with h5py.File(path, 'r') as file:
    ...     choose_reader(file['x']).read(numpy.array([4, 0, 4]))
    array([4, 0, 4])
    >>> folder.cleanup()
    """
    layout = discover(dataset)
    if not layout.obstacle:
        pieces = _pieces_of([dataset]) if dataset.is_virtual else None
        index = PartIndex([dataset] if pieces is None else pieces.datasets)
        layout = layout._replace(obstacle=index.obstacle)
        if not index.obstacle:
            try:
                reader = _open_directly(
                    index, dataset_name(dataset), _Rows(pieces=pieces),
                    cache_bytes)
            except ValueError as error:
                layout = layout._replace(obstacle=str(error))
            else:
                reader.layout = layout
                return reader
    logger.debug('%s, source %s is read through h5py: %s',
                 dataset.file.filename, dataset.name, layout.obstacle)
    from fuel.storage.h5py_reader import H5PYReader
    return H5PYReader(dataset, layout)


def open_parts(datasets: Sequence[h5py.Dataset] | PartIndex, name: str, *,
               field: Field | None = None, axes: int = 1,
               start: int | None = None, stop: int | None = None,
               cache_bytes: int | None = None) -> Reader:
    """Return a reader of the concatenated rows of several data sets.

    `datasets`: one or more data sets, with `axes` axes or more each, or an
        index with their metadata. Types and shapes of rows must be equal. The
        files must stay open.
    `name`: name of the source, for errors.
    `field`: name of the field of a compound type to read. With a list of
        names, rows have a compound type of these fields. Default: whole
        elements.
    `axes`: number of axes that count rows. Each index along these axes, except
        the last of them, is a part.
    `start`, `stop`: the rows to read of each part, as in a slice.
    `cache_bytes`: bytes of decoded chunks that may be cached for these
        files together; otherwise as for :func:`choose_reader`.

    Raises: ValueError if types or shapes differ, or if the field is missing.
    """
    if not isinstance(datasets, PartIndex) and not len(datasets):
        raise ValueError(f'source {name!r} has no part')
    with _naming(f'source {name!r}'):
        index = datasets if isinstance(datasets, PartIndex) else (
            PartIndex(datasets, axes))
        pieces = None
        if index.has_virtual:
            pieces = _pieces_of(index.datasets) if axes == 1 else None
            if pieces is not None:
                index = PartIndex(pieces.datasets, axes)
        _check_shapes(index, axes)
        rows = _Rows(field, axes, slice(start, stop), pieces)
        with _naming(index.place_of(0)):
            element_of(index.kinds[0].stored, field)
    obstacle = index.obstacle
    if not obstacle:
        try:
            return _open_directly(index, name, rows, cache_bytes)
        except ValueError as error:
            obstacle = str(error)
    logger.debug('%s, source %s is read through h5py: %s',
                 index.dataset(0).file.filename, name, obstacle)
    if index.has_virtual:
        for dataset in index.datasets:
            if dataset.is_virtual:
                check_virtual(dataset)
    arrays, first, lengths = _lengths(index, rows)
    bounds = numpy.cumsum([0, *lengths]).astype(numpy.intp)
    from fuel.storage.h5py_reader import JoinedArrays
    joined = JoinedArrays(index, field, axes, arrays, first, bounds)
    reader = PartsReader(
        index.dataset(0).file.filename, name, joined.shape, joined.dtype,
        joined, bounds, index.open_files())
    reader.part_bounds = _bounds(rows, lengths)
    return reader


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Return a context that adds the name of a source or file to a
    ValueError."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f'{name}: {error}') from error


class _Pieces(NamedTuple):
    """The pieces that parts consist of, if some parts are virtual.

    `datasets`: the distinct data sets that contain pieces.
    `array`: shape (pieces,); number of the data set of each piece.
    `part`: shape (pieces,); number of the part to which each piece belongs.
    `skip`: shape (pieces,); number of rows of the data set before each piece.
    `rows`: shape (pieces,); number of rows of each piece.
    """

    datasets: list[h5py.Dataset]
    array: NDArray[numpy.int64]
    part: NDArray[numpy.int64]
    skip: NDArray[numpy.int64]
    rows: NDArray[numpy.int64]


def _pieces_of(datasets: Sequence[h5py.Dataset]) -> _Pieces | None:
    """Return the pieces of data sets; None if HDF5 must read one of them."""
    found: dict[h5py.Dataset, int] = {}
    places = []
    for number, dataset in enumerate(datasets):
        sources: list[StoredRows] | None = [
            StoredRows(dataset, 0, len(dataset))]
        if dataset.is_virtual:
            maps = row_maps(dataset)
            sources = None if maps is None else open_sources(dataset, maps)
        if sources is None:
            return None
        for one in sources:
            array = found.setdefault(one.dataset, len(found))
            places.append((array, number, one.skip, one.rows))
    return _Pieces(list(found), *numpy.array(places, numpy.int64).T)


class _Rows(NamedTuple):
    """The selection of rows and of a field of arrays for a source; see
    `open_parts`."""

    field: Field | None = None
    axes: int = 1
    rows: slice = slice(None)
    pieces: _Pieces | None = None


def _check_shapes(index: PartIndex, axes: int) -> None:
    """Raise ValueError if parts have too few axes, or unequal shapes of
    rows."""
    if index.shape.shape[1] < axes:
        raise ValueError(
            f'{index.place_of(0)}: rows should be counted by {axes} axes, '
            f'and there are {index.shape.shape[1]}')
    other = (index.shape[:, axes:] != index.shape[0, axes:]).any(axis=1)
    if other.any():
        raise unequal(index.dataset(0),
                      index.dataset(int(numpy.flatnonzero(other)[0])), axes)


def _open_directly(index: PartIndex, name: str, rows: _Rows,
                   cache_bytes: int | None) -> Reader:
    """Return a reader that reads the bytes of files directly.

    Raises: ValueError if a row has too many pieces.
    """
    file = join_files(index.open_files())
    is_filtered = index.is_filtered
    if is_filtered and not index.is_chunked.all():
        index = index.divide_contiguous(rows.axes)
    arrays, parts = _parts_of(index, rows, starts_of(file))

    def name_part(part: int, row: int) -> str:
        array = int(arrays[part])
        return f'{index.place_of(array)}, source {name!r}, row {row}'

    is_one = len(index.datasets) == 1 and rows.pieces is None
    names = None if is_one else name_part
    reader: DirectReader
    if is_filtered:
        # Imported here, since most programs do not need this reader.
        from fuel.storage.chunks import DecodedReader
        reader = DecodedReader(file, name, parts, index, cache_bytes, names)
    else:
        reader = MappedReader(file, name, parts, names)
    reader.part_bounds = _bounds(rows, parts.table['rows'])
    if index.is_ragged:
        from fuel.storage.ragged import RaggedReader
        return RaggedReader(reader, index, arrays)
    return reader


def _bounds(rows: _Rows, lengths: NDArray[numpy.int64],
            ) -> NDArray[numpy.intp]:
    """Return the first row of each part, and the number of rows."""
    if rows.pieces is not None:
        lengths = numpy.bincount(rows.pieces.part, lengths).astype(
            numpy.int64)
    return numpy.cumsum([0, *lengths.tolist()]).astype(numpy.intp)


def _lengths(index: PartIndex, wanted: _Rows) -> tuple[
        NDArray[numpy.int64], NDArray[numpy.int64], NDArray[numpy.int64]]:
    """Return for each part, or piece of a part, the number of its array, the
    number of rows of the array before it, and the number of its rows."""
    axes, rows, pieces = wanted.axes, wanted.rows, wanted.pieces
    if pieces is not None:
        ends = numpy.cumsum(pieces.rows)
        # The number of rows of each part, and the place of its first row among
        # the rows of all pieces.
        lengths = numpy.bincount(pieces.part, pieces.rows).astype(int)
        starts = numpy.cumsum(lengths) - lengths
        kept = [range(length)[rows] for length in lengths.tolist()]
        low = numpy.maximum(ends - pieces.rows, (starts + [
            one.start for one in kept])[pieces.part])
        high = numpy.minimum(ends, (starts + [
            one.start + len(one) for one in kept])[pieces.part])
        return (pieces.array,
                pieces.skip + low - (ends - pieces.rows),
                numpy.maximum(high - low, 0))
    counts = index.shape[:, :axes - 1].prod(axis=1)
    arrays = numpy.repeat(numpy.arange(len(counts)), counts)
    lengths = index.shape[arrays, axes - 1]
    first, last = [
        numpy.clip(numpy.where(place < 0, lengths + place, place), 0, lengths)
        for place in (
            0 if rows.start is None else rows.start,
            lengths if rows.stop is None else numpy.int64(rows.stop))]
    return arrays, first, numpy.maximum(last - first, 0)


def _parts_of(index: PartIndex, rows: _Rows,
              file_starts: NDArray[numpy.int64],
              ) -> tuple[NDArray[numpy.int64], Parts]:
    """Return the number of the array of each part, and the table of parts.

    A part here is a piece of a part if some parts are virtual.

    `file_starts`: address of each file in the joined file.
    """
    axes = rows.axes
    stored = index.kinds[0].stored
    arrays, first, lengths = _lengths(index, rows)
    shape, chunk_shape = index.shape, numpy.maximum(index.chunk_shape, 1)
    grid = -(-shape // chunk_shape)
    num_tiles = grid[:, axes:].prod(axis=1)
    strides = chunk_shape[:, axes:].prod(axis=1) * stored.itemsize
    # Along the axes that count rows, except the last of them: the number of
    # the chunk that contains each part, and the place of the part in it.
    counts = shape[:, :axes - 1].prod(axis=1)
    within = numpy.arange(len(arrays)) - (
        numpy.cumsum(counts) - counts)[arrays]
    chunks, before = numpy.zeros_like(within), numpy.zeros_like(within)
    for axis in range(axes - 1):
        place = within // shape[arrays, axis + 1:axes - 1].prod(
            axis=1) % shape[arrays, axis]
        length = chunk_shape[arrays, axis]
        chunks = chunks * grid[arrays, axis] + place // length
        before = before * length + place % length
    table = numpy.zeros(len(arrays), PART)
    table['rows'], table['skip'] = lengths, first
    table['block_rows'] = numpy.where(
        index.is_chunked[arrays], chunk_shape[arrays, axes - 1], ALL_ROWS)
    table['first_chunk'] = index.first_chunks[arrays] + (
        chunks * (grid[:, axes - 1] * num_tiles)[arrays])
    table['offset'] = before * (
        chunk_shape[:, axes - 1] * strides)[arrays]
    table['file'] = index.file[arrays]
    tiles = numpy.column_stack([index.kind, chunk_shape[:, axes:]])
    kinds, numbers = (tiles[:1], numpy.zeros(len(tiles), numpy.int64)) if (
        tiles == tiles[0]).all() else numpy.unique(
            tiles, axis=0, return_inverse=True)
    table['kind'] = numbers.ravel()[arrays]
    num_chunks = numpy.diff(index.first_chunks)
    addresses = index.addresses + numpy.repeat(
        file_starts[index.file], num_chunks) * (index.addresses >= 0)
    nbytes = numpy.where(
        numpy.repeat(index.is_divided, num_chunks), index.sizes, numpy.repeat(
            chunk_shape.prod(axis=1) * stored.itemsize, num_chunks))
    return arrays, Parts(
        tuple(shape[0, axes:].tolist()), element_of(stored, rows.field),
        [PartKind(tuple(tile), index.kinds[kind].fill)
         for kind, *tile in kinds.tolist()],
        table, addresses, nbytes, len(file_starts))
