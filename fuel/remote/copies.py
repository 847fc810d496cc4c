"""Whole copies of remote files: in the folder for local copies, and from
local files, as a whole or not at all."""
from __future__ import annotations

import os
import shutil

from fuel.remote.disk_cache import digest
from fuel.remote.location import RemotePath
from fuel.remote.stores import filesystem_of
from fuel.remote.urls import Secrets, file_name
from fuel.utils.atomic_files import atomic_path
from fuel.utils.lockfile import LockFile

# Bytes that are sent at once, of a file that is sent in parts.
PART = 16 << 20


def local_copy(path: RemotePath, root: str, timeout: float) -> str:
    """Return the path of a copy, which is made if need be.

    `timeout`: seconds to wait for another process that makes it.
    """
    file = path.open(is_kept=False)
    # One folder for each file, one name for each state of it.
    folder = os.path.join(root, digest(*file.identity[:2]))
    os.makedirs(folder, mode=0o700, exist_ok=True)
    name = f'{digest(*file.identity)}-{file_name(path)}'
    copy = os.path.join(folder, name)
    with LockFile(os.path.join(folder, 'lock')).held(timeout):
        if not (os.path.isfile(copy)
                and os.path.getsize(copy) == file.size):
            with atomic_path(copy, mode=0o600) as part, file.open(
                    ) as source, open(part, 'wb') as target:
                shutil.copyfileobj(source, target, 1 << 20)
            file.check()
    return copy


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
