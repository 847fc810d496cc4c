"""Make parts of error texts about names: the nearest known name, and names
that differ."""
from __future__ import annotations

from collections.abc import Iterable, Sequence

# Least length of a beginning that is compared: shorter ones match too much.
LEAST = 4
# Largest number of similar names whose parts are compared.
ALIKE = 5


def did_you_mean(name: object, known: Iterable[str],
                 form: str = '{}', cutoff: float = .6) -> str:
    """Return a question that suggests the known name nearest to an unknown
    one; empty if none is near.

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
    >>> did_you_mean('images', ['data/images', 'mages'])
    "did you mean 'data/images'?"
    >>> did_you_mean('var/_index', ['obs/_index'])
    ''
    """
    found = nearest(name, known, cutoff)
    return '' if found is None else form.format(f'did you mean {found!r}?')


def sources_of_fields(source: str, fields: Iterable[str]) -> str:
    """Return advice on how to make each field of an array of records a source.

    Examples
    --------
    >>> sources_of_fields('jets', ('pt', 'mass'))
    "make each field a source of its own, such as Rows('jets', field='pt')\
 among the columns of HDF5Dataset"
    """
    return (f'make each field a source of its own, such as Rows({source!r}, '
            f'field={next(iter(fields), "name")!r}) among the columns of '
            f'HDF5Dataset')


def unlike_first(path: str, first: str, what: str, found: Sequence[str],
                 expected: Sequence[str], choose: str = '',
                 place: str = '') -> ValueError:
    """Return an error about a file whose columns or arrays differ from those
    of the first file.

    `what`: 'column' or 'array'.
    `found`, `expected`: names of the columns or arrays in the file, and in the
        first file.
    `choose`: argument that selects a column or array, with ``{!r}`` for its
        name; '' if all files must have all of them.
    `place`: text for the error about where files have the names.

    Examples
    --------
    >>> unlike_first('b.csv', 'a.csv', 'column', ['x'], ['x', 'y'])
    ValueError("b.csv has no column 'y', which a.csv has: files that are one \
data set have the same columns, got ['x'] in the place of ['x', 'y']; make \
them alike, or a data set of each")
    """
    missing = [name for name in expected if name not in found]
    more = [name for name in found if name not in expected]
    common = [name for name in expected if name in found]
    if missing:
        hint = did_you_mean(missing[0], more, ' ({})')
        differs = f'has no {what} {missing[0]!r}, which {first} has{hint}'
    elif more:
        article = 'an' if what == 'array' else 'a'
        differs = f'has {article} {what} {more[0]!r}, and {first} has none'
    else:
        differs = f'has its {what}s in another order than {first}'
    remedy = (f'name those to read, such as {choose.format(common[0])}'
              if choose and common else
              'make them alike, or a data set of each')
    return ValueError(
        f'{path} {differs}: files that are one data set have the same '
        f'{what}s{place}, got {found!s:.200} in the place of '
        f'{expected!s:.200}; {remedy}')


def nearest(name: object, known: Iterable[str],
            cutoff: float = .6) -> str | None:
    """Return the known name nearest to an unknown one; None if none is
    near."""
    # Imported here, since only errors need it.
    import difflib
    # Keys of the user's dicts may be anything.
    known, name = [one for one in known if isinstance(one, str)], str(name)
    ends = {other.rpartition('/')[2]: other for other in reversed(known)}

    def alike(one: str, other: str) -> bool:
        return bool(difflib.get_close_matches(one, [other], 1, cutoff))

    def are_paths_alike(other: str) -> bool:
        """Return whether each part of two paths is alike; only the last parts
        are compared if one path has more parts."""
        mine, theirs = name.split('/'), other.split('/')
        if len(mine) != len(theirs):
            mine, theirs = mine[-1:], theirs[-1:]
        return all(map(alike, mine, theirs))

    matches = [other for other in known if other.endswith(f'/{name}')] or [
        other for other in difflib.get_close_matches(
            name, known, ALIKE, cutoff) if are_paths_alike(other)] or [
        other for other in known if _begins_alike(name, other)] or [
        ends[end] for end in difflib.get_close_matches(
            name, ends, 1, cutoff) if '/' not in name]
    return next(iter(matches), None)


def _begins_alike(name: str, known: str) -> bool:
    """Return whether a known name begins with `name`; an 's' at the end of
    `name` is ignored."""
    stem = name.removesuffix('s')
    return len(stem) >= LEAST and known.startswith(stem)
