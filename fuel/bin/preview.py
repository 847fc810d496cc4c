"""A picture of a file's examples, to see with one's own eyes."""
from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import h5py
import numpy

from fuel.bin.describe import is_ragged, source_names
from fuel.converters.raw.files import BadInputFile
from fuel.converters.raw.images import decode_image
from fuel.datasets.checks import is_sequential
from fuel.datasets.dataset import Dataset
from fuel.describe.html import pixels
from fuel.exceptions import UndecodableAudioError
from fuel.storage import choose_reader
from fuel.storage.scales import class_names, scale
from fuel.utils.hdf5_errors import names_file
from fuel.utils.sparse import is_sparse, to_dense

if TYPE_CHECKING:
    from PIL import Image, ImageDraw

Array = numpy.ndarray[Any, Any]
COLUMNS = 10
ROWS = 4
THUMBNAIL = 72
MARGIN = 4
PLOT_HEIGHT = 120
# Of matrices; smaller ones say more as curves.
SMALLEST_SHEET = 8
TITLE_HEIGHT = 16
# Below an image: one line, as long as the image is wide.
CAPTION_HEIGHT = 12
CAPTION_LENGTH = 12
WIDTH = COLUMNS * (THUMBNAIL + MARGIN) + MARGIN
# A curve from here on has a picture of its own.
LONG = 4 * WIDTH
INK = (40, 80, 160)
PAPER = (255, 255, 255)
# Of all examples that are drawn of a data set, unless the first has more.
MOST_BYTES = 1 << 28
# What audio files begin with, and how much of them is drawn.
AUDIO = re.compile(rb'RIFF....WAVE|RF64|fLaC|OggS|FORM....AIF|ID3|'
                   rb'\xff[\xf2\xf3\xfa\xfb]|\.snd|caff', re.DOTALL)
MOST_SAMPLES = 1 << 20
# The sources that hold classes, best first.
LABELS = ('targets', 'labels', 'fine_labels')


@names_file
def draw_preview(h5file: h5py.File) -> Any:
    """Draw a contact sheet of each source of images, evenly spread over the
    classes and with their names if the file has classes, or of long curves,
    such as the waves of audio files; short curves, or bars where each example
    has one number, of any other."""
    panels = []
    for name in source_names(h5file):
        rows, captions = choose_rows(h5file, name, COLUMNS * ROWS)
        examples = _examples(h5file[name], rows)
        panels.append((f'{name}   {range_of(examples, captions)}',
                       panel_of(examples, captions)))
    return _sheet(panels)


def draw_dataset(dataset: Dataset) -> Any:
    """Draw examples of each source of a data set as above, spread evenly over
    all; the first ones of a data set that is read in order."""
    if is_sequential(dataset):
        examples = list(itertools.islice(dataset, COLUMNS * ROWS))
        which = f'the first {len(examples)}'
    else:
        total = len(dataset)
        count = min(total, COLUMNS * ROWS)
        if count:
            nbytes = sum(_as_array(part).nbytes for part in dataset[0])
            count = max(1, min(count, MOST_BYTES // max(1, nbytes)))
        examples = [dataset[row] for row in numpy.linspace(
            0, total - 1, count).astype('int64')]
        which = f'{count} of {total}'
    panels = []
    for place, name in enumerate(dataset.sources):
        arrays = [_as_array(example[place]) for example in examples]
        panels.append((f'{name}   {which}{_numbers_in(arrays)}',
                       panel_of(arrays)))
    return _sheet(panels)


def _as_array(part: Any) -> Array:
    """Return the data of a source in an example, with its zeros."""
    return to_dense(part)[0] if is_sparse(part) else as_curve(
        numpy.asarray(part))


def as_curve(example: Array) -> Array:
    """Return samples of what is an audio file, or a text where the library
    that decodes them is missing; else the example itself."""
    if example.dtype != 'uint8' or example.ndim != 1:
        return example
    if not AUDIO.match(example[:12].tobytes()):
        return example
    try:
        from fuel.interop.audio import first_samples
        return numpy.asarray(first_samples(example.tobytes(), MOST_SAMPLES))
    except ImportError as error:
        return numpy.array(f'audio file, {example.size} bytes ({error})')
    except UndecodableAudioError:
        return example


def _sheet(panels: Sequence[tuple[str, Image.Image]]) -> Image.Image:
    """Draw pictures one below the other, each with its title."""
    from PIL import Image, ImageDraw
    height = sum(panel.height + TITLE_HEIGHT + MARGIN for _, panel in panels)
    sheet = Image.new('RGB', (WIDTH, max(height, 1)), PAPER)
    pen = ImageDraw.Draw(sheet)
    top = 0
    for name, panel in panels:
        pen.text((MARGIN, top + 2), name, fill=(0, 0, 0))
        sheet.paste(panel, (0, top + TITLE_HEIGHT))
        top += TITLE_HEIGHT + panel.height + MARGIN
    return sheet


def range_of(examples: list[Array], captions: Sequence[str] = ()) -> str:
    """Say how many examples are drawn, and which numbers they hold."""
    count = (f'{len(examples)} of {len(set(captions))} classes' if captions
             else f'the first {len(examples)}')
    return f'{count}{_numbers_in(examples)}'


def _numbers_in(examples: Sequence[Array]) -> str:
    """Say which numbers examples hold, nothing of what are no numbers."""
    numbers = [numpy.ravel(example) for example in examples]
    numbers = [array for array in numbers if array.size]
    if not numbers or any(array.dtype.kind not in 'buif'
                          for array in numbers):
        return ''
    low = min(float(array.min()) for array in numbers)
    high = max(float(array.max()) for array in numbers)
    return f': {low:g} to {high:g}'


def panel_of(examples: list[Array], captions: Sequence[str] = ()) -> Any:
    """Return a picture of examples: images, waves, texts or curves."""
    images = [image for example in examples
              if (image := as_image(example)) is not None]
    if len(images) < len(examples):
        images = _waves(examples)
    return _contact_sheet(images, captions) if images else _plot(examples)


def _waves(examples: Sequence[Array]) -> list[Image.Image]:
    """Return a small picture of each curve, all on one scale, if they are too
    long to be seen one over the other; else none."""
    from PIL import Image, ImageDraw
    curves = [numpy.asarray(example) for example in examples]
    if any(curve.ndim != 1 or curve.dtype.kind not in 'buif'
           or curve.size < THUMBNAIL for curve in curves) or max(
               curve.size for curve in curves) < LONG:
        return []
    curves = [numpy.nan_to_num(curve.astype('float64')) for curve in curves]
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


def _examples(dataset: h5py.Dataset, rows: Sequence[int]) -> list[Array]:
    examples = read_rows(dataset, rows)
    shapes = scale(dataset, 'shapes')
    if is_ragged(dataset) and shapes is not None:
        return [row.reshape(shape) for row, shape in zip(
            examples, read_rows(shapes, rows), strict=True)]
    return [as_curve(numpy.asarray(example)) for example in examples]


def as_image(example: Array) -> Image.Image | None:
    """Return an image of an example, None if it is none."""
    from PIL import Image
    array = numpy.asarray(example)
    if array.dtype == 'uint8' and array.ndim == 1 and array.size > 16:
        try:
            array = decode_image(array.tobytes(), 'preview')
        except BadInputFile:
            return None
    if array.ndim == 2 and min(array.shape) >= SMALLEST_SHEET:
        array = array[None]
    if array.ndim == 3 and array.shape[0] not in (1, 3) and (
            array.shape[2] in (1, 3)):
        # As files of others have them, channels last.
        array = array.transpose(2, 0, 1)
    if array.ndim != 3 or array.shape[0] not in (1, 3) or min(
            array.shape[1:]) < 2 or array.dtype.kind not in 'buif':
        return None
    array = pixels(array).transpose(1, 2, 0)
    return Image.fromarray(array[..., 0] if array.shape[2] == 1
                           else array).convert('RGB')


def _contact_sheet(images: list[Image.Image],
                   captions: Sequence[str]) -> Any:
    """Draw images in rows, each with the name of its class below."""
    from PIL import Image, ImageDraw
    rows = -(-len(images) // COLUMNS)
    pitch = THUMBNAIL + MARGIN + (CAPTION_HEIGHT if captions else 0)
    sheet = Image.new('RGB', (WIDTH, rows * pitch), PAPER)
    pen = ImageDraw.Draw(sheet)
    for i, image in enumerate(images):
        scale = THUMBNAIL / max(image.size)
        small = image.resize([max(1, round(side * scale))
                              for side in image.size])
        row, column = divmod(i, COLUMNS)
        left, top = MARGIN + column * (THUMBNAIL + MARGIN), row * pitch
        sheet.paste(small, (left, top))
        if captions:
            pen.text((left, top + THUMBNAIL), captions[i][:CAPTION_LENGTH],
                     fill=INK)
    return sheet


def as_text(example: Array) -> str:
    """Return what a person reads of an example, never ``b'...'``."""
    if isinstance(example, numpy.ndarray):
        return ', '.join(as_text(item) for item in example.ravel()[:100])
    if isinstance(example, bytes):
        return example.decode('utf8', 'replace')
    return str(example)


def thinned(curve: Array) -> Any:
    """Return no more of a curve than can be seen: the lowest and the highest
    number of each part."""
    part = curve.size // WIDTH
    if part < 4:
        return curve
    parts = curve[:curve.size // part * part].reshape(-1, part)
    return numpy.stack([parts.min(axis=1), parts.max(axis=1)],
                       axis=1).ravel()


def _plot(examples: list[Array]) -> Any:
    """Draw each example as a curve; single numbers as bars."""
    from PIL import Image, ImageDraw
    panel = Image.new('RGB', (WIDTH, PLOT_HEIGHT), PAPER)
    pen = ImageDraw.Draw(panel)
    curves = [numpy.ravel(example) for example in examples]
    if any(curve.dtype.kind not in 'buif' for curve in curves):
        for i, example in enumerate(examples[:PLOT_HEIGHT // 12]):
            pen.text((MARGIN, 12 * i), as_text(example)[:100], fill=INK)
        return panel
    if curves and all(curve.size == 1 for curve in curves):
        _draw_bars(pen, numpy.concatenate(curves).astype('float64'))
        return panel
    curves = [thinned(curve.astype('float64')) for curve in curves
              if curve.size]
    if not curves:
        return panel
    low = min(curve.min() for curve in curves)
    high = max(curve.max() for curve in curves)
    for curve in curves:
        x = numpy.linspace(MARGIN, WIDTH - MARGIN, max(len(curve), 2))
        y = (PLOT_HEIGHT - MARGIN) - (curve - low) / (
            (high - low) or 1) * (PLOT_HEIGHT - 2 * MARGIN)
        points = list(zip(x.tolist(), numpy.nan_to_num(y).tolist(),
                          strict=False))
        pen.line(points if len(points) > 1 else [points[0], (
            WIDTH - MARGIN, points[0][1])], fill=INK)
    return panel


def _draw_bars(pen: ImageDraw.ImageDraw, numbers: Array) -> None:
    """Draw a bar for each number, from the lowest or zero on."""
    numbers = numpy.nan_to_num(numbers)
    low, high = min(numbers.min(), 0.), max(numbers.max(), 0.)
    bottom = PLOT_HEIGHT - MARGIN
    heights = (numbers - low) / ((high - low) or 1) * (bottom - MARGIN)
    width = (WIDTH - 2 * MARGIN) / (COLUMNS * ROWS)
    for i, height in enumerate(heights.tolist()):
        left = MARGIN + i * width
        pen.rectangle((left, bottom - 1 - height, left + width * .7, bottom),
                      fill=INK)


def choose_rows(h5file: h5py.File, source: str, count: int
                ) -> tuple[list[int], list[str]]:
    """Choose up to `count` rows of a source: evenly spread over the classes,
    if the file has so few, else the first. Return the rows and the class of
    each, which are empty without classes."""
    num_rows = len(h5file[source]) if h5file[source].shape else 0
    found = _find_classes(h5file, source, num_rows, count)
    if found is None:
        return list(range(min(num_rows, count))), []
    labels, names = found
    rows: list[int] = []
    classes = numpy.unique(labels)
    for label in classes:
        members = numpy.flatnonzero(labels == label)
        taken = min(len(members), count // len(classes))
        places = numpy.linspace(0, len(members) - 1, taken).astype('int64')
        rows += members[places].tolist()
    return rows, [names[label] if 0 <= label < len(names) else str(label)
                  for label in labels[rows].tolist()]


def _find_classes(h5file: h5py.File, source: str, num_rows: int, count: int
                  ) -> tuple[Array, Sequence[str]] | None:
    """Return the class of each row and the names of classes, if any."""
    for name in LABELS:
        node = h5file.get(name)
        if name == source or not isinstance(node, h5py.Dataset) or (
                node.dtype.kind not in 'bui'
                or node.shape not in ((num_rows,), (num_rows, 1))):
            continue
        labels = numpy.ravel(node[...]).astype('int64')
        if 1 < len(numpy.unique(labels)) <= count:
            return labels, class_names(h5file, [name]) or ()
    return None


def read_rows(dataset: h5py.Dataset, rows: Sequence[int]) -> list[Any]:
    """Return rows of a source, in any order."""
    if not rows:
        return []
    return list(choose_reader(dataset).read(numpy.asarray(rows)))
