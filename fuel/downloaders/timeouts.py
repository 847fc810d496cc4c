"""Deadlines for servers that send a byte now and then, so that no single
read takes too long."""
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import TypeVar

from fuel.downloaders.errors import SlowError

T = TypeVar('T')


def within(seconds: float, work: Callable[[], T],
           drop: Callable[[T], object]) -> T:
    """Return what `work` returns in another thread; `SlowError` after so
    many seconds. A result that comes too late goes to `drop`."""
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
    """Iterate over the bytes of a transfer; `SlowError` if fewer than
    `rate` bytes a second come, on average over so many seconds. `abort`
    makes a read that waits for bytes return, or fail."""
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
    """Counts from a thread how many bytes have come."""

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
        """Count bytes that came; raise `SlowError` if they were too few."""
        if self._problem is not None:
            raise SlowError(self._problem)
        self._bytes += size

    def end(self) -> None:
        """Stop counting."""
        self._ended.set()
