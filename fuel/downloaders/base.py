"""What every downloader is built from."""
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import IO, Any

import requests

from fuel.downloaders._errors import (
    DownloadError,
    NeedURLPrefix,
    SlowError,
    SourceError,
)
from fuel.downloaders._names import join, name_from_header, name_from_path
from fuel.downloaders._options import Options, options, use_options
from fuel.downloaders._replies import BLOCK, HEADERS, ask, request
from fuel.downloaders._transfer import fetch
from fuel.downloaders.registry import RawFile, raw_files, urls
from fuel.utils.progress import Bar, progress

__all__ = ['DownloadError', 'NeedURLPrefix', 'Options', 'RawFile',
           'default_downloader', 'download', 'ensure_directory_exists',
           'filename_from_url', 'progress_bar', 'raw_files', 'urls',
           'use_options']


def _get(url: str, **kwargs: Any) -> Any:
    # Looked up at each call, so that a test may put another in its place.
    return requests.get(url, **kwargs)  # noqa: S113 - callers set it


def progress_bar(name: str | None, maxval: Any) -> AbstractContextManager[
        Bar]:
    """Show the progress of a download on a terminal.

    Parameters
    ----------
    name : str
        Name of the file.
    maxval : int or None
        Its length in bytes, if that is known.

    Returns
    -------
    context manager
        Yields a bar with a method ``update(value)``.
    """
    return progress(f'Downloading {name or ""}'.rstrip(), maxval,
                    in_bytes=True)


def filename_from_url(url: str, path: str | None = None) -> str:
    """Ask a server for the name of a file.

    Parameters
    ----------
    url : str
        Address of the file.
    path : str, optional
        Not used.

    Returns
    -------
    str
        The name in the Content-Disposition of the reply, else the last part
        of the address. Never more than a name: whatever comes before a
        slash, backslash or colon is dropped.

    Raises
    ------
    DownloadError
        If there is no answer for too long.
    """
    try:
        reply = request(_get, url, HEADERS, options())
    except SlowError as error:
        raise DownloadError(f'{url}: {error}') from error
    try:
        header = reply.headers.get('Content-Disposition')
    finally:
        if hasattr(reply, 'close'):
            reply.close()
    return name_from_header(header) or name_from_path(url)


def download(url: str, file_handle: IO[bytes],
             chunk_size: int = BLOCK) -> None:
    """Download a file, in one attempt, into an open file.

    Parameters
    ----------
    url : str
        Address of the file.
    file_handle : file
        Open for writing in binary mode.
    chunk_size : int, optional
        Not used: bytes are written as they come, at most 256 KiB at once.

    Raises
    ------
    DownloadError
        If the server reports an error, or the transfer breaks off.
    """
    received = 0
    try:
        with (ask(_get, url, 0, options()) as answer,
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
    """Create a folder and those it is in, unless it exists.

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
                       clear: bool = False) -> None:
    """Download files, or delete them.

    Each file is written under another name, resumed if an earlier run left a
    piece of it, compared with what is known about it, and only then given
    its name. Files known to be right already are left alone.

    Parameters
    ----------
    directory : str
        The folder for the files. It is created if need be.
    urls : list of (str or None)
        The address of each file; None means `url_prefix` and its name.
    filenames : list of (str or None)
        The name of each file; None means the one its server gives it. A
        name that is a `RawFile` knows mirrors, a length and a digest.
    url_prefix : str, optional
        The start of the addresses of files that have none; or a folder that
        has the files.
    clear : bool, optional
        Delete the files instead. Default False.

    Raises
    ------
    NeedURLPrefix
        If there is neither an address nor a prefix.
    ValueError
        If no name for a file can be found.
    DownloadError
        If a file could not be had. The others are there.
    """
    if len(urls) != len(filenames):
        raise ValueError(f'expected as many file names as addresses, got '
                         f'{len(filenames)} and {len(urls)}')
    if clear:
        for url, name in zip(urls, filenames, strict=True):
            _delete(directory, url, name)
        return
    if (check := options().check) is not None:
        for url, name in zip(urls, filenames, strict=True):
            known = _known(url or '', name)
            check(os.path.join(directory, known), known)
        return
    ensure_directory_exists(directory)
    jobs = []
    for url, name in zip(urls, filenames, strict=True):
        source = _source(url, name, url_prefix)
        jobs.append((source, _known(source, name)))
    _fetch_all(directory, [(_sources(source, known), known)
                           for source, known in jobs])


def _source(url: str | None, name: str | None, prefix: str | None) -> str:
    mirror = options().mirror
    if mirror is not None and name is not None:
        return join(mirror, name)
    if prefix is not None and isinstance(name, RawFile):
        return join(prefix, name)  # its address is tried afterwards
    if url is not None:
        return url
    if prefix is None:
        raise NeedURLPrefix(f'{name or "a file"} has no public address: '
                            'name a prefix of its address')
    if name is None:
        raise ValueError('a file needs an address or a name, got neither')
    return join(prefix, name)


def _known(source: str, name: str | None) -> RawFile:
    name = name or filename_from_url(source)
    if not name:
        raise ValueError(f'no file name can be found for {source!r}: give '
                         'one')
    return name if isinstance(name, RawFile) else RawFile(name)


def _sources(source: str, known: RawFile) -> list[str]:
    """Return the addresses to try: the user's mirror alone, or all."""
    if options().mirror is not None:
        return [source]
    if source in known.urls:
        return list(known.urls)  # https first
    return [source, *(url for url in known.urls if url != source)]


def _delete(directory: str, url: str | None, name: str | None) -> None:
    if name is None and url is not None:
        name = name_from_path(url)
        if not name or not os.path.exists(os.path.join(directory, name)):
            name = filename_from_url(url)
    if not name:
        raise ValueError(f'no file name can be found for {url!r}: give one')
    for path in (name, *(f'{name}.part{ending}' for ending in (
            '', '.origin', '.zip', '.zip.origin'))):
        with suppress(FileNotFoundError):
            os.remove(os.path.join(directory, path))


def _fetch_all(directory: str,
               jobs: Sequence[tuple[list[str], RawFile]]) -> None:
    chosen = options()

    def one(sources: list[str], known: RawFile,
            make_bar: Callable[[int | None], AbstractContextManager[Bar]]
            ) -> str | None:
        try:
            fetch(_get, sources, known, directory, chosen, make_bar)
        except DownloadError as error:
            return str(error)
        except OSError as error:
            return f'{known} could not be written: {error}'
        return None

    if len(jobs) == 1 or chosen.jobs == 1:
        found = [one(sources, known, partial(progress_bar, known))
                 for sources, known in jobs]
    else:
        found = _fetch_at_once(one, jobs, chosen.jobs)
    problems = [problem for problem in found if problem is not None]
    if problems:
        raise DownloadError('\n'.join(problems))


def _fetch_at_once(one: Callable[..., str | None],
                   jobs: Sequence[tuple[list[str], RawFile]],
                   at_once: int) -> list[str | None]:
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
            # Ctrl-C: the pool waits for its threads, so end them.
            bar.cancel()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


NeedURLPrefix.__module__ = __name__
