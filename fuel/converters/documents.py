"""Documents in text files, one after the other."""
from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple

from fuel.converters.raw.files import BadInputFile
from fuel.datasets.json_values import fields_in, value_at

# Most characters of a document: it is in memory, and one core encodes it.
MAX_DOCUMENT = 1 << 28
# Most bytes of a line: a small compressed file may hold an endless line.
MAX_LINE = 4 * MAX_DOCUMENT
DOCUMENTS = 'file', 'paragraph', 'line'
JSON_LINES = '.jsonl', '.ndjson'


class Place(NamedTuple):
    """Start of the next document: number of the file, byte and line in it."""

    file: int = 0
    byte: int = 0
    line: int = 1


class Document(NamedTuple):
    """The text of a document, and the place where the next document begins."""

    text: str
    after: Place


class Texts:
    """The documents in files; reading can begin at any document.

    `num_empty`: number of files, or JSON records, that were read and have no
        text.
    """

    def __init__(self, paths: Sequence[str], documents: str,
                 field: str) -> None:
        self.paths = paths
        self._documents = documents
        self._field = field
        self._sizes = [os.path.getsize(path) for path in paths]
        self.num_bytes = sum(self._sizes)
        self.num_empty = 0

    def identity(self) -> list[Any]:
        """Return values that identify the documents: options, and the paths,
        sizes and times of the files."""
        return [self._documents, self._field, [
            [os.path.abspath(path), status.st_size, status.st_mtime_ns]
            for path, status in zip(
                self.paths, map(os.stat, self.paths), strict=True)]]

    def bytes_before(self, place: Place) -> int:
        """Return the approximate number of bytes of the files before a
        place."""
        before = self._sizes[:place.file]
        here = self._sizes[place.file:place.file + 1]
        # The byte of a place in a compressed file counts decompressed bytes.
        return sum(before) + min([place.byte, *here])

    def read_from(self, place: Place) -> Iterator[Document]:
        """Yield the documents from a place on, without empty ones."""
        for number in range(place.file, len(self.paths)):
            begin = place if number == place.file else Place(number)
            for document in self._read_file(begin):
                if len(document.text) > MAX_DOCUMENT:
                    raise BadInputFile(
                        self.paths[number], f'a document has '
                        f'{len(document.text)} characters, and at most '
                        f'{MAX_DOCUMENT} are encoded at once: choose '
                        f'--documents paragraph or line')
                if document.text and not document.text.isspace():
                    yield document
                elif self._documents == 'file' or _has_json_lines(
                        self.paths[number]):
                    # Empty lines and paragraphs do not count as documents.
                    self.num_empty += 1

    def _read_file(self, place: Place) -> Iterator[Document]:
        path = self.paths[place.file]
        name = path.removesuffix('.gz')
        open_file: Any = open if name == path else gzip.open
        with open_file(path, 'rb') as file:
            file.seek(place.byte)
            lines = self._lines(file, place)
            if _has_json_lines(path):
                yield from self._fields(lines)
            elif self._documents == 'line':
                yield from (line._replace(text=line.text.rstrip('\r\n'))
                            for line in lines)
            else:
                yield from self._blocks(lines)

    def _lines(self, file: IO[bytes], place: Place) -> Iterator[Document]:
        path, byte = self.paths[place.file], place.byte
        number = place.line
        while True:
            try:
                line = file.readline(MAX_LINE)
                if len(line) == MAX_LINE:
                    raise BadInputFile(
                        path, f'line {number} has {MAX_LINE} bytes or more')
                text = line.decode('utf-8' if byte else 'utf-8-sig')
            except (UnicodeDecodeError, EOFError, OSError,
                    zlib.error) as error:
                raise BadInputFile(
                    path, f'line {number} is not valid UTF-8 ({error})'
                    ) from error
            if not line:
                return
            byte, number = byte + len(line), number + 1
            yield Document(text, Place(place.file, byte, number))

    def _fields(self, lines: Iterator[Document]) -> Iterator[Document]:
        for text, after in lines:
            if not text.strip():
                continue
            where = f'line {after.line - 1}'
            try:
                record = json.loads(text)
            except (ValueError, RecursionError) as error:
                raise BadInputFile(self.paths[after.file], (
                    f'{where} is not valid JSON ({error})')) from error
            found = record.get(self._field) if isinstance(
                record, dict) else None
            if found is None:
                # A field of a nested object, named as in JSONLDataset.
                found = value_at(record, tuple(self._field.split('/')))
            if not isinstance(found, str):
                names = ', '.join(
                    '/'.join(keys) for keys, _ in fields_in(record)
                ) if isinstance(record, dict) else type(record).__name__
                raise BadInputFile(self.paths[after.file], (
                    f'{where} has no text {self._field!r}; it has '
                    f'{names:.200}: name another one with --field'))
            try:
                found.encode()
            except UnicodeEncodeError as error:
                # Text in JSON can contain one half of a surrogate pair.
                raise BadInputFile(self.paths[after.file], (
                    f'{where} has text that is not valid UTF-8 ({error})')
                    ) from error
            yield Document(found, after)

    def _blocks(self, lines: Iterator[Document]) -> Iterator[Document]:
        """Join lines into paragraphs, or all lines into one document."""
        parts: list[str] = []
        after, length = Place(), 0
        for text, after in lines:
            if self._documents == 'paragraph' and not text.strip():
                yield Document(''.join(parts).rstrip('\r\n'), after)
                parts, length = [], 0
                continue
            parts.append(text)
            length += len(text)
            if length > MAX_DOCUMENT:
                break
        if parts:
            whole = ''.join(parts)
            yield Document(whole if self._documents == 'file'
                           else whole.rstrip('\r\n'), after)


def _has_json_lines(path: str) -> bool:
    """Return whether a file has JSON lines, by its extension."""
    return path.removesuffix('.gz').lower().endswith(JSON_LINES)
