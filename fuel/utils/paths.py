"""Find files, and restore the working directory."""
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import chdir, contextmanager

from fuel.config_parser import config


def find_in_data_path(filename: str) -> str:
    """Search for a file in the folders of Fuel's data path.

    Parameters
    ----------
    filename : str
        Name of the file, or its path relative to one of the folders.

    Returns
    -------
    str
        The path of the first match, in the order of ``config.data_path``.

    Raises
    ------
    FileNotFoundError
        (An IOError.) If no folder has the file; the text names the folders.

    Examples
    --------
    >>> import tempfile
    >>> from fuel.utils import find_in_data_path
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     find_in_data_path(file.name) == file.name
    True
    """
    folders = [os.path.expandvars(os.path.expanduser(folder))
               for folder in config.data_path]
    for folder in folders:
        path = os.path.join(folder, filename)
        if os.path.isfile(path):
            return path
    looked_in = ', '.join(map(repr, folders)) or 'no folder at all'
    raise FileNotFoundError(
        f'{str(filename)!r} was not found in the data path; looked in '
        f'{looked_in}. Get the file with fuel-download and fuel-convert, or '
        'name the folder that has it in the environment variable '
        'FUEL_DATA_PATH, in data_path in ~/.fuelrc, or in '
        'fuel.config.data_path')


def expand_home(path: str) -> str:
    """Return a path in which ``~`` at the start is the home folder, unless
    there is a file of the name as it is."""
    return os.path.expanduser(path) if path.startswith('~') and (
        not os.path.exists(path)) else path


# A program that opens one of these may wait for another program, or for ever.
_SPECIAL = ((stat.S_ISFIFO, 'a named pipe (FIFO)'),
            (stat.S_ISSOCK, 'a socket'),
            (stat.S_ISCHR, 'a device'), (stat.S_ISBLK, 'a device'))


def refuse_special_file(path: str) -> None:
    """Raise an error if a path leads to a pipe, a socket or a device, or if a
    link leads back to itself.

    Other problems are found when the file is opened.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise looping_link(path) from None
        return
    except ValueError:
        # No file has a name with a null byte.
        return
    for is_kind, kind in _SPECIAL:
        if is_kind(mode):
            raise ValueError(
                f'{path!r} must be a regular file, which can be read at any '
                f'position and more than once, and it is {kind}: write its '
                f'content to a file')


def refuse_folder(path: str, what: str) -> None:
    """Raise IsADirectoryError if a path leads to a folder.

    `what`: what to name in the folder, for the error.
    """
    if os.path.isdir(path):
        raise IsADirectoryError(
            f'{os.path.abspath(path)!r} is a folder: name {what} in it')


def looping_link(path: str, target: str = 'itself') -> OSError:
    """Return the error that a link leads back to itself or to `target`."""
    return OSError(errno.ELOOP, (
        f'{path!r} is a link that leads back to {target}, so that nothing '
        f'can be read there: remove it, or let it lead to a file or another '
        f'folder'))


@contextmanager
def remember_cwd() -> Iterator[None]:
    """Return a context that restores the working directory when it ends.

    The working directory belongs to the whole process. Do not use this while
    other threads open relative paths.

    Examples
    --------
    >>> import os, tempfile
    >>> from fuel.utils import remember_cwd
    >>> before = os.getcwd()
    >>> with remember_cwd():
    ...     os.chdir(tempfile.gettempdir())
    >>> os.getcwd() == before
    True
    """
    with chdir(os.getcwd()):
        yield
