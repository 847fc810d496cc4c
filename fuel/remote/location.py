"""Where a remote file is, and how it is accessed."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fuel.remote.open_file import remote_file
from fuel.remote.urls import (
    StorageOptions, is_spawning, public_options, shown, without_secrets)

if TYPE_CHECKING:
    from fuel.remote.file import RemoteFile


class Location:
    """A URL and the options of its file system, of which a pickle or a
    ``repr`` shows nothing secret.

    Where a process starts another one, that one is given the secrets: with
    a fork it would have them as well.
    """

    def __init__(self, url: str, options: StorageOptions | None) -> None:
        if options is not None and not hasattr(options, 'keys'):
            raise TypeError(
                f"storage_options must be a dict, such as {{'anon': True}}, "
                f'got {type(options).__name__}')
        self.shown = shown(url)
        self._url = url
        self._options = dict(options or {})
        self._lacks_secrets = False

    def __repr__(self) -> str:
        return f'Location({self.shown!r})'

    def __getstate__(self) -> dict[str, Any]:
        if is_spawning():
            return vars(self)
        url, options = without_secrets(self._url), public_options(
            self._options)
        return {'shown': self.shown, '_url': url, '_options': options,
                '_lacks_secrets': self._lacks_secrets or (
                    url, options) != (self._url, self._options)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Location) and (
            vars(self) == vars(other))

    def __hash__(self) -> int:
        return hash(self._url)

    @property
    def public_options(self) -> StorageOptions:
        """The options without credentials (dict)."""
        return public_options(self._options)

    def with_options(self, options: StorageOptions) -> Location:
        """Return the same place, accessed with other options."""
        return Location(self._url, options)

    def open(self) -> RemoteFile:
        """Return the file as it is now."""
        try:
            return remote_file(self._url, self._options)
        except PermissionError as error:
            if not self._lacks_secrets:
                raise
            raise PermissionError(
                f'{error} (what was unpickled has no credentials: assign '
                f'its storage_options)') from None
