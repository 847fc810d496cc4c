"""Images, curves and histograms of the examples of one source."""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy
from PIL import Image, ImageDraw, ImageFont

from fuel.describe.examples import (
    FEW, Array, as_image, cell_of, is_numeric, numbers_in)
from fuel.utils.printing import printable

COLUMNS = 10
ROWS = 4
THUMBNAIL = 72
MARGIN = 4
WIDTH = COLUMNS * (THUMBNAIL + MARGIN) + MARGIN
PLOT_HEIGHT = 120
LABEL_HEIGHT = 12
# Least length of a curve that has a picture of its own.
LONG = 4 * WIDTH
# Number of bars of a histogram; with fewer values, each value has a bar.
MOST_CLASSES = 20
# Most columns of a matrix that is drawn as one curve for each column.
MOST_CHANNELS = 8
INK = (40, 80, 160)
PAPER = (255, 255, 255)

Point = tuple[float, float]


class Plot(NamedTuple):
    """Curves or bars in a box from (0, 0) to (1, 1), whose y axis points up.

    `lines`: the points of each curve.
    `bars`: left end, right end and height of each bar.
    `labels`: horizontal centre and text of each label below the box.
    """

    lines: Sequence[Sequence[Point]] = ()
    bars: Sequence[tuple[float, float, float]] = ()
    labels: Sequence[tuple[float, str]] = ()


class Panel:
    """Examples of one source, and the way in which they are drawn.

    `name`: name of the source.
    `examples`: arrays; the array of a text holds a string.
    `captions`: name of the class of each example, if that is known.
    `count`: number of the examples, as text.
    `is_labelled`: whether the axes are called height and width.
    `class_names`: names of the classes, by number of the class.
    `column`: all numbers of the source, which the histogram counts instead of
        the examples; empty if the numbers are not known. If it is None, the
        histogram counts the examples. A caller passes it if other sources
        decide which examples are shown.
    """

    def __init__(self, name: str, examples: Sequence[Array],
                 captions: Sequence[str] = (), count: str = '',
                 is_labelled: bool = False,
                 class_names: Sequence[str] = (),
                 column: Array | None = None) -> None:
        self.name = name
        self.examples = examples
        self.label(captions)
        self.count = count
        self.is_labelled = is_labelled
        self.class_names = class_names
        self.column = column

    def label(self, captions: Sequence[str]) -> None:
        """Set the caption of each example: the name of its class."""
        self.captions = [_cut(caption) for caption in captions]

    @cached_property
    def title(self) -> str:
        """Number of examples, and the range of their numbers (str)."""
        shown = self.examples if self.column is None or not (
            self.column.size) else [self.column]
        return f'{self.count}{numbers_in(shown)}'

    @cached_property
    def images(self) -> list[Image.Image]:
        """A picture of each example (list of image).

        It is empty unless all examples are images, or long curves that are
        drawn one by one.
        """
        found = []
        for example in self.examples:
            image = as_image(example, self.is_labelled)
            if image is None:
                return _waves(self.examples)
            found.append(image)
        return found

    @property
    def is_numeric(self) -> bool:
        """Whether all examples are numbers (bool)."""
        return all(map(is_numeric, self.examples))

    @property
    def is_tabular(self) -> bool:
        """Whether the row of a table can show an example (bool)."""
        return not self.images and not any(
            is_numeric(example) and example.size > FEW
            for example in self.examples)

    @property
    def is_single(self) -> bool:
        """Whether each example is one number (bool)."""
        return bool(self.examples) and self.is_numeric and all(
            example.size == 1 for example in self.examples)

    @cached_property
    def counts(self) -> list[tuple[str, int]]:
        """Number of examples of each value (list of tuple).

        If there are many values, it is the number in each bin of a histogram.
        The list is empty for unsorted floats, for examples of several
        numbers, and for texts that seldom repeat.
        """
        if self.column is not None:
            numbers = self.column.ravel()
        elif self.is_single:
            numbers = numpy.concatenate(
                [one.ravel() for one in self.examples])
        else:
            return self._count_texts()
        is_sorted = len(numbers) > 2 and bool(
            (numbers[1:] >= numbers[:-1]).all())
        if numbers.dtype.kind == 'f' and not is_sorted:
            return []
        numbers = numbers[numpy.isfinite(numbers)]
        found, times = numpy.unique(numbers, return_counts=True)
        if len(found) < MOST_CLASSES:
            return [(self.name_of(number), count) for number, count in zip(
                found.tolist(), times.tolist(), strict=True)]
        heights, edges = numpy.histogram(
            numbers.astype('float64'), MOST_CLASSES)
        return [(f'{low:.4g}', int(height)) for low, height in zip(
            edges, heights, strict=False)]

    def _count_texts(self) -> list[tuple[str, int]]:
        """Return the number of examples of each text, if texts are few."""
        if any(one.ndim or one.dtype.kind not in 'USOT'
               for one in self.examples):
            return []
        found = sorted(Counter(self.cells).items())
        return found if len(found) < min(
            MOST_CLASSES, 1 + len(self.examples) / 2) else []

    def name_of(self, number: float) -> str:
        """Return the name of the class with a number, or else the number."""
        names = self.class_names
        if isinstance(number, int) and 0 <= number < len(names):
            return names[number]
        return f'{number:g}' if isinstance(number, float) else str(number)

    @property
    def classes(self) -> list[tuple[str, int]]:
        """Number of examples of each class, if the classes are few (list)."""
        return self.counts if len(self.counts) < MOST_CLASSES else []

    @property
    def kind(self) -> str:
        """Type, shape and range of the examples; '' for a table (str)."""
        if self.is_tabular:
            return ''
        kinds = sorted({f'{one.dtype} {one.shape}' for one in self.examples})
        more = f' and {len(kinds) - 1} other shapes' * (len(kinds) > 1)
        what = 'images of ' if self.images and not _waves(
            self.examples) else ''
        return f'{what}{kinds[0]}{more}{numbers_in(self.examples)}'

    @property
    def cells(self) -> list[str]:
        """The text of each example for the cell of a table (list of str)."""
        return list(map(cell_of, self.examples))

    @cached_property
    def plot(self) -> Plot:
        """Bars or curves of the numbers (Plot)."""
        if self.counts:
            return _histogram(self.counts)
        if self.is_single:
            return _bars(numpy.concatenate(
                [one.ravel() for one in self.examples]).astype('float64'))
        return _curves(self.examples)


def _histogram(counts: list[tuple[str, int]]) -> Plot:
    counts = [(_cut(name), count) for name, count in counts]
    pitch = 1 / max(len(counts), COLUMNS)
    most = max(count for _, count in counts)
    # Leave out labels, so that they do not touch each other.
    step = -(-len(counts) * max(len(name) for name, _ in counts) // 64) or 1
    return Plot(
        bars=[(place * pitch, (place + .8) * pitch, count / most)
              for place, (_, count) in enumerate(counts)],
        labels=[((place + .4) * pitch, name)
                for place, (name, _) in enumerate(counts)][::step])


def _bars(numbers: Array) -> Plot:
    """Return a bar for each number, from the lowest number or from zero on."""
    numbers = finite(numbers)
    low, high = min(numbers.min(), 0.), max(numbers.max(), 0.)
    heights = (numbers - low) / ((high - low) or 1)
    pitch = 1 / max(len(numbers), COLUMNS * ROWS)
    return Plot(bars=[(place * pitch, (place + .7) * pitch, height)
                      for place, height in enumerate(heights.tolist())])


def _curves(examples: Sequence[Array]) -> Plot:
    """Return a plot with a curve for each channel, all on one scale."""
    curves = [thinned(numpy.ravel(channel).astype('float64'))
              for example in examples for channel in _channels(example)
              if channel.size]
    if not curves:
        return Plot()
    curves = list(map(finite, curves))
    low = min(curve.min() for curve in curves)
    height = max(curve.max() for curve in curves) - low or 1
    lines = []
    for curve in curves:
        x = numpy.linspace(0, 1, max(len(curve), 2)).tolist()
        y = ((curve - low) / height).tolist()
        lines.append(list(zip(x, y * 2 if len(y) == 1 else y, strict=True)))
    return Plot(lines)


def _channels(example: Array) -> Sequence[Array]:
    """Return the columns of a narrow matrix, each to be drawn as a curve.

    Any other example is returned as the only curve.
    """
    if example.ndim != 2 or min(example.shape) > MOST_CHANNELS:
        return [example]
    return list(example.T if example.shape[0] > example.shape[1] else example)


def finite(numbers: Array) -> Array:
    """Return numbers with the infinite values and NaN replaced.

    Infinite values become the largest and the lowest finite number, and NaN
    becomes zero.
    """
    numbers = numbers.astype('float64')
    others = numbers[numpy.isfinite(numbers)]
    low, high = (others.min(), others.max()) if others.size else (0., 0.)
    return numpy.nan_to_num(numbers, posinf=high, neginf=low)


def thinned(curve: Array) -> Array:
    """Return a long curve with fewer points, as many as a plot can show.

    They are the lowest and the highest number of each part of the curve.
    """
    part = curve.size // WIDTH
    if part < 4:
        return curve
    parts = curve[:curve.size // part * part].reshape(-1, part)
    thin: Array = numpy.stack([parts.min(axis=1), parts.max(axis=1)],
                              axis=1).ravel()
    return thin


def _waves(examples: Sequence[Array]) -> list[Image.Image]:
    """Return a small picture of each curve, all on one scale.

    The list is empty if an example is not a curve, or if all curves are
    short.
    """
    if not examples or any(
            curve.ndim != 1 or not is_numeric(curve)
            or curve.size < THUMBNAIL for curve in examples) or max(
                curve.size for curve in examples) < LONG:
        return []
    curves = list(map(finite, examples))
    low = min(curve.min() for curve in curves)
    step = (max(curve.max() for curve in curves) - low or 1) / (THUMBNAIL - 1)
    found = []
    for curve in curves:
        picture = Image.new('RGB', (THUMBNAIL, THUMBNAIL), PAPER)
        pen = ImageDraw.Draw(picture)
        for x, part in enumerate(numpy.array_split(curve, THUMBNAIL)):
            ends = [THUMBNAIL - 1 - round((end - low) / step)
                    for end in (part.min(), part.max())]
            pen.line([(x, ends[0]), (x, ends[1])], fill=INK)
        found.append(picture)
    return found


def contact_sheet(images: Sequence[Image.Image],
                  captions: Sequence[str]) -> Image.Image:
    """Return one picture of images in rows, each above its caption."""
    rows = -(-len(images) // COLUMNS)
    pitch = THUMBNAIL + MARGIN + (LABEL_HEIGHT if captions else 0)
    sheet = Image.new('RGB', (WIDTH, rows * pitch), PAPER)
    pen = ImageDraw.Draw(sheet)
    for i, image in enumerate(images):
        row, column = divmod(i, COLUMNS)
        left, top = MARGIN + column * (THUMBNAIL + MARGIN), row * pitch
        sheet.paste(thumbnail(image), (left, top))
        if captions:
            # A caption is one line, cut to the width of the image.
            write(pen, (left, top + THUMBNAIL), captions[i])
    return sheet


def thumbnail(image: Image.Image, side: int = THUMBNAIL) -> Image.Image:
    """Return an image scaled so that its longer side has `side` pixels."""
    scale = side / max(image.size)
    # Enlarged pixels stay square.
    kind = Image.Resampling.NEAREST if scale > 1 else (
        Image.Resampling.BICUBIC)
    return image.resize([max(1, round(length * scale))
                         for length in image.size], kind)


def picture_of(panel: Panel) -> Image.Image:
    """Return a picture of a panel: images, texts, bars or curves."""
    if panel.images:
        return contact_sheet(panel.images, panel.captions)
    is_drawn = panel.is_numeric or bool(panel.counts)
    plot = panel.plot if is_drawn else Plot()
    height = PLOT_HEIGHT + LABEL_HEIGHT * bool(plot.labels)
    picture = Image.new('RGB', (WIDTH, height), PAPER)
    pen = ImageDraw.Draw(picture)
    if not is_drawn:
        for i, text in enumerate(panel.cells[:PLOT_HEIGHT // LABEL_HEIGHT]):
            write(pen, (MARGIN, LABEL_HEIGHT * i), text)
    bottom = PLOT_HEIGHT - MARGIN
    across, up = WIDTH - 2 * MARGIN, bottom - MARGIN
    for left, right, high in plot.bars:
        pen.rectangle((MARGIN + left * across, bottom - 1 - high * up,
                       MARGIN + right * across, bottom), fill=INK)
    for line in plot.lines:
        pen.line([(MARGIN + x * across, bottom - y * up) for x, y in line],
                 fill=INK)
    for middle, text in plot.labels:
        write(pen, (MARGIN + middle * across, PLOT_HEIGHT), text, INK, True)
    return picture


def write(pen: ImageDraw.ImageDraw, place: Point, text: str,
          colour: tuple[int, int, int] = INK,
          is_middle: bool = False) -> None:
    """Write a text into a picture.

    Characters that the font of an old Pillow lacks are escaped.
    `is_middle`: whether the text is centred at the place.
    """
    if not isinstance(pen.getfont(), ImageFont.FreeTypeFont):
        text = text.encode('latin-1', 'backslashreplace').decode('latin-1')
    if is_middle:
        place = place[0] - pen.textlength(text) / 2, place[1]
    pen.text(place, text, fill=colour)


def _cut(name: str) -> str:
    """Return the name of a class, cut to the width of an image."""
    name = printable(name)
    return name if len(name) <= 12 else f'{name[:9]}...'
