"""What a server says of the bytes that it sends: a header ``Content-Range``.

It is compared with what was asked for before a byte of the body is read, so
that no answer, however large, takes more memory than the range that is wanted.
"""
from __future__ import annotations

import re

from fuel.remote.errors import TransientError

_RANGE = re.compile(r'bytes ([0-9]{1,19})-([0-9]{1,19})/([0-9]{1,19})')
_WHOLE = re.compile(r'bytes \*/([0-9]{1,19})')


def check_range(header: str, start: int, stop: int) -> tuple[int, int]:
    """Return the bytes of the body, and those of the whole file.

    `start`, `stop`: the range that was asked for; it may end behind the file.

    Raises: TransientError if another range was sent, OSError if the header
        does not say which.
    """
    found = _RANGE.fullmatch(header.strip())
    if found is None:
        raise OSError(f'the server sends a part of the file and does not say '
                      f'which: Content-Range {header[:80]!r}')
    first, last, size = map(int, found.groups())
    if (first, last) != (start, min(stop, size) - 1):
        raise TransientError(
            f'the server sends bytes {first} to {last} of {size}, asked for '
            f'{start} to {stop - 1}')
    return last + 1 - first, size


def size_of_whole(header: str) -> int | None:
    """Return the bytes of a file without the range; None if not said."""
    found = _WHOLE.fullmatch(header.strip())
    return None if found is None else int(found[1])
