"""Files of any file system that fsspec knows, in ranges."""
from __future__ import annotations

import asyncio
from typing import Any

from fuel.remote.store import (
    Answer, ChangedError, TransientError, error_of_status)

# What file systems call the state of a file: of the first there is one, and
# of the others all, since a time is that of several states if they follow
# each other fast.
_VERSIONS = ('ETag', 'etag', 'version_id', 'generation', 'content_md5',
             'md5Hash', 'crc32c', 'checksum', 'sha256')
_TIMES = ('LastModified', 'last_modified', 'updated', 'mtime', 'modified',
          'created', 'ino')


class FilesystemStore:
    """A file of any file system.

    Fsspec does not tell the state of a file with its bytes: it is asked for
    after they were read, so they are those of the state before and after. The
    reads that ended meanwhile share a question.
    """

    def __init__(self, filesystem: Any, url: str, idle: float) -> None:
        self._filesystem = filesystem
        self._path = filesystem._strip_protocol(url)
        self._idle = idle
        # Of the file, when it was asked for last.
        self._known: tuple[int, str] | None = None
        # The question that nobody has begun to ask yet.
        self._next: asyncio.Task[tuple[int, str]] | None = None
        self._asking = asyncio.Lock()

    async def fetch(self, start: int, stop: int, validator: str) -> Answer:
        """See :class:`ByteStore`."""
        try:
            async with asyncio.timeout(self._idle):
                return await self._fetch(start, stop, validator)
        except (FileNotFoundError, PermissionError, ChangedError,
                IsADirectoryError, TransientError):
            raise
        except TimeoutError:
            raise TransientError(
                f'there was no answer in {self._idle:g} seconds') from None
        except (ArithmeticError, AttributeError, ImportError, LookupError,
                TypeError, ValueError) as error:
            # Such as a mistake in the options.
            raise OSError(f'{type(error).__name__}: {error}') from None
        except Exception as error:  # noqa: BLE001 (each system has its own)
            raise _meaning(error) from None

    async def _fetch(self, start: int, stop: int, validator: str) -> Answer:
        before = self._known if validator else None
        if before is None:
            before = self._known = await self._state()
        size, found = before
        if validator and found != validator:
            raise ChangedError('it has another state')
        stop = min(stop, size)
        try:
            data = b'' if start >= stop else await self._call(
                'cat_file', self._path, start=start, end=stop)
        except BaseException:
            # It may be shorter by now, which is to be found out.
            self._known = None
            raise
        self._known = await self._state()
        if self._known != before:
            raise ChangedError('it changed while it was read')
        return Answer(bytes(data), size, found)

    async def close(self) -> None:
        """See :class:`ByteStore`."""

    async def _state(self) -> tuple[int, str]:
        """Return size and state of the file, asked for from now on."""
        if self._next is None:
            self._next = asyncio.ensure_future(self._ask())
            # Whoever waits may give up, and nobody hear of an error.
            self._next.add_done_callback(
                lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(self._next)

    async def _ask(self) -> tuple[int, str]:
        async with self._asking:
            # Reads that end from now on need another question.
            self._next = None
            self._filesystem.invalidate_cache()
            async with asyncio.timeout(self._idle):
                info = await self._call('info', self._path)
        if info.get('type') == 'directory':
            raise IsADirectoryError('it is a folder')
        versions = [f'{name} {info[name]}' for name in _VERSIONS
                    if info.get(name)]
        return int(info['size']), versions[0] if versions else ', '.join(
            f'{name} {info[name]}' for name in _TIMES if info.get(name))

    async def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if self._filesystem.async_impl:
            return await getattr(self._filesystem, f'_{name}')(
                *args, **kwargs)
        return await asyncio.to_thread(
            getattr(self._filesystem, name), *args, **kwargs)


def _meaning(error: Exception) -> OSError:
    """Return what the error of some file system means to a reader."""
    for name in ('status', 'status_code', 'code'):
        status = getattr(error, name, None)
        if isinstance(status, int) and 400 <= status < 600:
            return error_of_status(status, type(error).__name__)
    return TransientError(f'{type(error).__name__}: {error}')
