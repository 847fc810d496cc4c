"""Writing of remote files, as a whole or not at all."""
from __future__ import annotations

import os
import shutil

from fuel.remote.location import RemotePath
from fuel.remote.stores import filesystem_of
from fuel.remote.urls import Secrets

# Bytes that are sent at once, of a file that is sent in parts.
PART = 16 << 20


def upload(path: str, target: RemotePath) -> None:
    """Send a file to object storage, in parts if it is large.

    The name stands for the old file, or for none, until all was sent.
    """
    url, options = target.reveal()
    secrets = Secrets(url, options)
    filesystem = filesystem_of(url, options)
    size = os.path.getsize(path)
    try:
        place = filesystem._strip_protocol(url)
        # What was begun is discarded if anything fails.
        with filesystem.transaction, open(
                path, 'rb') as source, filesystem.open(
                place, 'wb', block_size=PART) as stream:
            shutil.copyfileobj(source, stream, PART)
        filesystem.invalidate_cache()
        found = filesystem.info(place)['size']
    except Exception as error:  # noqa: BLE001 (each system has its own)
        raise OSError(secrets.hide(
            f'cannot write {target}: {type(error).__name__}: {error}; '
            f'nothing was written')) from None
    if found != size:
        raise OSError(f'{target} has {found} bytes, {size} were sent: send '
                      f'it again')
