"""Every example in a docstring of the package runs."""
import doctest
import importlib
import pkgutil

import pytest
from support.doctest_sessions import run_examples

import fuel

MODULES = ['fuel', *sorted(
    module.name for module in pkgutil.walk_packages(fuel.__path__, 'fuel.'))]


@pytest.mark.parametrize('name', MODULES)
def test_docstring_examples_print_what_they_say(name, tmp_path, monkeypatch):
    """Each docstring is a session of its own, in an empty directory."""
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    for test in doctest.DocTestFinder().find(module):
        run_examples(test)
