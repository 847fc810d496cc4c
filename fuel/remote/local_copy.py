"""Whole copies of remote files in the folder for local copies."""
from __future__ import annotations

import os
import shutil

from fuel.remote.disk_cache import digest
from fuel.remote.location import RemotePath
from fuel.remote.urls import file_name
from fuel.utils.atomic_files import atomic_path
from fuel.utils.lockfile import LockFile


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
