"""Errors of downloads."""
from fuel.exceptions import FuelError


class DownloadError(FuelError, OSError):
    """A file could not be downloaded from any of its addresses."""


class UnreachableError(DownloadError):
    """No host of a file can be reached.

    `name`: name of the file.
    `reasons`: the error of each host.
    """

    def __init__(self, text: str, name: str, reasons: dict[str, str]) -> None:
        super().__init__(text)
        self.name = name
        self.reasons = reasons


class SourceError(FuelError):
    """One address does not serve the file."""


class TransientError(SourceError):
    """An attempt failed, and another one may succeed."""


class EncodingError(TransientError):
    """The body of a reply lacks the encoding that the server states."""


class SlowError(TransientError):
    """A transfer was too slow for too long."""


class WrongPieceError(TransientError):
    """The part on disk does not belong to the file."""


class NoConnectionError(TransientError):
    """There is no connection to the host of an address."""
