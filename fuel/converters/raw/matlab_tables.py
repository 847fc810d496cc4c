"""Tables in a MATLAB 5 file: arrays of structures."""
from __future__ import annotations

import math
import struct
from typing import Any

import numpy

from fuel.converters.raw.files import BadInputFile
from fuel.converters.raw.inflate import BinaryReader
from fuel.converters.raw.matlab import (CLASSES, MATRIX, File, Matrix,
                                        open_matrix, read_element,
                                        read_head, read_numbers)

TABLE, TEXT = 2, 4
# How the characters of a text may be stored.
CODINGS = {1: 'latin1', 2: 'latin1', 4: 'utf-16', 16: 'utf-8', 17: 'utf-16',
           18: 'utf-32'}
# The tables of ImageNet have some 2,000 rows of 8 cells, and 1 MB of content.
MOST_CELLS = 1 << 20
MOST_NBYTES = 1 << 26
MOST_IN_A_CELL = 1 << 16
NAMES = 1 << 14


def read_table(file: File, path: str,
               name: str) -> dict[str, list[Any]]:
    """Return the columns of a table, of a file that errors call `path`.

    Cells are arrays of numbers or strings; a table that holds other cells, or
    more than is reasonable, is refused.
    """
    with open_matrix(file, path, name) as matrix:
        if matrix.bits & 255 != TABLE:
            raise BadInputFile(path, f'expected a table (an array of '
                               f'structures) in {name}')
        fields = _read_names(matrix)
        count = math.prod(matrix.shape)
        if count * len(fields) > MOST_CELLS:
            raise BadInputFile(path, f'{name} has {count} rows of '
                               f'{len(fields)} fields, more than a table of '
                               f'synsets')
        columns: dict[str, list[Any]] = {field: [] for field in fields}
        left = MOST_NBYTES
        for _ in range(count):
            for field in fields:
                cell, nbytes = _read_cell(matrix.data, matrix.order)
                left -= nbytes
                if left < 0:
                    raise BadInputFile(path, f'{name} has more than '
                                       f'{MOST_NBYTES} bytes')
                columns[field].append(cell)
    return columns


def _read_names(matrix: Matrix) -> list[str]:
    width, = struct.unpack_from(
        f'{matrix.order}i', read_element(matrix.data, matrix.order)[1])
    text = read_element(matrix.data, matrix.order, NAMES)[1]
    if width < 1 or len(text) % width:
        raise EOFError(f'names of {width} bytes in {len(text)}')
    return [text[start:start + width].partition(b'\0')[0].decode('latin1')
            for start in range(0, len(text), width)]


def _read_cell(stream: BinaryReader, order: str) -> tuple[Any, int]:
    """Return what is in a cell, and how many bytes it takes."""
    kind, length = struct.unpack(f'{order}II', stream.read(8))
    if kind != MATRIX:
        raise EOFError(f'a cell of kind {kind}')
    if length > MOST_IN_A_CELL:
        raise EOFError(f'a cell of {length} bytes')
    if not length:
        return numpy.empty(0), 0
    head = read_head(stream, order)
    if math.prod(head.shape) > MOST_IN_A_CELL:
        raise EOFError(f'a cell of the shape {head.shape}')
    number = head.bits & 255
    if number == TEXT:
        stored, content = read_element(stream, order, MOST_IN_A_CELL)
        coding = CODINGS.get(stored)
        if coding is None:
            raise EOFError(f'a text of kind {stored}')
        if coding != 'latin1' and coding != 'utf-8':
            coding += '-le' if order == '<' else '-be'
        return content.decode(coding), length
    if number not in CLASSES:
        raise EOFError(f'a cell of class {number}')
    return read_numbers(head).reshape(-1, order='F'), length
