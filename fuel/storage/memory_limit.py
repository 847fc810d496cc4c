"""How much memory this process may use."""
from __future__ import annotations

import os
from pathlib import Path

# The groups of this process, and where the limits of one are: the new
# tree and the old one.
OWN_GROUPS = Path('/proc/self/cgroup')
GROUP_ROOT = Path('/sys/fs/cgroup')
GROUP_LIMITS = ('memory.max', 'memory/memory.limit_in_bytes')


def usable_memory() -> int:
    """Return the bytes of memory that this process may use at most."""
    limits = [_physical_memory(), *_group_limits()]
    return min(limit for limit in limits if limit > 0)


def _physical_memory() -> int:
    try:
        return os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
    except (AttributeError, ValueError, OSError):
        return 8 << 30


def _group_limits() -> list[int]:
    """Return the limits of this process's control group and those above."""
    paths = [GROUP_ROOT / name for name in GROUP_LIMITS]
    try:
        for line in OWN_GROUPS.read_text().splitlines():
            number, controllers, inner = line.split(':', 2)
            if number == '0':
                paths += _upwards(GROUP_ROOT, inner, GROUP_LIMITS[0])
            elif 'memory' in controllers.split(','):
                paths += _upwards(GROUP_ROOT / 'memory', inner,
                                  Path(GROUP_LIMITS[1]).name)
    except (OSError, ValueError):
        pass
    return [limit for limit in map(_read_limit, paths) if limit]


def _upwards(root: Path, inner: str, name: str) -> list[Path]:
    """Return a file of a group and of each above it, without the root's."""
    group = root / inner.lstrip('/')
    found = []
    while group != root and root in group.parents:
        found.append(group / name)
        group = group.parent
    return found


def _read_limit(path: Path) -> int:
    """Return the number in a file, 0 if there is none ("max", no file)."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0
