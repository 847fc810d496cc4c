"""Errors of downloads."""
from fuel.exceptions import FuelError

__all__ = ['DownloadError', 'EncodingError', 'SlowError', 'SourceError',
           'TransientError', 'WrongPieceError']


class DownloadError(FuelError, OSError):
    """A file could not be downloaded from any of its addresses."""


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
