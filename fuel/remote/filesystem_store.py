"""Files of any file system that fsspec knows, in ranges."""
from __future__ import annotations

import asyncio
import time
from typing import Any

from fuel.remote.store import (
    Answer, ChangedError, TransientError, error_of_status)

# What file systems call the state of a file, the best first.
_VALIDATORS = ('ETag', 'etag', 'content_md5', 'md5Hash', 'generation',
               'crc32c', 'checksum', 'sha256', 'LastModified',
               'last_modified', 'updated', 'mtime', 'modified', 'created')
# Seconds for which what the file system says of a file is taken as true.
TRUSTED = 5.


class FilesystemStore:
    """A file of any file system.

    Fsspec does not tell the state of a file with its bytes: it is asked for
    every few seconds, and each time where that is a local call.
    """

    def __init__(self, filesystem: Any, url: str, idle: float) -> None:
        self._filesystem = filesystem
        self._path = filesystem._strip_protocol(url)
        self._idle = idle
        self._known: tuple[int, str] | None = None
        self._until = 0.
        # A request for each batch would cost as much as the batch.
        self._trusted = TRUSTED if filesystem.async_impl else 0.

    async def fetch(self, start: int, stop: int, validator: str) -> Answer:
        """See :class:`ByteStore`."""
        try:
            async with asyncio.timeout(self._idle):
                size, found = await self._state()
                if validator and found != validator:
                    raise ChangedError('it has another state')
                stop = min(stop, size)
                data = b'' if start >= stop else await self._call(
                    'cat_file', self._path, start=start, end=stop)
                if not self._trusted and await self._state() != (
                        size, found):
                    raise ChangedError('it changed while it was read')
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
        return Answer(bytes(data), size, found)

    async def close(self) -> None:
        """See :class:`ByteStore`."""

    async def _state(self) -> tuple[int, str]:
        if self._known is None or time.monotonic() >= self._until:
            self._filesystem.invalidate_cache()
            info = await self._call('info', self._path)
            if info.get('type') == 'directory':
                raise IsADirectoryError('it is a folder')
            self._known = int(info['size']), next(
                (f'{name} {info[name]}' for name in _VALIDATORS
                 if info.get(name)), '')
            self._until = time.monotonic() + self._trusted
        return self._known

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
