"""Rows of one array, for tests of the kernels that gather them."""
import math

import numpy

from fuel.kernels.chunk_slots import Clock, Slots
from fuel.kernels.gather import DecodedRows, MappedRows
from fuel.kernels.part_table import PART, PartTable
from fuel.kernels.tiles import Tiles


def part(rows, block_rows, **others):
    """Return the parts of an array that is one part."""
    parts = numpy.zeros(1, PART)
    parts['rows'], parts['block_rows'] = rows, block_rows
    for name, value in others.items():
        parts[name] = value
    return parts


def table(shape, chunk_shape, itemsize, fill):
    """Return the table of an array."""
    tiles = Tiles(shape[1:], chunk_shape[1:], itemsize)
    return PartTable([(tiles, fill)], part(shape[0], chunk_shape[0]),
                     -(-shape[0] // chunk_shape[0]) * tiles.num_tiles)


def map_rows(shape, chunk_shape, itemsize, addresses, fill, memory):
    """Return rows of an array in one map."""
    return MappedRows(table(shape, chunk_shape, itemsize, fill), addresses,
                      [(0, memory)])


def decoded_rows(shape, chunk_shape, itemsize, addresses, fill, chunks,
                 clock=None):
    """Return rows of an array in decoded chunks, and the slots."""
    slots = Slots(numpy.full(
        len(chunks), math.prod(chunk_shape) * itemsize))
    for number, chunk in enumerate(chunks):
        if chunk is not None:
            slots[number] = chunk
    return DecodedRows(table(shape, chunk_shape, itemsize, fill), addresses,
                       slots, clock or Clock()), slots
