"""Examples of a data set, or of a stream, as text, HTML and a picture."""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fuel.utils.arguments import try_call
from fuel.utils.printing import aligned, printable

if TYPE_CHECKING:
    from PIL import Image

    from fuel.describe.panels import Panel

# Most rows of a table, one for each example.
MOST_ROWS = 8
# Most sources that text and HTML show, and most characters of a line of text.
MOST_SOURCES = 8
LINE = 79


class Preview:
    """Some examples of each source: images, texts, rows of a table, curves.

    :meth:`fuel.datasets.Dataset.preview` and
    :meth:`fuel.streams.AbstractDataStream.preview` return a preview.
    ``print`` and an interactive prompt show text, a notebook shows pictures.

    Attributes
    ----------
    title : str
        Name of the data set or stream, and which examples are shown.
    error : Exception or None
        The error of the first example that could not be read.  The examples
        that could be read are shown.
    """

    def __init__(self, title: str, panels: Sequence[Panel] = (),
                 error: Exception | None = None,
                 numbers: Sequence[int] = ()) -> None:
        self.title = printable(title)
        self.panels = panels
        self.error = error
        # Numbers of the examples in the data set; empty for the first ones.
        self.numbers = numbers

    def __repr__(self) -> str:
        panels = [panel for panel in self.panels[:MOST_SOURCES]
                  if panel.examples]
        lines = [self.title, *_table(self._rows(
            [panel for panel in panels if panel.is_tabular]))]
        facts = [(panel.name, panel.kind or ', '.join(
            [f'{name} ({count})' for name, count in panel.classes]))
            for panel in panels]
        lines += [printable(f'{name}: {text}') for name, text in facts if text]
        return '\n'.join([*lines, *self._rest(), *self._problem()])

    def _rows(self, panels: Sequence[Panel]) -> list[list[str]]:
        """Return the rows of a table of examples, with names as first row.

        The table has the first examples. If the examples are spread over the
        data set, the rows are spread over the examples.
        """
        if not panels:
            return []
        count = max(len(panel.examples) for panel in panels)
        numbers = self.numbers or range(count)
        shown = range(min(count, MOST_ROWS))
        is_spread = numbers[-1] >= len(numbers)
        places = [place * (count - 1) // (len(shown) - 1 or 1)
                  for place in shown] if is_spread else list(shown)
        cells = [panel.cells for panel in panels]
        return [['', *[panel.name for panel in panels]], *[
            [str(numbers[place]), *[column[place] if place < len(column)
                                    else '' for column in cells]]
            for place in places]]

    def _rest(self) -> list[str]:
        """Return a line that names the sources that are left out."""
        names = [printable(panel.name) for panel in self.panels[MOST_SOURCES:]]
        return [f'and {len(names)} more: {", ".join(names)[:10 * LINE]}'
                ] if names else []

    def _problem(self) -> list[str]:
        """Return the lines of the error of an unreadable example."""
        if self.error is None:
            return []
        text = try_call('', str, self.error)
        lines = [f'{type(self.error).__name__}: {text}',
                 *vars(self.error).get('__notes__', ())]
        return [printable(line) for text in lines
                for line in text.splitlines()]

    def _repr_html_(self) -> str:
        from fuel.describe.page import escape
        return f'<div>{escape(self.title)}</div>{self.html()}'

    def html(self) -> str:
        """Return the preview as a fragment of HTML, without the title.

        Returns
        -------
        str
            HTML for a light or a dark page.
        """
        from fuel.describe.page import lines_html, panel_html, table_html
        panels = [panel for panel in self.panels[:MOST_SOURCES]
                  if panel.examples]
        tabular = [panel for panel in panels if panel.is_tabular]
        parts = [panel_html(panel, MOST_ROWS) for panel in panels]
        if len(tabular) > 1 or not all(
                panel.is_single for panel in tabular):
            parts.insert(0, table_html(self._rows(tabular)))
        parts += map(lines_html, [
            *self._rest(), *['\n'.join(self._problem())] * bool(self.error)])
        return ''.join(parts)

    def picture(self) -> Image.Image:
        """Return a picture of the examples of all sources.

        The picture of a source is a contact sheet of images, or curves, bars
        or texts.

        Returns
        -------
        PIL.Image.Image

        Raises
        ------
        Exception
            The error in `error`, if no example could be read.
        """
        from fuel.describe.panels import picture_of, write
        from PIL import Image, ImageDraw
        if self.error is not None and not any(
                panel.examples for panel in self.panels):
            raise self.error
        pictures = [picture_of(panel) for panel in self.panels]
        line, rim = 16, 4
        sheet = Image.new('RGB', (
            max([picture.width for picture in pictures], default=1),
            max(sum(picture.height + line + rim for picture in pictures), 1)),
            (255, 255, 255))
        pen, top = ImageDraw.Draw(sheet), 0
        for panel, picture in zip(self.panels, pictures, strict=True):
            write(pen, (rim, top + 2), printable(
                f'{panel.name}   {panel.title}'), (0, 0, 0))
            sheet.paste(picture, (0, top + line))
            top += line + picture.height + rim
        return sheet

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the picture.

        Parameters
        ----------
        path : str
            Name of the file, with the file extension of an image format, such
            as ``.png``.

        Raises
        ------
        ValueError
            If the file extension is not the one of an image format.
        OSError
            If the file cannot be written.
        """
        name = os.fspath(path)
        try:
            self.picture().save(name)
        except ValueError as error:
            raise ValueError(
                f'cannot draw into {name!r}: expected the extension of a '
                'kind of picture, such as .png') from error
        except OSError as error:
            raise OSError(f'cannot draw into {name!r}: '
                          f'{error.strerror or error}') from error


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines of text with aligned columns."""
    columns = [list(map(printable, column))
               for column in zip(*rows, strict=True)]
    if not columns:
        return []
    # Cut the cells of wide columns, so that all columns fit in a line.
    share = LINE
    while share > LINE // len(columns) and sum(
            min(share, max(map(len, column))) + 2 for column in columns
            ) > LINE:
        share -= 1
    columns = [[_cut(cell, share) for cell in column] for column in columns]
    return list(aligned(list(zip(*columns, strict=True))))


def _cut(text: str, most: int) -> str:
    most = max(most - 2, 4)
    return text if len(text) <= most else f'{text[:most - 3]}...'
