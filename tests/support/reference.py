"""The names that the API reference has a page of."""
import importlib
import re
from pathlib import Path

from support import bridges

DOCS = Path(__file__).parents[2] / 'docs'
LIST = re.compile(
    r'^\.\. autosummary::\n   :toctree: generated\n\n((?:   .+\n)+)',
    re.MULTILINE)


def listed():
    """Return the dotted names that have a page."""
    return [f'fuel.{name.strip()}'
            for page in sorted((DOCS / 'api').glob('*.rst'))
            for names in LIST.findall(page.read_text('utf-8'))
            for name in names.splitlines()]


def find(name):
    """Return what a dotted name stands for; it may need a bridge's extra."""
    module, _, attribute = name.rpartition('.')
    return getattr(importlib.import_module(module), attribute)


def is_importable(name):
    """Return whether a name needs no extra."""
    return not bridges.of_module(name.rpartition('.')[0])
