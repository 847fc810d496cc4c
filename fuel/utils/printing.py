"""Texts of files and of users, as they may be printed."""
from __future__ import annotations


def printable(text: str) -> str:
    r"""Return a text in which no character steers a terminal or a browser.

    Control characters, those that change the direction of writing, and what
    is no character at all are escaped, as `repr` does.

    Examples
    --------
    >>> print(printable('\x1b[2Jred\nM\xe4rz \u202etxt'))
    \x1b[2Jred\nMärz \u202etxt
    """
    if text.isprintable():
        return text
    return ''.join([
        one if one.isprintable()
        else one.encode('unicode_escape').decode('ascii') for one in text])
