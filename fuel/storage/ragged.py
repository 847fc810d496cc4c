"""Reader of rows of variable length, which are in HDF5's global heap."""
from __future__ import annotations

from typing import Any

import h5py
import numpy
from numpy.typing import NDArray

from fuel.storage.file_bytes import RemoteBytes, is_remote, raw_file
from fuel.storage.global_heap import REFERENCE, Heap, addressing
from fuel.storage.layout import FILLED, native_type, obstacle_of_file
from fuel.storage.mapped import DirectReader
from fuel.storage.part_index import ArrayKind, PartIndex
from fuel.storage.reader import Reader, StoredPieces


# The least number of bytes of a collection in the heap, and the size of the
# header of each object.
SMALLEST_COLLECTION = 4096
OBJECT_HEADER = 16


def read_text_value(dataset: h5py.Dataset) -> bytes:
    """Return a scalar text of variable length.

    HDF5 is used only if Fuel cannot read the text itself: if the file is
    damaged, HDF5 crashes the process or waits for ever.
    """
    base, is_usual = addressing(h5py.h5i.get_file_id(dataset.id))
    offset = dataset.id.get_offset()
    if not is_usual or offset is None or obstacle_of_file(dataset):
        text: bytes = dataset[()]
        return text
    file = raw_file(dataset)
    stored = file.read(offset, REFERENCE.itemsize)
    if len(stored) < REFERENCE.itemsize:
        raise ValueError(
            f'{dataset.file.filename}, {dataset.name!r}: the file has '
            f'{file.size} bytes and ends before its value')
    count, address, number = numpy.frombuffer(stored, REFERENCE)[0].tolist()
    return Heap(file, base).read(address, number, count).partition(b'\0')[0]


class RaggedReader(Reader):
    """Reader of rows of variable length, as arrays or strings in an array of
    objects.

    `references`: reader of the references that are stored instead of the rows.
    `index`: metadata of the arrays of references.
    `arrays`: shape (parts,); number of the array of each part.
    """

    def __init__(self, references: DirectReader, index: PartIndex,
                 arrays: NDArray[numpy.int64]) -> None:
        super().__init__(references.path, references.name, references.shape,
                         numpy.dtype(object))
        self._references = references
        self.part_bounds = references.part_bounds
        self._bounds = references._parts.bounds
        self._arrays = arrays
        self._index = index
        self.files = references.files
        self._bases = [
            addressing(h5py.h5i.get_file_id(index.dataset(array).id))[0]
            for array in numpy.unique(
                index.file, return_index=True)[1].tolist()]

    def _place_of(self, row: int) -> str:
        """See :meth:`Reader._place_of`."""
        return self._references._place_of(row)

    def pieces(self, rows: NDArray[numpy.intp]) -> StoredPieces | None:
        """See :meth:`Reader.pieces`; these are the pieces of the
        references."""
        found = self._references.pieces(rows)
        return found and found._replace(row_nbytes=self.row_nbytes)

    def _read_list(self, rows: NDArray[numpy.intp]) -> NDArray[Any]:
        return self._resolve(self._references.read(rows), rows)

    def _read_range(self, start: int, stop: int) -> NDArray[Any]:
        if stop > start:
            self._check_rows(start, stop - 1)
        return self._resolve(
            self._references.read(slice(start, stop)),
            numpy.arange(start, stop, dtype=numpy.intp))

    def _resolve(self, references: NDArray[Any],
                 rows: NDArray[numpy.intp]) -> NDArray[Any]:
        """Return the values for references."""
        flat = references.ravel()
        result = numpy.empty(flat.size, object)
        values = flat.size // max(1, len(rows))
        if len(self._arrays) == 1:
            self._resolve_in(int(self._arrays[0]), flat, rows, values,
                             numpy.arange(flat.size), result)
            return result.reshape(references.shape)
        arrays = numpy.repeat(self._arrays[self._bounds.searchsorted(
            rows, 'right') - 1], values)
        for array in numpy.unique(arrays).tolist():
            self._resolve_in(array, flat, rows, values,
                             numpy.flatnonzero(arrays == array), result)
        return result.reshape(references.shape)

    def _resolve_in(self, array: int, flat: NDArray[Any],
                    rows: NDArray[numpy.intp], values: int,
                    places: NDArray[numpy.intp],
                    result: NDArray[Any]) -> None:
        """Put the values for the references of one array into `result`.

        `places`: places of these references in `flat`.
        """
        index, kind = self._index, self._index.kind_of(array)
        number = int(index.file[array])
        file = index.files[number]
        assert file is not None
        heap = Heap(file, self._bases[number])
        if is_remote(file) and places.size:
            self._request(file, self._bases[number], kind, flat[places])
        # In the order of the disk, so that each collection is read once.
        places = places[numpy.argsort(flat['address'][places], kind='stable')]
        counts, addresses, numbers = (
            flat[name][places].tolist()
            for name in ('count', 'address', 'number'))
        for place, *reference in zip(
                places.tolist(), counts, addresses, numbers, strict=True):
            try:
                result[place] = _value(heap, kind, *reference)
            except ValueError as error:
                file.check()
                raise self._damaged(int(rows[place // values]), str(error)
                                    ) from error
        file.check()

    def _request(self, file: RemoteBytes, base: int, kind: ArrayKind,
                 references: NDArray[Any]) -> None:
        """Request the heap's collections for references; the sizes of the
        collections are estimated."""
        itemsize = 1 if kind.elements is None else kind.elements.itemsize
        addresses, places = numpy.unique(
            references['address'], return_inverse=True)
        nbytes = numpy.bincount(places.ravel(), (
            references['count'] * float(itemsize) + OBJECT_HEADER))
        size = file.size - base
        stored = (addresses > 0) & (addresses < size)
        starts = addresses[stored].astype(numpy.int64) + base
        # A damaged reference may claim any length.
        lengths = numpy.clip(nbytes[stored], SMALLEST_COLLECTION, size)
        file.request(starts, numpy.minimum(
            starts + lengths.astype(numpy.int64), file.size),
            is_urgent=True)


def _value(heap: Heap, kind: ArrayKind, count: int, address: int,
           number: int) -> Any:
    """Return the value for a reference."""
    if (count, address, number) == FILLED:
        return kind.value
    if kind.elements is None:
        # HDF5 ends strings at the first zero byte.
        return heap.read(address, number, count).partition(b'\0')[0]
    stored = heap.read(address, number, count * kind.elements.itemsize)
    # A copy, which can be written to.
    return numpy.frombuffer(stored, kind.elements).astype(
        native_type(kind.elements))
