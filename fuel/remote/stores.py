"""Stores of remote bytes, through the file systems of fsspec: S3, any other,
and the choice of one for a URL."""
from __future__ import annotations

import asyncio
from typing import Any

from fuel.remote.http_store import HTTPStore
from fuel.remote.store import (
    Answer, ByteStore, ChangedError, TransientError, error_of_status,
    may_be_connected, parse_range)
from fuel.remote.urls import StorageOptions, protocol_of, shown
from fuel.utils.extras import how_to_install

# Seconds without a byte after which a connection is given up.
IDLE = 20.
# Bytes of a body that must come before the time of a read is over.
PIECE = 1 << 18

# What file systems call the state of a file: of the first there is one, and
# of the others all, since a time is that of several states if they follow
# each other fast.
_VERSIONS = ('ETag', 'etag', 'version_id', 'generation', 'content_md5',
             'md5Hash', 'crc32c', 'checksum', 'sha256')
_TIMES = ('LastModified', 'last_modified', 'updated', 'mtime', 'modified',
          'created', 'ino')


class S3Store:
    """An object, read through the client of s3fs.

    The requests name the ETag that they want, which fsspec's do not.
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
        from botocore.exceptions import BotoCoreError, ClientError
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
    return TransientError(f'{type(error).__name__}: {error}',
                          is_connected=may_be_connected(error))


def filesystem_of(url: str, options: StorageOptions,
                  loop: asyncio.AbstractEventLoop | None = None) -> Any:
    """Return the file system of fsspec that a URL belongs to, running on a
    loop of the caller's or on that of fsspec."""
    try:
        import fsspec
    except ImportError as error:
        raise ImportError(
            f'{shown(url)} is a remote file, which needs fsspec: '
            f'{how_to_install("remote")}') from error
    if loop is not None:
        plain = filesystem_of(url, options)
        if not plain.async_impl:
            return plain
        options = {**options, 'asynchronous': True, 'loop': loop,
                   'skip_instance_cache': True}
    try:
        return fsspec.core.url_to_fs(url, **options)[0]
    except ImportError as error:
        raise ImportError(
            f'{shown(url)}: {error}; {how_to_install("remote")}, which '
            f'brings what s3:// and https:// need') from None
    except ValueError as error:
        if 'rotocol' not in str(error):
            raise
        raise ValueError(f'{shown(url)}: fsspec knows no such files: {error}'
                         ) from None


def _without_retries(options: StorageOptions) -> StorageOptions:
    """Return options of S3 by which its client asks once, as Fuel asks again:
    its retries hide that there never was a connection."""
    given = options or {}
    return {**given, 'config_kwargs': {
        'retries': {'total_max_attempts': 1},
        **given.get('config_kwargs', {})}}


def open_store(url: str, options: StorageOptions,
               loop: asyncio.AbstractEventLoop | None = None) -> ByteStore:
    """Return the store of a remote file; nothing is asked of it yet."""
    protocol = protocol_of(url)
    if protocol in ('s3', 's3a'):
        options = _without_retries(options)
    filesystem = filesystem_of(url, options, loop)
    if protocol in ('http', 'https'):
        return HTTPStore(filesystem, url, IDLE)
    if protocol in ('s3', 's3a'):
        return S3Store(filesystem, url, IDLE)
    return FilesystemStore(filesystem, url, IDLE)
