"""Versions in workflows, addresses, and README as an index shows it."""
import configparser
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from docutils.core import publish_parts
from docutils.writers.html5_polyglot import Writer

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / '.github' / 'workflows').glob('*.yml'))
AROUND = [*WORKFLOWS, *sorted((ROOT / '.github').rglob('*.*')),
          *(ROOT / name for name in (
              '.pre-commit-config.yaml', '.editorconfig', '.readthedocs.yaml',
              'SECURITY.md', 'README.rst', 'CONTRIBUTING.rst'))]


def read(path):
    """Return what a file of YAML says, its key `on` as text."""
    return {('on' if key is True else key): value
            for key, value in yaml.safe_load(path.read_text('utf-8')).items()}


def settings():
    """Return what ``setup.cfg`` says."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / 'setup.cfg', encoding='utf-8')
    return parser


def versions():
    """Return the versions of Python that Fuel supports."""
    return re.findall(r'Python :: (3\.\d+)$', settings()[
        'metadata']['classifiers'], re.MULTILINE)


def test_workflow_tests_each_version_and_everything_every_night():
    """One version by the command that a change must pass."""
    tests = read(ROOT / '.github' / 'workflows' / 'tests.yml')
    jobs = tests['jobs']
    several = jobs['versions']['strategy']['matrix']['python']
    one, = [step['with']['python-version'] for step in jobs['all']['steps']
            if 'with' in step]
    assert versions() == [one, *several]
    nightly, = tests['on']['schedule']
    assert re.fullmatch(r'\d+ \d+ \* \* \*', nightly['cron'])
    full, = [step for step in jobs['all']['steps']
             if step.get('run') == '.ci/run --full']
    assert "github.event_name == 'schedule'" == full['if']


def test_wheels_are_built_for_each_version_and_tested():
    """On three platforms, by the tests that bin/wheel runs."""
    with open(ROOT / 'pyproject.toml', 'rb') as file:
        building = tomllib.load(file)['tool']['cibuildwheel']
    assert [f'cp{version.replace(".", "")}-*' for version in versions()] == (
        building['build'])
    command, = building['test-command']
    named = re.findall(r'\{project\}/(tests/\S+)', command)
    assert [] == [name for name in named if not (ROOT / name).exists()]
    script = (ROOT / 'bin' / 'wheel').read_text('utf-8')
    listed = re.search(r'^TESTS = \[(.*?)\]', script, re.DOTALL | re.M)[1]
    assert re.findall(r"'(.*?)'", listed) == named
    runners = [one['runner'] for one in read(
        ROOT / '.github' / 'workflows' / 'wheels.yml')['jobs']['wheels'][
            'strategy']['matrix']['include']]
    assert ['ubuntu-24.04', 'ubuntu-24.04-arm', 'macos-14'] == runners


def test_only_addresses_of_the_project_are_written():
    """They come from ``project_urls``, which has none yet."""
    known = re.findall(r'= *(\S+)', settings()['metadata']['project_urls'])
    assert [] == known
    for path in AROUND:
        found = re.findall(r'https?://[^\s>`)]+|[\w.]+@[\w-]+\.\w+',
                           path.read_text('utf-8'))
        assert set() == set(found) - set(known), path


def html_of(text):
    """Return a page as an index shows it: without raw HTML, without files
    that are included, and with each warning an error."""
    return publish_parts(text, writer=Writer(), settings_overrides={
        'halt_level': 2, 'report_level': 2, 'raw_enabled': False,
        'file_insertion_enabled': False, 'warning_stream': False,
        'input_encoding': 'unicode'})['html_body']


def test_readme_is_shown_by_an_index_without_dead_links():
    """A link leads to a part of the page: what lies beside it in a clone is
    not there, so it is named and not linked."""
    page = html_of((ROOT / 'README.rst').read_text('utf-8'))
    assert '<h2>Install' in page
    anchors = set(re.findall(r' id="([^"]+)"', page))
    links = re.findall(r' (?:href|src)="([^"]+)"', page)
    assert [] == [link for link in links if link.lstrip('#') not in anchors]
    assert ':doc:' not in page


@pytest.mark.parametrize('text', [
    '`missing`_', '.. include:: LICENSE', '.. raw:: html\n\n   <b>x</b>',
    ':doc:`tour`', '**broken'])
def test_page_that_an_index_refuses_is_found(text):
    """Roles of Sphinx, files, raw HTML, and markup that is wrong."""
    with pytest.raises(Exception, match=r'\((WARNING|ERROR|SEVERE)/'):
        html_of(text)
