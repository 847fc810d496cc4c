"""The choice of a store for a URL."""
from __future__ import annotations

import asyncio
from typing import Any

from fuel.remote.filesystem_store import FilesystemStore
from fuel.remote.http_store import HTTPStore
from fuel.remote.s3_store import S3Store
from fuel.remote.store import ByteStore
from fuel.remote.urls import StorageOptions, protocol_of, shown

# Seconds without a byte after which a connection is given up.
IDLE = 20.


def filesystem_of(url: str, options: StorageOptions,
                  loop: asyncio.AbstractEventLoop | None = None) -> Any:
    """Return the file system of fsspec that a URL belongs to, running on a
    loop of the caller's or on that of fsspec."""
    try:
        import fsspec
    except ImportError as error:
        raise ImportError(
            f'{shown(url)} is a remote file, which needs fsspec: '
            "in the clone of Fuel, run pip install -e '.[remote]'"
            ) from error
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
            f"{shown(url)}: {error}; pip install -e '.[remote]' in the clone "
            f'of Fuel brings what s3:// and https:// need') from None
    except ValueError as error:
        if 'rotocol' not in str(error):
            raise
        raise ValueError(f'{shown(url)}: fsspec knows no such files: {error}'
                         ) from None


def open_store(url: str, options: StorageOptions,
               loop: asyncio.AbstractEventLoop | None = None) -> ByteStore:
    """Return the store of a remote file; nothing is asked of it yet."""
    filesystem = filesystem_of(url, options, loop)
    protocol = protocol_of(url)
    if protocol in ('http', 'https'):
        return HTTPStore(filesystem, url, IDLE)
    if protocol in ('s3', 's3a'):
        return S3Store(filesystem, url, IDLE)
    return FilesystemStore(filesystem, url, IDLE)
