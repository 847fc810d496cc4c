"""The errors of Fuel, in one tree.

::

    FuelError                        base class of all errors of Fuel
    +-- ConfigurationError           a setting is unset, unknown or unusable
    +-- AxisLabelsMismatchError      a stage met other axes than it needs
    +-- NotAStreamError              a stage was given a data set to read
    +-- AmbiguousLayoutError         a file can be opened in several ways
    +-- UnknownLayoutError           an HDF5 file has no known layout
    +-- StateMismatchError           a saved state belongs to another stream
    +-- WorkerError                  a worker process died, stalled or failed
    +-- ServerError                  a server is gone, or refused a client
    +-- DamagedFileError             a file is truncated, damaged or changed
    +-- BadRecordsError              too many examples failed
    +-- UndecodableImageError        bytes are not an image, or are damaged
    +-- UndecodableAudioError        bytes are not audio, or are damaged
    +-- UnknownOrderError            an order is not known before reading
    +-- UnknownTokenError            a token is not in the vocabulary
    +-- MissingInputFiles            a converter lacks raw files
    +-- NeedURLPrefix                a raw file has no public address
    +-- converters.base.BadInputFile       a raw file is damaged
    +-- downloaders.base.DownloadError     a raw file cannot be downloaded

Each class also derives from the built-in error that a caller would already
catch, so ``except ValueError`` still works.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

__all__ = ['AmbiguousLayoutError', 'AxisLabelsMismatchError',
           'BadRecordsError', 'ConfigurationError', 'DamagedFileError',
           'FuelError', 'MissingInputFiles', 'NeedURLPrefix',
           'NotAStreamError', 'ServerError', 'StateMismatchError',
           'UndecodableAudioError', 'UndecodableImageError',
           'UnknownLayoutError', 'UnknownOrderError', 'UnknownTokenError',
           'WorkerError']


class FuelError(Exception):
    """Base class of all errors of Fuel."""


class ConfigurationError(FuelError, ValueError):
    """A setting has no value, is not known, or has an invalid value.

    It is not an :class:`AttributeError`: ``hasattr`` must not hide that a
    setting exists but was never given a value.
    """


class AxisLabelsMismatchError(FuelError, ValueError):
    """The axis labels of a source differ from those that a stage needs."""


class AmbiguousLayoutError(FuelError, ValueError):
    """A file can be opened in several ways; the error lists them."""


class UnknownLayoutError(FuelError, ValueError):
    """HDF5 files have no known layout, or lack the arrays of the given
    layout."""


class NotAStreamError(FuelError, TypeError, AttributeError):
    """A stage was given an object to read that is not a stream."""


class StateMismatchError(FuelError, ValueError):
    """A saved state does not belong to the stream that loads it."""


class WorkerError(FuelError, RuntimeError):
    """A worker process died, stalled, or failed with an unknown error."""


class DamagedFileError(FuelError, OSError):
    """A file is truncated or damaged, or was changed while it was in use."""


class BadRecordsError(FuelError, ValueError):
    """More examples failed than may be left out."""


class UndecodableImageError(FuelError, ValueError, OSError):
    """Bytes that should be an image file cannot be decoded."""


class UndecodableAudioError(FuelError, ValueError, OSError):
    """Bytes that should be an audio file cannot be decoded as requested."""


class UnknownTokenError(FuelError, KeyError):
    """A token is not in the vocabulary, and there is no token for unknown
    ones."""

    # KeyError would show the text as it shows a key, in quotes.
    __str__ = Exception.__str__


class UnknownOrderError(FuelError, ValueError):
    """The order of a stream, or a part of it, is not known before reading."""


class ServerError(FuelError, ConnectionError):
    """A server is gone, refused a client, or failed."""


class MissingInputFiles(FuelError):  # noqa: N818
    """Raw files of a data set are missing from the folder of a converter.

    Parameters
    ----------
    message : str
        Text that names the missing data.
    filenames : iterable of str
        Names of the missing files, without the folder.
    directory : str, optional
        The folder that was searched.
    advice : str, optional
        The remedy. Default: to run ``fuel-download``.
    """

    def __init__(self, message: str, filenames: Iterable[str] = (),
                 directory: str | os.PathLike[str] | None = None,
                 advice: str | None = None) -> None:
        self.filenames = list(filenames)
        self.directory = directory
        self.advice = advice
        super().__init__(message)

    def __str__(self) -> str:
        paths = [os.path.join(self.directory or '', name)
                 for name in self.filenames]
        return ': '.join([self.args[0], *[', '.join(paths)] * bool(paths)])


class NeedURLPrefix(FuelError):  # noqa: N818
    """A raw file has no public address, and no URL prefix was given."""
