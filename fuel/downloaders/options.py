"""Options of a download: timeouts, attempts, mirrors."""
import time
from collections.abc import Callable
from dataclasses import dataclass

from fuel.downloaders.registry import RawFile


@dataclass(frozen=True)
class Options:
    """Options of a download.

    Attributes
    ----------
    mirror : str or None
        A folder, or the start of an address, that replaces all addresses of
        a file.
    jobs : int
        Number of files that are downloaded at once.
    connect_timeout, read_timeout : float
        Seconds to wait for a connection, and for the next bytes.
    slow_rate, slow_seconds : float
        An attempt ends, and counts as an attempt without progress, if fewer
        than `slow_rate` bytes a second arrive, on average over `slow_seconds`,
        or if the reply takes longer than `connect_timeout` plus
        `slow_seconds`.
    attempts : int
        Most attempts at an address without progress. An attempt makes
        progress if it gets further in the file than all attempts before.
    backoff : float
        Seconds to wait before the second attempt; doubled for each further
        attempt.
    patience : float
        Seconds to wait while another process, which downloads the same file,
        makes no progress.
    sleep : callable
        Called with the seconds to wait.
    check : callable or None
        Called with the path and the `RawFile` of each file instead of
        downloading the file.
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
