"""Examples that need more than a plain installation name what they need."""
import ast
import doctest
import re
import sys

import pytest
from support import bridges, sources
from support.doctest_sessions import code_blocks
from support.requirements import (
    IMPORTED_AS,
    ROOT,
    brought_by,
    direct,
    extras,
    names_of,
)


pytestmark = pytest.mark.usefixtures('trees')


def programs(text):
    """Yield the examples of a page or docstring, but for those that show an
    error, and the programs of a page."""
    for example in doctest.DocTestParser().get_examples(text):
        if example.exc_msg is None:
            yield example.source
    yield from code_blocks(text)


def imported(text):
    """Return the modules that the examples import."""
    found = set()
    for program in programs(text):
        for node in ast.walk(ast.parse(program)):
            if isinstance(node, ast.Import):
                found |= {name.name for name in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add(node.module)
    return found


def needed(text, extra=None):
    """Return the packages that the examples of a page or docstring import
    beyond those of a plain installation.

    `extra`: of the module that the docstring is in.
    """
    known = extras()
    parts = [name.split('.') for name in imported(text)]
    found = {IMPORTED_AS.get(top, top.replace('_', '-'))
             for top, *_ in parts if top not in sys.stdlib_module_names
             # The page writes this one.
             and f'{top}.py' not in text}
    through = [part[2] for part in parts if part[:2] == ['fuel', 'interop']
               and len(part) > 2]
    if extra is not None and list(programs(text)):
        through.append(extra)
    for name in through:
        found |= names_of(known.get(name, ()))
    return found - names_of(direct()) - {'fuel'}


def named(text):
    """Return the packages that a page or docstring says how to install."""
    known = extras()
    text = ' '.join(text.split())
    found = set()
    for names in (
            *re.findall(r'\.\[([\w,]+)\]', text),
            *re.findall(r'extras? ``(\w+)``', text),
            *re.findall(r'extras ``\w+`` and ``(\w+)``', text)):
        for name in names.split(','):
            found |= names_of(known[name]) | brought_by(name)
    for line in re.findall(r'pip install ([^`\n]+?)``', text):
        found |= set(line.replace("'", '').split())
    return found


@pytest.mark.parametrize('text, expected', [
    ('>>> import numpy, os.path', set()),
    ('>>> from sklearn.datasets import load_iris', {'scikit-learn'}),
    ('>>> import torch.nn\n\nThe extra ``torch`` has it.', set()),
    (">>> import torch\n\n``pip install -e '.[text,torch]'``", set()),
    ('>>> import torch\n\nThe extras ``arrow`` and ``torch``.', set()),
    ('>>> import torchvision\n\n``pip install torch torchvision``', set()),
    ('>>> from fuel.interop.jax import to_jax', {'grain', 'jax'}),
    ('>>> from fuel.interop import chainer', set()),
    (('>>> import gnomon\nTraceback (most recent call last):\n'
      'ImportError: no gnomon'), set()),
    ('Write ``rows.py``:\n\n>>> import rows', set()),
    ('.. code-block:: python\n\n   import keras\n', {'keras'})])
def test_packages_that_a_page_does_not_name_are_found(text, expected):
    """An extra that brings a package, or a command that installs it."""
    assert expected == needed(text) - named(text)


@pytest.mark.parametrize('page', [
    *bridges.pages(), *(page for bridge in bridges.BRIDGES
                        for page in bridges.pages(bridge))])
def test_page_names_the_packages_that_its_examples_need(page):
    """The reader of a page does not know those of the pages before."""
    text = (ROOT / page).read_text('utf-8')
    assert set() == needed(text) - named(text)


def test_docstrings_name_the_packages_that_their_examples_need():
    """A docstring is read alone, by `help` or on a page of its own."""
    wrong = {}
    for module, tree in sources.modules().items():
        extra = (module.split('.') if module.startswith('fuel.interop.')
                 else [None] * 3)[2]
        for node in ast.walk(tree):
            if not isinstance(node, (ast.Module, ast.ClassDef,
                                     ast.FunctionDef)):
                continue
            text = ast.get_docstring(node) or ''
            missing = '>>>' in text and needed(text, extra) - named(text)
            if missing:
                wrong[f'{module}.{getattr(node, "name", "")}'] = missing
    assert {} == wrong
