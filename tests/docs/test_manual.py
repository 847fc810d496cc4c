"""The manual builds without a warning."""
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import fuel
from fuel.downloaders.registry import dataset_facts, dataset_names

DOCS = Path(__file__).parents[2] / 'docs'


def module_of(name):
    """Return a module beside the pages."""
    sys.path.insert(0, str(DOCS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(DOCS))


@pytest.mark.full
@pytest.mark.timeout(300)
def test_manual_builds_without_a_warning(tmp_path):
    """Sphinx finds every page, link and docstring in order.

    References are resolved, but no page is written, and the tutorials are
    run by tests of their own.
    """
    # Generated files of a build must not change the checkout.
    shutil.copytree(DOCS, tmp_path / 'docs', ignore=shutil.ignore_patterns(
        '_build', 'generated', 'tutorials'))
    shutil.copytree(DOCS.parent / 'examples', tmp_path / 'examples')
    for page in ('CHANGELOG.rst', 'CONTRIBUTING.rst', 'README.rst'):
        shutil.copy(DOCS.parent / page, tmp_path)
    # The package under test is the one that is documented.
    environment = {**os.environ, 'PYTHONDEVMODE': '',
                   'PYTHONPATH': str(Path(fuel.__file__).parents[1])}
    result = subprocess.run(
        [sys.executable, '-m', 'sphinx', '-W', '--keep-going', '-q',
         '-D', 'plot_gallery=0', '-b', 'dummy',
         '-d', tmp_path / 'doctrees', tmp_path / 'docs', tmp_path / 'none'],
        env=environment, capture_output=True, text=True, timeout=280,
        check=False)
    assert 0 == result.returncode, result.stderr
    names = {page.stem for page in (
        tmp_path / 'docs' / 'api' / 'generated').glob('*.rst')}
    assert 'fuel.datasets.MNIST' in names
    assert 'fuel.typing.Request' in names
    # A notebook of each tutorial is offered.
    assert {'photographs.ipynb', 'sentences.ipynb'} <= {
        path.name for path in (tmp_path / 'docs' / 'tutorials').iterdir()}


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


def test_first_epoch_is_said_beside_the_table():
    """The table shows the epochs after it."""
    text = (DOCS / 'measured.inc').read_text('utf-8')
    measured = json.loads((DOCS / 'layouts.json').read_text('utf-8'))
    first = {name: f'{rates["Fuel, first epoch"] / 1000:.0f}'
             for name, rates in measured.items()
             if 'Fuel, first epoch' in rates}
    assert first == {name: rate for rate, name in
                     re.findall(r'(\d+)\s\((\w+)\)', text)}


def test_each_ratio_names_the_script_that_prints_it():
    """With the smallest and the largest of its rounds."""
    text = (DOCS / 'loaders.inc').read_text('utf-8')
    rows = text.split('\n   * - ')[2:]
    assert rows
    for row in rows:
        script, = re.findall(r'``(benchmarks/\w+\.py)``', row)
        assert re.search(r'- [\d.]+ \([\d.]+-[\d.]+\)\n', row)
        assert (DOCS.parent / script).exists()


def test_comparison_names_the_versions_that_were_measured():
    """They are those of the environments in which the tests of bridges run
    these scripts."""
    text = (DOCS / 'why.rst').read_text('utf-8')
    for bridge, script, names in [
            ('torch', 'torch_bridge.py', ('torch', 'torchdata')),
            ('jax', 'grain_loader.py', ('grain',))]:
        pins = (DOCS.parent / 'tests' / 'interop' / bridge
                / 'environment.cfg').read_text('utf-8')
        assert script in pins
        assert f'``bin/test --with {bridge}``' in text
        assert f'$ python benchmarks/{script}' in text
        for name in names:
            version = re.search(rf'\b{name}==(\S+)', pins)[1]
            assert re.search(rf'{name} \(?{version}\b', text, re.I), name


def test_each_data_set_has_a_card():
    """With class, sizes, shape, files, licence and what to cite."""
    cards = module_of('dataset_cards')
    for name in dataset_names():
        text = '\n'.join(cards.card(name))
        assert f':Name: ``{name}``' in text
        assert dataset_facts(name)['title'] in text
        assert ':Licence: ' in text
    mnist = cards.card('mnist')
    assert ':Class: :class:`~fuel.datasets.MNIST`' in mnist
    assert ':Examples: train 60,000, test 10,000' in mnist
    assert ':One example: 1 x 28 x 28' in mnist
    assert ':Classes: 10' in mnist
    assert ':Raw files: 4, 11.6 MB, 4 with known digests' in mnist
    assert ':Licence: CC BY-SA 4.0' in cards.card('kmnist')
    assert any(line.startswith(':Cite: ') for line in mnist)


def test_facts_agree_with_what_is_said_of_a_data_set():
    """The line about it has the numbers of the splits and the shape."""
    for name in ('mnist', 'cifar10', 'omniglot', 'adult', 'dogs_vs_cats',
                 'ilsvrc2010', 'ilsvrc2012', 'stl10', 'binarized_mnist'):
        facts = dataset_facts(name)
        shape = facts['example'] or []
        for number in [*facts['splits'].values(), *shape[1:]]:
            if name != 'omniglot':
                assert f'{number:,}' in facts['about'], name


def test_each_data_set_has_a_picture():
    """A drawing with a bar for each split, in the colour of the text."""
    pictures = module_of('dataset_pictures')
    for name in dataset_names():
        facts = dataset_facts(name)
        root = ElementTree.fromstring(pictures.draw(facts))
        words = ''.join(root.itertext())
        assert facts['title'] in words
        for split, count in (facts['splits'] or {}).items():
            assert f'{split} {count:,}' in words
    assert 150 == pictures.draw(dataset_facts('iris')).count('<circle')


def test_links_have_a_role():
    """Without one, a name and its target are shown as they are."""
    link = re.compile(r'(?<![:`\w])`[^`<\n]+\s<[^`>]+>`(?![`_])')
    assert link.search('of `Batch <fuel.transformers.Batch>`.')
    shown = [f'{page.name}: {found[0]}'
             for page in [*DOCS.rglob('*.rst'), DOCS.parent / 'CHANGELOG.rst']
             for found in link.finditer(page.read_text('utf-8'))]
    assert not shown


def tables(page):
    """Return the pages in each hidden table of contents, by its caption."""
    text = (DOCS / f'{page}.rst').read_text('utf-8')
    return {caption: pages.split() for caption, pages in re.findall(
        r'^\.\. toctree::\n   :hidden:\n(?:   :caption: (.+)\n)?\n'
        r'((?:   \S+\n)+)', text, re.MULTILINE)}


def test_sidebar_has_five_groups_of_the_pages_that_the_front_page_describes():
    """A page has a line there that says what it is for."""
    groups = tables('index')
    assert ['Start', 'Your data', 'Pipelines', 'Training at scale',
            'Reference'] == list(groups)
    assert {'pytorch', 'jax'} <= {*tables('frameworks')['']}
    text = (DOCS / 'index.rst').read_text('utf-8')
    for card, (caption, pages) in zip(
            text.split('.. rubric:: ')[1:], groups.items(), strict=True):
        assert card.startswith(f'{caption}\n')
        assert pages == re.findall(r'^ +:doc:`(\S+)`\n +\S', card,
                                   re.MULTILINE)


def test_newcomers_find_their_pages_on_the_landing_page():
    """With one click."""
    text = (DOCS / 'index.rst').read_text('utf-8')
    linked = set(re.findall(r'(\w+(?:/\w+)?)>?`', text))
    assert linked >= {
        'why', 'faq', 'built_in_datasets', 'cheat_sheet', 'your_data', 'tour',
        'installation', 'hdf5_layouts', 'tutorials/index'}
