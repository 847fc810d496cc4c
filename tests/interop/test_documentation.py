"""Every example of a bridge runs with the library that it leads to."""
from support.doctest_sessions import run_module, run_page


def test_examples_print_what_they_say(documented, tmp_path, monkeypatch):
    """Each docstring of a module, and each page, is a session of its own."""
    monkeypatch.chdir(tmp_path)
    if documented.endswith('.rst'):
        assert run_page(documented), 'the page has no example'
    else:
        run_module(documented)
