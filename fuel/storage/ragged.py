"""Rows of variable length, out of the global heap."""
from __future__ import annotations

from typing import Any

import h5py
import numpy
from numpy.typing import NDArray

from fuel.storage.decoded import DecodedReader
from fuel.storage.file_bytes import is_remote
from fuel.storage.global_heap import REFERENCE, Heap, addressing
from fuel.storage.layout import (FILLED, Layout, elements_of, dataset_name,
                                 native_type, obstacle_of_file)
from fuel.storage.mapped import map_dataset
from fuel.storage.raw_file import raw_file
from fuel.storage.reader import Reader


# Bytes of a collection of rows of variable length at least, and of what
# precedes each of them.
SMALLEST_COLLECTION = 4096
OBJECT_HEADER = 16


def read_text_value(dataset: h5py.Dataset) -> bytes:
    """Return the text of variable length that a scalar has.

    Not by HDF5, which ends the process, or waits for ever, where it is
    damaged.
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
    """Rows of variable length: arrays or strings in an array of objects."""

    def __init__(self, dataset: h5py.Dataset, layout: Layout,
                 cache_bytes: int) -> None:
        self._references: Reader = (
            DecodedReader(dataset, layout, cache_bytes) if layout.filters
            else map_dataset(dataset, layout))
        self._file = raw_file(dataset)
        self.files = (self._file,)
        super().__init__(self._file.path, dataset_name(dataset), dataset.shape,
                         numpy.dtype(object))
        self.layout = layout
        self._elements = elements_of(dataset)
        self._fill = dataset.fillvalue
        self._base, _ = addressing(h5py.h5i.get_file_id(dataset.id))

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
        """Return what references stand for."""
        flat = references.ravel()
        result = numpy.empty(flat.size, object)
        # Those of one collection together, in the order of the disk.
        order = numpy.argsort(flat['address'], kind='stable').tolist()
        counts, addresses, numbers = (
            flat[name].tolist() for name in ('count', 'address', 'number'))
        heap = Heap(self._file, self._base)
        if is_remote(self._file) and flat.size:
            self._request(flat)
        values = flat.size // max(1, len(rows))
        for place in order:
            try:
                result[place] = self._value(
                    heap, counts[place], addresses[place], numbers[place])
            except ValueError as error:
                self._file.check()
                raise self._damaged(int(rows[place // values]), str(error)
                                    ) from error
        self._file.check()
        return result.reshape(references.shape)

    def _request(self, references: NDArray[Any]) -> None:
        """Have the collections fetched that references lead to, as far as
        their sizes are known."""
        assert is_remote(self._file)
        itemsize = 1 if self._elements is None else self._elements.itemsize
        addresses, places = numpy.unique(
            references['address'], return_inverse=True)
        nbytes = numpy.bincount(places.ravel(), (
            references['count'] * float(itemsize) + OBJECT_HEADER))
        size = self._file.size - self._base
        stored = (addresses > 0) & (addresses < size)
        starts = addresses[stored].astype(numpy.int64) + self._base
        # A damaged reference may claim any length.
        lengths = numpy.clip(nbytes[stored], SMALLEST_COLLECTION, size)
        self._file.request(starts, numpy.minimum(
            starts + lengths.astype(numpy.int64), self._file.size),
            is_urgent=True)

    def _value(self, heap: Heap, count: int, address: int,
               number: int) -> Any:
        elements = self._elements
        if (count, address, number) == FILLED:
            return self._fill
        if elements is None:
            # HDF5 ends strings at the first zero.
            return heap.read(address, number, count).partition(b'\0')[0]
        stored = heap.read(address, number, count * elements.itemsize)
        # A copy, which can be written to.
        return numpy.frombuffer(stored, elements).astype(
            native_type(elements))
