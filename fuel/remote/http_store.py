"""Files on web servers, in ranges."""
from __future__ import annotations

import asyncio
import contextlib
import email.utils
import re
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

from fuel.remote.store import (
    CONNECT_TIMEOUT, Answer, ChangedError, TransientError, error_of_status,
    may_be_connected, parse_range, size_of_whole)

# Bytes of an answer that are read before they are taken; with 64 KB, those of
# a megabyte took a tenth more time of the processor.
BUFFER = 1 << 20
REDIRECTS = (301, 302, 303, 307, 308)
MOST_REDIRECTS = 5
# Of validators, those that a request may name; others, such as with control
# characters, would not be sent.
_ETAG = re.compile('"[!#-~]*"')
# Options that say how to connect, to whatever server.
CONNECTION_OPTIONS = ('proxy', 'proxy_auth', 'ssl')


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


def seconds_to_wait(value: str | None) -> float | None:
    """Return what a header ``Retry-After`` says, a number or a date."""
    if not value:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        date = email.utils.parsedate_to_datetime(value)
        return max(0., date.timestamp() - time.time())
    except (OverflowError, ValueError):
        return None


def _origin_of(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port


def _redirected(place: str, location: str) -> tuple[str, bool]:
    """Return where a server redirects to, and whether that is another one.

    Raises: OSError if it is nothing that may be followed.
    """
    try:
        there = urljoin(place, location)
        before, after = _origin_of(place), _origin_of(there)
    except ValueError:
        raise OSError('the server redirects to what is no address') from None
    if after[0] not in (before[0], 'https'):
        raise OSError(
            f'the server redirects from {before[0]} to '
            f'{after[0] or "nowhere"}, which is not followed')
    return there, before != after


class HTTPStore:
    """A file on a web server, read through fsspec's session."""

    def __init__(self, filesystem: Any, url: str, idle: float) -> None:
        self._filesystem = filesystem
        self._elsewhere: Any = None
        self._url = url
        self._idle = idle

    async def fetch(self, start: int, stop: int, validator: str) -> Answer:
        """See :class:`ByteStore`."""
        import aiohttp
        headers = {'Range': f'bytes={start}-{stop - 1}',
                   'Accept-Encoding': 'identity'}
        if _ETAG.fullmatch(validator):
            headers['If-Match'] = validator
        try:
            async with self._get(headers) as reply:
                return await self._answer(reply, start, stop)
        except (TimeoutError, aiohttp.ClientPayloadError,
                aiohttp.ClientConnectionError) as error:
            # Its text may hold the URL, with credentials.
            cause = error.os_error if isinstance(
                error, aiohttp.ClientConnectorError) else error
            raise TransientError(
                f'the connection failed ({type(cause).__name__})',
                is_connected=may_be_connected(error)) from None
        except aiohttp.ClientError as error:
            raise OSError(f'the request failed ({type(error).__name__})'
                          ) from None

    @contextlib.asynccontextmanager
    async def _get(self, headers: dict[str, str]) -> AsyncIterator[Any]:
        """Make a request; what the user's options hold is for the server of
        the URL alone, and not for where it redirects to."""
        import aiohttp
        filesystem, place = self._filesystem, self._url
        for _ in range(MOST_REDIRECTS + 1):
            session = await filesystem.set_session()
            arguments = dict(filesystem.kwargs)
            own = arguments.pop('headers', {})
            async with session.get(
                    filesystem.encode_url(place), headers={**own, **headers},
                    read_bufsize=BUFFER, allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(
                        total=None,
                        sock_connect=min(self._idle, CONNECT_TIMEOUT),
                        sock_read=self._idle), **arguments) as reply:
                if reply.status not in REDIRECTS:
                    yield reply
                    return
                location = reply.headers.get('Location', '')
            place, is_other = _redirected(place, location)
            if is_other:
                filesystem = self._filesystem_without_options()
        raise OSError(f'the server redirects more than {MOST_REDIRECTS} '
                      f'times')

    def _filesystem_without_options(self) -> Any:
        if self._elsewhere is None:
            known = self._filesystem
            public = {name: value for name, value in known.kwargs.items()
                      if name in CONNECTION_OPTIONS}
            if known.asynchronous:
                public |= {'asynchronous': True, 'loop': known.loop,
                           'skip_instance_cache': True}
            self._elsewhere = type(known)(**public)
        return self._elsewhere

    async def close(self) -> None:
        """See :class:`ByteStore`."""
        for filesystem in (self._filesystem, self._elsewhere):
            session = getattr(filesystem, '_session', None)
            if session is not None:
                await session.close()

    async def _answer(self, reply: Any, start: int, stop: int) -> Answer:
        validator = validator_of(reply.headers)
        content_range = reply.headers.get('Content-Range', '')
        if reply.status == 416 and (
                size := size_of_whole(content_range)) is not None:
            return Answer(b'', size, validator)
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
        nbytes, size = parse_range(content_range, start, stop)
        if reply.headers.get('Content-Encoding', 'identity') != 'identity':
            raise OSError(
                'the server compresses what it sends, though it was asked not '
                'to: have it send the file as it is')
        try:
            data = await reply.content.readexactly(nbytes)
        except asyncio.IncompleteReadError as error:
            raise TransientError(f'the server sent {len(error.partial)} of '
                                 f'{nbytes} bytes') from None
        if not reply.content.at_eof() and await reply.content.read(1):
            raise TransientError(
                f'the server sent more than {nbytes} bytes')
        return Answer(data, size, validator)
