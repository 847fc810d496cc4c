"""The commands of README and quickstart can be pasted in a fresh clone."""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLONED = ['setup.cfg', 'setup.py', 'pyproject.toml', 'MANIFEST.in', 'bin',
          'README.rst', 'LICENSE', 'CHANGELOG.rst', 'CONTRIBUTING.rst', 'docs',
          'examples', 'fuel', 'benchmarks', 'tests', 'constraints-oldest.txt',
          '.fuelrc.example', '.gitignore', 'CITATION.cff', 'SECURITY.md',
          '.editorconfig', '.github', '.pre-commit-config.yaml',
          '.readthedocs.yaml']
GENERATED = shutil.ignore_patterns(
    '*.c', '*.cpp', '*.so', '*.egg-info', '__pycache__', '_build',
    'generated', 'tutorials')
# Long ones, with what makes them short.
SHORTENED = {
    'bin/test': 'bin/test tests/test_config.py',
    'python benchmarks/hdf5.py': 'python benchmarks/hdf5.py --tiny'}


def shown_commands(page):
    """Return the command lines that a page shows."""
    return re.findall(r'^ +\$ (.+)$', (ROOT / page).read_text('utf-8'),
                      re.MULTILINE)


def test_readme_starts_with_an_installation():
    """Before anything that would need one."""
    commands = shown_commands('README.rst')
    assert commands[0].startswith('python -m pip install ')
    assert {'bin/quickstart', 'bin/test', 'bin/docs'} < set(commands)


def test_readme_leads_to_what_is_there():
    """Each file that it names, first those on one's own data."""
    named = re.findall(r'``([\w/]+\.(?:rst|py))``',
                       (ROOT / 'README.rst').read_text('utf-8'))
    assert 'docs/your_data.rst' == named[0]
    assert [] == [name for name in named if not (ROOT / name).exists()]


def test_installation_starts_with_pip():
    """Like README."""
    assert 'pip install' in shown_commands('docs/installation.rst')[0]


@pytest.mark.parametrize('command', [
    command for page in ('README.rst', 'docs/installation.rst')
    for command in shown_commands(page)])
def test_command_names_what_is_there(command):
    """Each script exists and answers ``--help``."""
    words = shlex.split(command, comments=True)
    scripts = [word for word in words if '/' in word]
    assert [] == [word for word in scripts if not (ROOT / word).exists()]
    for script in scripts:
        if script.startswith('bin/'):
            shown = subprocess.run(
                [ROOT / script, '--help'], capture_output=True, text=True,
                check=True, timeout=60, env={'PATH': os.environ['PATH']})
            assert script in shown.stdout or 'needs' in shown.stdout.lower()


def test_readme_shows_the_measured_ratios():
    """Rounded to two digits, of what docs/layouts.json holds: of first epochs
    where it has them, and of later ones."""
    measured = json.loads((ROOT / 'docs' / 'layouts.json').read_text())
    rows = re.findall(r'^([a-z, ]+?) {2,}([\d,]+|n/a) +([\d,]+|n/a) +([\d,]+)'
                      r' +([\d,]+)$', (ROOT / 'README.rst').read_text('utf-8'),
                      re.MULTILINE)
    assert len(measured) == len(rows)
    for name, *ratios in rows:
        rates = measured[name.rpartition(' ')[2]]
        expected = [
            f'{float(f"{rates[epoch] / rates[other]:.2g}"):,.0f}'
            if epoch in rates else 'n/a'
            for epoch in ('Fuel, first epoch', 'Fuel')
            for other in ('h5py', 'PyTorch')]
        assert expected == ratios, name


@pytest.fixture
def clone(tmp_path):
    """Return what a fresh clone holds."""
    # Named as the package: beside it, Python finds the folder first.
    place = tmp_path / 'fuel'
    place.mkdir()
    for name in CLONED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place / name, ignore=GENERATED)
        else:
            shutil.copy(ROOT / name, place / name)
    return place


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_every_command_of_readme_and_quickstart_works(clone, own_home):
    """One after the other, from the root of the clone, with nothing but
    Python, a compiler and a package index."""
    before = set(os.listdir(clone))
    subprocess.run([getattr(sys, '_base_executable', sys.executable), '-m',
                    'venv', own_home / 'venv'], check=True, timeout=200)
    bare = {'HOME': str(own_home), 'PATH': os.pathsep.join(
        [str(own_home / 'venv' / 'bin'), os.environ['PATH']])}

    def run(command, folder=clone):
        done = subprocess.run(
            command, shell=True, cwd=folder, env=bare, text=True, check=False,
            capture_output=True, timeout=1500)
        assert 0 == done.returncode, command + done.stdout + done.stderr
        return done.stdout
    for command in shown_commands('README.rst'):
        if command.startswith('python train.py'):
            # tests/docs/test_first_program.py runs it.
            continue
        output = run(SHORTENED.get(command, command))
        if command == 'bin/quickstart':
            assert 'the batches are the same' in output
            shown = output.splitlines()
            assert '150\n' == run(shown[shown.index('Try next:') + 1])
    # A change of Python compiles nothing.
    compiler = own_home / 'venv' / 'bin' / sysconfig.get_config_var(
        'CC').split()[0]
    compiler.write_text('#!/bin/sh\nexit 1')
    compiler.chmod(0o755)
    with open(clone / 'fuel' / 'version.py', 'a') as file:
        file.write('# Changed.\n')
    run(SHORTENED['bin/test'])
    assert (clone / 'docs' / '_build' / 'index.html').exists()
    assert 'Making' not in run('bin/quickstart')
    for folder in (clone, clone.parent, own_home):
        assert f'{clone / "fuel" / "__init__.py"}\n' == run(
            'python -c "import fuel.datasets; print(fuel.__file__)"', folder)
    assert {'.quickstart'} == {name for name in set(os.listdir(clone)) - before
                               if not name.startswith('.venv')
                               and not name.endswith('.egg-info')
                               and name not in ('build', '.pytest_cache')}
    assert [] == list(clone.glob('*.lock')) + list(clone.glob('.*.lock'))
    assert [] == list(own_home.glob('.fuelrc'))
