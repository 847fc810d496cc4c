"""The API reference names every public module that holds something."""
import importlib
import importlib.util
import re
from pathlib import Path

from support import bridges

PAGES = Path(__file__).parents[2] / 'docs' / 'api'

# Described by the manual's other pages or by the commands' own help, or made
# for the other parts of Fuel.
ELSEWHERE = re.compile(
    r'fuel\.(bin|converters|downloaders|kernels|storage|transport|wire)'
    r'(\.|$)')


def public_modules():
    """Return the names of the modules that users import from.

    These declare what they export in ``__all__``; other modules are internal.
    """
    return {name for name in bridges.modules()
            if not re.search(r'\._', name) and not ELSEWHERE.match(name)
            and hasattr(importlib.import_module(name), '__all__')}


def test_reference_has_every_public_module():
    """A module that nobody documents is not there for users."""
    documented = set(documented_modules())
    missing = public_modules() - documented
    # A package whose names are documented module by module needs no entry.
    missing = {name for name in missing if not any(
        other.startswith(name + '.') for other in documented)}
    assert set() == missing, (
        'add `.. automodule:: NAME` to a page in docs/api')


def test_reference_has_every_bridge_that_needs_an_extra():
    """They cannot be imported here, but are documented all the same. (What
    some extra is needed for may be no module of its own.)"""
    found = {f'fuel.interop.{name}' for name in bridges.BRIDGES
             if importlib.util.find_spec(f'fuel.interop.{name}')}
    assert found <= set(documented_modules())


def test_reference_names_modules_that_exist():
    """No page describes what is gone."""
    for name in documented_modules():
        if not bridges.of_module(name):
            assert importlib.import_module(name).__doc__, name


def documented_modules():
    """Return the names of the modules that some page describes."""
    return [name for page in sorted(PAGES.glob('*.rst'))
            for name in re.findall(r'automodule:: (\S+)',
                                   page.read_text('utf-8'))]
