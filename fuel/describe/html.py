"""Objects of Fuel as tables, for notebooks."""
from __future__ import annotations

import base64
import io
from html import escape as escape_html
from typing import Any

import numpy
from numpy.typing import ArrayLike, NDArray

from fuel.utils.arguments import is_dataset, safely
from fuel.describe.pipeline import (
    Described, Source, ask, dataset_stage, described, source_text, stream_text,
    type_text)
from fuel.utils.overrides import covers
from fuel.utils.printing import printable

# How many examples a strip shows, and how high it is, in pixels.
STRIP = 8
HEIGHT = 56

_HEAD = ('Stage', 'Produces', 'Source', 'Type', 'Axes', 'Runs in')


def escape(text: str) -> str:
    """Return a text as HTML, in which nothing steers a browser."""
    return escape_html(printable(text))


def stream_html(stream: object) -> str:
    """Return a pipeline as a table, with a strip of its example images."""
    stages = described(stream)
    if not stages:
        return f'<pre>{escape(stream_text(stream))}</pre>'
    rows = [_row(_HEAD, 'th')]
    for stage in stages:
        rows += _rows(stage)
    strips = [_strip(stage.subject) for stage in stages
              if is_dataset(stage.subject)]
    return f'<table>{"".join(rows)}</table>{"".join(strips)}'


def dataset_html(dataset: object) -> str:
    """Return a data set as a table, with a strip of example images."""
    rows = _rows(dataset_stage(dataset))
    return (f'<table>{_row(_HEAD[:-1], "th")}{"".join(rows)}</table>'
            f'{_strip(dataset)}')


def _row(cells: tuple[str, ...], tag: str = 'td') -> str:
    style = ' style="text-align: left; vertical-align: top"'
    return '<tr>' + ''.join(
        f'<{tag}{style}>{cell}</{tag}>' for cell in cells) + '</tr>'


def _rows(stage: Described) -> list[str]:
    """Return the rows of a stage: one for each source."""
    name = '&nbsp;' * 4 * stage.depth + f'<b>{escape(stage.name)}</b>'
    produces = '<br>'.join(map(escape, [stage.items, *stage.details]))
    rows = []
    for place, cells in enumerate(
            map(_cells, stage.sources) if stage.sources else [('',) * 3]):
        first = place == 0
        rows.append(_row((
            name if first else '', produces if first else '', *cells,
            *[escape(stage.runs_in) if first else ''] * bool(
                stage.runs_in))))
    return rows


def _cells(source: Source) -> tuple[str, str, str]:
    return (escape(source.name), escape(type_text(source.type)),
            escape(', '.join(axis or '?' for axis in source.axes or ())))


def _strip(dataset: object) -> str:
    """Return example images, if reading them opens nothing."""
    if not ask(dataset, 'has_rows_at_hand') or not covers(
            dataset, 'takes_requests', ('get_data',)):
        return ''
    return safely('', _images, dataset)


def _images(dataset: Any) -> str:
    stage = dataset_stage(dataset)
    source = next((source for source in stage.sources
                   if _is_image(source)), None)
    count = dataset.known_length()
    if source is None or not count:
        return ''
    rows = numpy.linspace(0, count - 1, min(STRIP, count)).astype(int)
    place = [one.name for one in stage.sources].index(source.name)
    images = dataset[rows][place]
    tags = ''.join(
        f'<img style="height: {HEIGHT}px; margin: 2px; '
        f'image-rendering: pixelated" alt="example {row}" '
        f'src="data:image/png;base64,{_png(image)}">'
        for row, image in zip(rows, images, strict=True))
    return f'<div title="{escape(source_text(source))}">{tags}</div>'


def _is_image(source: Source) -> bool:
    """Return whether a source holds images of one or three channels."""
    shape = None if source.type is None else source.type.shape
    axes = source.axes or ()
    if axes[-2:] != ('height', 'width'):
        return False
    return shape is not None and (
        len(shape) == 2 or (len(shape) == 3 and shape[0] in (1, 3)))


def pixels(array: NDArray[Any]) -> NDArray[numpy.uint8]:
    """Spread numbers over 0 to 255, unless they use that range."""
    if array.dtype == numpy.uint8 and array.max(initial=0) > 1:
        return array
    finite = array[numpy.isfinite(array)].astype('float64')
    low, high = (finite.min(), finite.max()) if finite.size else (0, 0)
    scaled = (array.astype('float64') - low) * (255 / (high - low or 1))
    return numpy.nan_to_num(scaled, posinf=255, neginf=0).astype('uint8')


def _png(image: ArrayLike) -> str:
    """Return an image of shape (channel, height, width) as base64."""
    from PIL import Image
    array = numpy.asarray(image)
    if array.ndim == 3:
        array = array.transpose(1, 2, 0)
        array = array[..., 0] if array.shape[-1] == 1 else array
    buffer = io.BytesIO()
    Image.fromarray(pixels(array)).save(buffer, 'PNG')
    return base64.b64encode(buffer.getvalue()).decode()
