"""Raise exceptions of another process in this one; names of signals."""
from __future__ import annotations

import builtins
import pickle
import signal
import traceback
from typing import Any, NamedTuple

from fuel import exceptions

# Classes that cannot be constructed from a text alone, and classes of
# exceptions that end loops.
_NOT_BY_TEXT = (StopIteration, StopAsyncIteration, UnicodeError,
                ExceptionGroup)


# Exceptions of classes in these modules are raised again with their own
# classes.
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

    `kind`: name of the class if it is a built-in class or one of Fuel's; None
        for any other class.
    `summary`: class and text of the exception.
    `text`: argument for the constructor.
    `notes`: notes that were added to the exception.
    `traceback`: the traceback as text.
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
        """Return an exception with the class, text and notes of the report.

        `other`: class of the result if the original class cannot be used.
        `prefix`: start of the text in this case.
        """
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
    # The text of a KeyError is its argument in quotes. A new KeyError with
    # this text would add quotes again.
    if isinstance(error, KeyError) and len(error.args) == 1 \
            and isinstance(error.args[0], str):
        return error.args[0]
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - users' code may raise anything
        return '<exception str() failed>'


def pickle_error(error: Exception) -> bytes:
    """Return an exception pickled; if it cannot be pickled, only a report."""
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
    """Return the exception that :func:`pickle_error` has pickled.

    An exception that cannot be pickled is made by :meth:`ErrorReport.rebuild`.
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
