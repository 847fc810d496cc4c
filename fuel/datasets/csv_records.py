"""Records of a CSV file: where they are, and their cells."""
from __future__ import annotations

import codecs
import csv
import io
import itertools
from array import array
from collections.abc import Iterator
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.storage.file_bytes import FileBytes, is_remote

# Records as near as this are read with one call.
NEAR = 1 << 12


class RecordIndex:
    """Where each record of a CSV file starts, found in one pass.

    A record is a line, or several where a quoted cell holds line breaks;
    empty lines are none. Takes 16 bytes of memory a record.

    `starts`: where records start, and the end of the file.
    `lines`: the number of each record's first line, from 1.
    """

    def __init__(self, raw: FileBytes, quote: str | None,
                 delimiter: str = ',') -> None:
        starts, lines = array('q'), array('q')
        position, number, is_open = 0, 0, False
        mark = quote.encode() if quote else None
        with raw.open() as file:
            for line in file:
                number += 1
                if not is_open and line.strip(b'\r\n'):
                    # Some programs mark a file as UTF-8.
                    starts.append(position + 3 * (
                        number == 1 and line.startswith(codecs.BOM_UTF8)))
                    lines.append(number)
                if quote and mark and line.count(mark) % 2:
                    is_open = not is_open and _stays_open(
                        line, quote, delimiter)
                position += len(line)
        if is_open:
            raise ValueError(
                f'{raw.path}, line {lines[-1]}: a quoted cell begins here and '
                f'does not end; if the file does not quote, pass quote=None')
        starts.append(position)
        self.starts = numpy.frombuffer(starts, numpy.int64)
        self.lines = numpy.frombuffer(lines, numpy.int64)

    def __len__(self) -> int:
        return len(self.lines)


def _stays_open(line: bytes, quote: str, delimiter: str) -> bool:
    """Return whether a quoted cell begins in a line, with an odd number of
    quotes, and does not end."""
    if not (quote.isascii() and delimiter.isascii()):
        return True
    try:
        for _ in csv.reader([line.decode('latin-1')], delimiter=delimiter,
                            quotechar=quote, strict=True):
            pass
    except csv.Error as error:
        return 'unexpected end' in str(error)
    return False


class CSVFile:
    """The cells of a CSV file, by record.

    `file`: checked after each read.
    """

    def __init__(self, file: FileBytes, index: RecordIndex, encoding: str,
                 **options: Any) -> None:
        self.file = file
        self.files = (file,)
        self.index = index
        self._encoding = encoding
        self._options = options

    def where(self, record: int) -> str:
        """Return file and line of a record, for errors."""
        return f'{self.file.path}, line {self.index.lines[record]}'

    def cells(self, records: NDArray[numpy.intp]) -> list[list[str]]:
        """Return the cells of some records, in the order asked for."""
        unique, places = numpy.unique(records, return_inverse=True)
        try:
            found = self._read(unique)
        except ValueError:
            # If the file was changed, that is the reason.
            self.file.check()
            raise
        self.file.check()
        return [found[place] for place in places.tolist()]

    def _read(self, unique: NDArray[numpy.intp]) -> list[list[str]]:
        """Return the cells of some records, in the order of the file."""
        found: list[list[str]] = []
        runs = list(self._runs(unique))
        if is_remote(self.file):
            # All of them, before the first is waited for.
            starts = self.index.starts
            self.file.request(
                starts[unique[[first for first, _ in runs]]],
                starts[unique[[last - 1 for _, last in runs]] + 1],
                is_urgent=True)
        for first, last in runs:
            start = int(self.index.starts[unique[first]])
            stop = int(self.index.starts[unique[last - 1] + 1])
            content = self.file.read(start, stop - start)
            for record in unique[first:last].tolist():
                begin = int(self.index.starts[record]) - start
                end = int(self.index.starts[record + 1]) - start
                found.append(self._parse(record, content[begin:end]))
        return found

    def _runs(self, records: NDArray[numpy.intp],
              ) -> Iterator[tuple[int, int]]:
        """Yield ranges of records that lie near each other."""
        gaps = (self.index.starts[records[1:]]
                - self.index.starts[records[:-1] + 1])
        borders = [0, *(numpy.flatnonzero(gaps > NEAR) + 1).tolist(),
                   len(records)]
        yield from itertools.pairwise(borders)

    def _parse(self, record: int, content: bytes) -> list[str]:
        """Return the cells of one record."""
        try:
            text = content.decode(self._encoding)
            # Not `splitlines`: text may hold separators of Unicode.
            rows = csv.reader(io.StringIO(text.rstrip('\r\n'), newline=''),
                              strict=True, **self._options)
            cells = next(rows)
            more = next(rows, None)
        except (UnicodeDecodeError, csv.Error, StopIteration) as error:
            raise ValueError(f'{self.where(record)}: {error}') from error
        if more is not None:
            raise ValueError(
                f'{self.where(record)}: another record begins where none '
                f'should: by a line that ends in a carriage return alone, or '
                f'a quote inside of a cell; if the file does not quote, pass '
                f'quote=None')
        return cells
