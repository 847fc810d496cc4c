"""One's own texts, as the tokens of a language model."""
from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import IO, Any, NamedTuple

import numpy
from numpy.typing import NDArray

from fuel.converters.base import Converter, converted_file, progress_bar
from fuel.converters.custom_data import add_split_options, advise
from fuel.converters.output import ConvertedFile, create_source
from fuel.converters.raw.files import BadInputFile, Folder, input_paths
from fuel.datasets.random_splits import held_out
from fuel.utils.atomic_files import atomic_path

__all__ = ['convert_tokens', 'fill_subparser']

# Version of the layout of the file, and of the pieces.
VERSION = 1
LAYOUT_ATTRIBUTE = 'fuel_tokens'
# Characters that are encoded at once, and whose tokens are one piece.
PIECE = 1 << 24
# Characters of a document at most: it is in memory, and one core encodes it.
MAX_DOCUMENT = 1 << 28
DOCUMENTS = 'file', 'paragraph', 'line'
JSON_LINES = '.jsonl', '.ndjson'

Tokens = NDArray[numpy.unsignedinteger[Any]]


class Place(NamedTuple):
    """Where the next document begins: a file, a byte and a line of it."""

    file: int = 0
    byte: int = 0
    line: int = 1


class Document(NamedTuple):
    """A text, and where the next one begins."""

    text: str
    after: Place


@advise
def convert_tokens(directory: Folder, output_directory: Folder,
                   files: Sequence[str], tokenizer: str,
                   output_filename: str | None = None,
                   documents: str = 'file', field: str = 'text',
                   end_token: str | None = None,
                   hold_out: Sequence[tuple[str, float]] | None = None,
                   seed: int = 1) -> tuple[str]:
    """Convert texts to the numbers of their tokens.

    The file has a group for each split, with 'tokens', of uint16 or uint32,
    all documents one after the other, and 'document_lengths', int64;
    `fuel.load` opens it, with documents as runs. The tokenizer is the data
    set 'tokenizer', as JSON. All cores encode. Whoever runs a conversion
    again that was interrupted goes on where it stopped.

    `files`: texts in UTF-8, or JSON lines (``.jsonl``, ``.ndjson``), which
        have a document a line; both may be compressed (``.gz``).
    `tokenizer`: a file that the library tokenizers saved, of JSON.
    `output_filename`: default: the name of the first file.
    `documents`: {'file', 'paragraph', 'line'}; what is a document of a text
        file. Paragraphs have empty lines between them. Default 'file'.
    `field`: of JSON lines, the name of the text. Default 'text'.
    `end_token`: token that is put after each document, such as
        ``'<|endoftext|>'``. Default: none.
    `hold_out`: splits to make of random documents, and their shares.
    `seed`: seed of that choice. Default 1.
    """
    if documents not in DOCUMENTS:
        raise ValueError(f'documents must be one of {DOCUMENTS}, got '
                         f'{documents!r}')
    paths = input_paths(directory, files)
    encoder = Encoder(tokenizer, end_token)
    output_filename = output_filename or (
        os.path.basename(paths[0]).split('.')[0] + '.hdf5')
    texts = Texts(paths, documents, field)
    pieces = Pieces(output_directory, output_filename, [
        VERSION, texts.identity(), encoder.identity()])
    with converted_file(output_directory, output_filename, paths) as h5file:
        with progress_bar(output_filename, texts.num_bytes) as bar:
            for place in pieces.complete(texts, encoder):
                bar.update(texts.bytes_before(place))
        if not pieces.num_documents:
            raise BadInputFile(paths[0], 'there is no document')
        _write(h5file, pieces, held_out(
            pieces.num_documents, hold_out, seed, None), encoder)
    pieces.remove()
    return (os.path.join(output_directory, output_filename),)


class Texts:
    """Documents in files, from any of them on."""

    def __init__(self, paths: Sequence[str], documents: str,
                 field: str) -> None:
        self.paths = paths
        self._documents = documents
        self._field = field
        self._sizes = [os.path.getsize(path) for path in paths]
        self.num_bytes = sum(self._sizes)

    def identity(self) -> list[Any]:
        """Return what the documents depend on."""
        return [self._documents, self._field, [
            [os.path.abspath(path), status.st_size, status.st_mtime_ns]
            for path, status in zip(
                self.paths, map(os.stat, self.paths), strict=True)]]

    def bytes_before(self, place: Place) -> int:
        """Return about how many bytes of the files lie before a place."""
        before = self._sizes[:place.file]
        here = self._sizes[place.file:place.file + 1]
        # Those of a compressed file are counted when they are decompressed.
        return sum(before) + min([place.byte, *here])

    def read_from(self, place: Place) -> Iterator[Document]:
        """Yield the documents from a place on, but for empty ones."""
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

    def _read_file(self, place: Place) -> Iterator[Document]:
        path = self.paths[place.file]
        name = path.removesuffix('.gz')
        open_file: Any = open if name == path else gzip.open
        with open_file(path, 'rb') as file:
            file.seek(place.byte)
            lines = self._lines(file, place)
            if name.lower().endswith(JSON_LINES):
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
                line = file.readline()
                text = line.decode('utf-8' if byte else 'utf-8-sig')
            except (UnicodeDecodeError, EOFError, OSError) as error:
                raise BadInputFile(
                    path, f'line {number} is no text in UTF-8 ({error})'
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
            except ValueError as error:
                raise BadInputFile(self.paths[after.file], (
                    f'{where} is no JSON ({error})')) from error
            found = record.get(self._field) if isinstance(
                record, dict) else None
            if not isinstance(found, str):
                names = ', '.join(record) if isinstance(
                    record, dict) else type(record).__name__
                raise BadInputFile(self.paths[after.file], (
                    f'{where} has no text {self._field!r}; it has '
                    f'{names:.200}: name another one with --field'))
            yield Document(found, after)

    def _blocks(self, lines: Iterator[Document]) -> Iterator[Document]:
        """Join lines to paragraphs, or all of them to one document."""
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


class Encoder:
    """A tokenizer of the library tokenizers."""

    def __init__(self, path: str, end_token: str | None) -> None:
        try:
            library = import_module('tokenizers')
        except ImportError as error:
            raise ImportError(
                "the tokenizer needs the library tokenizers: in the clone of "
                "Fuel, run pip install -e '.[text]'") from error
        try:
            with open(path, encoding='utf-8') as file:
                self.json = file.read()
            self._tokenizer = library.Tokenizer.from_str(self.json)
        except FileNotFoundError:
            raise
        except Exception as error:
            # The library raises no class of its own.
            raise BadInputFile(
                path, f'it is no file that tokenizers saved ({error}): '
                f'Tokenizer.save(path) writes one') from error
        # Whoever trained it may have cut or filled texts to one length.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        numbers = self._tokenizer.get_vocab(with_added_tokens=True).values()
        self.dtype = numpy.dtype(
            'uint16' if max(numbers, default=0) < 1 << 16 else 'uint32')
        self.end: list[int] = []
        if end_token is not None:
            number = self._tokenizer.token_to_id(end_token)
            if number is None:
                raise ValueError(
                    f'the tokenizer {path} has no token {end_token!r}: choose '
                    f'another --end-token, or train it with this one among '
                    f'its special_tokens')
            self.end = [number]

    def identity(self) -> list[Any]:
        """Return what the tokens depend on."""
        return [self.json, self.end]

    def encode(self, texts: list[str]) -> list[Tokens]:
        """Return the tokens of each text, on all cores."""
        # Fast: without the places of the tokens in the text.
        found = self._tokenizer.encode_batch_fast(
            texts, add_special_tokens=False)
        return [numpy.array(one.ids + self.end, self.dtype) for one in found]


class Pieces:
    """The tokens of the documents so far, each some files of a folder beside
    the output, which is there until the output is."""

    def __init__(self, directory: Folder, filename: str,
                 identity: list[Any]) -> None:
        digest = hashlib.sha256(json.dumps(identity).encode()).hexdigest()
        self._begin = f'.{filename}.pieces-'
        self._parent = os.fspath(directory) or os.curdir
        self._folder = os.path.join(self._parent,
                                    f'{self._begin}{digest[:16]}')
        self.paths: list[str] = []
        self.num_documents = 0

    def complete(self, texts: Texts, encoder: Encoder) -> Iterator[Place]:
        """Write the pieces that are missing; yield what follows each."""
        os.makedirs(self._folder, exist_ok=True)
        place = Place()
        while os.path.exists(path := self._path(len(self.paths))):
            lengths, after = self._read_table(path)
            self._add(path, lengths)
            place = Place(*after)
            yield place
        documents = texts.read_from(place)
        while batch := _take(documents, PIECE):
            place = batch[-1].after
            tokens = encoder.encode([document.text for document in batch])
            path = self._path(len(self.paths))
            lengths = numpy.array([len(one) for one in tokens], 'int64')
            with atomic_path(path) as part, open(part, 'wb') as file:
                numpy.savez(file, lengths=lengths,
                            tokens=numpy.concatenate(tokens),
                            after=numpy.array(place, 'int64'))
            self._add(path, lengths)
            yield place

    def _path(self, number: int) -> str:
        return os.path.join(self._folder, f'{number:06d}.npz')

    def _add(self, path: str, lengths: NDArray[numpy.int64]) -> None:
        self.paths.append(path)
        self.num_documents += len(lengths)

    def _read_table(self, path: str) -> tuple[NDArray[numpy.int64], list[int]]:
        with numpy.load(path) as piece:
            return piece['lengths'], piece['after'].tolist()

    def read(self) -> Iterator[tuple[NDArray[numpy.int64], Tokens]]:
        """Yield the lengths of documents, and their tokens, by piece."""
        for path in self.paths:
            with numpy.load(path) as piece:
                yield piece['lengths'], piece['tokens']

    def remove(self) -> None:
        """Remove the pieces of this output, those of other tries too."""
        for name in os.listdir(self._parent):
            if name.startswith(self._begin):
                shutil.rmtree(os.path.join(self._parent, name),
                              ignore_errors=True)


def _take(documents: Iterator[Document], characters: int) -> list[Document]:
    """Return the next documents, of so many characters or the last ones."""
    batch: list[Document] = []
    while characters > 0 and (document := next(documents, None)) is not None:
        batch.append(document)
        characters -= len(document.text)
    return batch


def _write(h5file: ConvertedFile, pieces: Pieces,
           splits: dict[str, NDArray[numpy.intp]], encoder: Encoder) -> None:
    """Write each split's documents, in the order of the files."""
    split_of = numpy.empty(pieces.num_documents, 'intp')
    for number, rows in enumerate(splits.values()):
        split_of[rows] = number
    lengths = numpy.concatenate([found for found, _ in pieces.read()])
    targets = []
    for number, name in enumerate(splits):
        own = lengths[split_of == number]
        create_source(h5file, f'{name}/document_lengths', own.shape, 'int64')[
            ...] = own
        targets.append(create_source(h5file, f'{name}/tokens', (
            int(own.sum()),), encoder.dtype))
    starts = [0] * len(targets)
    first = 0
    for found, tokens in pieces.read():
        split_of_token = numpy.repeat(
            split_of[first:first + len(found)], found)
        first += len(found)
        for number, target in enumerate(targets):
            chosen = tokens[split_of_token == number]
            target[starts[number]:starts[number] + len(chosen)] = chosen
            starts[number] += len(chosen)
    h5file.create_dataset('tokenizer', data=encoder.json)
    h5file.attrs[LAYOUT_ATTRIBUTE] = VERSION


def fill_subparser(subparser: ArgumentParser) -> Converter:
    """Set up the parser of ``fuel-convert tokens FILE...``."""
    subparser.add_argument(
        'files', nargs='+', metavar='FILE',
        help='a text, or JSON lines (.jsonl); may be compressed (.gz)')
    subparser.add_argument(
        '--tokenizer', required=True, metavar='JSON',
        help='file that the library tokenizers saved')
    subparser.add_argument(
        '--documents', choices=DOCUMENTS, default='file',
        help='what is a document of a text: the file, a paragraph or a line '
        '(default: file)')
    subparser.add_argument(
        '--field', default='text', metavar='NAME',
        help='of JSON lines, the name of the text (default: text)')
    subparser.add_argument(
        '--end-token', default=None, metavar='TOKEN',
        help='token after each document, such as "<|endoftext|>" (default: '
        'none)')
    add_split_options(subparser, stratify=False)
    return convert_tokens
