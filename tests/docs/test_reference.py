"""The API reference names every public module that holds something."""
import importlib
import pkgutil
import re
from pathlib import Path

import fuel

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
    names = [module.name for module in pkgutil.walk_packages(
        fuel.__path__, 'fuel.')]
    return {name for name in names
            if not re.search(r'\._', name) and not ELSEWHERE.match(name)
            and hasattr(importlib.import_module(name), '__all__')}


def test_reference_has_every_public_module():
    """A module that nobody documents is not there for users."""
    documented = set(re.findall(
        r'automodule:: (\S+)',
        ''.join(page.read_text('utf-8') for page in PAGES.glob('*.rst'))))
    missing = public_modules() - documented
    # A package whose names are documented module by module needs no entry.
    missing = {name for name in missing if not any(
        other.startswith(name + '.') for other in documented)}
    assert set() == missing, (
        'add `.. automodule:: NAME` to a page in docs/api')


def test_reference_names_modules_that_exist():
    """No page describes what is gone."""
    for page in PAGES.glob('*.rst'):
        for name in re.findall(r'automodule:: (\S+)', page.read_text('utf-8')):
            assert importlib.import_module(name).__doc__, name
