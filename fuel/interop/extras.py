"""Report an optional package that is missing, with the extra that has it."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def from_extra(extra: str, *packages: str) -> Iterator[None]:
    """Name the extra if the imports in this context miss a package of it.

    `packages`: by the names that they are imported under.

    Examples
    --------
    >>> with from_extra('sundial', 'gnomon'):
    ...     import gnomon
    Traceback (most recent call last):
        ...
    ImportError: gnomon is not installed: in the clone of Fuel, run pip \
install -e '.[sundial]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or '').partition('.')[0]
        if missing not in packages:
            raise
        raise ImportError(
            f'{missing} is not installed: in the clone of Fuel, run pip '
            f"install -e '.[{extra}]'",
            name=missing) from None
