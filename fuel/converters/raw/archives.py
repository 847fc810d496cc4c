"""Members of archives, read one after the other and never unpacked blindly.

Whoever made an archive may be an enemy: names that lead out of the folder,
links and devices are refused, and sizes are bounded before a byte is read.
"""
import contextlib
import gzip
import lzma
import posixpath
import struct
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Any

from fuel.converters.raw.files import BadInputFile, refuse_page
from fuel.converters.raw.inflate import Inflated

__all__ = ['MAX_IMAGE', 'MAX_MEMBER', 'check_name', 'check_size', 'open_tar',
           'open_zip', 'read_member', 'read_zipped', 'walk_tar']

MAX_MEMBER = 1 << 31
# Many images wait in memory to be decoded.
MAX_IMAGE = 1 << 26
# The other forms unpack without a bound.
ZIP_FORMS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ENCRYPTED = 1
GZIP_MAGIC = b'\x1f\x8b'
BROKEN = (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error,
          gzip.BadGzipFile, lzma.LZMAError)
# What the standard library does with headers that lie.
CONFUSED = (ValueError, OverflowError, RecursionError, NotImplementedError,
            struct.error)


def check_name(path: str, name: str) -> None:
    """Raise `BadInputFile` if a member's name leads out of its folder."""
    parts = name.replace('\\', '/').split('/')
    if posixpath.isabs(name) or '..' in parts or ':' in parts[0]:
        raise BadInputFile(path, f'the member {name!r} would leave the '
                           'folder it is unpacked in')


def check_size(path: str, name: str, size: int, max_size: int) -> None:
    """Raise `BadInputFile` if a member is not of 0 to `max_size` bytes."""
    if not 0 <= size <= max_size:
        raise BadInputFile(path, f'the member {name!r} has {size} bytes, more '
                           f'than {max_size}' if size > 0 else
                           f'the member {name!r} has {size} bytes')


@contextlib.contextmanager
def open_tar(path: str, fileobj: Any = None,
             in_order: bool = True) -> Iterator[tarfile.TarFile]:
    """Open a tar archive, packed or not; its faults become `BadInputFile`.

    If members are read `in_order`, a packed archive is read quickly.
    """
    try:
        with contextlib.ExitStack() as stack:
            raw = fileobj
            if raw is None:
                raw = stack.enter_context(open(path, 'rb'))
            magic = raw.read(2)
            raw.seek(0)
            quickly = in_order and magic == GZIP_MAGIC
            stream: Any = Inflated(raw) if quickly else raw
            with (tarfile.open(fileobj=stream, mode='r:') if quickly else
                  tarfile.open(fileobj=stream)) as archive:
                yield archive
    except BROKEN as error:
        if fileobj is None:
            refuse_page(path)
        raise BadInputFile(path, f'not a sound archive ({error})') from error


def walk_tar(path: str, archive: tarfile.TarFile,
             max_size: int = MAX_MEMBER) -> Iterator[tarfile.TarInfo]:
    """Iterate over the regular files of an archive, in its order.

    Raises
    ------
    BadInputFile
        For a link, a device, a name that leads out of the folder, and a
        file of more than `max_size` bytes.
    """
    for member in _headers(path, archive):
        check_name(path, member.name)
        if member.isdir():
            continue
        if not member.isreg():
            raise BadInputFile(path, f'the member {member.name!r} is a link '
                               'or a device')
        check_size(path, member.name, member.size, max_size)
        yield member


def _headers(path: str, archive: tarfile.TarFile
             ) -> Iterator[tarfile.TarInfo]:
    try:
        while (member := archive.next()) is not None:
            # Before the next is looked for where this one ends.
            check_size(path, member.name, member.size, sys.maxsize)
            yield member
    except BadInputFile:
        raise
    except CONFUSED as error:
        raise BadInputFile(path, f'not a sound archive ({error})') from error


def read_member(path: str, archive: tarfile.TarFile,
                member: tarfile.TarInfo) -> bytes:
    """Return the content of a regular file of an archive."""
    raw: IO[bytes] | None = archive.extractfile(member)
    content = raw.read() if raw is not None else b''
    if len(content) != member.size:
        raise BadInputFile(path, f'the member {member.name!r} is cut short')
    return content


@contextlib.contextmanager
def open_zip(path: str) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive; its faults become `BadInputFile`."""
    try:
        with _zip_file(path) as archive:
            for name in archive.namelist():
                check_name(path, name)
            yield archive
    except BROKEN as error:
        refuse_page(path)
        raise BadInputFile(path, f'not a sound archive ({error})') from error


def _zip_file(path: str) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except CONFUSED as error:
        raise BadInputFile(path, f'not a sound archive ({error})') from error


def read_zipped(path: str, archive: zipfile.ZipFile, name: str,
                max_size: int = MAX_IMAGE) -> bytes:
    """Return the content of a member of a zip archive."""
    try:
        info = archive.getinfo(name)
    except KeyError as error:
        raise BadInputFile(path, f'there is no member {name!r}') from error
    check_size(path, name, info.file_size, max_size)
    if info.compress_type not in ZIP_FORMS or info.flag_bits & ENCRYPTED:
        raise BadInputFile(path, f'the member {name!r} is encrypted, or '
                           'packed in another way than deflate')
    # Without a size, all that the packed bytes unpack to is in memory at
    # once, whatever size the archive claims.
    try:
        with archive.open(info) as raw:
            content = raw.read(info.file_size)
    except CONFUSED as error:
        raise BadInputFile(path, f'the member {name!r} is damaged ({error})'
                           ) from error
    if len(content) != info.file_size:
        raise BadInputFile(path, f'the member {name!r} is cut short')
    return content
