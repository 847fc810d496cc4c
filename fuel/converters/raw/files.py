"""Raw files: presence, identity and content."""
import hashlib
import os
import stat
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import IO, Any

from fuel.converters.raw.inflate import Inflated
from fuel.downloaders.registry import owner_of
from fuel.exceptions import FuelError, MissingInputFiles

BLOCK = 1 << 20
# The largest file that is unpacked in memory, of EMNIST, has 547 MB.
MAX_UNPACKED = 1 << 30
# A path as the caller gives it.
Folder = str | os.PathLike[str]
PAGE_STARTS = (b'<!doctype html', b'<html', b'<?xml', b'<head', b'<!--')


FETCH_AGAIN = ('Delete the file and run fuel-download again, or put the right '
               'file in its place')


class BadInputFile(FuelError, ValueError):  # noqa: N818
    """Raised by a converter whose raw file is invalid."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        self.advice: str | None = None
        super().__init__(path, problem)

    def __str__(self) -> str:
        return f'{self.path}: {self.problem}. {self.advice or FETCH_AGAIN}'


class MissingRawFiles(MissingInputFiles, FileNotFoundError):  # noqa: N818
    """Raised for missing raw files; one of its base classes is the class that
    the converter raised in Fuel 0.2.0."""


def input_paths(directory: Folder, filenames: Iterable[str]) -> list[str]:
    """Return the paths of raw files; raise `MissingRawFiles` if some are
    not there, and `BadInputFile` if one is empty, a web page or a pipe."""
    names = list(filenames)
    paths = [os.path.join(directory, name) for name in names]
    for path in filter(os.path.exists, paths):
        require_regular(path)
    require_files(directory, names, MissingRawFiles)
    for path in paths:
        refuse_page(path)
    return paths


def require_files(directory: Folder, filenames: Iterable[str],
                  error: type[MissingInputFiles] = MissingInputFiles) -> None:
    """Raise an error if some files are not in a folder."""
    missing = [name for name in filenames
               if not os.path.isfile(os.path.join(directory, name))]
    if missing:
        raise error('Required files missing', missing, directory)


def refuse_page(path: str) -> None:
    """Raise `BadInputFile` if a file is a pipe or a device, is empty, or
    begins like a web page, which servers send in place of other data."""
    require_regular(path)
    with open(path, 'rb') as raw:
        start = raw.read(512).lstrip(b'\xef\xbb\xbf \t\r\n').lower()
    if os.path.getsize(path) == 0:
        raise BadInputFile(path, 'the file is empty')
    if start.startswith(PAGE_STARTS):
        raise BadInputFile(
            path, 'expected raw data, got a web page (it begins with '
            f'{start[:30].decode("latin1")!r})')


def require_regular(path: str) -> None:
    """Raise `BadInputFile` for a pipe, on which a reader would wait for
    ever, a device or a socket."""
    kind = os.stat(path).st_mode
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
        raise BadInputFile(path, 'expected a regular file, got a pipe, a '
                           'device or a socket')


@contextmanager
def inflating(raw: IO[bytes], path: str) -> Iterator[Inflated]:
    """Unpack an open gzip file; raise `BadInputFile`, which calls the file
    `path`, if it is damaged."""
    try:
        yield Inflated(raw)
    except EOFError as error:
        raise BadInputFile(path, 'the gzip file is cut short') from error
    except zlib.error as error:
        raise BadInputFile(path, f'not a sound gzip file ({error})') from error


def unpack_gzip(raw: IO[bytes], path: str, max_size: int) -> bytes:
    """Return the content of a gzip file that is open; raise `BadInputFile`
    if it is damaged or unpacks to more than `max_size` bytes."""
    with inflating(raw, path) as stream:
        content = stream.read(max_size + 1)
    if len(content) > max_size:
        raise BadInputFile(path, 'the gzip file unpacks to more than '
                           f'{max_size} bytes')
    return content


def refuse_namesakes(dataset: str, paths: Iterable[str]) -> None:
    """Raise `BadInputFile` if a file belongs to another data set, which has a
    file of the same name: several data sets use the names of MNIST's files."""
    for path in paths:
        owner = owner_of(os.path.basename(path), path)
        if owner is not None and owner != dataset:
            raise BadInputFile(path, f'this is the file of {owner}, not of '
                               f'{dataset}; each needs a folder of its own')


@contextmanager
def digested(paths: Iterable[str]
             ) -> Iterator[Callable[[], dict[str, dict[str, Any]]]]:
    """Compute sizes and SHA-256 of files in the background; yield a function
    that waits and returns ``{name: {'size': bytes, 'sha256': digest}}``."""
    stop = threading.Event()

    def describe(path: str) -> dict[str, Any]:
        digest = hashlib.sha256()
        size = 0
        with open(path, 'rb') as raw:
            while (block := raw.read(BLOCK)) and not stop.is_set():
                digest.update(block)
                size += len(block)
        return {'size': size, 'sha256': digest.hexdigest()}

    # One thread: hashing frees the interpreter's lock, and the disk is read
    # for the conversion at the same time.
    with ThreadPoolExecutor(1) as pool:
        found = {os.path.basename(path): pool.submit(describe, path)
                 for path in paths}
        try:
            yield lambda: {name: each.result() for name, each in found.items()}
        finally:
            # A failed conversion does not wait for the digest of an archive.
            stop.set()
            pool.shutdown(cancel_futures=True)
