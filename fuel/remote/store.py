"""Interface of the stores of remote bytes: answers and errors."""
from __future__ import annotations

import re
from typing import NamedTuple, Protocol

from fuel.exceptions import DamagedFileError

_RANGE = re.compile(r'bytes ([0-9]{1,19})-([0-9]{1,19})/([0-9]{1,19})')
_WHOLE = re.compile(r'bytes \*/([0-9]{1,19})')


class Answer(NamedTuple):
    """Bytes of a remote file, and what the server says of the whole.

    `data`: empty if the file is, or the range lies behind its end.
    `size`: bytes of the whole file.
    `validator`: differs between states of the file: an ETag, or else the time
        of the last change. Empty if the server gives neither.
    """

    data: bytes
    size: int
    validator: str


class ChangedError(DamagedFileError):
    """The server has the file in another state than the one asked for."""


class TransientError(OSError):
    """A request failed and may work when it is repeated.

    `wait`: seconds that the server asks to wait.
    """

    def __init__(self, text: str, wait: float | None = None) -> None:
        super().__init__(text)
        self.wait = wait


class ByteStore(Protocol):
    """One remote file, whose byte ranges can be fetched.

    Methods are called on the event loop of fsspec.
    """

    async def fetch(self, start: int, stop: int, validator: str) -> Answer:
        """Return the bytes of a range.

        `start`, `stop`: not empty; it may end behind the end of the file.
        `validator`: of the state that is wanted; empty for any.

        Raises: TransientError if it is worth asking again, ChangedError if
            the file is in another state, or another OSError. A store need not
            find out the state: what it returns is compared as well.
        """
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


def error_of_status(status: int, reason: str, wait: float | None = None,
                    ) -> OSError:
    """Return the error that a status of HTTP stands for."""
    text = f'the server answers {status} ({reason or "no reason given"})'
    if status in (408, 425, 429) or status >= 500:
        return TransientError(text, wait)
    if status in (404, 410):
        return FileNotFoundError(f'there is no such file: {text}')
    if status in (401, 403, 407):
        return PermissionError(
            f'{text}: give credentials as storage_options, or in the '
            f'environment')
    return OSError(text)


def changed_error(name: str, before: str, now: str) -> DamagedFileError:
    """Return the error about a file that is not what it was."""
    return DamagedFileError(
        f'{name} was changed while it was in use ({before} when it was '
        f'opened, {now} now), so old and new rows would be mixed: open the '
        f'data set again')


def parse_range(header: str, start: int, stop: int) -> tuple[int, int]:
    """Return the bytes of the body, and those of the whole file.

    That is before a byte of the body is read, so that no answer, however
    large, takes more memory than the range that is wanted.

    `header`: ``Content-Range``.
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
