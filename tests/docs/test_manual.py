"""The manual builds without a warning."""
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import fuel
from fuel.downloaders.registry import dataset_facts, dataset_names

DOCS = Path(__file__).parents[2] / 'docs'


def test_manual_builds_without_a_warning(tmp_path):
    """Sphinx finds every page, link and docstring in order."""
    # The package under test is the one that is documented.
    environment = {**os.environ, 'PYTHONDEVMODE': '',
                   'PYTHONPATH': str(Path(fuel.__file__).parents[1])}
    result = subprocess.run(
        [sys.executable, '-m', 'sphinx', '-W', '--keep-going', '-q',
         '-b', 'html', '-d', tmp_path / 'doctrees', DOCS, tmp_path / 'html'],
        env=environment, capture_output=True, text=True, timeout=110,
        check=False)
    assert 0 == result.returncode, result.stderr
    assert (tmp_path / 'html' / 'index.html').exists()


def test_table_shows_what_was_measured():
    """In thousands of examples a second, as docs/layouts.json has them."""
    rows = re.findall(r'^([a-z, ]+?) {2,}([\d,.]+) +([\d,.]+) +([\d,.]+)$',
                      (DOCS / 'measured.inc').read_text('utf-8'),
                      re.MULTILINE)
    measured = json.loads((DOCS / 'layouts.json').read_text('utf-8'))
    assert len(measured) == len(rows)
    for name, *shown in rows:
        rates = measured[name.rpartition(' ')[2]]
        assert shown == [
            f'{rates[who] / 1000:,.{0 if rates[who] >= 10000 else 1}f}'
            for who in ('Fuel', 'h5py', 'PyTorch')]


def test_each_data_set_has_a_card():
    """With its class, files, terms and converted files."""
    spec = importlib.util.spec_from_file_location(
        'dataset_cards', DOCS / 'dataset_cards.py')
    cards = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cards)
    for name in dataset_names():
        text = '\n'.join(cards.card(name))
        assert f':Name: ``{name}``' in text
        assert dataset_facts(name)['title'] in text
        assert ':Terms: ' in text
    assert ':class:`~fuel.datasets.MNIST`' in '\n'.join(cards.card('mnist'))
    assert '4, 11.6 MB, 4 with known digests' in '\n'.join(
        cards.card('mnist'))


def test_every_page_is_found_from_the_landing_page():
    """The pages that newcomers look for."""
    text = (DOCS / 'index.rst').read_text('utf-8')
    for page in ('why', 'faq', 'security', 'dataset_cards', 'cheat_sheet',
                 'tutorial_photographs', 'tutorial_text'):
        assert f'\n   {page}\n' in text
