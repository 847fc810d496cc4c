"""A search in the manual finds pages that explain before attributes."""
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NODE = shutil.which('node')
PAGES = {
    'index': 'Fuel\n====\n\n.. toctree::\n   :glob:\n\n   *\n   api/**\n',
    'schemes': 'Schemes\n=======\n\nShuffled\n--------\n\nIn random order.\n',
    'tour': 'Tour\n====\n\nA stream can shuffle; so does ShuffleBuffer.\n',
    'keras': 'Keras\n=====\n\nWorkers\n-------\n\nOf Keras.\n',
    'parallel': 'Workers\n=======\n\nOf Fuel.\n',
    'changelog': 'Changes\n=======\n\nAll shuffle.\n',
    'api/generated/Iterator':
        'Iterator\n========\n\n.. py:class:: Iterator\n\n'
        '   .. py:property:: shuffle\n',
    'api/generated/ShuffleBuffer':
        'ShuffleBuffer\n=============\n\n.. py:class:: ShuffleBuffer\n',
    'api/generated/shuffle':
        'shuffle\n=======\n\n.. py:function:: shuffle()\n'}


@pytest.fixture(scope='module')
def search(tmp_path_factory):
    """Return a function that searches a small manual."""
    if NODE is None:
        pytest.skip('Node is not installed')
    folder = tmp_path_factory.mktemp('search')
    for name, text in PAGES.items():
        path = folder / 'docs' / f'{name}.rst'
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / 'docs' / 'conf.py').write_text(
        f"html_search_scorer = {str(ROOT / 'docs' / 'search_scorer.js')!r}\n")
    subprocess.run(
        [sys.executable, '-m', 'sphinx', '-q', '-b', 'html', folder / 'docs',
         folder / 'html'], check=True, timeout=100)

    def found(query):
        output = subprocess.run(
            [NODE, ROOT / 'tests' / 'support' / 'search.js', folder / 'html',
             query], check=True, timeout=60, capture_output=True).stdout
        return [tuple(result) for result in json.loads(output)]

    return found


def test_pages_that_explain_come_before_attributes(search):
    """A section, pages, a function of that name, a class, an attribute."""
    found = search('shuffle')
    assert ('schemes', 'Schemes > Shuffled') == found[0]
    places = [[name for name, _ in found].index(name) for name in (
        'schemes', 'tour', 'changelog', 'api/generated/ShuffleBuffer',
        'api/generated/Iterator')]
    assert sorted(places) == places
    assert found.index(('api/generated/shuffle', 'shuffle')) < places[1]


def test_class_that_is_typed_comes_first(search):
    """Before pages that mention it."""
    assert ('api/generated/ShuffleBuffer', 'ShuffleBuffer') == search(
        'ShuffleBuffer')[0]


def test_pages_of_bridges_come_after_those_of_fuel(search):
    """A page before a section."""
    names = [name for name, _ in search('workers')]
    assert names.index('parallel') == 0 < names.index('keras')


@pytest.mark.parametrize(('query', 'page'), [
    ('audio', 'audio'), ('bad records', 'bad_records'),
    ('hugging face', 'arrow'), ('images', 'images'),
    ('missing values', 'your_data'),
    ('prometheus', 'watching'), ('ranks', 'ranks'), ('stall', 'watching'),
    ('json lines', 'your_data'), ('csv', 'your_data'),
    ('security', 'security'), ('trace', 'watching')])
def test_what_is_searched_is_in_a_title(query, page):
    """Of a page or section of which it is at least half, or whose words it
    has: the search puts both before pages that only mention it."""
    text = (ROOT / 'docs' / f'{page}.rst').read_text('utf-8').lower()
    titles = re.findall(r'^(.+)\n[=-]{3,}$', text, re.MULTILINE)
    assert any(query in title and (
        ' ' not in query or 2 * len(query) >= len(title))
        for title in titles), titles


def test_manual_is_searched_so():
    """Sphinx is told of the file, which names pages that are there."""
    settings = (ROOT / 'docs' / 'conf.py').read_text('utf-8')
    assert "html_search_scorer = str(HERE / 'search_scorer.js')" in settings
    scorer = (ROOT / 'docs' / 'search_scorer.js').read_text('utf-8')
    names = [name for part in scorer.split('^(')[1:]
             for name in part.split(')$')[0].split('|')]
    assert 'keras' in names
    for name in names:
        assert (ROOT / 'docs' / f'{name}.rst').exists(), name
