"""What goes wrong with downloads."""
from fuel.exceptions import FuelError

__all__ = ['DownloadError', 'EncodingError', 'NeedURLPrefix', 'SlowError',
           'SourceError', 'TransientError', 'WrongPieceError']


class NeedURLPrefix(FuelError):  # noqa: N818
    """A file has no public address, and no prefix was given."""


class DownloadError(FuelError, OSError):
    """A file could not be had from any of its addresses."""


class SourceError(FuelError):
    """One address is of no use for a file."""


class TransientError(SourceError):
    """One attempt failed; the next may not."""


class EncodingError(TransientError):
    """A body is not packed in the way that its server says."""


class SlowError(TransientError):
    """Too few bytes came for too long."""


class WrongPieceError(TransientError):
    """What is on disk is not a part of the file."""
