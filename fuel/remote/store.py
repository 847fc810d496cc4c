"""What a place of remote bytes answers."""
from __future__ import annotations

from typing import NamedTuple, Protocol

from fuel.exceptions import DamagedFileError


class Answer(NamedTuple):
    """Bytes of a remote file, and what the server says of the whole.

    Attributes
    ----------
    data : bytes
        Empty if the file is, or the range lies behind its end.
    size : int
        Bytes of the whole file.
    validator : str
        Differs between states of the file: an ETag, or else the time of
        the last change. Empty if the server gives neither.

    """

    data: bytes
    size: int
    validator: str


class ChangedError(DamagedFileError):
    """The server has the file in another state than the one asked for."""


class ByteStore(Protocol):
    """One remote file, whose byte ranges can be fetched.

    Methods are called on the event loop of fsspec.

    """

    async def fetch(self, start: int, stop: int, validator: str) -> Answer:
        """Return the bytes of a range.

        Parameters
        ----------
        start, stop : int
            The range, not empty; it may end behind the end of the file.
        validator : str
            Of the state that is wanted; empty for any.

        Returns
        -------
        Answer

        Raises
        ------
        TransientError
            If it is worth asking again.
        ChangedError
            If the file is in another state. A store need not find out:
            what it returns is compared as well.
        FileNotFoundError, PermissionError, OSError

        """
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...
