"""A user's own texts, as the tokens of a language model."""
from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import shutil
import stat
import sys
import zipfile
import zlib
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from fuel.converters.base import Converter, converted_file, progress_bar
from fuel.converters.custom_data import add_split_options, advise
from fuel.converters.documents import DOCUMENTS, Document, Place, Texts
from fuel.converters.output import ConvertedFile, create_source
from fuel.converters.raw.files import BadInputFile, Folder, input_paths
from fuel.datasets.random_splits import held_out
from fuel.utils.atomic_files import atomic_path
from fuel.utils.extras import how_to_install
from fuel.utils.lockfile import LockFile

log = logging.getLogger(__name__)

__all__ = ['convert_tokens', 'fill_subparser']

# Version of the layout of the file, and of the pieces.
VERSION = 1
LAYOUT_ATTRIBUTE = 'fuel_tokens'
# Characters that are encoded at once; their tokens are one piece.
PIECE = 1 << 24

Tokens = NDArray[numpy.unsignedinteger[Any]]


@advise
def convert_tokens(directory: Folder, output_directory: Folder,
                   files: Sequence[str], tokenizer: str,
                   output_filename: str | None = None,
                   documents: str = 'file', field: str = 'text',
                   end_token: str | None = None,
                   hold_out: Sequence[tuple[str, float]] | None = None,
                   seed: int = 1) -> tuple[str]:
    """Convert texts to the numbers of their tokens.

    The file has a group for each split. The array 'tokens', of uint16 or
    uint32, has the tokens of all documents, one document after the other;
    'document_lengths', int64, has their lengths. `fuel.load` opens the file
    with documents as runs. The data set 'tokenizer' holds the tokenizer in
    JSON. All cores encode. An interrupted conversion resumes when it is run
    again.

    `files`: texts in UTF-8, or JSON lines (``.jsonl``, ``.ndjson``) with a
        document in each line; both may be compressed (``.gz``).
    `tokenizer`: a JSON file that the library tokenizers saved.
    `output_filename`: default: the name of the first file.
    `documents`: {'file', 'paragraph', 'line'}; the unit of a text file that
        is a document. Empty lines separate paragraphs. Default 'file'.
    `field`: the field of JSON lines that holds the text, such as 'meta/text'
        in a nested object. Default 'text'.
    `end_token`: token that is put after each document, such as
        ``'<|endoftext|>'``. Default: none.
    `hold_out`: splits of documents to draw at random, and their shares.
    `seed`: seed of the random splits. Default 1.
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
    with pieces.locked():
        with converted_file(output_directory, output_filename,
                            paths) as h5file:
            with progress_bar(output_filename, texts.num_bytes,
                              in_bytes=True) as bar:
                for place in pieces.complete(texts, encoder):
                    bar.update(texts.bytes_before(place))
                # Empty documents at the end belong to no piece.
                bar.update(texts.num_bytes)
            if not pieces.num_documents:
                raise BadInputFile(paths[0], 'there is no document')
            if pieces.num_empty:
                log.warning('left out: %d document%s without text',
                            pieces.num_empty, 's' * (pieces.num_empty > 1))
            _write(h5file, pieces, held_out(
                pieces.num_documents, hold_out, seed, None), encoder)
        pieces.remove()
    return (os.path.join(output_directory, output_filename),)


class Piece(NamedTuple):
    """Some encoded documents.

    `lengths`: number of tokens of each document.
    `tokens`: the tokens of all documents, one after the other.
    `num_empty`: number of documents without text that were skipped.
    `after`: the place of the next document.
    """

    lengths: NDArray[numpy.int64]
    tokens: Tokens
    num_empty: int
    after: Place


class Encoder:
    """A tokenizer of the library tokenizers."""

    def __init__(self, path: str, end_token: str | None) -> None:
        try:
            library = import_module('tokenizers')
        except ImportError as error:
            raise ImportError(
                'the tokenizer needs the library tokenizers: '
                f'{how_to_install("text")}') from error
        try:
            with open(path, encoding='utf-8') as file:
                self.json = file.read()
            self._tokenizer = library.Tokenizer.from_str(self.json)
        except FileNotFoundError:
            raise
        except Exception as error:
            # The library raises plain exceptions.
            raise BadInputFile(
                path, f'it is not a file that tokenizers saved ({error}): '
                f'Tokenizer.save(path) writes one') from error
        self._path, self._version = path, library.__version__
        # The tokenizer may have been saved with truncation or padding on.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        if isinstance(self._tokenizer.model, library.models.BPE):
            # Random merges would make two conversions differ.
            self._tokenizer.model.dropout = None
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
        """Return values that identify the tokenizer."""
        return [self._version, self.json, self.end]

    def encode(self, texts: list[str]) -> list[Tokens]:
        """Return the tokens of each text, on all cores."""
        try:
            # The fast method does not find the places of tokens in the text.
            found = self._tokenizer.encode_batch_fast(
                texts, add_special_tokens=False)
        except Exception as error:
            raise BadInputFile(
                self._path, f'it cannot encode a text ({error})') from error
        return [numpy.array(one.ids + self.end, self.dtype) for one in found]


class Pieces:
    """The pieces of a conversion: files with the tokens of documents.

    They are in a folder next to the output, which is removed when the output
    is complete.
    """

    def __init__(self, directory: Folder, filename: str,
                 identity: list[Any]) -> None:
        digest = hashlib.sha256(json.dumps(identity).encode()).hexdigest()
        parent, name = os.path.split(os.path.join(directory, filename))
        self._begin = f'.{name}.pieces-'
        self._parent = parent or os.curdir
        self._folder = os.path.join(self._parent,
                                    f'{self._begin}{digest[:16]}')
        self._output = os.path.join(self._parent, name)
        self._lock = LockFile(os.path.join(self._parent, f'.{name}.lock'))
        self.paths: list[str] = []
        self.num_documents = 0
        self.num_empty = 0

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Return a context in which the output is locked against other
        conversions."""
        if not os.path.isdir(self._parent):
            raise FileNotFoundError(
                errno.ENOENT, os.strerror(errno.ENOENT), self._parent)
        if not self._lock.try_acquire():
            raise FileExistsError(
                f'another conversion is writing {self._output}: wait for it, '
                f'or choose another name (-r)')
        try:
            yield
        finally:
            self._lock.remove()

    def complete(self, texts: Texts, encoder: Encoder) -> Iterator[Place]:
        """Write the missing pieces; yield the place after each piece."""
        try:
            os.makedirs(self._folder, 0o700)
        except FileExistsError:
            self._check_owner()
        place = Place()
        while (found := self._find(self._path(len(self.paths)))) is not None:
            self._add(self._path(len(self.paths)), found.lengths)
            self.num_empty += found.num_empty
            place = found.after
            yield place
        documents = texts.read_from(place)
        earlier = 0
        while batch := _take(documents, PIECE):
            place = batch[-1].after
            tokens = encoder.encode([document.text for document in batch])
            path = self._path(len(self.paths))
            lengths = numpy.array([len(one) for one in tokens], 'int64')
            with atomic_path(path) as part, open(part, 'wb') as file:
                numpy.savez(file, lengths=lengths,
                            tokens=numpy.concatenate(tokens),
                            num_empty=texts.num_empty - earlier,
                            after=numpy.array(place, 'int64'))
            self._add(path, lengths)
            earlier = texts.num_empty
            yield place
        self.num_empty += texts.num_empty

    def _check_owner(self) -> None:
        """Refuse a folder of another user.

        Another user may create a folder of that name where all users may
        write, such as in /tmp.
        """
        found = os.lstat(self._folder)
        if not stat.S_ISDIR(found.st_mode) or (sys.platform != 'win32' and (
                found.st_uid != os.geteuid() or found.st_mode & stat.S_IWOTH)):
            raise PermissionError(
                f'{self._folder}, in which this conversion keeps finished '
                f'parts, is not a folder of your own: remove it, or write to '
                f'another folder (-o)')

    def _path(self, number: int) -> str:
        return os.path.join(self._folder, f'{number:06d}.npz')

    def _add(self, path: str, lengths: NDArray[numpy.int64]) -> None:
        self.paths.append(path)
        self.num_documents += len(lengths)

    def _find(self, path: str) -> Piece | None:
        """Return a piece that an earlier run wrote; None if it is missing or
        damaged."""
        try:
            found = _load(path)
            whole = found.lengths.sum() == len(found.tokens)
        except (EOFError, KeyError, MemoryError, OSError, RuntimeError,
                TypeError, ValueError, zipfile.BadZipFile, zlib.error):
            return None
        return found if whole else None

    def read(self) -> Iterator[Piece]:
        """Yield the pieces."""
        return map(_load, self.paths)

    def remove(self) -> None:
        """Remove the pieces of this output, including those of runs with
        other arguments."""
        for name in os.listdir(self._parent):
            if name.startswith(self._begin):
                shutil.rmtree(os.path.join(self._parent, name),
                              ignore_errors=True)


def _load(path: str) -> Piece:
    # NumPy does not close a damaged file by itself.
    with open(path, 'rb') as file, numpy.load(file) as piece:
        return Piece(piece['lengths'], piece['tokens'],
                     int(piece['num_empty']), Place(*piece['after'].tolist()))


def _take(documents: Iterator[Document], characters: int) -> list[Document]:
    """Return the next documents, with at least `characters` characters in
    all, unless fewer are left."""
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
    lengths = numpy.concatenate([piece.lengths for piece in pieces.read()])
    targets = []
    for number, name in enumerate(splits):
        own = lengths[split_of == number]
        create_source(h5file, f'{name}/document_lengths', own.shape, 'int64')[
            ...] = own
        targets.append(create_source(h5file, f'{name}/tokens', (
            int(own.sum()),), encoder.dtype))
    starts = [0] * len(targets)
    first = 0
    for found, tokens, *_ in pieces.read():
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
        help='a document of a text is the whole file, a paragraph or a line '
        '(default: file)')
    subparser.add_argument(
        '--field', default='text', metavar='NAME',
        help='of JSON lines, the name of the text, such as meta/text within '
        'an object (default: text)')
    subparser.add_argument(
        '--end-token', default=None, metavar='TOKEN',
        help='token after each document, such as "<|endoftext|>" (default: '
        'none)')
    add_split_options(subparser, stratify=False)
    return convert_tokens
