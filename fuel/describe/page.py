"""Show examples in HTML, on light and dark pages."""
from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from html import escape as escape_html

from PIL import Image

from fuel.describe.panels import Panel, Plot, thumbnail
from fuel.utils.printing import printable

# In pixels: height of images, width of plots and height of plots.
HEIGHT = 56
WIDTH = 480
PLOT = 90
# Readable on white and on black.
INK = '#4f83d6'


def escape(text: str) -> str:
    """Return a text as HTML, with markup and control characters escaped."""
    return escape_html(printable(text))


def table_html(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as an HTML table, whose first row is the header."""
    style = ('style="text-align: left; vertical-align: top; '
             'white-space: pre-wrap"')
    lines = [
        '<tr>' + ''.join(f'<{tag} {style}>{escape(cell)}</{tag}>'
                         for cell in row) + '</tr>'
        for row, tag in zip(rows, ['th', *['td'] * len(rows)], strict=False)]
    return (f'<div style="overflow-x: auto"><table>{"".join(lines)}'
            '</table></div>')


def lines_html(text: str) -> str:
    """Return lines of printable text as HTML."""
    return ('<pre style="white-space: pre-wrap; text-align: left">'
            f'{escape_html(text)}</pre>')


def panel_html(panel: Panel, rows: int) -> str:
    """Return the images, histogram or curves of a panel in HTML.

    The result is '' if a table with at most `rows` rows shows the examples.
    """
    if panel.images:
        drawing = _images(panel)
    elif panel.is_tabular and not (
            any(count > 1 for _, count in panel.counts)
            or (panel.is_single and len(panel.examples) > rows)):
        return ''
    else:
        drawing = _plot(panel.plot)
    return ('<div style="margin: 8px 0; text-align: left"><div><b>'
            f'{escape(panel.name)}</b> {escape(panel.title)}</div>'
            f'{drawing}</div>')


def _images(panel: Panel) -> str:
    tags = []
    for place, image in enumerate(panel.images):
        caption = panel.captions[place] if panel.captions else ''
        tags.append(
            '<span style="display: inline-block; margin: 2px; '
            'vertical-align: top; text-align: center; font-size: 11px; '
            f'line-height: 1.3"><img style="height: {HEIGHT}px; width: auto; '
            'max-width: 100%; margin: 0; image-rendering: pixelated" '
            f'alt="{escape(panel.name)} {place}" '
            f'src="data:image/png;base64,{_png(image)}">'
            f'{caption and f"<br>{escape(caption)}"}</span>')
    return f'<div>{"".join(tags)}</div>'


def _png(image: Image.Image) -> str:
    """Return an image as a PNG file in base64.

    If its longer side has more than ``3 * HEIGHT`` pixels, the image is
    reduced to this length, which is enough for screens of high density.
    """
    most = 3 * HEIGHT
    if max(image.size) > most:
        image = thumbnail(image, most)
    buffer = io.BytesIO()
    image.save(buffer, 'PNG')
    return base64.b64encode(buffer.getvalue()).decode()


def _plot(plot: Plot) -> str:
    """Return the bars and curves of a plot as SVG."""
    height = PLOT + 16 * bool(plot.labels)
    parts = [
        f'<rect x="{left * WIDTH:.1f}" y="{(1 - high) * PLOT:.1f}" '
        f'width="{(right - left) * WIDTH:.1f}" '
        f'height="{high * PLOT + 1:.1f}" fill="{INK}"/>'
        for left, right, high in plot.bars]
    for line in plot.lines:
        points = ' '.join([f'{x * WIDTH:.1f},{(1 - y) * PLOT:.1f}'
                           for x, y in line])
        parts.append(f'<polyline points="{points}" fill="none" '
                     f'stroke="{INK}" stroke-opacity=".7"/>')
    parts += [f'<text x="{middle * WIDTH:.1f}" y="{PLOT + 13}" '
              'text-anchor="middle" fill="currentColor" font-size="11">'
              f'{escape(text)}</text>' for middle, text in plot.labels]
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
            f'height="{height}" viewBox="0 -1 {WIDTH} {height + 2}" '
            'style="max-width: 100%; height: auto; overflow: visible" '
            f'role="img">{"".join(parts)}</svg>')
