"""Asking whether a known name was meant."""
from __future__ import annotations

from collections.abc import Iterable

# Shorter beginnings have too many ends.
LEAST = 4


def did_you_mean(name: object, known: Iterable[str],
                 form: str = '{}', cutoff: float = .6) -> str:
    """Return a question for the known name nearest to an unknown one.

    Examples
    --------
    >>> did_you_mean('feature', ['features', 'targets'])
    "did you mean 'features'?"
    >>> did_you_mean('feature', ['features', 'targets'], ' ({})')
    " (did you mean 'features'?)"
    >>> did_you_mean(5, ['features', 'targets'])
    ''
    >>> did_you_mean('images', ['csv', 'image_folder'])
    "did you mean 'image_folder'?"
    """
    found = nearest(name, known, cutoff)
    return '' if found is None else form.format(f'did you mean {found!r}?')


def sources_of_fields(source: str, fields: Iterable[str]) -> str:
    """Return what makes sources of the fields of an array of records.

    Examples
    --------
    >>> sources_of_fields('jets', ('pt', 'mass'))
    "make each field a source of its own, such as Rows('jets', field='pt')\
 among the columns of HDF5Dataset"
    """
    return (f'make each field a source of its own, such as Rows({source!r}, '
            f'field={next(iter(fields), "name")!r}) among the columns of '
            f'HDF5Dataset')


def nearest(name: object, known: Iterable[str],
            cutoff: float = .6) -> str | None:
    """Return the known name nearest to an unknown one, if one is near."""
    # Only errors need it.
    import difflib
    known = list(known)
    matches = difflib.get_close_matches(str(name), known, 1, cutoff) or [
        other for other in known if _begins_alike(str(name), other)]
    return next(iter(matches), None)


def _begins_alike(name: str, known: str) -> bool:
    """Return whether a name is the beginning of another, but for the end of
    a plural."""
    stem = name.removesuffix('s')
    return len(stem) >= LEAST and known.startswith(stem)
