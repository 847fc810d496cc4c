"""Every example in a docstring of the package runs."""
import pytest
from support import bridges
from support.doctest_sessions import run_module


@pytest.mark.parametrize('name', bridges.modules())
def test_docstring_examples_print_what_they_say(name, tmp_path, monkeypatch):
    """Each docstring is a session of its own, in an empty directory."""
    monkeypatch.chdir(tmp_path)
    run_module(name)
