"""Text files, compressed or not, read in blocks of whole lines.

A position in a file is the start of a block and the number of its lines that
were used. It does not depend on the size of the blocks.
"""
from __future__ import annotations

import codecs
import io
import lzma
import os
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module
from typing import IO, Any, TypeAlias

from fuel.exceptions import DamagedFileError
from fuel.kernels.epoch_reader import RequestPosition
from fuel.remote.location import RemotePath, fixed_path, located
from fuel.remote.urls import StorageOptions, file_name
from fuel.storage.file_bytes import (
    FileBytes, identity_of, other_version, raw_file_at)
from fuel.utils.checks import saved_count
from fuel.utils.missing_files import near
from fuel.utils.paths import refuse_folder, refuse_special_file

# Bytes (or characters) that are read at once, unless a line is longer.
BLOCK = 1 << 16
# Most bytes (or characters) of a line. A file with a longer line is not a text
# file, or is a small compressed file that would fill the memory.
LONGEST_LINE = 1 << 28

#: Modules that decompress files, by file extension.
COMPRESSIONS = {'.gz': 'gzip', '.bz2': 'bz2', '.xz': 'lzma'}

#: Names of text files.
Paths: TypeAlias = Iterable[str | os.PathLike[str]]


def as_files(files: Paths, storage_options: StorageOptions | None = None,
             ) -> list[str]:
    """Return names of files as a list, at least one of them."""
    if isinstance(files, (str, bytes, os.PathLike)):
        raise ValueError(
            f'files must be a list of names, got the single name {files!r}: '
            f'write [{files!r}]')
    names: list[str] = [
        fixed_path(os.fspath(path), storage_options) for path in files]
    if not names:
        raise ValueError('files must name at least one text file')
    return names


def split_lines(text: str) -> list[str]:
    """Return the lines of a text, as `TextFile` reads them.

    Lines end with a line feed, a carriage return, or both. Other characters
    that separate lines may be tokens.
    """
    if '\r' in text:
        text = text.replace('\r\n', '\n').replace('\r', '\n')
    lines = text.split('\n')
    return lines if lines[-1] else lines[:-1]


def open_binary(path: str, file: FileBytes | None = None) -> Any:
    """Open a file for reading; decompress it if it has the extension of a
    compressed file.

    `file`: the same file, if it is open already.

    Raises: DamagedFileError if the file was replaced since `file` was opened.
    """
    handle = _open_binary(path, file)
    if file is not None and not file.is_remote and (
            identity_of(os.fstat(handle.fileno())) != file.identity):
        handle.close()
        raise other_version(path)
    return handle


def _open_binary(path: str, file: FileBytes | None) -> Any:
    source: Any = located(path)
    if isinstance(path, RemotePath):
        source = (file or path.open()).open()
    extension = os.path.splitext(file_name(path))[1]
    if extension in COMPRESSIONS:
        module = import_module(COMPRESSIONS[extension])
        return module.open(source, 'rb')
    return source if isinstance(path, RemotePath) else open(source, 'rb')


def plain_size(path: str, default: int) -> int:
    """Return the size of a local file that is not compressed, in bytes.

    `default`: returned for other files, and if there is no such file.
    """
    extension = os.path.splitext(file_name(path))[1]
    if not isinstance(path, RemotePath) and extension not in COMPRESSIONS:
        with suppress(OSError):
            return os.path.getsize(located(path))
    return default


def check_exists(path: str, kind: str) -> None:
    """Raise an error if there is no such file.

    `kind`: the kind of the file, for the error.
    """
    if isinstance(path, RemotePath):
        path.open()
    else:
        check_is_file(path, kind)


def check_is_file(path: str, kind: str) -> None:
    """Raise an error if there is no such local file; see `check_exists`.

    A remote file is not checked before it is opened.
    """
    if not isinstance(path, RemotePath) and not os.path.isfile(
            located(path)):
        refuse_special_file(located(path))
        refuse_folder(located(path), f'one {kind} file')
        raise not_there(path, f'{kind} file')


def not_there(path: str, what: str) -> FileNotFoundError:
    """Return the error that a local file does not exist."""
    return FileNotFoundError(
        f'there is no {what} {path!r} (looked in {os.getcwd()!r}): '
        f'{near(path) or "correct the name"}')


def counts_bytes(encoding: str) -> bool:
    """Return whether positions in a text of an encoding count bytes; if not,
    they count characters.

    Saved states contain positions, so the result for an encoding must not
    change.
    """
    name = codecs.lookup(encoding).name
    return name in ('utf-8', 'ascii') or name.startswith(
        ('iso8859', 'cp125', 'koi8', 'mac-'))


def check_line_ends(encoding: str) -> None:
    """Refuse an encoding in which a line does not end with the byte 10.

    Records are found by that byte.
    """
    one, two = '\n'.encode(encoding), '\n\n'.encode(encoding)
    if two != one + b'\n':
        raise ValueError(
            f'the records of a file are found by the bytes that end lines, '
            f'which are others in encoding={encoding!r}: write the file in '
            f'UTF-8, such as by iconv -f {encoding} -t utf-8')


class TextLines:
    """Reads the lines of one file in order, block by block.

    `start`: place of the present block, in bytes or characters.
    `line`: number of lines before the present block.
    `lines`: the lines of the present block, without their ends. Empty at the
        end of the file, and before the first block is read.
    `ends`: whether the last of `lines` ends with a line break. The last line
        of a file may lack it.
    """

    def __init__(self, path: str, encoding: str, start: int = 0,
                 line: int = 0) -> None:
        self.path = path
        self.encoding = encoding
        self.start, self.line = start, line
        self.lines: list[str] = []
        self.ends = True
        self._by_bytes = counts_bytes(encoding)
        self._handle: IO[Any] | None = None
        # The file must not change from the first block to the last.
        self._file: FileBytes | None = None
        self._length = 0
        self._rest: Any = None
        self._error: Exception | None = None

    def read(self) -> None:
        """Read the next block."""
        self.start += self._length
        self.line += len(self.lines)
        self.lines, self._length = [], 0
        if self._error is not None:
            raise self._error
        try:
            block = self._guarded(self._read_block)
        except BaseException:
            # The position is before the block: the next call reads it again.
            self.close()
            raise
        if not block:
            self.close()
            return
        text = self._decode(block) if self._by_bytes else block
        self.lines = split_lines(text)
        self.ends = text.endswith(('\n', '\r'))

    def _guarded(self, function: Callable[[], Any]) -> Any:
        """Call a function that reads; raise errors that name the file."""
        try:
            found = function()
        except UnicodeError as error:
            self._check()
            raise self._undecodable(error, self._line_of_error()) from error
        except (FileNotFoundError, TimeoutError, DamagedFileError):
            raise
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            self._check()
            raise DamagedFileError(
                f'{self.path}, after line {self.line}: cannot be read: '
                f'{error}; the file may be cut or damaged') from error
        self._check()
        return found

    def _check(self) -> None:
        """Raise DamagedFileError if the file was changed.

        If it was changed, the change is the reason of other errors.
        """
        if self._file is not None:
            self._file.check()

    def _read_block(self) -> Any:
        """Return some whole lines as bytes or text; empty at the end of the
        file."""
        if self._handle is None:
            self._open()
        handle: Any = self._handle
        end, return_ = (b'\n', b'\r') if self._by_bytes else ('\n', '\r')
        pieces = [self._rest]
        length = len(self._rest)
        while True:
            piece = handle.read(BLOCK)
            # A carriage return ends a line. At the end of a piece it does not,
            # since a line feed may follow.
            cut = 1 + max(piece.rfind(end), piece.rfind(return_, 0, -1))
            if cut or not piece:
                pieces.append(piece[:cut])
                self._rest = piece[cut:]
                break
            pieces.append(piece)
            length += len(piece)
            if length > LONGEST_LINE:
                raise DamagedFileError(
                    f'{self.path}, in line {self.line + 1}: it is longer '
                    f'than {LONGEST_LINE}: the file is not a text file; '
                    'put each sentence on a line of its own')
        block = self._rest[:0].join(pieces)
        self._length = len(block)
        return block

    def _open(self) -> None:
        before, self._file = self._file, raw_file_at(self.path)
        if before is not None and before.identity != self._file.identity:
            self._file = before
            raise other_version(self.path)
        binary = open_binary(self.path, self._file)
        if self._by_bytes:
            self._handle, self._rest = binary, b''
        else:
            self._handle, self._rest = io.TextIOWrapper(
                binary, self.encoding, newline=''), ''
        if self.start:
            self._go_to_start(self._handle)

    def _go_to_start(self, handle: Any) -> None:
        """Go to the start of the block, and check that a line ends before it,
        or that the file ends there."""
        if self._by_bytes:
            handle.seek(self.start - 1)
        else:
            # Characters have no fixed place in the file: read all characters
            # before the start.
            left = self.start - 1
            while left and (piece := handle.read(min(left, BLOCK))):
                left -= len(piece)
        before = handle.read(1)
        self._rest = handle.read(1)
        if not before or (self._rest and before not in (
                b'\n', b'\r', '\n', '\r')):
            raise DamagedFileError(
                f'{self.path} has no line that begins at {self.start}, where '
                'the saved position is: the file was changed since it was '
                'saved, or the position is damaged')

    def _decode(self, block: bytes) -> str:
        """Return a block as text, up to the first line that cannot be decoded.

        The next call of `read` raises the error about that line.
        """
        try:
            return block.decode(self.encoding)
        except UnicodeDecodeError as error:
            begin = block.rfind(b'\n', 0, error.start) + 1
            self._error = self._undecodable(
                error, self.line + block.count(b'\n', 0, begin) + 1)
            self._error.__cause__ = error
            if not begin:
                raise self._error from error
            return block[:begin].decode(self.encoding)

    def _line_of_error(self) -> int:
        """Return the number of the first line that cannot be decoded."""
        decoder = io.IncrementalNewlineDecoder(
            codecs.getincrementaldecoder(self.encoding)(), translate=True)
        line = 1
        with open_binary(self.path) as file:
            while piece := file.read(BLOCK):
                before = decoder.getstate()
                try:
                    line += decoder.decode(piece).count('\n')
                except UnicodeError:
                    # Byte by byte, up to the one that cannot be decoded.
                    decoder.setstate(before)
                    with suppress(UnicodeError):
                        for byte in piece:
                            line += decoder.decode(
                                bytes([byte])).count('\n')
                    break
        return line

    def _undecodable(self, error: UnicodeError, line: int) -> ValueError:
        if isinstance(error, UnicodeDecodeError):
            wrong = error.object[error.start:error.start + 4]
            what, why = f'the bytes {wrong!r} are', error.reason
        else:
            # UTF-16 and UTF-32 without a byte order mark.
            what, why = 'the bytes are', str(error)
        return ValueError(
            f'{self.path}, in line {line}: {what} not {self.encoding} '
            f'({why}): pass the encoding of the file as encoding=')

    def close(self) -> None:
        """Close the file; closing again does nothing."""
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.close()


class TextPosition(RequestPosition):
    """Position of a reader in a list of text files.

    A pickle holds the position; the file is opened again when it is needed.
    """

    def __init__(self, files: list[str], encoding: str,
                 make_examples: Callable[..., Any], keep_ends: bool,
                 position: dict[str, int] | None = None) -> None:
        self.files = files
        self.encoding = encoding
        self.make_examples = make_examples
        self.keep_ends = keep_ends
        self._go_to(position or {'file': 0, 'start': 0, 'line': 0,
                                 'used': 0})

    def _go_to(self, position: dict[str, int]) -> None:
        self.file = saved_count(position, 'file')
        self.position = saved_count(position, 'used')
        start, line = (saved_count(position, name)
                       for name in ('start', 'line'))
        self.reader: TextLines | None = None
        if self.file < len(self.files):
            path = self.files[self.file]
            if start > (size := plain_size(path, start)):
                raise ValueError(
                    f'{path} has {size} bytes, and no line that begins at '
                    f'{start}')
            self.reader = TextLines(path, self.encoding, start, line)
        elif self.file > len(self.files) or self.position or start or line:
            raise ValueError(
                f'there are {len(self.files)} files, and no line {line} of '
                f'file {self.file}')

    def get_position(self) -> dict[str, int]:
        """Return the position of the reader, ready for JSON."""
        reader = self.reader
        return {'file': self.file, 'start': reader.start if reader else 0,
                'line': reader.line if reader else 0, 'used': self.position}

    def peek(self, count: int) -> list[Any]:
        """Return the next examples without moving the position."""
        while self.reader is not None:
            if self._is_used_up():
                self._read()
                continue
            stop = self.position + count
            lines = self.reader.lines[self.position:stop]
            if self.keep_ends:
                lines = [line + '\n' for line in lines]
                if not self.reader.ends and stop >= len(self.reader.lines):
                    lines[-1] = lines[-1][:-1]
            examples: list[Any] = self.make_examples(lines, self)
            return examples
        return []

    def _is_used_up(self) -> bool:
        reader: Any = self.reader
        # A restored position counts lines of a block that was not read yet.
        return not reader.lines or self.position >= len(reader.lines)

    def _read(self) -> None:
        """Read the next block; at the end of the file, go to the next file."""
        reader: Any = self.reader
        self.position -= len(reader.lines)
        reader.read()
        if reader.lines:
            return
        if self.position:
            raise DamagedFileError(
                f'{reader.path} has fewer lines than when the position in '
                'it was saved: it was changed since')
        self._go_to({'file': self.file + 1, 'start': 0, 'line': 0,
                     'used': 0})

    def where(self, place: int) -> str:
        """Return file and number of a line for an error.

        `place`: number of lines between the position and the line.
        """
        reader: Any = self.reader
        return (f'{reader.path}, line '
                f'{reader.line + self.position + place + 1}')

    def __iter__(self) -> TextPosition:
        return self

    def __next__(self) -> Any:
        # An example that raises an error is skipped, so that reading can
        # continue.
        try:
            examples = self.peek(1)
        except Exception:
            if self.reader is not None and not self._is_used_up():
                self.position += 1
            raise
        if not examples:
            raise StopIteration
        self.position += 1
        return examples[0]

    def close(self) -> None:
        """Close the open file, if there is one."""
        if self.reader is not None:
            self.reader.close()

    def __del__(self) -> None:
        if vars(self).get('reader') is not None:
            self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), 'reader': None,
                'position': self.get_position()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        position = state.pop('position')
        vars(self).update(state)
        self._go_to(position)
