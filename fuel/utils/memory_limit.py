"""Read the memory limit of the machine and of the cgroup."""
from __future__ import annotations

import os

# The groups of this process, and where the limits of one are: the new
# tree and the old one.
OWN_GROUPS = '/proc/self/cgroup'
GROUP_ROOT = '/sys/fs/cgroup'
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
    paths = [os.path.join(GROUP_ROOT, name) for name in GROUP_LIMITS]
    try:
        for line in _read(OWN_GROUPS).splitlines():
            number, controllers, inner = line.split(':', 2)
            if number == '0':
                paths += _upwards(GROUP_ROOT, inner, GROUP_LIMITS[0])
            elif 'memory' in controllers.split(','):
                paths += _upwards(os.path.join(GROUP_ROOT, 'memory'), inner,
                                  os.path.basename(GROUP_LIMITS[1]))
    except (OSError, ValueError):
        pass
    return [limit for limit in map(_read_limit, paths) if limit]


def _upwards(root: str, inner: str, name: str) -> list[str]:
    """Return a file of a group and of each above it, without the root's."""
    groups = [group for group in inner.split('/') if group]
    return [os.path.join(root, *groups[:depth], name)
            for depth in range(len(groups), 0, -1)]


def _read(path: str) -> str:
    with open(path, encoding='utf-8') as file:
        return file.read()


def _read_limit(path: str) -> int:
    """Return the number in a file, 0 if there is none ("max", no file)."""
    try:
        return int(_read(path))
    except (OSError, ValueError):
        return 0
