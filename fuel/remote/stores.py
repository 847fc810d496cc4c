"""Stores of remote files on web servers, in S3 and in other file systems of
fsspec."""
from __future__ import annotations

import asyncio
import contextlib
import email.utils
import re
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple, Protocol
from urllib.parse import urljoin, urlsplit

from fuel.exceptions import DamagedFileError
from fuel.remote.urls import SERVERS, StorageOptions, protocol_of, shown
from fuel.utils.extras import how_to_install

# Seconds after which requests to a server fail if there never was a connection
# to it: its address is wrong, or it does not run.
CONNECT_TIMEOUT = 10.
_RANGE = re.compile(r'bytes ([0-9]{1,19})-([0-9]{1,19})/([0-9]{1,19})')
_WHOLE = re.compile(r'bytes \*/([0-9]{1,19})')

# Names of the classes of errors that clients raise if they cannot connect.
_NOT_CONNECTED = frozenset((
    'ClientConnectorError', 'ConnectTimeoutError', 'ConnectionRefusedError',
    'ConnectionTimeoutError', 'EndpointConnectionError', 'NewConnectionError',
    'ProxyConnectionError', 'gaierror'))

# Seconds without a byte after which a connection is given up.
IDLE = 20.
# Bytes of a body that are read at once; each read has a time limit.
PIECE = 1 << 18

# Names under which file systems report the state of a file. One of the
# versions is enough. Without a version, all of the times are used together,
# since states that follow each other fast may have the same time.
_VERSIONS = ('ETag', 'etag', 'version_id', 'generation', 'content_md5',
             'md5Hash', 'crc32c', 'checksum', 'sha256')
_TIMES = ('LastModified', 'last_modified', 'updated', 'mtime', 'modified',
          'created', 'ino')

# Size of the buffer of an answer; with 64 KB, reading an answer of a megabyte
# took a tenth more processor time.
BUFFER = 1 << 20
REDIRECTS = (301, 302, 303, 307, 308)
MOST_REDIRECTS = 5
# Validators that a request may contain. Other validators, such as those with
# control characters, cannot be sent.
_ETAG = re.compile('"[!#-~]*"')
# Options for the connection, which are also used for the servers to which the
# server of the URL redirects.
CONNECTION_OPTIONS = ('proxy', 'proxy_auth', 'ssl')


class Answer(NamedTuple):
    """Bytes of a remote file, and size and state of the whole file.

    `data`: the bytes; empty if the file is empty, or if the range is after its
        end.
    `size`: number of bytes of the whole file.
    `validator`: text that identifies the state of the file: an ETag, or the
        time of the last change if there is none. Empty if the server sends
        neither.
    """

    data: bytes
    size: int
    validator: str


class ChangedError(DamagedFileError):
    """Error that the file on the server is not in the requested state."""


class TransientError(OSError):
    """Error of a request that may succeed when it is repeated.

    `wait`: seconds to wait, as the server states them; None if it does not.
    `is_connected`: whether there may have been a connection to the server.
    """

    def __init__(self, text: str, wait: float | None = None,
                 is_connected: bool = True) -> None:
        super().__init__(text)
        self.wait = wait
        self.is_connected = is_connected


def may_be_connected(error: BaseException) -> bool:
    """Return whether a client may have had a connection before its error."""
    return _NOT_CONNECTED.isdisjoint(
        one.__name__ for one in type(error).__mro__)


class ByteStore(Protocol):
    """Interface of the store of one remote file, which fetches byte ranges.

    Its methods are called on the store's event loop.
    """

    async def fetch(self, start: int, stop: int, validator: str) -> Answer:
        """Return the bytes of a range.

        `start`, `stop`: the range, which is not empty; it may end after the
            end of the file.
        `validator`: validator of the requested state; empty for any state.

        Raises: TransientError if a repetition may succeed, ChangedError if the
            file is in another state, or another OSError. A store need not
            check the state, since the caller compares the answer's state.
        """
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


def error_of_status(status: int, reason: str, wait: float | None = None,
                    ) -> OSError:
    """Return the error for a status code of HTTP."""
    text = f'the server answers {status} ({reason or "no reason given"})'
    if status in (408, 425, 429) or status >= 500:
        return TransientError(text, wait)
    if status in (404, 410):
        return FileNotFoundError(f'there is no such file: {text}')
    if status in (401, 403, 407):
        return PermissionError(
            f'{text}: give credentials as storage_options, or in the '
            f'environment')
    return OSError(text)


def parse_range(header: str, start: int, stop: int) -> tuple[int, int]:
    """Return the number of bytes of the body, and of the whole file.

    The numbers are checked before the body is read. So an answer never uses
    more memory than the requested range.

    `header`: the header ``Content-Range``.
    `start`, `stop`: the requested range; it may end after the end of the file.

    Raises: TransientError if the server sends another range, OSError if the
        header does not name the range.
    """
    found = _RANGE.fullmatch(header.strip())
    if found is None:
        raise OSError(f'the server sends a part of the file and does not say '
                      f'which: Content-Range {header[:80]!r}')
    first, last, size = map(int, found.groups())
    if (first, last) != (start, min(stop, size) - 1):
        raise TransientError(
            f'the server sends bytes {first} to {last} of {size}, asked for '
            f'{start} to {stop - 1}')
    return last + 1 - first, size


def size_of_whole(header: str) -> int | None:
    """Return the size of a file from a header ``Content-Range`` without a
    range; None if the header does not have it."""
    found = _WHOLE.fullmatch(header.strip())
    return None if found is None else int(found[1])


def validator_of(headers: Mapping[str, str]) -> str:
    """Return a text that identifies the state of a file.

    A weak ETag is joined with the time of the last change, since contents with
    the same weak ETag may differ in bytes.
    """
    etag = headers.get('ETag', '').strip()
    changed = headers.get('Last-Modified', '').strip()
    if etag and not etag.startswith('W/'):
        return etag
    return ' '.join(part for part in (etag, changed) if part)


def seconds_to_wait(value: str | None) -> float | None:
    """Return the seconds to wait from a header ``Retry-After``; None if it has
    neither a number nor a date."""
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
    """Return the URL of a redirection, and whether it names another server.

    Raises: OSError if the redirection must not be followed.
    """
    try:
        there = urljoin(place, location)
        before, after = _origin_of(place), _origin_of(there)
    except ValueError:
        raise OSError('the server redirects to an invalid address') from None
    if after[0] not in (before[0], 'https'):
        raise OSError(
            f'the server redirects from {before[0]} to '
            f'{after[0] or "nowhere"}, which is not followed')
    return there, before != after


class HTTPStore:
    """Store of a file on a web server, read through fsspec's session."""

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
            # The text of the error may contain the URL, with credentials.
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
        """Make a request, and follow redirections.

        The user's options are sent only to the server of the URL, not to a
        server to which it redirects.
        """
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


class S3Store:
    """Store of an object in S3, read through the client of s3fs.

    Its requests contain the ETag of the requested state; requests of fsspec do
    not.
    """

    def __init__(self, filesystem: Any, url: str, idle: float) -> None:
        self._filesystem = filesystem
        self._idle = idle
        bucket, key, version = filesystem.split_path(
            filesystem._strip_protocol(url))
        self._object = {'Bucket': bucket, 'Key': key}
        if version:
            self._object['VersionId'] = version

    async def fetch(self, start: int, stop: int, validator: str) -> Answer:
        """See :class:`ByteStore`."""
        from botocore.exceptions import (
            BotoCoreError, ClientError, ParamValidationError)
        match = {'IfMatch': validator} if validator else {}
        filesystem = self._filesystem
        try:
            async with asyncio.timeout(self._idle):
                await filesystem.set_session()
                reply = await filesystem.s3.get_object(
                    **self._object, Range=f'bytes={start}-{stop - 1}',
                    **match, **filesystem.req_kw)
            return await self._answer(reply, start, stop)
        except ClientError as error:
            return self._failed(error)
        except ParamValidationError as error:
            raise FileNotFoundError(
                f'the URL does not name an object in a bucket: '
                f'{" ".join(str(error).split())}') from None
        except (TimeoutError, BotoCoreError, OSError) as error:
            if isinstance(error, TransientError):
                raise
            if 'Credentials' in type(error).__name__:
                raise PermissionError(
                    'there are no credentials: give them as '
                    "storage_options ({'key': ..., 'secret': ...}, or "
                    "{'anon': True}), or in the environment") from None
            raise TransientError(
                f'the connection failed ({type(error).__name__})',
                is_connected=may_be_connected(error)) from None

    async def close(self) -> None:
        """See :class:`ByteStore`."""
        creator = getattr(self._filesystem, '_s3creator', None)
        if creator is not None:
            await creator.__aexit__(None, None, None)

    def _failed(self, error: Any) -> Answer:
        status = error.response['ResponseMetadata'].get('HTTPStatusCode', 0)
        code = error.response.get('Error', {}).get('Code', '')
        if status == 412:
            raise ChangedError('the store has another state of it') from None
        if status == 416:
            # Only an empty object has no first byte.
            return Answer(b'', 0, '')
        if code in ('SlowDown', 'RequestTimeout', 'InternalError'):
            raise TransientError(f'the store answers {code}') from None
        raise error_of_status(status, code) from None

    async def _answer(self, reply: Any, start: int, stop: int) -> Answer:
        async with reply['Body'] as body:
            nbytes, size = parse_range(
                reply.get('ContentRange', ''), start, stop)
            pieces, left = [], nbytes
            while left > 0:
                async with asyncio.timeout(self._idle):
                    piece = await body.read(min(left, PIECE))
                if not piece:
                    raise TransientError(f'the store sent {nbytes - left} of '
                                         f'{nbytes} bytes')
                pieces.append(piece)
                left -= len(piece)
        return Answer(b''.join(pieces), size, str(reply.get('ETag', '')))


class FilesystemStore:
    """Store of a file in any file system of fsspec.

    Fsspec does not return the state of a file with its bytes. So each read is
    followed by a request for the state. The bytes belong to the state if it is
    the same before and after the read. Reads that end while another request is
    running share the next request.
    """

    def __init__(self, filesystem: Any, url: str, idle: float) -> None:
        self._filesystem = filesystem
        self._path = filesystem._strip_protocol(url)
        self._idle = idle
        # Size and state of the file, when they were requested last.
        self._known: tuple[int, str] | None = None
        # The request for the state that has not begun yet.
        self._next: asyncio.Task[tuple[int, str]] | None = None
        self._asking = asyncio.Lock()

    async def fetch(self, start: int, stop: int, validator: str) -> Answer:
        """See :class:`ByteStore`."""
        try:
            async with asyncio.timeout(self._idle):
                return await self._fetch(start, stop, validator)
        except (FileNotFoundError, PermissionError, ChangedError,
                IsADirectoryError, NotADirectoryError, TransientError):
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
            # The file may be shorter now: its size must be requested again.
            self._known = None
            raise
        self._known = await self._state()
        if self._known != before:
            raise ChangedError('it changed while it was read')
        return Answer(bytes(data), size, found)

    async def close(self) -> None:
        """See :class:`ByteStore`."""

    async def _state(self) -> tuple[int, str]:
        """Return the size and state of the file, by a request that begins
        after this call."""
        if self._next is None:
            self._next = asyncio.ensure_future(self._ask())
            # If no reader waits any more, asyncio must not report an error.
            self._next.add_done_callback(
                lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(self._next)

    async def _ask(self) -> tuple[int, str]:
        async with self._asking:
            # Reads that end from now on need another request.
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
    """Return the OSError for an error of a file system: the error for its
    status code if it has one, otherwise a TransientError."""
    for name in ('status', 'status_code', 'code'):
        status = getattr(error, name, None)
        if isinstance(status, int) and 400 <= status < 600:
            return error_of_status(status, type(error).__name__)
    return TransientError(f'{type(error).__name__}: {error}',
                          is_connected=may_be_connected(error))


def fsspec_for(url: str) -> Any:
    """Return the module fsspec; raise ImportError if it is not installed."""
    try:
        import fsspec
    except ImportError as error:
        raise ImportError(
            f'{shown(url)} is a remote file, which needs fsspec: '
            f'{how_to_install("remote")}', name=error.name) from None
    return fsspec


def _remedy(url: str) -> str:
    """Return a text about the command that installs the missing package of a
    file system."""
    package = SERVERS.get(protocol_of(url))
    if package is None:
        return ''
    return (f'; run pip install {package}' if package else
            f'; {how_to_install("remote")}')


def filesystem_of(url: str, options: StorageOptions,
                  loop: asyncio.AbstractEventLoop | None = None) -> Any:
    """Return the file system of fsspec for a URL.

    `loop`: the event loop on which it runs. Defaults to that of fsspec.
    """
    fsspec = fsspec_for(url)
    if loop is not None:
        plain = filesystem_of(url, options)
        if not plain.async_impl:
            return plain
        options = {**options, 'asynchronous': True, 'loop': loop,
                   'skip_instance_cache': True}
    try:
        return fsspec.core.url_to_fs(url, **options)[0]
    except ImportError as error:
        raise ImportError(f'{shown(url)}: {error}{_remedy(url)}',
                          name=error.name) from None
    except ValueError as error:
        if 'rotocol' not in str(error):
            raise
        raise ValueError(f'{shown(url)}: fsspec knows no such files: {error}'
                         ) from None


def _without_retries(options: StorageOptions) -> StorageOptions:
    """Return options of S3 that disable the retries of its client.

    Fuel itself repeats requests. The client's retries would hide a missing
    connection.
    """
    given = options or {}
    return {**given, 'config_kwargs': {
        'retries': {'total_max_attempts': 1},
        **given.get('config_kwargs', {})}}


def open_store(url: str, options: StorageOptions,
               loop: asyncio.AbstractEventLoop | None = None) -> ByteStore:
    """Return the store of a remote file, without a request to the server."""
    protocol = protocol_of(url)
    if protocol in ('s3', 's3a'):
        options = _without_retries(options)
    filesystem = filesystem_of(url, options, loop)
    if protocol in ('http', 'https'):
        return HTTPStore(filesystem, url, IDLE)
    if protocol in ('s3', 's3a'):
        return S3Store(filesystem, url, IDLE)
    return FilesystemStore(filesystem, url, IDLE)
