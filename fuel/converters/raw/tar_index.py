"""The members of an uncompressed tar archive, found quickly.

`tarfile` builds an object of some fifty attributes for each member. With
millions of small members that is most of the time, so here a header is read,
checked and left. What is not an ordinary header goes back to `tarfile`.
"""
import io
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

from fuel.converters.raw.archives import (
    MAX_MEMBER,
    check_name,
    check_size,
    open_tar,
    read_member,
    walk_tar,
)
from fuel.converters.raw.files import BadInputFile

__all__ = ['Member', 'Tar', 'open_members']

HEADER = 512
CHECKSUM_AS_SPACES = 8 * ord(' ')


class Member(NamedTuple):
    """A regular file of an archive: its name, and where its bytes are."""

    name: str
    offset: int
    size: int


class _UnusualError(Exception):
    """A header that is better left to `tarfile`."""


class Tar:
    """A tar archive in an open file.

    Parameters
    ----------
    raw : file
        Open for reading in binary mode.
    path : str
        What to call the archive in error texts.
    start, stop : int
        Where in the file the archive lies.
    """

    def __init__(self, raw: IO[bytes], path: str, start: int,
                 stop: int) -> None:
        self._raw = raw
        self.path = path
        self._start = start
        self._stop = stop

    def members(self) -> list[Member]:
        """Return the regular files, in the order of the archive."""
        try:
            return list(self._walk())
        except _UnusualError:
            return list(self._walk_slowly())

    def _walk(self) -> Iterator[Member]:
        position = self._start
        while position < self._stop:
            self._raw.seek(position)
            header = self._raw.read(HEADER)
            if not header.strip(b'\0') and header:
                return
            name, size, kind = _parse(header, self.path)
            check_name(self.path, name)
            position += HEADER
            if kind in (b'0', b'\0') and not name.endswith('/'):
                if position + size > self._stop:
                    raise BadInputFile(self.path, f'the member {name!r} is '
                                       'cut short')
                yield Member(name, position, size)
            elif kind != b'5' and not name.endswith('/'):
                raise _UnusualError
            position += -(-size // HEADER) * HEADER
        raise BadInputFile(self.path, 'the archive is cut short')

    def _walk_slowly(self) -> Iterator[Member]:
        self._raw.seek(self._start)
        section = _Section(self._raw, self._start, self._stop)
        with open_tar(self.path, section) as archive:
            for member in walk_tar(self.path, archive):
                if member.issparse():
                    raise BadInputFile(self.path, f'the member '
                                       f'{member.name!r} is sparse')
                yield Member(member.name, self._start + member.offset_data,
                             member.size)

    def read(self, member: Member, max_size: int = MAX_MEMBER) -> bytes:
        """Return the content of a regular file of at most `max_size`
        bytes."""
        check_size(self.path, member.name, member.size, max_size)
        self._raw.seek(member.offset)
        content = self._raw.read(member.size)
        if len(content) != member.size:
            raise BadInputFile(self.path, f'the member {member.name!r} is '
                               'cut short')
        return content

    def inner(self, member: Member) -> 'Tar':
        """Return a regular file that is itself a tar archive."""
        return Tar(self._raw, f'{self.path}: {member.name}', member.offset,
                   member.offset + member.size)


def _parse(header: bytes, path: str) -> tuple[str, int, bytes]:
    """Return name, size and kind of a member."""
    if len(header) < HEADER:
        raise BadInputFile(path, 'the archive is cut short')
    octal = [header[start:stop].strip(b' \0') or b'0'
             for start, stop in ((148, 156), (124, 136))]
    if not all(digits.isdigit() for digits in octal):  # int() takes a sign
        raise _UnusualError
    try:
        checksum, size = (int(digits, 8) for digits in octal)
    except ValueError:
        raise _UnusualError from None
    if sum(header) - sum(header[148:156]) + CHECKSUM_AS_SPACES != checksum:
        raise BadInputFile(path, 'not a sound tar archive (wrong check sum '
                           'of a header)')
    name = header[:100].rstrip(b'\0')
    prefix = header[345:500].rstrip(b'\0')
    if prefix and header[257:263] == b'ustar\0':
        name = prefix + b'/' + name
    return name.decode('utf8', 'replace'), size, header[156:157]


class _Section(io.RawIOBase):
    """A part of a file, as a file."""

    def __init__(self, raw: IO[bytes], start: int, stop: int) -> None:
        self._raw = raw
        self._start = start
        self._length = stop - start
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position,
                io.SEEK_END: self._length}[whence]
        self._position = base + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        self._raw.seek(self._start + self._position)
        content = self._raw.read(
            max(0, min(len(buffer), self._length - self._position)))
        buffer[:len(content)] = content
        self._position += len(content)
        return len(content)


class _Unpacked(Tar):
    """An archive that is compressed, read by `tarfile`."""

    def __init__(self, archive: tarfile.TarFile, path: str) -> None:
        self._archive = archive
        self.path = path
        self._infos: dict[int, tarfile.TarInfo] = {}

    def members(self) -> list[Member]:
        """Return the regular files, in the order of the archive."""
        self._infos = {info.offset_data: info
                       for info in walk_tar(self.path, self._archive)}
        return [Member(info.name, offset, info.size)
                for offset, info in self._infos.items()]

    def read(self, member: Member, max_size: int = MAX_MEMBER) -> bytes:
        """Return the content of a regular file of at most `max_size`
        bytes."""
        check_size(self.path, member.name, member.size, max_size)
        return read_member(self.path, self._archive,
                           self._infos[member.offset])

    def inner(self, member: Member) -> Tar:
        """Return a regular file that is itself a tar archive."""
        return Tar(io.BytesIO(self.read(member)),
                   f'{self.path}: {member.name}', 0, member.size)


@contextmanager
def open_members(archive: Any) -> Iterator[Tar]:
    """Open a tar archive, given by its path or as an open file.

    Parameters
    ----------
    archive : str or file
        The archive. It may be compressed.

    Yields
    ------
    Tar
    """
    if not hasattr(archive, 'read'):
        # Unbuffered: each read is a jump, of a size that is known.
        with open(archive, 'rb', buffering=0) as raw, _open(
                raw, str(archive)) as tar:
            yield tar
    else:
        with _open(archive, str(getattr(archive, 'name', 'archive'))) as tar:
            yield tar


@contextmanager
def _open(raw: Any, path: str) -> Iterator[Tar]:
    raw.seek(0, io.SEEK_END)
    length = raw.tell()
    raw.seek(0)
    start = raw.read(HEADER)
    raw.seek(0)
    if start[257:262] == b'ustar' or not start.strip(b'\0'):
        yield Tar(raw, path, 0, length)
    else:
        with open_tar(path, raw, in_order=False) as archive:
            yield _Unpacked(archive, path)
