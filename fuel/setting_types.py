"""Types of settings: functions that check and convert a setting's value."""
from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable, Iterable, Mapping


def extra_downloader_converter(value: str | list[str]) -> list[str]:
    """Return module names as a list.

    Parameters
    ----------
    value : str or list of str
        A string is split at single spaces; a list is returned as it is.

    Returns
    -------
    list of str
        The module names.

    Examples
    --------
    >>> extra_downloader_converter('package1.download package2.download')
    ['package1.download', 'package2.download']
    """
    if isinstance(value, str):
        return value.split(' ') if value else []
    if not isinstance(value, (list, tuple)) or not all(
            isinstance(name, str) for name in value):
        raise TypeError('a list of names of modules is needed')
    return value


def multiple_paths_parser(value: object) -> list[str]:
    """Return directories as a list, with a leading ``~`` replaced.

    Parameters
    ----------
    value : str, path-like, iterable of them or None
        A string is split at `os.pathsep`; None means the user's data
        directory. A list whose entries need no change is returned itself, so
        that ``config.data_path.append(...)`` works on an assigned list.

    Returns
    -------
    list of str
        The directories.

    Examples
    --------
    >>> multiple_paths_parser(os.pathsep.join(['/data', '/scratch']))
    ['/data', '/scratch']
    """
    if value is None:
        # Imported only here, since most programs name their directories.
        import platformdirs
        return [_in_home(
            platformdirs.user_data_dir('fuel', appauthor=False))]
    if isinstance(value, str):
        value = value.split(os.pathsep)
    elif isinstance(value, os.PathLike):
        value = [value]
    elif not isinstance(value, Iterable) or isinstance(
            value, (bytes, Mapping)):
        raise TypeError('a path or a list of paths is needed')
    paths = [path_parser(path) for path in value]
    return value if value == paths else paths


def _in_home(folder: str) -> str:
    """Return a folder; raise RuntimeError if it is in an unknown home
    directory, as later versions of platformdirs do."""
    if folder.startswith('~'):
        raise RuntimeError('the home directory is not known')
    return folder


def path_parser(value: object) -> str:
    """Return a path as a string, with a leading ``~`` replaced."""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError('a path is needed')
    path = os.path.expanduser(str(os.fspath(value)))
    if path == '~' or path.startswith('~/'):
        raise ValueError(
            'the home directory is not known: set HOME, or write the whole '
            'path')
    return path


def float_type(value: object) -> str:
    """Return the name of a type of floating-point numbers."""
    import numpy
    kind = numpy.dtype(value)  # type: ignore[call-overload]
    if value is None or kind.kind != 'f':
        raise TypeError('a floating-point type is needed, such as float32')
    return str(kind.name)


def _whole_number(value: object) -> int:
    """Return an integer; raise an error for a fraction or a boolean."""
    if isinstance(value, str):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if type(value).__name__ in ('bool', 'bool_'):
        raise TypeError('a whole number is needed, not a truth value')
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError('a whole number is needed') from None


def directory_or_off(value: object) -> str:
    """Return a directory for state, or ``'off'``, which YAML reads as False.
    None means the user's directory for state."""
    if value is None:
        import platformdirs
        return _in_home(platformdirs.user_state_dir('fuel'))
    return 'off' if value in (False, 'off', '') else path_parser(value)


def cache_folder_or_off(value: object) -> str:
    """Return a directory for remote files, or ``'off'``. None means a
    directory in the user's directory for caches."""
    if value is None:
        import platformdirs
        return os.path.join(_in_home(platformdirs.user_cache_dir(
            'fuel', appauthor=False)), 'remote')
    return directory_or_off(value)


def at_least(least: int, what: str, if_none: Callable[[], int | None],
              most: int | None = None) -> Callable[[object], int | None]:
    """Return a function that checks and returns a whole number in a range."""
    def parse(value: object) -> int | None:
        if value is None:
            return if_none()
        number = _whole_number(value)
        if number < least or (most is not None and number > most):
            raise ValueError(f'at least {least} {what} needed' if most is None
                             else f'{what} from {least} to {most} is needed')
        return number
    return parse


def cores() -> int:
    """Return the number of cores that the process may run on."""
    if hasattr(os, 'sched_getaffinity'):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def required() -> int:
    """Raise TypeError, for a setting that must not be None."""
    raise TypeError('a whole number is needed')


def seconds(value: object) -> float:
    """Return a time to wait in seconds; ``inf`` means no limit."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise TypeError('a number of seconds is needed')
    seconds = float(value)
    if not seconds >= 0:
        raise ValueError('a number of seconds is needed, not less than zero')
    return seconds


def seconds_or_off(value: object) -> float:
    """Return a time to wait in seconds; 0, None and ``'off'``, which YAML
    reads as False, mean no limit."""
    if value is None or value is False or value in ('off', 'none'):
        return math.inf
    return seconds(value) or math.inf
