"""The drawing of a pipeline: a box for each stage."""
from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import NamedTuple

from fuel.describe.pipeline import HERE, Described, source_text
from fuel.utils.arguments import is_dataset
from fuel.utils.printing import printable

# In pixels: width of a letter, height of a line, padding inside a box, and
# the gap between boxes.
LETTER = 7.3
LINE = 17
RIM = 12
GAP = 28
# Most letters of a line in a box; a tooltip shows the whole text.
WIDEST = 52
# Most sources of a stage that its box lists.
MOST_SOURCES = 12


class Box(NamedTuple):
    """A box of the drawing, which shows a stage.

    `lines`: lines of text; the first is the name of the stage.
    `parent`: number of the stage that reads this stage; None for the
        outermost stage.
    `is_elsewhere`: whether the stage runs in workers, in threads or on a
        server.
    """

    lines: list[str]
    depth: int
    parent: int | None
    is_dataset: bool
    is_elsewhere: bool

    @classmethod
    def of(cls, stage: Described) -> Box:
        """Return the box of a stage."""
        is_elsewhere = stage.runs_in not in ('', HERE)
        sources = list(map(source_text, stage.sources))
        more = len(sources) - MOST_SOURCES
        if more > 0:
            sources[MOST_SOURCES:] = [f'and {more} more']
        return cls([printable(line) for line in (
            stage.name, *sources, stage.items,
            *stage.details, *[stage.runs_in] * is_elsewhere)],
            stage.depth, stage.parent, is_dataset(stage.subject),
            is_elsewhere)

    @property
    def width(self) -> float:
        """The width of the box (float), in pixels."""
        return 2 * RIM + LETTER * min(WIDEST, max(map(len, self.lines)))

    @property
    def height(self) -> float:
        """The height of the box (float), in pixels."""
        return RIM + LINE * len(self.lines)


def drawing(title: str, stages: list[Box]) -> str:
    """Return a drawing in SVG: each stage is a box below its inputs."""
    middles = _middles(stages)
    deepest = max([stage.depth for stage in stages], default=0)
    levels = [0.] * (deepest + 2)
    for depth in range(deepest, -1, -1):
        levels[depth] = levels[depth + 1] + GAP + max(
            stage.height for stage in stages if stage.depth == depth)
    width = max([middle + stage.width / 2 for middle, stage in zip(
        middles, stages, strict=True)], default=0.) + RIM
    parts = [
        (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" '
         f'height="{levels[0]:.0f}" viewBox="0 0 {width:.0f} '
         f'{levels[0]:.0f}" role="img" style="max-width: 100%; height: auto" '
         'font-family="ui-monospace, monospace" font-size="12">'),
        f'<title>{escape(printable(title))}</title>']
    for number, (stage, middle) in enumerate(zip(
            stages, middles, strict=True)):
        bottom = levels[stage.depth] - GAP / 2
        if stage.parent is not None:
            below = stages[stage.parent]
            top = levels[below.depth] - GAP / 2 - below.height
            parts += _wire(middle, bottom, middles[stage.parent], top)
        parts += _lines(number, stage, middle, bottom - stage.height)
    return '\n'.join([*parts, '</svg>'])


def _middles(stages: list[Box]) -> list[float]:
    """Return the horizontal centre of each box, in pixels from the left.

    Data sets are side by side; a stage is centred below its inputs.
    """
    children: list[list[int]] = [[] for _ in stages]
    for number, stage in enumerate(stages):
        if stage.parent is not None:
            children[stage.parent].append(number)
    inner, spans = [0.] * len(stages), [0.] * len(stages)
    for number in reversed(range(len(stages))):
        inner[number] = sum(
            [spans[child] + GAP for child in children[number]]) - GAP
        spans[number] = max(stages[number].width, inner[number])
    lefts = [float(RIM)] * len(stages)
    for number, below in enumerate(children):
        left = lefts[number] + (spans[number] - inner[number]) / 2
        for child in below:
            lefts[child] = left
            left += spans[child] + GAP
    return [left + span / 2 for left, span in zip(lefts, spans, strict=True)]


def _lines(number: int, stage: Box, middle: float, top: float
           ) -> Iterator[str]:
    """Yield the SVG elements of a box: its outline and its lines of text."""
    left = middle - stage.width / 2
    fill = '#fff3e6' if stage.is_dataset else '#eef2fb'
    rim = '#c8641e' if stage.is_dataset else '#4263b5'
    dashes = ' stroke-dasharray="5 3"' * stage.is_elsewhere
    whole = escape('\n'.join(stage.lines))
    yield (f'<g id="stage{number}"><title>{whole}</title><rect x="{left:.1f}" '
           f'y="{top:.1f}" width="{stage.width:.1f}" '
           f'height="{stage.height:.1f}" rx="6" fill="{fill}" '
           f'stroke="{rim}"{dashes}/>')
    for place, line in enumerate(stage.lines):
        weight = ' font-weight="bold"' * (place == 0)
        shown = line if len(line) <= WIDEST else f'{line[:WIDEST - 1]}\u2026'
        yield (f'<text x="{left + RIM:.1f}" y="{top + LINE * (place + 1):.1f}"'
               f' fill="#1c2a4a"{weight}>{escape(shown)}</text>')
    yield '</g>'


def _wire(x: float, y: float, end: float, bottom: float) -> Iterator[str]:
    """Yield the SVG elements of an arrow from one box down to another."""
    bend = bottom - GAP / 2 + 2
    yield (f'<path d="M{x:.1f} {y:.1f}V{bend:.1f}H{end:.1f}V{bottom - 6:.1f}" '
           'fill="none" stroke="#888" stroke-width="1.5"/>')
    yield (f'<path d="M{end - 4:.1f} {bottom - 7:.1f}h8l-4 7z" '
           'fill="#888"/>')
