"""Errors of downloads."""
from fuel.exceptions import FuelError


class DownloadError(FuelError, OSError):
    """A file could not be downloaded from any of its addresses."""


class UnreachableError(DownloadError):
    """None of the hosts of the file `name` can be connected to; `reasons` has
    the error of each."""

    def __init__(self, text: str, name: str, reasons: dict[str, str]) -> None:
        super().__init__(text)
        self.name = name
        self.reasons = reasons


class SourceError(FuelError):
    """One address does not serve the file."""


class TransientError(SourceError):
    """One attempt failed; the next may not."""


class EncodingError(TransientError):
    """A body does not have the encoding that its server states."""


class SlowError(TransientError):
    """Too few bytes came for too long."""


class WrongPieceError(TransientError):
    """The piece on disk is not a part of the file."""


class NoConnectionError(TransientError):
    """There is no connection to the host of an address."""
