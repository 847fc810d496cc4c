"""Drawings of the built-in data sets, from the facts in the registry.

The data may not be copied, so a drawing shows the shape of an example to scale
and how many examples each split has. Iris, which scikit-learn brings, is
plotted. Lines and letters have the colour of the text around, so that they
are legible on dark pages, too.
"""
from html import escape
from importlib.util import find_spec

WIDTH, HEIGHT = 264, 112
# The example is drawn in a square on the left, the splits are on the right.
SIDE, LEFT, BARS = 84, 112, 148
CHANNELS = ('#d62728', '#2ca02c', '#1f77b4')
SPECIES = ('#e69f00', '#56b4e9', '#009e73')


def draw(facts):
    """Return the picture of one data set.

    Parameters
    ----------
    facts : mapping
        What the registry holds of it.

    Returns
    -------
    str
        An ``svg`` element.
    """
    parts, label = _example(facts)
    parts.append(_text(SIDE / 2 + 4, HEIGHT - 6, label, 'middle'))
    return (f'<svg class="dataset" role="img" viewBox="0 0 {WIDTH} {HEIGHT}" '
            'xmlns="http://www.w3.org/2000/svg">'
            f'<title>{escape(facts["title"])}: {escape(label)}</title>'
            + ''.join([*parts, *_bars(facts['splits'] or {})]) + '</svg>')


def _example(facts):
    """Return the drawing of one example, and its caption."""
    shape, kind = facts['example'], facts['kind']
    if kind == 'text':
        return [_line(6, 14 + 12 * row, 6 + length, 14 + 12 * row)
                for row, length in enumerate((76, 52, 80, 64, 38, 70))
                ], 'sentences'
    if kind == 'sound':
        return [_box(6, 40, 80, 8), _box(6, 48, 80, 8)], 'samples x channels'
    if kind == 'table':
        if facts['outputs'] == ['iris.hdf5'] and find_spec('sklearn'):
            return _iris(), 'petal length, width'
        count = shape[0]
        return [_box(4 + place * SIDE / count, 36, SIDE / count, 20, 0.4)
                for place in range(count)], f'{count} features'
    if shape is None:
        return [_box(4, 14, 56, 40, dash=True), _box(34, 30, 44, 58,
                                                     dash=True)], 'any size'
    channels, height, width = shape
    # The largest images fill the square; by the root, or small ones vanish.
    scale = SIDE * 0.92 / 218 ** .5
    height, width = scale * height ** .5, scale * width ** .5
    left, top = 4 + (SIDE - width) / 2, (SIDE - height) / 2 + 4
    colours = CHANNELS if channels == 3 else ('currentColor',)
    shift = 4 * (len(colours) - 1) / 2
    return [_box(left + 4 * place - shift, top + 4 * place - shift, width,
                 height, colour=colour)
            for place, colour in enumerate(colours)
            ], ' x '.join(map(str, shape))


def _iris():
    """Return a scatter plot of Fisher's measurements of petals."""
    from sklearn.datasets import load_iris
    iris = load_iris()
    return [_line(4, 90, 88, 90), _line(4, 4, 4, 90), *(
        f'<circle cx="{8 + length * 11:.1f}" cy="{88 - width * 32:.1f}" '
        f'r="1.8" fill="{SPECIES[species]}"/>' for (length, width), species
        in zip(iris.data[:, 2:], iris.target, strict=True))]


def _bars(splits):
    """Return a bar for each split, as long as it has examples."""
    largest, parts = max(splits.values(), default=1), []
    for row, (name, count) in enumerate(splits.items()):
        top = 8 + 34 * row
        parts.append(_text(LEFT, top + 8, f'{name} {count:,}'))
        parts.append(
            f'<rect x="{LEFT}" y="{top + 13}" height="9" rx="2" '
            f'width="{max(BARS * count / largest, 1):.1f}" '
            'fill="currentColor" fill-opacity=".45"/>')
    return parts


def _box(x, y, width, height, stroke=1.5, colour='currentColor', dash=False):
    dashes = ' stroke-dasharray="4 3"' if dash else ''
    return (f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
            f'height="{height:.1f}" fill="none" stroke="{colour}" '
            f'stroke-width="{stroke}"{dashes}/>')


def _line(x, y, to_x, to_y):
    return (f'<line x1="{x}" y1="{y}" x2="{to_x}" y2="{to_y}" '
            'stroke="currentColor" stroke-width="1.5"/>')


def _text(x, y, text, anchor='start'):
    return (f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="11" '
            f'fill="currentColor">{escape(text)}</text>')
