"""The part of a reply of `requests` that downloads use."""
from collections.abc import Iterator, Mapping
from typing import Protocol


class Reply(Protocol):
    """A reply to an HTTP request; `requests.Response` is one."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, by name."""

    def raise_for_status(self) -> None:
        """Raise an error if the server reports one."""

    def iter_content(self, size: int, /) -> Iterator[bytes]:
        """Iterate over the body, at most so many bytes at once."""


class Get(Protocol):
    """Sends a request; `requests.get` is one."""

    def __call__(self, url: str, *, stream: bool, headers: Mapping[str, str],
                 timeout: tuple[float, float],
                 hooks: Mapping[str, object]) -> Reply:
        """Return the reply, once its head is there."""
