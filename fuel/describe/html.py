"""Show streams and data sets as HTML tables in notebooks."""
from __future__ import annotations

from fuel.utils.arguments import is_dataset, try_call
from fuel.describe.pipeline import (
    Described, DescribedSource, dataset_stage, described, stream_text,
    type_text)
from fuel.describe.page import escape

_HEAD = ('Stage', 'Produces', 'Source', 'Type', 'Axes', 'Runs in')


def stream_html(stream: object) -> str:
    """Return a pipeline as an HTML table, with examples of its data sets.

    Examples are shown only of data sets in memory, and of data sets with open
    files.
    """
    stages = described(stream)
    if not stages:
        return f'<pre>{escape(stream_text(stream))}</pre>'
    rows = [_row(_HEAD, 'th')]
    for stage in stages:
        rows += _rows(stage)
    previews = [_shown_at_once(stage.subject) for stage in stages
                if is_dataset(stage.subject)]
    return _table(rows) + ''.join(previews)


def dataset_html(dataset: object) -> str:
    """Return a data set as an HTML table, with a few examples.

    The examples are left out if reading them takes long.
    """
    rows = _rows(dataset_stage(dataset))
    return _table([_row(_HEAD[:-1], 'th'), *rows]) + _shown_at_once(
        dataset, may_open=True)


def _table(rows: list[str]) -> str:
    """Return rows as an HTML table that scrolls where the page is narrow."""
    return ('<div style="overflow-x: auto"><table>'
            f'{"".join(rows)}</table></div>')


def _row(cells: tuple[str, ...], tag: str = 'td') -> str:
    style = ' style="text-align: left; vertical-align: top"'
    return '<tr>' + ''.join(
        f'<{tag}{style}>{cell}</{tag}>' for cell in cells) + '</tr>'


def _rows(stage: Described) -> list[str]:
    """Return the HTML rows of a stage, one for each source."""
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


def _cells(source: DescribedSource) -> tuple[str, str, str]:
    return (escape(source.name), escape(type_text(source.type)),
            escape(', '.join(axis or '?' for axis in source.axes or ())))


def _shown_at_once(dataset: object, may_open: bool = False) -> str:
    """Return a few examples in HTML; '' if reading them takes long.

    `may_open`: whether a local file may be opened to read them.
    """
    from fuel.describe.samples import FEW, is_quick, preview_dataset
    if not try_call(False, is_quick, dataset, may_open):
        return ''
    return try_call('', lambda: preview_dataset(dataset, FEW).html())
