"""Every page that a text names exists, and pages that have gone lead on.

The texts themselves have lines of at most 100 characters.
"""
import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / 'docs'
# The gallery writes them during a build.
TUTORIALS = {'tutorials/index', 'tutorials/photographs',
             'tutorials/sentences'}
PAGES = TUTORIALS | {
    path.relative_to(DOCS).with_suffix('').as_posix()
    for folder in ('.', 'api', 'format') for path in (DOCS / folder).glob(
        '*.rst')}
ROLE = re.compile(r':doc:`(?:[^`<]*<)?([a-z_/]+)>?`')
FILE = re.compile(r'\bdocs/([a-z][a-z_/]*)\.(?:rst|html)\b')


def redirects():
    """Return the table of ``docs/redirects.py``, without Sphinx."""
    tree = ast.parse((DOCS / 'redirects.py').read_text('utf-8'))
    value, = [node.value for node in tree.body if isinstance(node, ast.Assign)
              and node.targets[0].id == 'REDIRECTS']
    return ast.literal_eval(value)


def sections(page):
    """Return the addresses of a page's sections: labels and titles."""
    text = (DOCS / f'{page}.rst').read_text('utf-8')
    titles = re.findall(r'^(\S.*)\n([=\-~^])\2+$', text, re.MULTILINE)
    return set(re.findall(r'^ *\.\. _([\w-]+):$', text, re.MULTILINE)) | {
        re.sub(r'[^a-z0-9]+', '-', title.lower()).strip('-')
        for title, _ in titles}


def named_pages(path):
    """Return the names of pages in a file, as the manual calls them."""
    text = path.read_text('utf-8')
    folder = path.parent.relative_to(DOCS).as_posix() if (
        DOCS in path.parents) else '.'
    for name in ROLE.findall(text):
        yield name[1:] if name[0] == '/' else (
            Path(folder, name).as_posix())
    yield from FILE.findall(text)


def sources():
    """Return the files with docstrings, errors, commands and links."""
    folders = ['fuel', 'bin', 'benchmarks', 'examples', 'docs', 'tests']
    suffixes = {'.py', '.pyx', '.pxi', '.pyi', '.rst', '.inc', '.json', ''}
    return [*ROOT.glob('*.rst'), *ROOT.glob('*.md'), *(
        path for folder in folders
        for path in (ROOT / folder).rglob('*')
        if path.suffix in suffixes and path.is_file()
        and not {'_build', 'generated', 'tutorials', '__pycache__'}
        & set(path.parts) and path != Path(__file__))]


def test_named_pages_exist():
    """In docstrings, errors, commands, tests and the manual itself."""
    missing = []
    for path in sources():
        try:
            names = list(named_pages(path))
        except UnicodeDecodeError:  # pickles and raw files of the tests
            continue
        missing += [f'{path.relative_to(ROOT)}: {name}' for name in names
                    if name not in PAGES]
    assert not missing


@pytest.mark.parametrize('page, target', redirects().items())
def test_page_that_has_gone_leads_on(page, target):
    """Its new place exists: a page, and a section of it."""
    assert page not in PAGES
    name, _, section = target.partition('#')
    assert name in PAGES
    assert not section or section in sections(name)
    # A section has a label, so that pages link to it by its title.
    assert not section or (
        f'.. _{section}:' in (DOCS / f'{name}.rst').read_text('utf-8'))


def long_lines(text):
    """Yield lines of prose beyond 100 characters: what is printed, and
    programs, keep their lines."""
    is_program = False
    for block in text.split('\n\n'):
        lines = block.split('\n')
        is_program = is_program and lines[0].startswith('   ')
        if not is_program and not re.search(r'^ *>>> ', block, re.MULTILINE):
            yield from (line for line in lines if len(line) > 100)
        is_program = is_program or bool(re.search(
            r'^ *\.\. code-block::|::$', block, re.MULTILINE))


def test_lines_of_the_manual_are_wrapped():
    """At 100 characters."""
    assert list(long_lines(f'A\n{"long " * 30}')) == ['long ' * 30]
    assert not list(long_lines(f'>>> 1\n{"1 " * 99}'))
    found = {page.name: lines for page in DOCS.rglob('*.rst')
             if not {'_build', 'generated', 'tutorials'} & set(page.parts)
             and (lines := list(long_lines(page.read_text('utf-8'))))}
    assert not found


@pytest.mark.parametrize('page, words', [
    ('storage', 'HDF5 slow'), ('watching', 'GPU'), ('parallel', 'num_workers'),
    ('mixing', 'class balance'), ('mixing', 'balance'),
    ('resuming', 'checkpoint'), ('parallel', 'prefetch'),
    ('your_data', 'missing values'), ('your_data', 'folder images'),
    ('your_data', 'masked arrays'), ('resuming', 'bad records'),
    ('arrow', 'Zarr'), ('frameworks', 'Keras'), ('frameworks', 'scikit-learn'),
    ('migration', 'Chainer'), ('stability', 'security'), ('faq', 'float64'),
    ('pytorch', 'DataLoader'), ('hdf5_layouts', 'layouts')])
def test_words_that_users_type_stand_in_a_title(page, words):
    """A search finds titles first; see ``docs/search_scorer.js``."""
    titles = [title.lower() for title in re.findall(
        r'^(\S.*)\n(?:=|-|~)+$', (DOCS / f'{page}.rst').read_text('utf-8'),
        re.MULTILINE)]
    assert any(all(word in title for word in words.lower().split())
               for title in titles)
