"""Exceptions of another process, raised again here, and names of signals."""
from __future__ import annotations

import builtins
import pickle
import signal
import traceback
from typing import Any, NamedTuple

from fuel import exceptions

# Their constructors take more than a text, or they end loops.
_NOT_BY_TEXT = (StopIteration, StopAsyncIteration, UnicodeError,
                ExceptionGroup)


# Modules whose exceptions are raised as they are.
_KNOWN = 'builtins', 'fuel.exceptions'


class RemoteTraceback(Exception):  # noqa: N818 - it is a cause
    """The traceback of an exception as it was in the other process."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return '\n' + self.text


class ErrorReport(NamedTuple):
    """An exception as text.

    `kind`: name of a built-in class, or of one of Fuel; None for any other.
    `summary`: class and text.
    `text`: argument of the constructor.
    """

    kind: str | None
    summary: str
    text: str
    notes: list[str]
    traceback: str

    @classmethod
    def of(cls, error: BaseException) -> ErrorReport:
        """Return an exception as text."""
        kind = type(error)
        return cls(
            kind.__name__ if kind.__module__ in _KNOWN else None,
            traceback.format_exception_only(error)[0].strip(),
            _text_of(error),
            notes_of(error),
            ''.join(traceback.format_exception(error)))

    def rebuild(self, other: type[Exception], prefix: str) -> Exception:
        """Return an exception that has the words."""
        cls = getattr(builtins, self.kind or '', None) or getattr(
            exceptions, self.kind or '', None)
        if isinstance(cls, type) and issubclass(cls, Exception) \
                and not issubclass(cls, _NOT_BY_TEXT):
            error: Exception = cls(self.text)
        else:
            error = other(prefix + self.summary)
        for note in self.notes:
            error.add_note(note)
        error.__cause__ = RemoteTraceback(self.traceback)
        return error


def notes_of(error: BaseException) -> list[str]:
    """Return the notes that were added to an exception."""
    return [str(note) for note in getattr(error, '__notes__', ())]


def _text_of(error: BaseException) -> str:
    # The text of a KeyError is its argument in quotes, which that of a new
    # one would put in quotes once more.
    if isinstance(error, KeyError) and len(error.args) == 1 \
            and isinstance(error.args[0], str):
        return error.args[0]
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - users' code may raise anything
        return '<exception str() failed>'


def pickle_error(error: Exception) -> bytes:
    """Return an exception, or the known facts about it, pickled."""
    report = ErrorReport.of(error)
    pickled: bytes | None = None
    try:
        pickled = pickle.dumps(error)
        if type(pickle.loads(pickled)) is not type(error):
            pickled = None
    except Exception:  # noqa: BLE001 - pickling runs any code
        pickled = None
    return pickle.dumps((pickled, report))


def unpickle_error(pickled: bytes, other: type[Exception],
                   prefix: str) -> Exception:
    """Return the exception that :func:`pickle_error` was given.

    See :meth:`ErrorReport.rebuild` for one that does not pickle.
    """
    content: tuple[Any, ErrorReport] = pickle.loads(pickled)
    original, report = content
    if original is None:
        return report.rebuild(other, prefix)
    error: Exception = pickle.loads(original)
    error.__cause__ = RemoteTraceback(report.traceback)
    return error


def signal_name(number: int) -> str:
    """Return the name of a signal; its number if it has none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
