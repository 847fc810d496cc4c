"""Objects in S3 and what speaks its protocol, in ranges."""
from __future__ import annotations

import asyncio
from typing import Any

from fuel.remote.store import (
    Answer, ChangedError, TransientError, check_range, error_of_status)

# Bytes of a body that must come before the time of a read is over.
PIECE = 1 << 18


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
                f'the connection failed ({type(error).__name__})') from None

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
            nbytes, size = check_range(
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
