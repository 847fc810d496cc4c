"""How to download: timeouts, attempts, mirrors."""
import time
from collections.abc import Callable
from dataclasses import dataclass

from fuel.downloaders.registry import RawFile


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
        seconds, is given up, and made no progress. So is one that takes
        `connect_timeout` and so many seconds to begin.
    attempts : int
        How often to try an address without progress. An attempt that brought
        more of the file than any before is progress.
    backoff : float
        Seconds to wait before the second attempt; doubled for each further.
    patience : float
        Seconds to wait for another process that downloads the same file and
        makes no progress.
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
    patience: float = 600.
    sleep: Callable[[float], None] = time.sleep
    check: Callable[[str, RawFile], object] | None = None


DEFAULT = Options()
