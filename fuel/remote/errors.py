"""Errors of remote files, as the fetching of bytes tells them apart."""
from __future__ import annotations

from fuel.exceptions import DamagedFileError


class TransientError(OSError):
    """A request failed and may work when it is repeated.

    Attributes
    ----------
    wait : float or None
        Seconds that the server asks to wait.

    """

    def __init__(self, text: str, wait: float | None = None) -> None:
        super().__init__(text)
        self.wait = wait


def error_of_status(status: int, reason: str, wait: float | None = None,
                    ) -> OSError:
    """Return the error that a status of HTTP stands for."""
    text = f'the server answers {status} ({reason or "no reason given"})'
    if status in (408, 425, 429) or status >= 500:
        return TransientError(text, wait)
    if status in (404, 410):
        return FileNotFoundError(f'there is no such file: {text}')
    if status in (401, 403, 407):
        return PermissionError(
            f'{text}: give credentials as storage_options, or in the '
            f'environment')
    return OSError(text)


def changed(name: str, before: str, now: str) -> DamagedFileError:
    """Return the error about a file that is not what it was."""
    return DamagedFileError(
        f'{name} was changed while it was in use ({before} when it was '
        f'opened, {now} now), so old and new rows would be mixed: open the '
        f'data set again')
