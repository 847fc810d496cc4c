"""The errors of Fuel, in one tree.

::

    FuelError                        anything Fuel itself complains about
    +-- ConfigurationError           a setting is unset, unknown or unusable
    +-- AxisLabelsMismatchError      a stage met other axes than it needs
    +-- StateMismatchError           a saved state belongs to another stream
    +-- WorkerError                  a worker process died, stalled or failed
    +-- ServerError                  a server is gone, or refused a client
    +-- DamagedFileError             a file's bytes are not what they were
    +-- UndecodableImageError        bytes are no image, or a damaged one
    +-- UnknownTokenError            a token is not in the vocabulary

Each class also derives from the built-in error that a caller would already
catch, so ``except ValueError`` goes on working.
"""

__all__ = ['AxisLabelsMismatchError', 'ConfigurationError',
           'DamagedFileError', 'FuelError', 'ServerError',
           'StateMismatchError', 'UndecodableImageError', 'UnknownTokenError',
           'WorkerError']


class FuelError(Exception):
    """Base class of the errors that are Fuel's own."""


class ConfigurationError(FuelError, ValueError):
    """A setting has no value, is not known, or has a value of no use.

    It is not an :class:`AttributeError`: ``hasattr`` must not hide that a
    setting exists but was never given a value.

    """


class AxisLabelsMismatchError(FuelError, ValueError):
    """The axis labels of a source are not those that a stage works on."""


class StateMismatchError(FuelError, ValueError):
    """A saved state does not belong to the stream that should resume."""


class WorkerError(FuelError, RuntimeError):
    """A worker process died, stalled, or failed with an unknown error."""


class DamagedFileError(FuelError, OSError):
    """A file is cut, damaged, or was changed while it was in use."""


class UndecodableImageError(FuelError, ValueError, OSError):
    """Bytes that should be an image file cannot be decoded."""


class UnknownTokenError(FuelError, KeyError):
    """A token is not in the vocabulary, and no other stands for it."""

    # KeyError would show the text as it shows a key, in quotes.
    __str__ = Exception.__str__


class ServerError(FuelError, ConnectionError):
    """A server is gone, refused a client, or failed."""
