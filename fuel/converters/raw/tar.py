"""Tar archives: each header is read and checked, but not kept.

Python's `tarfile` makes an object of some fifty attributes for each member,
and parses some headers in quadratic time, or not at all. Here the size of
headers is limited, and a member that is neither a regular file nor a folder
is refused.
"""
from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, NamedTuple, cast

from fuel.converters.raw.archives import MAX_MEMBER, check_name, check_size
from fuel.converters.raw.files import BadInputFile
from fuel.converters.raw.inflate import BinaryFile, Inflated

Archive = str | os.PathLike[str] | IO[bytes]

BLOCK = 512
# Real headers have less than a kilobyte.
MAX_HEADER = 1 << 16
REGULAR = (b'0', b'\0', b'7')
FOLDER, SPARSE, LONG_NAME, LONG_LINK = b'5', b'S', b'L', b'K'
PAX, GLOBAL_PAX = (b'x', b'X'), b'g'
GZIP_MAGIC = b'\x1f\x8b\x08'
XZ_MAGIC = b'\xfd7zXZ\0'
# Of bzip2: a digit is between the two parts.
BZ2_MAGIC = b'BZh', b'1AY&SY'


class UnreadableMember(BadInputFile):
    """A sound member that is a link or a device, or sparse."""


class Member(NamedTuple):
    """A regular file of an archive: its name, and where its bytes are."""

    name: str
    offset: int
    size: int


class _Header(NamedTuple):
    name: str
    size: int
    kind: bytes


class Tar:
    """A tar archive in a part of an open file.

    If the file can only be read forwards, each member must be read during the
    iteration over the members. If it is compressed (`packed`), going backwards
    is slow.
    """

    def __init__(self, raw: BinaryFile, path: str, start: int = 0,
                 stop: int | None = None, packed: bool = False) -> None:
        self._raw = raw
        self.path = path
        self._start = start
        self._stop = stop
        self._packed = packed

    def members(self) -> list[Member]:
        """Return the regular files, in the order of the archive."""
        return list(self.walk())

    def walk(self, max_size: int = MAX_MEMBER,
             is_unpacked: bool = True) -> Iterator[Member]:
        """Iterate over the regular files, in the order of the archive;
        raise `BadInputFile` for a link, a device, a name that leads out of
        the folder, and a file of more than `max_size` bytes.

        `is_unpacked`: whether files are written under the names; otherwise,
            they may have any name.
        """
        position = self._start
        while (found := self._next(position)) is not None:
            header, position = found
            name = header.name
            if is_unpacked:
                check_name(self.path, name)
            if header.kind == FOLDER or (
                    header.kind in REGULAR and name.endswith('/')):
                continue
            if header.kind == SPARSE:
                raise UnreadableMember(
                    self.path, f'the member {name!r} is sparse')
            if header.kind not in REGULAR:
                raise UnreadableMember(
                    self.path, f'the member {name!r} is a link or a device')
            check_size(self.path, name, header.size, max_size)
            if self._stop is not None and (
                    position + header.size > self._stop):
                raise self._cut_short(name)
            yield Member(name, position, header.size)
            position += -(-header.size // BLOCK) * BLOCK

    def _next(self, position: int) -> tuple[_Header, int] | None:
        """Return the next member, and where its bytes begin; None at the
        end."""
        extended: dict[str, str] = {}
        while True:
            block = self._read(position, BLOCK)
            if not block.strip(b'\0'):
                return None
            header = _parse(block, self.path)
            position += BLOCK
            if header.kind not in (LONG_NAME, LONG_LINK, GLOBAL_PAX, *PAX):
                break
            check_size(self.path, header.name, header.size, MAX_HEADER)
            content = self._read(position, header.size)
            position += -(-header.size // BLOCK) * BLOCK
            if header.kind == LONG_NAME:
                extended['path'] = _text(content.partition(b'\0')[0])
            elif header.kind != LONG_LINK:
                records = _records(content, self.path)
                if header.kind == GLOBAL_PAX and {'path', 'size'} & {*records}:
                    raise BadInputFile(self.path, 'one name or size for all '
                                       'members')
                extended.update(records)
        if any(key.startswith('GNU.sparse.') for key in extended):
            header = header._replace(kind=SPARSE)
        size = extended.get('size', str(header.size))
        if not size.isdecimal() or len(size) > 20:
            raise BadInputFile(self.path, f'a member has {size!r} bytes')
        return header._replace(name=extended.get('path', header.name),
                               size=int(size)), position

    def _read(self, position: int, size: int, name: str = '') -> bytes:
        """Return bytes of the archive; errors mention the member `name`, if it
        is given."""
        there = size
        if self._stop is not None:
            there = max(0, min(size, self._stop - position))
        self._raw.seek(position)
        content = self._raw.read(there)
        while content and len(content) < there and (
                more := self._raw.read(there - len(content))):
            content += more
        if len(content) < size:
            raise self._cut_short(name)
        return content

    def _cut_short(self, name: str) -> BadInputFile:
        what = f'member {name!r}' if name else 'archive'
        return BadInputFile(self.path, f'the {what} is cut short')

    def read(self, member: Member, max_size: int = MAX_MEMBER) -> bytes:
        """Return the content of a regular file of at most `max_size`
        bytes."""
        check_size(self.path, member.name, member.size, max_size)
        return self._read(member.offset, member.size, member.name)

    def blocks(self, member: Member, size: int = 1 << 20) -> Iterator[bytes]:
        """Iterate over the content of a regular file, `size` bytes at a
        time, the rest last."""
        stop = member.offset + member.size
        for start in range(member.offset, stop, size):
            yield self._read(start, min(size, stop - start), member.name)

    def inner(self, member: Member) -> Tar:
        """Return a member that is itself a tar archive, as a `Tar`."""
        path = f'{self.path}: {member.name}'
        if self._packed:
            return Tar(io.BytesIO(self.read(member)), path, 0, member.size)
        return Tar(self._raw, path, member.offset,
                   member.offset + member.size)


def _text(content: bytes) -> str:
    # Names that differ stay different, whatever their bytes.
    return content.decode('utf8', 'surrogateescape')


def _parse(block: bytes, path: str) -> _Header:
    """Return name, size and kind of a member."""
    checksum = _number(block[148:156], path)
    # The field itself counts as spaces. Some programs add up signed bytes.
    total = sum(block) - sum(block[148:156]) + 8 * ord(' ')
    if checksum != total and checksum != total - 256 * sum(
            byte > 127 for byte in block[:148] + block[156:]):
        raise BadInputFile(path, 'not a sound tar archive (wrong check sum '
                           'of a header)')
    name = block[:100].partition(b'\0')[0]
    prefix = block[345:500].partition(b'\0')[0]
    if prefix and block[257:263] == b'ustar\0':
        name = prefix + b'/' + name
    return _Header(_text(name), _number(block[124:136], path),
                   block[156:157])


def _number(field: bytes, path: str) -> int:
    """Return a number of a header, in octal digits or in binary."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], 'big')
    digits = field.partition(b'\0')[0].strip() or b'0'
    # int() also accepts signs and underscores.
    if not digits.isdigit() or set(digits) & set(b'89'):
        raise BadInputFile(path, f'not a sound tar archive ({field!r} in the '
                           'place of a number)')
    return int(digits, 8)


def _records(content: bytes, path: str) -> dict[str, str]:
    """Return the records of an extended header, ``length key=value``."""
    found = {}
    position = 0
    while position < len(content) and content[position]:
        length = content[position:position + 8].partition(b' ')[0]
        stop = position + (int(length) if length.isdigit() else 0)
        key, equals, value = content[
            position + len(length) + 1:stop - 1].partition(b'=')
        if (not equals or stop > len(content) or
                content[stop - 1:stop] != b'\n'):
            raise BadInputFile(path, 'not a sound tar archive (wrong '
                               'extended header)')
        found[_text(key)] = _text(value)
        position = stop
    return found


def name_of(archive: Archive) -> str:
    """Return the path of an archive, or the name of an open one."""
    if isinstance(archive, (str, os.PathLike)):
        return os.fspath(archive)
    return str(getattr(archive, 'name', 'archive'))


@contextmanager
def open_tar(archive: Archive,
             in_order: bool = True) -> Iterator[Tar]:
    """Open a tar archive, compressed or not; raise `BadInputFile` if it is
    damaged.

    `in_order`: whether each member is read during the iteration over the
        members. A gzip archive is then read quickly, but only forwards.
    """
    with ExitStack() as stack:
        if isinstance(archive, (str, os.PathLike)):
            path = os.fspath(archive)
            # Unbuffered: each read is at another place, and of known size.
            raw = cast(IO[bytes], stack.enter_context(
                open(path, 'rb', buffering=0)))
        else:
            path, raw = name_of(archive), archive
        try:
            yield _open(raw, path, in_order)
        except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
            # Errors of gzip and bz2 have no number.
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise BadInputFile(path, f'not a sound archive ({error})'
                               ) from error


def _open(raw: IO[bytes], path: str, in_order: bool) -> Tar:
    stop = raw.seek(0, io.SEEK_END)
    raw.seek(0)
    magic = raw.read(10)
    raw.seek(0)
    if magic.startswith(GZIP_MAGIC):
        unpacked: BinaryFile = (
            Inflated(raw) if in_order else gzip.GzipFile(fileobj=raw))
    elif (magic[:3], magic[4:]) == BZ2_MAGIC:
        unpacked = bz2.BZ2File(raw)
    elif magic.startswith(XZ_MAGIC):
        unpacked = lzma.LZMAFile(raw)  # noqa: SIM115 - `raw` is closed
    else:
        return Tar(raw, path, 0, stop)
    return Tar(unpacked, path, packed=True)
