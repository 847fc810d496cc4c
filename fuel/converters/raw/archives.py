"""Members of archives: names and sizes, and the content of zip archives."""
import contextlib
import posixpath
import struct
import zipfile
import zlib
from collections.abc import Iterator

from fuel.converters.raw.files import BadInputFile, refuse_page

MAX_MEMBER = 1 << 31
# The limit for an image is smaller, since many images wait in memory to be
# decoded.
MAX_IMAGE = 1 << 26
# Python's decoders of other methods decompress without a limit.
ZIP_FORMS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ENCRYPTED = 1
BROKEN = zipfile.BadZipFile, EOFError, zlib.error
# Errors that the standard library raises for invalid headers.
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
def open_zip(path: str) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive; raise `BadInputFile` if it is damaged."""
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
    # The size is given: otherwise the whole unpacked content would be in
    # memory at once, even if it is larger than the archive claims.
    try:
        with archive.open(info) as raw:
            content = raw.read(info.file_size)
    except (*CONFUSED, OSError) as error:  # also a place before the file
        raise BadInputFile(path, f'the member {name!r} is damaged ({error})'
                           ) from error
    if len(content) != info.file_size:
        raise BadInputFile(path, f'the member {name!r} is cut short')
    return content
