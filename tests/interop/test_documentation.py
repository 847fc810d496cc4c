"""Every example of a bridge runs with the library that it leads to."""
import pytest
from support.benchmarks import run_tiny
from support.doctest_sessions import run_module, run_page


@pytest.mark.timeout(300)
def test_examples_print_what_they_say(runnable, tmp_path, monkeypatch):
    """Each docstring of a module, and each page, is a session of its own.

    A benchmark prints a table, with a target on some line.
    """
    monkeypatch.chdir(tmp_path)
    if runnable.endswith('.rst'):
        assert run_page(runnable), 'the page has no example'
    elif runnable.endswith('.py'):
        assert 'at least' in run_tiny(runnable, tmp_path)
    else:
        run_module(runnable)
