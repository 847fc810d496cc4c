"""Name the extra of Fuel that installs a missing optional package."""
from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

# The folder that contains the package: a clone, or the folder in which wheels
# are installed.
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
# A requirement of an extra, in the form of the metadata of a wheel.
_OF_EXTRA = re.compile(
    r"""(?P<needed>[^;]+?)\s*;.*\bextra\s*==\s*['"](?P<extra>[^'"]+)['"]""")


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra, for a clone or a wheel.

    For a wheel, the command names the packages of the extra, since Fuel's own
    name might install another release from an index.
    """
    if os.path.exists(os.path.join(_ROOT, 'setup.cfg')):
        return f"in the clone of Fuel, run pip install -e '.[{extra}]'"
    packages = ' '.join(f"'{package}'" for package in packages_of(extra))
    return (f"for Fuel's extra '{extra}', run pip install {packages}"
            if packages else
            f"install Fuel again, with its extra '{extra}'")


def packages_of(extra: str) -> list[str]:
    """Return the requirements of an extra, from the metadata of the installed
    Fuel.

    The list is empty if there are no metadata, or if the extra is unknown.
    """
    from importlib.metadata import PackageNotFoundError, requires

    try:
        found = map(_OF_EXTRA.fullmatch, requires('fuel') or [])
    except PackageNotFoundError:
        return []
    return [match['needed'] for match in found
            if match and match['extra'] == extra]


@contextmanager
def from_extra(extra: str, *packages: str) -> Iterator[None]:
    """Return a context in which the error of a missing package names the
    extra to install.

    `packages`: the names under which the extra's packages are imported.

    Examples
    --------
    >>> with from_extra('sundial', 'gnomon'):
    ...     import gnomon
    Traceback (most recent call last):
        ...
    ImportError: gnomon is not installed: in...sundial...
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
