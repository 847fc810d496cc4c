"""The manual's statements about the layout are true."""
import pathlib
import re

import pytest

import fuel

PACKAGE = pathlib.Path(fuel.__file__).parent
DOCS = pathlib.Path(__file__).parents[2] / 'docs'
# An installed package has no sources of kernels.
SOURCES = DOCS.parent / 'fuel'
# Words in double backquotes that are paths of files or folders.
PATH = re.compile(r'``((?:[a-z_0-9]+/)*[a-z_0-9]+(?:/|\.pyx?))``')


def paths(page):
    """Return the paths that a page names."""
    return PATH.findall((DOCS / page).read_text(encoding='utf-8'))


@pytest.mark.parametrize('page, least', [('development.rst', 45)])
def test_page_names_files_that_exist(page, least):
    """Of the package, without the folder of the package itself."""
    named = paths(page)
    assert len(set(named)) >= least
    assert [] == [path for path in named
                  if not (SOURCES / path).exists()
                  and not (SOURCES.parent / path).exists()]


def test_glossary_is_sorted():
    """In the sources, too, so that a new word has one place."""
    text = (DOCS / 'glossary.rst').read_text('utf-8')
    terms = [term.lower().replace('-', '') for term in re.findall(
        r'^   (\w.*)$', text.partition(':sorted:\n')[2], re.MULTILINE)]
    assert len(terms) >= 50
    assert sorted(terms) == terms


def test_map_names_each_folder():
    """A package that the map lacks would not be found."""
    named = {path.split('/')[0] for path in paths('development.rst')}
    folders = {path.parent.name for path in PACKAGE.glob('*/__init__.py')}
    assert set() == folders - named
