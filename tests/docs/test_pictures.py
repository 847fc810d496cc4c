"""The drawings on the pages can be read on light pages and on dark ones."""
import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image, ImageChops

DOCS = Path(__file__).parents[2] / 'docs'
PICTURES = sorted((DOCS / 'pictures').glob('*.svg'))
# The grounds of the theme's pages.
GROUNDS = {'light': '#ffffff', 'dark': '#131416'}
# What WCAG asks for: of words, and of lines.
WORDS, LINES = 4.5, 3
RULE = re.compile(r'\.(\w+)\{([^}]*)\}')
DARK = re.compile(r'@media \(prefers-color-scheme: dark\)\{(.*)\}\n')


def brightness(colour):
    """Return the relative luminance of a colour."""
    digits = colour.lstrip('#')
    if len(digits) == 3:
        digits = ''.join(digit * 2 for digit in digits)
    parts = [int(digits[at:at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = [part / 12.92 if part <= 0.03928
                        else ((part + 0.055) / 1.055) ** 2.4
                        for part in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    """Return the contrast of two colours, from 1 to 21."""
    low, high = sorted([brightness(one), brightness(other)])
    return (high + 0.05) / (low + 0.05)


def styles(text, theme):
    """Return what the classes of a drawing have, in one of the themes."""
    dark = DARK.search(text)
    found = {}
    for name, rules in RULE.findall(DARK.sub('', text)) + (
            RULE.findall(dark[1]) if dark and theme == 'dark' else []):
        found.setdefault(name, {}).update(
            rule.split(':', 1) for rule in rules.split(';') if ':' in rule)
    return found


def elements(root, tag):
    """Return the elements of a kind."""
    return root.iter('{http://www.w3.org/2000/svg}' + tag)


def number(element, name):
    """Return an attribute as a number."""
    return float(element.get(name, 0))


def ground(root, text, found, page):
    """Return the colour on which a text begins."""
    colour = page
    for box in elements(root, 'rect'):
        fill = box.get('fill') or found.get(box.get('class'), {}).get('fill')
        if (number(box, 'x') <= number(text, 'x')
                <= number(box, 'x') + number(box, 'width')
                and number(box, 'y') <= number(text, 'y')
                <= number(box, 'y') + number(box, 'height')
                and fill != 'none'):
            colour = '#ffffff' if fill == 'white' else fill
    return colour


@pytest.mark.parametrize('theme', GROUNDS)
@pytest.mark.parametrize('path', PICTURES, ids=lambda path: path.stem)
def test_words_and_lines_stand_out(path, theme):
    """From the box below them, or from the page in either theme."""
    source = path.read_text('utf-8')
    root, found = ElementTree.fromstring(source), styles(source, theme)
    texts = list(elements(root, 'text'))
    assert texts
    for text in texts:
        fill = '#000'
        if root.get('fill') == 'currentColor':
            assert 'color-scheme:light dark;color:CanvasText' in source
            fill = {'light': '#000', 'dark': '#fff'}[theme]
        for name in text.get('class', '').split():
            fill = found[name].get('fill', fill)
        below = ground(root, text, found, GROUNDS[theme])
        assert contrast(fill, below) >= WORDS, (text.text, fill, below)
    for line in elements(root, 'path'):
        stroke = found.get(line.get('class'), {}).get('stroke')
        if stroke:
            assert contrast(stroke, GROUNDS[theme]) >= LINES, stroke


@pytest.mark.parametrize('path', PICTURES, ids=lambda path: path.stem)
def test_picture_has_a_size_and_a_place_to_scroll(path):
    """On narrow pages its words keep their size."""
    root = ElementTree.fromstring(path.read_text('utf-8'))
    assert root.get('viewBox').split()[2:] == [
        root.get('width'), root.get('height')]
    pages = [page.read_text('utf-8') for page in DOCS.glob('*.rst')]
    assert any(f'.. container:: picture\n\n   .. image:: pictures/{path.name}'
               in page for page in pages)


def corners(path):
    """Return the corners of each line of a path of M, H and V."""
    lines = []
    for command, numbers in re.findall(r'([MHV])([\d ]+)', path):
        *_, last = [int(number) for number in numbers.split()]
        if command == 'M':
            lines.append([tuple(int(number) for number in numbers.split())])
        else:
            x, y = lines[-1][-1]
            lines[-1].append((last, y) if command == 'H' else (x, last))
    return lines


def test_dots_run_on_the_wires():
    """Or behind a box, and stand on them where nothing is to move."""
    text = (DOCS / 'pictures' / 'pipeline.svg').read_text('utf-8')
    root = ElementTree.fromstring(text)
    wire, = [path.get('d') for path in elements(root, 'path')]
    wires = [side for line in corners(wire)
             for side in pairwise(line)]
    boxes = [((number(box, 'x'), number(box, 'y')),
              (number(box, 'x') + number(box, 'width'),
               number(box, 'y') + number(box, 'height')))
             for box in elements(root, 'rect')]

    def covered(x, y, places):
        return any(min(left, right) <= x <= max(left, right)
                   and min(top, bottom) <= y <= max(top, bottom)
                   for (left, top), (right, bottom) in places)

    for dot in elements(root, 'circle'):
        x, y = re.findall(r'\d+', dot.get('transform'))
        assert covered(int(x), int(y), wires)
    ways = re.findall(r'offset-path:path\("(.*?)"\)', text)
    assert ways
    for way in ways:
        line, = corners(way)
        for (x, y), (to_x, to_y) in pairwise(line):
            for part in range(11):
                assert covered(x + (to_x - x) * part / 10,
                               y + (to_y - y) * part / 10, wires + boxes)


def test_pictures_have_the_ground_of_the_page():
    """No white box on a dark page, but what a preview saves, and masks."""
    for path in (DOCS / 'pictures').glob('*.png'):
        if path.stem in ('preview', 'pairs'):
            continue
        red, green, blue, alpha = Image.open(path).split()
        white = ImageChops.darker(ImageChops.darker(red, green), blue)
        seen = ImageChops.multiply(white.point(lambda value: 255 * (
            value == 255)), alpha)
        # Photographs have some bright pixels.
        assert seen.histogram()[255] < .01 * seen.width * seen.height, path
    storage = (DOCS / 'storage.rst').read_text('utf-8')
    for name, theme in (('layouts.png', 'light'),
                        ('layouts_dark.png', 'dark')):
        assert f'image:: {name}\n      :class: only-{theme}\n' in storage
        assert Image.open(DOCS / name).getpixel((0, 0))[3] == 0


def test_pages_tell_pictures_their_theme():
    """The theme of a page may differ from the system's."""
    css = (DOCS / '_static' / 'fuel.css').read_text('utf-8')
    assert 'body[data-theme="dark"] { color-scheme: dark; }' in css


def test_pages_scroll_what_does_not_fit():
    """Tables, programs and outputs by themselves; names in the index break."""
    css = (DOCS / '_static' / 'fuel.css').read_text('utf-8')
    for name in ('.table-wrapper', 'pre', '.output_html', '.picture'):
        rule = re.search(rf'^{re.escape(name)} {{([^}}]*)}}', css, re.M)
        assert 'overflow-x: auto;' in rule[1], name
    assert 'table-layout: fixed; overflow-wrap: anywhere' in css
    shaded, = re.findall(r'^(.*) {\n  --ground: .*;\n  --shadow: ', css, re.M)
    assert '.highlight pre, .table-wrapper.container, .picture' == shaded
