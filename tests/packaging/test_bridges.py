"""Bridges to other libraries are tested in environments of their own."""
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from support import bridges

ROOT = Path(__file__).parents[2]


@pytest.fixture
def module():
    """Return what ``bin/test`` reads the bridges with."""
    spec = importlib.util.spec_from_file_location(
        '_bridges', ROOT / 'bin' / '_bridges.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folder(tmp_path):
    """Return the folder of a bridge in a small checkout."""
    folder = tmp_path / 'tests' / 'interop' / 'sundial'
    folder.mkdir(parents=True)
    (folder / 'environment.cfg').write_text(
        '# A comment.\n[environment]\nextras =\n    sundial\n'
        'install =\n    gnomon<2\n    --no-build-isolation sundial\n'
        'python = 3.11\n')
    (folder.parent / 'blocks').mkdir()
    return folder


def test_bridge_is_read_from_its_folder(module, folder, tmp_path):
    """A folder without a file is tested with all others."""
    bridge = module.choose(tmp_path, 'sundial')
    assert ['sundial'] == list(module.find_bridges(tmp_path))
    assert ['sundial'] == bridge.extras
    assert ['gnomon<2', '--no-build-isolation sundial'] == bridge.install
    assert '3.11' == bridge.python
    assert [] == bridge.pages
    assert bridge.constraints is None
    (folder / 'constraints.txt').write_text('gnomon<2')
    assert str(folder / 'constraints.txt') == bridge.constraints


def test_bridge_with_an_unknown_entry_is_refused(module, folder, tmp_path):
    """Misspelt entries do not pass unnoticed."""
    (folder / 'environment.cfg').write_text('[environment]\nextra = sundial')
    with pytest.raises(SystemExit, match=r"unknown entries \['extra'\]"):
        module.find_bridges(tmp_path)


def test_bridge_that_does_not_exist_is_refused(module, folder, tmp_path):
    """The text names those that do."""
    with pytest.raises(SystemExit, match='there is one for sundial'):
        module.choose(tmp_path, 'sextant')


def test_command_prints_the_names_of_bridges():
    """Continuous integration loops over them."""
    done = subprocess.run(
        [sys.executable, ROOT / 'bin' / 'test', '--bridges'],
        capture_output=True, text=True, check=True, timeout=60)
    assert list(bridges.BRIDGES) == done.stdout.split()
    assert 'torch' in bridges.BRIDGES


def test_bridges_are_complete():
    """Their extras and pages exist, and each documents something."""
    setup = (ROOT / 'setup.cfg').read_text('utf-8')
    for bridge in bridges.BRIDGES.values():
        for extra in bridge.extras:
            assert f'\n{extra} =\n' in setup, bridge
        for page in bridge.pages:
            assert (ROOT / page).exists(), bridge
        for script in bridge.benchmarks:
            assert (ROOT / 'benchmarks' / script).exists(), bridge


def test_run_has_the_tests_asked_for():
    """Those of a bridge with ``--with`` alone, and no others then."""
    folder = ROOT / 'tests' / 'interop'
    for asked, taken in [([], ['blocks', 'test_extras.py']),
                         (['torch'], ['torch', 'test_documentation.py'])]:
        assert taken == [
            name for name in ('torch', 'blocks', 'test_extras.py',
                              'test_documentation.py')
            if not bridges.is_left_out(folder / name, asked)]
    assert bridges.is_left_out(folder / 'torch' / 'test_dataset.py', [])
    assert not bridges.is_left_out(ROOT / 'tests' / 'test_config.py', [])


def test_modules_that_need_an_extra_are_told_from_others():
    """By the name of the extra, and not by what is installed here."""
    assert 'torch' == bridges.of_module('fuel.interop.torch.dataset')
    for name in ('fuel', 'fuel.interop', 'fuel.interop.number_arrays',
                 'fuel.streams.base'):
        assert bridges.of_module(name) is None
        assert name in bridges.modules()
    assert 'fuel.interop.torch' not in bridges.modules()
    assert 'fuel.interop.torch' in bridges.modules('torch')
