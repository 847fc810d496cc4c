"""Functions that downloaders are built from."""
import os
import posixpath
import re
import urllib.parse
import urllib.request
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from email.message import Message
from typing import IO, Any

import requests

from fuel.downloaders.errors import (DownloadError, SlowError, SourceError,
                                     UnreachableError)
from fuel.downloaders.options import DEFAULT, Options
from fuel.downloaders.replies import (BLOCK, HEADERS, Reply, ask, close,
                                      request)
from fuel.downloaders.transfer import BarMaker, fetch
from fuel.downloaders.registry import RawFile, known_file, raw_files, set_files
from fuel.exceptions import NeedURLPrefix
from fuel.utils.extensions import Filler
from fuel.utils.progress import Bar, progress

__all__ = ['DownloadError', 'Downloader', 'Filler', 'NeedURLPrefix',
           'Options', 'RawFile', 'default_downloader', 'download',
           'ensure_directory_exists', 'filename_from_url', 'filler_of',
           'progress_bar', 'raw_files', 'set_files']

# Function that is called with all arguments of its parser as keywords:
# `directory`, `clear`, ...
Downloader = Callable[..., None]
# Characters that separate folders on some system. Only the part after the last
# of them is kept.
SEPARATORS = re.compile(r'[/\\:]')
UNPRINTABLE = re.compile(r'[\x00-\x1f\x7f]')


def _get(url: str, *, stream: bool, headers: Mapping[str, str],
         timeout: tuple[float, float], hooks: Mapping[str, Any]) -> Reply:
    # `requests.get` is looked up at each call, so that a test may replace it.
    return requests.get(url, stream=stream, headers=headers, timeout=timeout,
                        hooks=hooks)


def progress_bar(name: str | None, maxval: object) -> AbstractContextManager[
        Bar]:
    """Show the progress of a download: a bar on a terminal, elsewhere two
    lines.

    Parameters
    ----------
    name : str
        Name of the file.
    maxval : int or None
        Length of the file in bytes, if it is known.

    Returns
    -------
    context manager
        Yields a bar with a method ``update(value)``.
    """
    return progress(f'Downloading {name or ""}'.rstrip(), maxval,
                    in_bytes=True, in_lines=True)


def filename_from_url(url: str, path: str | None = None, *,
                      options: Options = DEFAULT) -> str:
    """Return the name that a server gives to a file.

    Parameters
    ----------
    url : str
        Address of the file.
    path : str, optional
        Not used.
    options : Options, optional
        Seconds to wait.

    Returns
    -------
    str
        The name in the header Content-Disposition of the reply, else the last
        part of the address. It is never a path: whatever precedes a slash,
        backslash or colon is dropped.

    Raises
    ------
    DownloadError
        If the server does not answer in time.
    """
    try:
        reply = request(_get, url, HEADERS, options)
    except SlowError as error:
        raise DownloadError(f'{url}: {error}') from error
    try:
        header = reply.headers.get('Content-Disposition')
    finally:
        close(reply)
    return _name_from_header(header) or _name_from_path(url)


def download(url: str, file_handle: IO[bytes], chunk_size: int = BLOCK, *,
             options: Options = DEFAULT) -> None:
    """Download a file, in one attempt, into an open file.

    Parameters
    ----------
    url : str
        Address of the file.
    file_handle : file
        Open for writing in binary mode.
    chunk_size : int, optional
        Not used: bytes are written as they arrive, at most 256 KiB at once.
    options : Options, optional
        Seconds to wait.

    Raises
    ------
    DownloadError
        If the server reports an error, or the transfer breaks off.
    """
    received = 0
    try:
        with (ask(_get, url, 0, options) as answer,
              progress_bar(getattr(file_handle, 'name', None),
                           answer.total) as bar):
            for chunk in answer.chunks:
                file_handle.write(chunk)
                received += len(chunk)
                bar.update(received)
    except SourceError as error:
        raise DownloadError(f'{url}: {error}') from error
    if answer.total is not None and received < answer.total:
        raise DownloadError(f'{url}: the transfer broke off: expected '
                            f'{answer.total} bytes, got {received}')


def ensure_directory_exists(directory: str) -> None:
    """Create a folder and the folders that contain it, unless it exists.

    Parameters
    ----------
    directory : str
        The folder.

    Raises
    ------
    OSError
        If a file is in the way.
    """
    os.makedirs(directory, exist_ok=True)


def default_downloader(directory: str, urls: Sequence[str | None],
                       filenames: Sequence[str | None],
                       url_prefix: str | None = None,
                       clear: bool = False, *,
                       options: Options = DEFAULT) -> None:
    """Download files, or delete them.

    Each file is written under a temporary name. If an earlier run left a part
    of the file, the download resumes. The file is renamed only after its size
    and digest were checked, if they are known. Existing files with the right
    digest are not downloaded again.

    Parameters
    ----------
    directory : str
        The folder for the files. It is created if it does not exist.
    urls : list of (str or None)
        The address of each file; None means `url_prefix` and the file's name.
    filenames : list of (str or None)
        The name of each file; None means the name that the server gives it.
        For the files of built-in data sets, mirrors, length and digest are
        known. For other files, a `RawFile` in the place of a name states
        them.
    url_prefix : str, optional
        The start of the address of each file without an address; or a folder
        that has the files.
    clear : bool, optional
        Delete the files instead. Default False.
    options : Options, optional
        Mirror, timeouts, attempts, and a function that checks files instead
        of downloading them.

    Raises
    ------
    NeedURLPrefix
        If there is neither an address nor a prefix.
    ValueError
        If no name for a file can be found.
    DownloadError
        If a file could not be downloaded. The other files were downloaded.
    """
    if len(urls) != len(filenames):
        raise ValueError(f'expected as many file names as addresses, got '
                         f'{len(filenames)} and {len(urls)}')
    if clear:
        for url, name in zip(urls, filenames, strict=True):
            _delete(directory, url, name, options)
        return
    if options.check is None:
        ensure_directory_exists(directory)
    jobs = [_job(url, name, url_prefix, options)
            for url, name in zip(urls, filenames, strict=True)]
    if options.check is not None:
        for _, known in jobs:
            options.check(os.path.join(directory, known), known)
        return
    _fetch_all(directory, jobs, options)


def _job(url: str | None, name: str | None, prefix: str | None,
         options: Options) -> tuple[list[str], RawFile]:
    """Return the addresses of a file, in the order in which to try them, and
    the known facts about the file."""
    asked = url
    if url is None and name is not None and prefix is not None:
        asked = _join(prefix, name)
    name = name or (None if asked is None else filename_from_url(
        asked, options=options))
    if not name:
        raise ValueError(f'no file name can be found for {asked!r}: give one')
    known = known_file(name, asked)
    if options.mirror is not None:
        return [_join(options.mirror, name)], known
    sources = list(known.urls)  # https first
    if asked is not None and asked not in sources:
        sources.insert(0, asked)
    if prefix is not None and _join(prefix, name) not in sources:
        sources.insert(0, _join(prefix, name))
    if not sources and options.check is None:
        raise NeedURLPrefix(f'{name} has no public address: name a prefix of '
                            'its address')
    return list(dict.fromkeys(sources)), known


def _delete(directory: str, url: str | None, name: str | None,
            options: Options) -> None:
    if name is None and url is not None:
        name = _name_from_path(url)
        if not name or not os.path.exists(os.path.join(directory, name)):
            name = filename_from_url(url, options=options)
    if not name:
        raise ValueError(f'no file name can be found for {url!r}: give one')
    for path in (name, *(f'{name}.part{ending}' for ending in (
            '', '.origin', '.zip', '.zip.origin'))):
        with suppress(FileNotFoundError):
            os.remove(os.path.join(directory, path))


def _fetch_all(directory: str, jobs: Sequence[tuple[list[str], RawFile]],
               options: Options) -> None:
    def one(sources: list[str], known: RawFile, make_bar: BarMaker
            ) -> OSError | None:
        try:
            fetch(_get, sources, known, directory, options, make_bar)
        except DownloadError as error:
            return error
        except OSError as error:
            return OSError(f'{known} could not be written: {error}')
        return None

    if len(jobs) == 1 or options.jobs == 1:
        found = []
        for sources, known in jobs:
            with ExitStack() as stack:
                found.append(one(sources, known, _one_bar(stack, known)))
    else:
        found = _fetch_at_once(one, jobs, options.jobs)
    problems = [problem for problem in found if problem is not None]
    if problems:
        raise DownloadError(_offline(problems, directory)
                            or '\n'.join(map(str, problems)))


def _offline(problems: Sequence[OSError], directory: str) -> str | None:
    """Return one message for several files whose hosts cannot be reached."""
    unreachable = [problem for problem in problems
                   if isinstance(problem, UnreachableError)]
    if len(unreachable) < 2 or len(unreachable) < len(problems):
        return None
    reasons: dict[str, str] = {}
    for problem in unreachable:
        reasons.update(problem.reasons)
    hosts = '\n'.join(f'  {host}: {reason}' for host, reason in
                      reasons.items())
    names = ', '.join(problem.name for problem in unreachable)
    return (f'{len(problems)} files could not be downloaded, since no host '
            f'that has them can be reached; no file was changed:\n{hosts}\n'
            'Look whether this machine is connected and needs a proxy, name '
            'a mirror or a folder that has the files (--url-prefix, '
            'url_prefix in Python), or put '
            f'them in {directory!r} yourself: {names}')


def _one_bar(stack: ExitStack, name: str) -> BarMaker:
    """Return a function that makes one progress bar for all attempts."""
    bars: list[Bar] = []

    def make_bar(total: int | None) -> AbstractContextManager[Bar]:
        if not bars:
            bars.append(stack.enter_context(progress_bar(name, total)))
        return nullcontext(bars[0])
    return make_bar


def _fetch_at_once(one: Callable[..., OSError | None],
                   jobs: Sequence[tuple[list[str], RawFile]],
                   at_once: int) -> list[OSError | None]:
    sizes = [known.size for _, known in jobs]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    with (progress_bar(f'{len(jobs)} files', total) as bar,
          ThreadPoolExecutor(at_once) as pool):
        futures = [pool.submit(one, sources, known,
                               lambda total: nullcontext(bar))
                   for sources, known in jobs]
        try:
            return [future.result() for future in futures]
        except BaseException:
            # After Ctrl-C the pool would wait for its threads, so end them.
            bar.cancel()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def filler_of(dataset: str, *names: str, prefix: bool = False) -> Filler:
    """Return the function that fills the parser of ``fuel-download
    <dataset>``.

    Parameters
    ----------
    dataset : str
        Name of a data set in the registry.
    *names : str
        Names of some of its files, in the order to download them. Default:
        all.
    prefix : bool, optional
        Add ``--url-prefix``, for files that only registered users get.
        Default False.

    Returns
    -------
    callable
        It sets the files of the parser, and returns `default_downloader`.
    """
    def fill_subparser(subparser: ArgumentParser) -> Downloader:
        """Set the files of the data set, and return `default_downloader`."""
        set_files(subparser, dataset, *names)
        if prefix:
            subparser.add_argument(
                '-P', '--url-prefix', default=None, metavar='PREFIX',
                help='a folder, or the start of an address, to take the '
                'files from that have no public address')
        return default_downloader

    return fill_subparser


def _safe(name: str) -> str:
    """Return the last component of a name, empty if it is invalid."""
    name = UNPRINTABLE.sub('', SEPARATORS.split(name)[-1]).strip()
    return '' if name in ('.', '..', '~') else name


def _name_from_header(header: str | None) -> str:
    """Return the file name in a Content-Disposition, '' if none is safe."""
    message = Message()
    message['content-disposition'] = UNPRINTABLE.sub('', header or '')
    return _safe(message.get_filename('') or '')


def _name_from_path(url: str) -> str:
    """Return the last part of the path of an address, '' if it is empty."""
    path = urllib.parse.unquote(urllib.parse.urlparse(url).path)
    return _safe(posixpath.basename(path))


def _join(prefix: str, name: str) -> str:
    """Return the address of the file `name` below `prefix`.

    `prefix`: start of an address, or a folder on disk.
    """
    if os.path.isdir(prefix):
        prefix = 'file:' + urllib.request.pathname2url(
            os.path.abspath(prefix))
    if not prefix.endswith(('/', '=')):
        prefix += '/'
    quote = prefix.startswith('file:')
    return prefix + (urllib.parse.quote(name) if quote else name)
