"""Requests that are repeated until they work or their time is over."""
from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable

from fuel.remote.store import (
    Answer, ByteStore, ChangedError, TransientError, changed_error)
from fuel.remote.urls import Secrets
from fuel.utils.seams import fault_point

logger = logging.getLogger(__name__)

# Seconds before a request is repeated, at first and at most.
FIRST_WAIT = .1
LONGEST_WAIT = 10.
# Bytes of a file at most; what is larger does not fit the address space.
LARGEST_FILE = 1 << 46


@fault_point('remote wait')
def pause(seconds: float) -> Awaitable[None]:
    """Wait before a request is repeated."""
    return asyncio.sleep(seconds)


class Patient:
    """Asks a store again after errors that may pass.

    `name`: of the file, for errors.
    `timeout`: seconds after which a request is given up.
    """

    def __init__(self, open_store: Callable[[], ByteStore], name: str,
                 secrets: Secrets, timeout: float) -> None:
        self._open_store = open_store
        self._store: ByteStore | None = None
        self._name = name
        self._secrets = secrets
        self.timeout = timeout
        self._draw = random.Random()  # noqa: S311 (spreads out requests)

    async def fetch(self, start: int, stop: int, expected: Answer | None,
                    ) -> Answer:
        """Return a range of the file in the state that is expected."""
        deadline = time.monotonic() + self.timeout
        for attempt in range(1, 1 << 30):
            try:
                return await self._attempt(start, stop, expected, deadline)
            except (TransientError, TimeoutError) as error:
                wait = self._wait_after(attempt, error)
                left = deadline - time.monotonic()
                if wait >= left:
                    raise TimeoutError(self._secrets.hide(
                        f'{self._name}: bytes {start} to {stop - 1} could '
                        f'not be fetched in {self.timeout:g} seconds, in '
                        f'{attempt} attempts: '
                        f'{str(error) or "there was no answer"}')) from None
                logger.debug('%s: request %d failed, the next follows in '
                             '%.1f seconds: %s', self._name, attempt, wait,
                             self._secrets.hide(error))
                await pause(wait)
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
            # Such as options that the file system does not take.
            raise ValueError(self._secrets.hide(
                f'{self._name}: {error}')) from None
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
