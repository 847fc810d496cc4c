"""Turn h5py's errors about a damaged file into one that names the file."""
from __future__ import annotations

import errno
import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeGuard, TypeVar

from fuel.exceptions import DamagedFileError, FuelError
from fuel.utils.signatures import signature_of

F = TypeVar('F', bound=Callable[..., Any])

# h5py has raised each of these for a file with eight overwritten bytes.
OF_DAMAGE = (OSError, RuntimeError, LookupError, TypeError, ValueError,
             AttributeError, ArithmeticError, MemoryError)
# Those errors in `OF_DAMAGE` that a mistake in a program raises, too. They
# count as damage only if h5py raises them.
OF_MISTAKES = (AttributeError, TypeError)


def is_lack_of_descriptors(error: BaseException) -> TypeGuard[OSError]:
    """Return whether an error means that too many files are open."""
    return isinstance(error, OSError) and error.errno in (
        errno.EMFILE, errno.ENFILE)


def with_advice(error: OSError, path: str) -> OSError:
    """Return the error of a system call with the path of its file, and with
    advice if too many files are open."""
    # If it gets an error number, OSError constructs the subclass that belongs
    # to this number.
    return OSError(
        error.errno, f'{error.strerror}; if too many files are open, close '
        f'some, or raise the limit (ulimit -n)', path)


def _is_of_h5py(error: BaseException) -> bool:
    """Return whether h5py has raised an error, rather than code of Fuel or of
    a user that h5py called."""
    packages, place = [''], error.__traceback__
    while place is not None:
        name = str(place.tb_frame.f_globals.get('__name__', ''))
        packages.append(name.partition('.')[0])
        place = place.tb_next
    # h5py calls NumPy for types and shapes.
    return [one for one in packages if one != 'numpy'][-1] == 'h5py'


def damaged(text: str) -> DamagedFileError:
    """Return the error that a file is damaged; `text` describes the damage."""
    return DamagedFileError(
        f'{text}; the file is damaged: restore it from its origin')


@contextmanager
def naming_file(path: str, source: str = '',
                others: Sequence[str] = ()) -> Iterator[None]:
    """Return a context in which errors about the content of an HDF5 file name
    the file; see :func:`raise_named`."""
    try:
        yield
    except OF_DAMAGE as error:
        raise_named(error, path, source, others)
        raise


def raise_named(error: Exception, path: str, source: str = '',
                others: Sequence[str] = ()) -> None:
    """Raise an error that names an HDF5 file, from an error about its content.

    Do nothing for an error of Fuel, for one of `OF_MISTAKES` that h5py did not
    raise, and if the text contains one of the paths already. In these cases
    the caller must raise the error again. This function is faster than
    :func:`naming_file`.

    `error`: one of `OF_DAMAGE`.
    `others`: further paths that the text of the error may contain.
    """
    if isinstance(error, FuelError) or (
            isinstance(error, OF_MISTAKES) and not _is_of_h5py(error)):
        return
    # A text may show the path with or without the escapes of `repr`.
    text = str(error)
    if any(one in text or repr(one) in text for one in (path, *others)):
        return
    if is_lack_of_descriptors(error):
        # The file that could not be opened may be another one, for example
        # that of a module that is imported late.
        raise with_advice(error, path) from error
    where = f'{path!r}, source {source!r}' if source else repr(path)
    raise DamagedFileError(
        f'cannot read {where}: {type(error).__name__}: {error}; the file '
        'seems to be damaged: restore it from its origin, or convert it '
        'again') from error


def names_file(function: F) -> F:
    """Wrap a function of an open file in :func:`naming_file`.

    A call with wrong arguments raises TypeError, as without the wrapper.
    """
    signature = signature_of(function)

    @functools.wraps(function)
    def watched(h5file: object, *args: Any, **kwargs: Any) -> Any:
        signature.bind(h5file, *args, **kwargs)
        if not hasattr(h5file, 'filename'):
            raise TypeError(
                f'h5file must be an open h5py.File, got {h5file!r} '
                f'({type(h5file).__name__})')
        with naming_file(h5file.filename):
            return function(h5file, *args, **kwargs)
    return watched  # type: ignore[return-value]
