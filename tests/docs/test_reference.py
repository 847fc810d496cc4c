"""The API reference has a page for each public class and function."""
import importlib
import importlib.util
import inspect
import re
from pathlib import Path

from support import bridges
from support.reference import LIST, find, is_importable, listed

from fuel.schemes import IterationScheme
from fuel.streams import AbstractDataStream

DOCS = Path(__file__).parents[2] / 'docs'
# Described by the manual's other pages or by the commands' own help, or made
# for the other parts of Fuel.
ELSEWHERE = re.compile(
    r'fuel\.(bin|converters|downloaders|kernels|storage|transport|wire)'
    r'(\.|$)')
# Modules whose names are those that other modules of the list define.
PARTS = {'__version__', 'dataset', 'datasets', 'iterators'}


def public_modules():
    """Return the names of the modules that users import from.

    These declare what they export in ``__all__``; other modules are internal.
    """
    return {name for name in bridges.modules()
            if not re.search(r'\._', name) and not ELSEWHERE.match(name)
            and hasattr(importlib.import_module(name), '__all__')}


def test_reference_has_each_public_name_once():
    """Under one of its import paths."""
    pages = {id(find(name)): name for name in listed() if is_importable(name)}
    missing = {
        f'{module}.{name}' for module in public_modules()
        for name in importlib.import_module(module).__all__
        if name not in PARTS
        and id(getattr(importlib.import_module(module), name)) not in pages}
    assert set() == missing, 'add the names to a list in docs/api'
    assert len(pages) == len(set(filter(is_importable, listed())))
    assert len(listed()) == len(set(listed()))


def test_reference_has_each_name_of_bridges_that_need_an_extra():
    """They cannot be imported here, so their sources are read."""
    found = [f'fuel.interop.{name}' for name in bridges.BRIDGES
             if importlib.util.find_spec(f'fuel.interop.{name}')
             and bridges.of_module(f'fuel.interop.{name}')]
    assert found
    for module in found:
        source = Path(importlib.util.find_spec(module).origin).read_text(
            'utf-8')
        names = re.findall(r"'(\w+)'", re.search(
            r'__all__ = \[(.*?)\]', source, re.DOTALL)[1])
        assert {f'{module}.{name}' for name in names} <= set(listed())


def test_pages_are_of_what_is_documented():
    """Classes and functions have docstrings."""
    for name in filter(is_importable, listed()):
        value = find(name)
        if inspect.isclass(value) or inspect.isroutine(value):
            assert value.__doc__, name


def test_cheat_sheet_has_each_scheme_and_stage():
    """Base classes are for classes of one's own."""
    sheet = (DOCS / 'cheat_sheet.rst').read_text('utf-8')
    words = set(re.findall(r'\w+', sheet))
    for page, heading in (('schemes', 'Base classes'),
                          ('transformers', 'Default transformers')):
        text = (DOCS / 'api' / f'{page}.rst').read_text('utf-8')
        for names in LIST.findall(text.partition(heading)[0]):
            for name in map(str.strip, names.splitlines()):
                if inspect.isclass(value := find(f'fuel.{name}')) and (
                        issubclass(value, (AbstractDataStream,
                                           IterationScheme))):
                    assert value.__name__ in words
