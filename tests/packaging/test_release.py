"""The facts of a release are the same in all files."""
import configparser
import re
from pathlib import Path

import yaml

import fuel

ROOT = Path(__file__).parents[2]


def settings():
    """Return what ``setup.cfg`` says."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / 'setup.cfg', encoding='utf-8')
    return parser


def test_version_is_that_of_a_release():
    """Of the package, the newest changes, and what is to be cited."""
    assert re.fullmatch(r'\d+\.\d+\.\d+', fuel.__version__)
    changes = (ROOT / 'CHANGELOG.rst').read_text('utf-8')
    newest = re.search(r'^(\S.*)\n-{3,}$', changes, re.MULTILINE)[1]
    citation = yaml.safe_load((ROOT / 'CITATION.cff').read_text('utf-8'))
    assert fuel.__version__ == newest.split()[0] == citation['version']


def test_changes_are_listed_by_their_kind():
    """In this order, each with something."""
    changes = (ROOT / 'CHANGELOG.rst').read_text('utf-8')
    newest, *_ = re.split(r'^\S.*\n-{3,}$', changes, flags=re.M)[1:]
    titles = re.split(r'^(\S.*)\n~{3,}$', newest, flags=re.M)[1:]
    assert ['Added', 'Changed', 'Fixed'] == titles[::2]
    assert all('\n- ' in text for text in titles[1::2])


def test_citation_has_what_the_format_asks_for():
    """Names of the software and of its authors, and the paper."""
    citation = yaml.safe_load((ROOT / 'CITATION.cff').read_text('utf-8'))
    assert {'cff-version', 'message', 'title', 'authors'} <= set(citation)
    assert settings()['metadata']['author'] == citation['authors'][0]['name']
    assert settings()['metadata']['license'] == citation['license']
    paper, = citation['references']
    assert {'type', 'title', 'authors', 'year'} <= set(paper)


def test_classifiers_name_the_versions_of_python_that_are_allowed():
    """The manual names the same."""
    versions = re.findall(r'Python :: (3\.\d+)$', settings()[
        'metadata']['classifiers'], re.MULTILINE)
    assert settings()['options']['python_requires'] == f'>={versions[0]}'
    text = f'Python {versions[0]} to {versions[-1]}'
    for page in ('installation', 'migration'):
        words = (ROOT / 'docs' / f'{page}.rst').read_text('utf-8').split()
        assert text in ' '.join(words), page
