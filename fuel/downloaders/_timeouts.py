"""Servers that send a byte now and then, so that no read takes too long."""
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import TypeVar

from fuel.downloaders._errors import SlowError

__all__ = ['watched', 'within']

T = TypeVar('T')


def within(seconds: float, work: Callable[[], T],
           drop: Callable[[T], object]) -> T:
    """Wait for a result for some time, and no longer.

    Parameters
    ----------
    seconds : float
        How long.
    work : callable
        Makes the result, in another thread.
    drop : callable
        Called with a result that comes too late.

    Returns
    -------
    object
        What `work` returned.

    Raises
    ------
    SlowError
        If there is no result in that time.
    """
    future: Future[T] = Future()

    def run() -> None:
        with suppress(InvalidStateError):  # nobody waits any more
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001 - raised over there
                future.set_exception(error)
                return
            try:
                future.set_result(result)
            except InvalidStateError:
                drop(result)

    # It may wait for as long as the server likes, but keeps nobody.
    threading.Thread(target=run, daemon=True).start()
    try:
        return future.result(seconds)
    except BaseException as error:
        if not future.cancel():
            return future.result()
        if isinstance(error, TimeoutError):
            raise SlowError(f'there was no answer in {seconds:.0f} seconds'
                            ) from None
        raise


def watched(chunks: Iterator[bytes], seconds: float, rate: float,
            abort: Callable[[], object]) -> Generator[bytes, None, None]:
    """Iterate over the bytes of a transfer that must not become too slow.

    Parameters
    ----------
    chunks : iterator of bytes
        The bytes.
    seconds, rate : float
        How many bytes a second must come, on average over so many seconds.
    abort : callable
        Makes a read that waits for bytes return, or fail.

    Yields
    ------
    bytes

    Raises
    ------
    SlowError
        If it is.
    """
    watch = _Watch(seconds, rate, abort)
    try:
        for chunk in chunks:
            watch.note(len(chunk))
            yield chunk
        watch.note(0)
    except Exception:
        watch.note(0)  # what it was aborted for, not how that looks
        raise
    finally:
        watch.end()


class _Watch:
    """Looks again and again, from a thread, how many bytes have come."""

    def __init__(self, seconds: float, rate: float,
                 abort: Callable[[], object]) -> None:
        self._seconds = seconds
        self._rate = rate
        self._abort = abort
        self._bytes = 0
        self._ended = threading.Event()
        self._problem: str | None = None
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        before = 0
        while not self._ended.wait(self._seconds):
            came = self._bytes - before
            if came < self._rate * self._seconds:
                # First, so that nothing is kept of what the read returns.
                self._problem = (f'only {came} bytes came in '
                                 f'{self._seconds:.0f} seconds')
                self._abort()
                return
            before += came

    def note(self, size: int) -> None:
        """Note bytes that came; raise `SlowError` if they were too few."""
        if self._problem is not None:
            raise SlowError(self._problem)
        self._bytes += size

    def end(self) -> None:
        """Look no more."""
        self._ended.set()
