"""How to download: what a caller of Fuel 0.2.0 could not ask for."""
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from fuel.downloaders.registry import RawFile

__all__ = ['Options', 'options', 'use_options']


@dataclass(frozen=True)
class Options:
    """How files are downloaded.

    Attributes
    ----------
    mirror : str or None
        A folder, or the start of an address, that takes the place of all
        addresses of a file.
    jobs : int
        Number of files that are downloaded at once.
    connect_timeout, read_timeout : float
        Seconds to wait for a connection, and for the next bytes.
    slow_rate, slow_seconds : float
        An attempt that brings fewer bytes a second, on average over so many
        seconds, is given up, and is in vain. So is one that takes
        `connect_timeout` and so many seconds to begin.
    attempts : int
        How often to try an address in vain. An attempt that brought more of
        the file than any before is not in vain.
    backoff : float
        Seconds to wait before the second attempt; doubled for each further.
    sleep : callable
        What waits.
    check : callable or None
        Called with the path and the `RawFile` of each file in place of
        downloading it.
    """

    mirror: str | None = None
    jobs: int = 4
    connect_timeout: float = 10.
    read_timeout: float = 15.
    slow_rate: float = 1024.
    slow_seconds: float = 60.
    attempts: int = 3
    backoff: float = .5
    sleep: Callable[[float], None] = time.sleep
    check: Callable[[str, RawFile], object] | None = None


DEFAULT = Options()
_options: ContextVar[Options] = ContextVar('download_options',
                                           default=DEFAULT)


def options() -> Options:
    """Return the options that hold at present."""
    return _options.get()


@contextmanager
def use_options(new: Options) -> Iterator[None]:
    """Let `new` hold while the context is entered. A data set's download
    function takes only the arguments it had in Fuel 0.2.0; what came later
    reaches `default_downloader` this way."""
    token = _options.set(new)
    try:
        yield
    finally:
        _options.reset(token)
