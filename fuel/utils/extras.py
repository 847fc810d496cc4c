"""Name the extra of Fuel that brings an optional package."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# The folder that the package is in: a clone, or where wheels are installed.
_ROOT = Path(__file__).parents[2]


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra, for a clone or a wheel."""
    if (_ROOT / 'setup.cfg').exists():
        return f"in the clone of Fuel, run pip install -e '.[{extra}]'"
    return f"run pip install 'fuel[{extra}]'"


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
    ImportError: gnomon is not installed: ...run pip install ...[sundial]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or '').partition('.')[0]
        if missing not in packages:
            raise
        raise ImportError(
            f'{missing} is not installed: {how_to_install(extra)}',
            name=missing) from None
