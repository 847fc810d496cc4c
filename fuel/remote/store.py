"""Interface of the stores of remote bytes, and who asks them again.

A request is repeated until it works or its time is over.
"""
from __future__ import annotations

import asyncio
import logging
import random
import re
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from fuel.exceptions import DamagedFileError
from fuel.remote.urls import Secrets
from fuel.utils.io_counts import io_counts
from fuel.utils.seams import fault_point

logger = logging.getLogger(__name__)

# Seconds before a request is repeated, at first and at most.
FIRST_WAIT = .1
LONGEST_WAIT = 10.
# Seconds after which it is said that the first request of a file waits.
SILENT_WAIT = 2.
# Seconds after which a server is given up to which there never was a
# connection: its address is wrong, or nobody runs it.
CONNECT_TIMEOUT = 10.
# Bytes of a file at most; what is larger does not fit the address space.
LARGEST_FILE = 1 << 46

_RANGE = re.compile(r'bytes ([0-9]{1,19})-([0-9]{1,19})/([0-9]{1,19})')
_WHOLE = re.compile(r'bytes \*/([0-9]{1,19})')

# What clients raise when they cannot connect, by the names of classes.
_NOT_CONNECTED = frozenset((
    'ClientConnectorError', 'ConnectTimeoutError', 'ConnectionRefusedError',
    'ConnectionTimeoutError', 'EndpointConnectionError', 'NewConnectionError',
    'ProxyConnectionError', 'gaierror'))
# Servers to which this process had a connection.
_reached: set[str] = set()


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
    `is_connected`: whether there may have been a connection.
    """

    def __init__(self, text: str, wait: float | None = None,
                 is_connected: bool = True) -> None:
        super().__init__(text)
        self.wait = wait
        self.is_connected = is_connected


def may_be_connected(error: BaseException) -> bool:
    """Return whether a client may have had a connection before its error."""
    return _NOT_CONNECTED.isdisjoint(
        one.__name__ for one in type(error).__mro__)


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


@fault_point('remote wait')
def pause(seconds: float) -> Awaitable[None]:
    """Wait before a request is repeated."""
    return asyncio.sleep(seconds)


class Patient:
    """Asks a store again after errors that may pass.

    `name`: of the file, for errors.
    `server`: that has it.
    `timeout`: seconds after which a request is given up.
    """

    def __init__(self, open_store: Callable[[], ByteStore], name: str,
                 server: str, secrets: Secrets, timeout: float) -> None:
        self._open_store = open_store
        self._store: ByteStore | None = None
        self._name = name
        self._server = server
        self._secrets = secrets
        self.timeout = timeout
        self._draw = random.Random()  # noqa: S311 (spreads out requests)

    async def fetch(self, start: int, stop: int, expected: Answer | None,
                    ) -> Answer:
        """Return a range of the file in the state that is expected."""
        begin = time.monotonic()
        deadline, is_said = begin + self.timeout, expected is not None
        for attempt in range(1, 1 << 30):
            try:
                answer = await self._attempt(start, stop, expected, deadline)
                _reached.add(self._server)
                return answer
            except (TransientError, TimeoutError) as error:
                if getattr(error, 'is_connected', True):
                    _reached.add(self._server)
                is_reached = self._server in _reached
                timeout = self.timeout if is_reached else min(
                    self.timeout, CONNECT_TIMEOUT)
                wait = self._wait_after(attempt, error)
                left = begin + timeout - time.monotonic()
                if wait >= left:
                    what = (
                        f'bytes {start} to {stop - 1} could not be fetched'
                        if is_reached else
                        'could not connect to the server')
                    raise TimeoutError(self._secrets.hide(
                        f'{self._name}: {what} in {timeout:g} seconds, in '
                        f'{attempt} attempts: '
                        f'{str(error) or "there was no answer"}'
                        + ('' if is_reached else '; check the address, and '
                           'that the server runs'))) from None
                logger.debug('%s: request %d failed, the next follows in '
                             '%.1f seconds: %s', self._name, attempt, wait,
                             self._secrets.hide(error))
                if not is_said and time.monotonic() - begin >= SILENT_WAIT:
                    is_said = True
                    logger.warning(
                        '%s: not opened yet, after %d attempts: %s; it is '
                        'asked again for up to %.0f seconds%s',
                        self._name, attempt, self._secrets.hide(
                            error) or 'there was no answer', left,
                        ' (remote_timeout)' * is_reached)
                await pause(wait)
                io_counts.count(retries=1)
        raise AssertionError

    async def close(self) -> None:
        """Close the connections, which nobody else uses."""
        if self._store is not None:
            await self._store.close()

    async def _attempt(self, start: int, stop: int, expected: Answer | None,
                       deadline: float) -> Answer:
        wanted = '' if expected is None else expected.validator
        try:
            if self._store is None:
                self._store = self._open_store()
            async with asyncio.timeout_at(
                    asyncio.get_running_loop().time()
                    + max(.01, deadline - time.monotonic())):
                answer = await self._store.fetch(start, stop, wanted)
        except ChangedError as error:
            raise changed_error(self._name, _state(expected), str(error)
                                ) from None
        except (TransientError, TimeoutError):
            raise
        except OSError as error:
            # The same class, so that callers know what it is about.
            raise type(error)(self._secrets.hide(
                f'{self._name}: {error}')) from None
        except (ImportError, LookupError, TypeError, ValueError) as error:
            # Such as options that the file system does not take. Some name
            # the file already.
            text = str(error).removeprefix(f'{self._name}: ')
            raise ValueError(self._secrets.hide(
                f'{self._name}: {text}')) from None
        if expected is not None and (
                answer.size, answer.validator or wanted) != (
                expected.size, wanted or answer.validator):
            raise changed_error(self._name, _state(expected), _state(answer))
        self._check_length(answer, start, stop)
        return answer

    def _check_length(self, answer: Answer, start: int, stop: int) -> None:
        """Refuse an answer that does not have the bytes asked for: it would
        leave a hole, or overwrite what is next to them."""
        if not 0 <= answer.size <= LARGEST_FILE:
            raise OSError(f'{self._name}: the server says that it has '
                          f'{answer.size} bytes, which no file has')
        nbytes = max(0, min(stop, answer.size) - start)
        if len(answer.data) != nbytes:
            raise TransientError(f'the server sent {len(answer.data)} bytes '
                                 f'instead of {nbytes}')

    def _wait_after(self, attempt: int, error: OSError) -> float:
        if isinstance(error, TransientError) and error.wait is not None:
            return error.wait
        longest = min(LONGEST_WAIT, FIRST_WAIT * 2. ** min(attempt - 1, 20))
        # Spread out, so that a busy server is not asked by all at once.
        return longest * self._draw.uniform(.5, 1.)


def _state(answer: Answer | None) -> str:
    if answer is None:
        return 'unknown'
    return f'{answer.size} bytes, {answer.validator or "no ETag"}'
