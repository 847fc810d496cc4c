"""Errors of downloads."""
from fuel.exceptions import FuelError

__all__ = ['DownloadError', 'EncodingError', 'NoConnectionError', 'SlowError',
           'SourceError', 'TransientError', 'UnreachableError',
           'WrongPieceError']


class DownloadError(FuelError, OSError):
    """A file could not be downloaded from any of its addresses."""


class UnreachableError(DownloadError):
    """None of the hosts that have a file can be connected to.

    Parameters
    ----------
    text : str
        What is wrong with this file alone.
    name : str
        The file.
    reasons : dict
        What is wrong with each host.
    """

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
