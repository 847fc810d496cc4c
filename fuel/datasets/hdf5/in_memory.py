"""Reads whole sources into memory, and shows how far it has come."""
from __future__ import annotations

from typing import Any

import numpy

from fuel.datasets.row_orders import Order, pick
from fuel.storage import Reader
from fuel.utils.progress import Bar, progress

# Larger sources are read in parts of this size, in bytes.
PART = 2 ** 26


def read_whole(path: str, parts: list[tuple[Reader, Reader | None, Order]],
               count: int) -> tuple[list[Any], list[Any]]:
    """Return the rows of each source of a file, and their shapes."""
    total = sum(_row_nbytes(reader) * count for reader, _, _ in parts)
    data, shapes = [], []
    with progress(f'Reading {path} into memory', total, in_bytes=True,
                  delay=True) as bar:
        for reader, shape_reader, order in parts:
            data.append(_read(reader, order, count, bar))
            shapes.append(None if shape_reader is None else
                          shape_reader.read(pick(order, slice(None))))
    return data, shapes


def _row_nbytes(reader: Reader) -> int:
    size = int(numpy.prod(reader.shape[1:], dtype=numpy.int64))
    return size * reader.dtype.itemsize


def _read(reader: Reader, order: Order, count: int, bar: Bar) -> Any:
    nbytes = _row_nbytes(reader)
    if nbytes * count <= PART or reader.dtype.hasobject:
        rows = reader.read(pick(order, slice(None)))
        bar.advance(nbytes * count)
        return rows
    step = max(1, PART // nbytes)
    whole = numpy.empty((count, *reader.shape[1:]), reader.dtype)
    for start in range(0, count, step):
        stop = min(start + step, count)
        whole[start:stop] = reader.read(pick(order, slice(start, stop)))
        bar.advance((stop - start) * nbytes)
    return whole
