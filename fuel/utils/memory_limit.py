"""Read the memory limit of the machine and of the cgroup."""
from __future__ import annotations

import os

# The file with the control groups of this process, the folder of all groups,
# and the names of files with memory limits: in cgroup version 2 and version 1.
OWN_GROUPS = '/proc/self/cgroup'
GROUP_ROOT = '/sys/fs/cgroup'
GROUP_LIMITS = ('memory.max', 'memory/memory.limit_in_bytes')


def usable_memory() -> int:
    """Return the largest number of bytes of memory that this process may
    use."""
    limits = [_physical_memory(), *_group_limits()]
    return min(limit for limit in limits if limit > 0)


def _physical_memory() -> int:
    try:
        return os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
    except (AttributeError, ValueError, OSError):
        return 8 << 30


def _group_limits() -> list[int]:
    """Return the memory limits of this process's control group and of the
    groups above it."""
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
    """Return the paths of a file in a group and in the groups above it.

    The path in the root group is left out.
    """
    groups = [group for group in inner.split('/') if group]
    return [os.path.join(root, *groups[:depth], name)
            for depth in range(len(groups), 0, -1)]


def _read(path: str) -> str:
    with open(path, encoding='utf-8') as file:
        return file.read()


def _read_limit(path: str) -> int:
    """Return the number in a file; 0 if there is no file, or if its content is
    not a number ("max")."""
    try:
        return int(_read(path))
    except (OSError, ValueError):
        return 0
