"""Files on web servers, in ranges."""
from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Mapping
from typing import Any

from fuel.remote.errors import TransientError, error_of_status
from fuel.remote.store import Answer, ChangedError

_RANGE = re.compile(r'bytes (\d+)-(\d+)/(\d+)')
# Bytes of an answer that are read before they are taken; with 64 KB, those of
# a megabyte took a tenth more time of the processor.
BUFFER = 1 << 20
_WHOLE = re.compile(r'bytes \*/(\d+)')


def validator_of(headers: Mapping[str, str]) -> str:
    """Return what tells a state of a file from others.

    A weak ETag is joined with the time of the last change: servers give it
    to contents that are equal for a reader of pages, not of bytes.
    """
    etag = headers.get('ETag', '').strip()
    changed = headers.get('Last-Modified', '').strip()
    if etag and not etag.startswith('W/'):
        return etag
    return ' '.join(part for part in (etag, changed) if part)


def is_strong(validator: str) -> bool:
    """Return whether a validator is an ETag that a request may name."""
    return validator.startswith('"') and validator.endswith('"')


def seconds_to_wait(value: str | None) -> float | None:
    """Return what a header ``Retry-After`` says, a number or a date."""
    if not value:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        date = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0., date.timestamp() - time.time())


class HTTPStore:
    """A file on a web server, read through fsspec's session."""

    def __init__(self, filesystem: Any, url: str, idle: float) -> None:
        self._filesystem = filesystem
        self._url = url
        self._idle = idle

    async def fetch(self, start: int, stop: int, validator: str) -> Answer:
        """See :class:`ByteStore`."""
        import aiohttp
        arguments = dict(self._filesystem.kwargs)
        headers = {**arguments.pop('headers', {}),
                   'Range': f'bytes={start}-{stop - 1}',
                   'Accept-Encoding': 'identity'}
        if is_strong(validator):
            headers['If-Match'] = validator
        session = await self._filesystem.set_session()
        try:
            async with session.get(
                    self._filesystem.encode_url(self._url), headers=headers,
                    read_bufsize=BUFFER, timeout=aiohttp.ClientTimeout(
                        total=None, sock_connect=self._idle,
                        sock_read=self._idle), **arguments) as reply:
                return await self._answer(reply, start, stop)
        except (TimeoutError, aiohttp.ClientPayloadError,
                aiohttp.ClientConnectionError) as error:
            # Its text may hold the URL, with credentials.
            raise TransientError(
                f'the connection failed ({type(error).__name__})') from None
        except aiohttp.ClientError as error:
            raise OSError(f'the request failed ({type(error).__name__})'
                          ) from None

    async def close(self) -> None:
        """See :class:`ByteStore`."""
        session = getattr(self._filesystem, '_session', None)
        if session is not None:
            await session.close()

    async def _answer(self, reply: Any, start: int, stop: int) -> Answer:
        validator = validator_of(reply.headers)
        content_range = reply.headers.get('Content-Range', '')
        if reply.status == 416 and (end := _WHOLE.match(content_range)):
            return Answer(b'', int(end[1]), validator)
        if reply.status == 412:
            raise ChangedError('the server has another state of it')
        if reply.status == 200:
            raise OSError(
                'the server sends whole files only, not ranges of bytes: '
                'download the file and give its path, which '
                'fuel.utils.cache.cache_dataset does')
        if reply.status != 206:
            raise error_of_status(
                reply.status, reply.reason,
                seconds_to_wait(reply.headers.get('Retry-After')))
        found = _RANGE.match(content_range)
        if found is None:
            raise OSError(f'the server sends a part of the file and does '
                          f'not say which: Content-Range {content_range!r}')
        first, last, size = map(int, found.groups())
        if first != start or last >= max(stop, 1):
            raise TransientError(
                f'the server sends bytes {first} to {last}, asked for '
                f'{start} to {stop - 1}')
        data = await reply.read()
        if len(data) != last + 1 - first:
            raise TransientError(f'the server sent {len(data)} of '
                                 f'{last + 1 - first} bytes')
        return Answer(data, size, validator)
