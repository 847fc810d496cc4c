"""The cache on disk that the settings choose."""
from __future__ import annotations

import os
import shutil
from pathlib import Path

from fuel.config_parser import config
from fuel.remote.disk_cache import DiskCache

# Where nothing is set: of the disk, and of what is free there.
SHARE_OF_DISK = 5
SHARE_OF_FREE = 2

_caches: dict[tuple[str, int | None], DiskCache] = {}


def disk_cache() -> DiskCache | None:
    """Return the cache on disk, None if it is turned off."""
    folder: str = config.remote_cache_path
    wanted: int | None = config.remote_cache_bytes
    if folder == 'off' or wanted == 0:
        return None
    if (folder, wanted) not in _caches:
        budget = _default_budget(folder) if wanted is None else wanted
        _caches[folder, wanted] = DiskCache(folder, budget)
    return _caches[folder, wanted]


def _default_budget(folder: str) -> int:
    place = Path(os.path.abspath(folder))
    while not place.exists():
        place = place.parent
    usage = shutil.disk_usage(place)
    return min(usage.total // SHARE_OF_DISK, usage.free // SHARE_OF_FREE)
