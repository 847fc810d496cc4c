"""One raw file: from its addresses to its place on disk."""
import json
import logging
import os
import shutil
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import IO
from urllib.parse import urlsplit

from fuel.downloaders.errors import (
    DownloadError, EncodingError, NoConnectionError, SlowError, SourceError,
    TransientError, UnreachableError, WrongPieceError)
from fuel.downloaders.options import Options
from fuel.downloaders.replies import Get, Remainder, ask
from fuel.downloaders.registry import RawFile, digest_of, owner_of
from fuel.utils.atomic_files import flush_folder
from fuel.utils.progress import Bar

try:
    import fcntl
except ImportError:  # Windows, where an open file cannot be replaced anyway
    fcntl = None  # type: ignore[assignment, unused-ignore]

log = logging.getLogger(__name__)

PAGES = (b'<!doctype html', b'<html')
PAGE_START = 512
# Seconds between checks whether another process has finished.
LOCK_INTERVAL = .1
# White space, and the byte order mark that Windows puts before a text.
BLANK = b' \t\r\n\xef\xbb\xbf'
BarMaker = Callable[[int | None], AbstractContextManager[Bar]]


def fetch(get: Get, sources: Sequence[str], known: RawFile,
          directory: str, options: Options, make_bar: BarMaker) -> None:
    """Download a file, unless it exists and has the right digest.

    Raises: DownloadError if it cannot be downloaded from any address; an old
        file is then unchanged.
    """
    target = os.path.join(directory, known)
    if _is_right(target, known):
        return
    _spare_namesake(target, known)
    reasons: list[str] = []
    unreachable: dict[str, str] = {}
    with locked_part(target + '.part', known, options) as part:
        # Another process may have downloaded it while this one waited.
        if _is_right(target, known):
            part.truncate(0)
            return
        for source in sources:
            if reasons and not known.verifiable:
                part.truncate(0)  # no way to tell if the pieces fit
            try:
                _fill(get, source, part, known, options, make_bar)
            except SourceError as error:
                log.info('%s: %s', source, error)
                reasons.append(f'  {source}: {error}')
                if isinstance(error.__cause__, NoConnectionError):
                    unreachable[urlsplit(source).netloc] = str(error)
                continue
            part.flush()
            if not known.verifiable:
                log.warning('%s was not verified, since no digest of it is '
                            'known; the download has the SHA-256 %s', known,
                            digest_of(part.name, 'sha256'))
            _finish(part, target)
            return
    text = (
        f'{known} could not be downloaded; no file was changed. Tried:\n' +
        '\n'.join(reasons) + '\nTry again later, name a mirror or a folder '
        'that has the file (--url-prefix, url_prefix in Python), or put it in '
        f'{directory!r} yourself')
    if len(unreachable) == len({urlsplit(source).netloc
                                for source in sources}):
        raise UnreachableError(text, known, unreachable)
    raise DownloadError(text)


def _is_right(path: str, known: RawFile) -> bool:
    if not (known.verifiable and os.path.isfile(path)):
        return False
    problem = known.problem(path)
    log.info('%s is there %s', path, (
        'and verified' if problem is None else f'but wrong: {problem}'))
    return problem is None


def _spare_namesake(path: str, known: RawFile) -> None:
    """Raise DownloadError if a file of another data set has the path."""
    if known.verifiable and os.path.isfile(path):
        owner = owner_of(known, path)
        if owner is not None:
            raise DownloadError(
                f'{path} is the file of that name of {owner}: choose another '
                'folder (--directory) for each of the two data sets')


@contextmanager
def locked_part(path: str, name: str, options: Options
                ) -> Iterator[IO[bytes]]:
    """Return a context in which an unfinished file is open, and locked against
    other processes."""
    while True:
        part = open(path, 'a+b')  # noqa: SIM115
        try:
            if fcntl is None:
                break  # type: ignore[unreachable, unused-ignore]
            _lock(part, name, options)
            if os.path.samestat(os.fstat(part.fileno()), os.stat(path)):
                break
        except FileNotFoundError:
            pass  # its owner has finished it: begin a new file
        except BaseException:
            part.close()
            raise
        part.close()
    with part:
        try:
            yield part
        finally:
            if not part.closed:
                _forget_empty(part)


def _lock(part: IO[bytes], name: str, options: Options) -> None:
    """Lock an unfinished file; log it if another process has the lock.

    Raises: DownloadError if the other process makes no progress.
    """
    size, since = -1, time.monotonic()
    while True:
        try:
            fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if size < 0:
                log.warning('%s is being downloaded by another process or '
                            'thread: waiting for it', name)
        if _size(part) != size:
            size, since = _size(part), time.monotonic()
        elif time.monotonic() - since > options.patience:
            raise DownloadError(
                f'{name}: another process or thread that downloads it has '
                f'made no progress for {options.patience:.0f} seconds; end '
                f'it, or wait for it, and try again')
        time.sleep(LOCK_INTERVAL)


def _forget_empty(part: IO[bytes]) -> None:
    """Remove an unfinished file if it is empty."""
    with suppress(OSError):  # a full disk is reported elsewhere
        part.flush()
    if _size(part):
        return
    if fcntl is None:
        part.close()  # type: ignore[unreachable, unused-ignore]
    _remove(part.name, metadata_path(part.name))


def _remove(*paths: str) -> None:
    for path in paths:
        with suppress(FileNotFoundError):
            os.remove(path)


def _finish(part: IO[bytes], target: str) -> None:
    """Rename a complete file to its final name."""
    part.flush()
    os.fsync(part.fileno())
    _remove(metadata_path(part.name))
    if fcntl is None:
        part.close()  # type: ignore[unreachable, unused-ignore]
        os.replace(part.name, target)
    else:
        # Processes that wait for the lock see that the path was renamed.
        os.replace(part.name, target)
        part.close()
    flush_folder(os.path.dirname(target) or os.curdir)


def _size(part: IO[bytes]) -> int:
    return os.fstat(part.fileno()).st_size


def _fill(get: Get, source: str, part: IO[bytes],
          known: RawFile, options: Options, make_bar: BarMaker) -> None:
    """Fill an unfinished file from one address, in a limited number of
    attempts."""
    archive, _, member = source.partition('#')
    if member:
        _fill_from_zip(get, archive, member, part, known, options, make_bar)
        return
    most, failures, unpack = _size(part), 0, True
    while True:
        resumed = _size(part) > 0
        try:
            encoded = _attempt(get, source, part, known, options, make_bar,
                               unpack)
            part.flush()
            if _is_stored_page(part, known, resumed):
                continue
            problem = known.problem(part.name)
            if problem is None:
                return
            part.truncate(0)
            if encoded and unpack:
                unpack = False
            elif not resumed:
                raise SourceError(f'{problem}; ' + (
                    'it is another file, or damaged'
                    if source.startswith('file:') else
                    'the download was deleted. The address may have another '
                    'file now, or the file was damaged on the way'))
            continue
        except EncodingError as error:
            if not unpack:
                raise
            log.info('%s: %s', source, error)
            part.truncate(0)
            unpack = False
            continue
        except TransientError as error:
            # More bytes than before are progress, unless the attempt was too
            # slow.
            progress = _size(part) > most and not isinstance(error, SlowError)
            failures = 1 if progress else failures + 1
            most = max(most, _size(part))
            if failures >= options.attempts:
                raise SourceError(f'{error} (after {failures} attempts)'
                                  ) from error
            log.info('%s: %s; trying again', source, error)
        options.sleep(options.backoff * 2 ** (failures - 1))


def _fill_from_zip(get: Get, source: str, member: str, part: IO[bytes],
                   known: RawFile, options: Options, make_bar: BarMaker
                   ) -> None:
    """Fill an unfinished file with a member of an archive.

    This is for a file that is no longer distributed by itself.
    """
    if known.size is None or not known.verifiable:
        raise SourceError('the member of the archive cannot be verified: its '
                          'size and a digest must both be known')
    path = f'{part.name}.zip'
    # The lock of the unfinished file covers the archive next to it too.
    with open(path, 'a+b') as packed:
        try:
            _fill(get, source, packed, RawFile(os.path.basename(path)),
                  options, make_bar)
        finally:
            _forget_empty(packed)
    try:
        with zipfile.ZipFile(path) as archive, archive.open(member) as raw:
            content = raw.read(known.size + 1)
    except (zipfile.BadZipFile, KeyError, EOFError, zlib.error, ValueError,
            RuntimeError) as error:
        raise SourceError(f'no sound archive with {member!r} ({error})'
                          ) from error
    finally:
        _remove(path, metadata_path(path))
    part.truncate(0)
    part.write(content)
    part.flush()
    if problem := known.problem(part.name):
        part.truncate(0)
        raise SourceError(f'{member!r} in the archive: {problem}')


def _attempt(get: Get, source: str, part: IO[bytes],
             known: RawFile, options: Options, make_bar: BarMaker,
             unpack: bool) -> bool:
    """Append the missing bytes; return whether the server compressed them."""
    metadata = PartialMetadata(part, known)
    if not metadata.allows_resume(source) or (
            known.size is not None and _size(part) > known.size):
        part.truncate(0)
    start = _size(part)
    if known.size is not None and start == known.size:
        return False
    try:
        with ask(get, source, start, options, unpack,
                 metadata.validator) as answer:
            if answer.start != start:
                part.truncate(answer.start)
            metadata.record(source, answer)
            _check_promise(answer, part, known)
            with make_bar(known.size or answer.total) as bar:
                _copy(answer, part, known, bar)
    except WrongPieceError:
        part.truncate(0)
        raise
    finally:
        part.flush()
    total = answer.total
    if total is not None and not answer.encoded and _size(part) != total:
        raise TransientError(f'the transfer broke off: expected {total} '
                             f'bytes, got {_size(part)}')
    return answer.encoded


def _check_promise(answer: Remainder, part: IO[bytes], known: RawFile) -> None:
    if None not in (answer.total, known.size) and (
            answer.total != known.size and not answer.encoded):
        raise SourceError(f'expected {known.size} bytes, this file has '
                          f'{answer.total}')
    needed = (known.size or answer.total or 0) - answer.start
    free = shutil.disk_usage(os.path.dirname(part.name) or '.').free
    if needed > free:
        raise DownloadError(f'{part.name}: {needed} bytes are needed, '
                            f'{free} are free on the disk')


def _copy(answer: Remainder, part: IO[bytes], known: RawFile,
          bar: Bar) -> None:
    bar.advance(answer.start)
    done = answer.start
    try:
        for chunk in answer.chunks:
            if not done:
                _refuse_page(chunk, known)
            done += len(chunk)
            if known.size is not None and done > known.size:
                part.truncate(0)
                raise SourceError(f'expected {known.size} bytes, got more')
            part.write(chunk)
            bar.advance(len(chunk))
    except BaseException:
        bar.advance(-done)
        raise


def _is_stored_page(part: IO[bytes], known: RawFile, resumed: bool) -> bool:
    """Return whether an unfinished file is a web page; if it is, empty it.

    The first bytes may have arrived one by one. So the file is checked, not
    only the bytes as they arrive.

    `resumed`: whether an earlier attempt wrote a part of the file; if not, a
        page raises SourceError.
    """
    part.seek(0)
    try:
        _refuse_page(part.read(PAGE_START), known)
    except SourceError:
        part.truncate(0)
        if not resumed:
            raise
        return True
    return False


def _refuse_page(start: bytes, known: RawFile) -> None:
    if not known.lower().endswith(('.html', '.htm')) and start[
            :PAGE_START].lstrip(BLANK).lower().startswith(PAGES):
        raise SourceError('got a web page in place of the file')


def metadata_path(part: str) -> str:
    """Return the path of the metadata of an unfinished file."""
    return f'{part}.origin'


class PartialMetadata:
    """Address, length and validator of an unfinished file, in a file next to
    it. They are not recorded if a digest of the file is known.

    A file with a known digest may be joined from parts of several addresses,
    since it is verified at the end. The parts of another file must come from
    one address, and a validator of the server must show that the file has not
    changed.
    """

    def __init__(self, part: IO[bytes], known: RawFile) -> None:
        self._part = part
        self._path = metadata_path(part.name)
        self._verifiable = known.verifiable
        self._facts: dict[str, object] = {}
        if not self._verifiable:
            with (suppress(FileNotFoundError, ValueError, TypeError),
                  open(self._path, encoding='utf8') as file):
                self._facts = dict(json.load(file))

    @property
    def validator(self) -> str | None:
        """The server's identifier of this state of the file (str), or None."""
        found = self._facts.get('validator')
        return found if isinstance(found, str) else None

    def allows_resume(self, source: str) -> bool:
        """Return whether the download may resume from an address."""
        return self._verifiable or (
            self.validator is not None and self._facts.get('source') == source)

    def record(self, source: str, answer: Remainder) -> None:
        """Record the facts about a download that begins; check a download that
        resumes."""
        if self._verifiable:
            return
        if answer.start and self._facts.get('total') not in (
                None, answer.total):
            self._part.truncate(0)
            raise TransientError(
                f'the file has {answer.total} bytes now; the piece on disk, '
                f'of a file of {self._facts["total"]} bytes, is deleted')
        if not answer.start:
            self._facts = {'source': source, 'total': answer.total,
                           'validator': answer.validator}
            with open(self._path, 'w', encoding='utf8') as file:
                json.dump(self._facts, file)
