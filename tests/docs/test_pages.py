"""The manual builds without a warning, and every example in it runs."""
import doctest
import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import fuel

ROOT = Path(__file__).parents[2]
DOCS = ROOT / 'docs'
PAGES = sorted(path.relative_to(ROOT).as_posix()
               for path in [ROOT / 'README.rst', *DOCS.rglob('*.rst')])
MODULES = sorted(module.name for module in pkgutil.walk_packages(
    fuel.__path__, 'fuel.', onerror=lambda name: None))
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run_examples(test):
    """Run the examples of a doctest; a failure shows what they printed."""
    output = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    runner.run(test, out=output.append)
    assert 0 == runner.failures, ''.join(output)


@pytest.fixture(autouse=True)
def own_directory(tmp_path, monkeypatch):
    """Run examples in an empty directory, and arrays printed alike."""
    monkeypatch.chdir(tmp_path)
    with numpy.printoptions(precision=8, threshold=1000, linewidth=75):
        yield


def test_pages_any_has_no_skipped_example():
    """Only downloads may be skipped."""
    skipped = [page for page in PAGES
               for line in (ROOT / page).read_text('utf-8').splitlines()
               if '+SKIP' in line and 'download' not in line]
    assert [] == skipped


@pytest.mark.parametrize('page', PAGES)
def test_page_examples_print_what_the_page_says(page):
    """The examples of a page are one session."""
    text = (ROOT / page).read_text('utf-8')
    run_examples(doctest.DocTestParser().get_doctest(
        text, {'__name__': '__main__'}, page, str(ROOT / page), 0))


@pytest.mark.parametrize('name', MODULES)
def test_module_examples_print_what_the_docstring_says(name):
    """Each docstring is a session of its own."""
    module = importlib.import_module(name)
    for test in doctest.DocTestFinder().find(module):
        run_examples(test)


@pytest.mark.parametrize('page', ['overview', 'your_data', 'extending'])
def test_page_of_the_old_manual_has_its_examples(page):
    """Chapters 2, 4 and 6 of the old manual are kept alive."""
    least = {'overview': 30, 'your_data': 100, 'extending': 30}
    examples = doctest.DocTestParser().get_examples(
        (DOCS / f'{page}.rst').read_text('utf-8'))
    assert least[page] <= len(examples)


def test_manual_builds_without_a_warning(tmp_path):
    """Sphinx finds every page, link and docstring in order."""
    packages = str(Path(inspect.getfile(fuel)).parents[1])
    result = subprocess.run(
        [sys.executable, '-m', 'sphinx', '-W', '--keep-going', '-q',
         '-b', 'html', '-d', tmp_path / 'doctrees', DOCS, tmp_path / 'html'],
        env={**os.environ, 'PYTHONPATH': packages, 'PYTHONDEVMODE': ''},
        capture_output=True, text=True, timeout=110, check=False)
    assert 0 == result.returncode, result.stderr
    assert (tmp_path / 'html' / 'index.html').exists()
