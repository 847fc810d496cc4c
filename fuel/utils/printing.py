"""Print texts of files and users safely, and print tables."""
from __future__ import annotations

from collections.abc import Iterator, Sequence


def printable(text: str) -> str:
    r"""Return a text without characters that control a terminal or a browser.

    Control characters, characters that change the direction of writing and
    invalid characters are escaped, as `repr` does.

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


def aligned(rows: Sequence[Sequence[str]],
            num_left: int | None = None) -> Iterator[str]:
    """Yield a line for each row, its cells in columns.

    `num_left`: number of columns that are aligned left; the others are aligned
        right. Defaults to None: all columns are aligned left.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield '  '.join(
            cell.ljust(width) if num_left is None or place < num_left
            else cell.rjust(width) for place, (cell, width) in enumerate(
                zip(row, widths, strict=True))).rstrip()
