"""The sdist, the wheel built from it, and installations of both."""
import configparser
import email
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

import fuel

# Compilers take their time, on a busy machine minutes.
pytestmark = pytest.mark.timeout(600)

# Folder of the distributions that `bin/test` installed the package from.
GIVEN = os.environ.get('FUEL_TEST_DISTRIBUTIONS')

ROOT = Path(__file__).parents[2]
BUILD_INPUTS = ['setup.cfg', 'setup.py', 'pyproject.toml', 'MANIFEST.in',
                'README.rst', 'LICENSE', 'CHANGELOG.rst', 'CITATION.cff',
                'CONTRIBUTING.rst', '.fuelrc.example',
                'SECURITY.md', '.editorconfig', '.github',
                '.pre-commit-config.yaml', '.readthedocs.yaml',
                'constraints-oldest.txt', 'fuel', 'docs', 'tests', 'examples',
                'bin', 'benchmarks']
GENERATED = shutil.ignore_patterns(
    '*.c', '*.cpp', '*.so', '*.pyd', '*.egg-info', '__pycache__', '_build')

# Says where the package and its extensions are imported from.
IMPORT_ALL = """
import importlib, fuel
for name in {extensions!r}:
    print(importlib.import_module(name).__file__)
print(fuel.__file__, fuel.__version__)
"""


def run(*command, variables=(), **options):
    """Run a command; its output appears in the failure, if it fails."""
    environment = {name: value for name, value in os.environ.items()
                   if name not in ('PYTHONPATH', 'PYTHONDEVMODE')}
    environment.update(variables)
    result = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True,
        env=environment, timeout=500, check=False, **options)
    assert 0 == result.returncode, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope='module')
def source(tmp_path_factory):
    """Return a copy of the checkout, without what was built in it."""
    copy = tmp_path_factory.mktemp('checkout')
    for name in BUILD_INPUTS:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=GENERATED)
        else:
            shutil.copy(ROOT / name, copy / name)
    return copy


@pytest.fixture(scope='module')
def sdist(source):
    """Return the source distribution."""
    if GIVEN:
        path, = Path(GIVEN).glob('*.tar.gz')
        return path
    run(sys.executable, '-m', 'build', '--sdist', '--no-isolation',
        '--skip-dependency-check', cwd=source)
    path, = (source / 'dist').glob('*.tar.gz')
    return path


@pytest.fixture(scope='module')
def wheel(sdist, tmp_path_factory):
    """Return the wheel built from the source distribution alone."""
    if GIVEN:
        path, = Path(GIVEN).glob('*.whl')
        return path
    place = tmp_path_factory.mktemp('wheel')
    with tarfile.open(sdist) as archive:
        archive.extractall(place, filter='data')
    unpacked, = place.iterdir()
    run(sys.executable, '-m', 'build', '--wheel', '--no-isolation',
        '--skip-dependency-check', cwd=unpacked)
    path, = (unpacked / 'dist').glob('*.whl')
    return path


@pytest.fixture
def python(tmp_path):
    """Return the interpreter of an environment that has every package of
    this one but Fuel."""
    run(sys.executable, '-m', 'venv', '--without-pip', tmp_path / 'venv')
    others = tmp_path / 'others'
    others.mkdir()
    for package in Path(sysconfig.get_path('purelib')).iterdir():
        if 'fuel' not in package.name:
            (others / package.name).symlink_to(package)
    own, = (tmp_path / 'venv').glob('lib/python*/site-packages')
    (own / 'others.pth').write_text(f'{others}\n')
    return tmp_path / 'venv' / 'bin' / 'python'


def extension_names():
    """Return the module names of the ``.pyx`` files of the checkout."""
    return sorted('.'.join(path.relative_to(ROOT).with_suffix('').parts)
                  for path in (ROOT / 'fuel').rglob('*.pyx'))


def package_files(*suffixes):
    """Return the files of the checkout's package, named as in a wheel."""
    return {path.relative_to(ROOT).as_posix()
            for path in (ROOT / 'fuel').rglob('*')
            if path.name.endswith(suffixes)}


def check_imports(python, directory):
    """Import every extension module, away from the checkout."""
    output = run(python, '-P', '-c',
                 IMPORT_ALL.format(extensions=extension_names()),
                 cwd=python.parent).splitlines()
    assert len(extension_names()) + 1 == len(output)
    assert [] == [line for line in output
                  if not line.startswith(str(directory))]
    assert output[-1].endswith(' ' + fuel.__version__)


def test_sdist_holds_sources_and_nothing_generated(sdist):
    """The ``.pyx`` are in it, generated C is not."""
    with tarfile.open(sdist) as archive:
        names = {name.partition('/')[2] for name in archive.getnames()}
    needed = package_files('.py', '.pyx', '.pxd', '.pyi', '.json',
                           'py.typed')
    assert set() == needed - names
    for name in ('tests/conftest.py', 'docs/conf.py', 'bin/test', 'LICENSE',
                 'bin/_environment.py', '.fuelrc.example', 'CHANGELOG.rst',
                 'CITATION.cff', 'examples/iris_quickstart.py',
                 'examples/README.rst',
                 'docs/inventories.txt', 'docs/search_scorer.js',
                 'constraints-oldest.txt', '.github/workflows/tests.yml',
                 '.pre-commit-config.yaml', 'SECURITY.md',
                 'docs/_templates/autosummary/class.rst'):
        assert name in names
    assert [] == [name for name in names
                  if name.endswith(('.c', '.cpp', '.so', '.pyc'))
                  or name.startswith(('docs/_build', 'docs/api/generated',
                                      'docs/tutorials'))]


def test_sdist_says_what_the_settings_say(sdist):
    """Requirements, extras, and README as the page that describes it."""
    with tarfile.open(sdist) as archive:
        name, = [name for name in archive.getnames()
                 if name.count('/') == 1 and name.endswith('/PKG-INFO')]
        found = email.message_from_binary_file(archive.extractfile(name))
    settings = configparser.ConfigParser()
    settings.read(ROOT / 'setup.cfg', encoding='utf-8')
    assert (found['Name'], found['Version']) == ('fuel', fuel.__version__)
    assert found['Requires-Python'] == settings['options']['python_requires']
    assert found.get_all('Classifier') == settings[
        'metadata']['classifiers'].split('\n')[1:]
    assert set(found.get_all('Provides-Extra')) == set(
        settings['options.extras_require'])
    assert found.get_payload().startswith('Fuel\n====')


def test_wheel_holds_modules_types_and_built_extensions(wheel):
    """The wheel is complete, and has no sources of extensions."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    needed = package_files('.py', '.pyi', '.json', 'py.typed')
    assert set() == needed - names
    suffix = sysconfig.get_config_var('EXT_SUFFIX')
    for name in extension_names():
        assert name.replace('.', '/') + suffix in names
    assert [] == [name for name in names if name.endswith('.c')]
    assert {'fuel'} == {name.partition('/')[0] for name in names
                        if '.dist-info/' not in name}
    licence, = [name for name in names if name.endswith('/LICENSE')]
    assert '.dist-info/' in licence


def test_wheel_installed_away_from_the_checkout_imports(wheel, python):
    """Version and extensions come from the environment, not from here."""
    run(sys.executable, '-m', 'pip', '--python', python, 'install',
        '--no-deps', '--no-index', wheel)
    check_imports(python, python.parents[1])
    for command in ('fuel-download', 'fuel-convert', 'fuel-info'):
        assert 'usage' in run(python.with_name(command), '--help')


@pytest.mark.full
def test_editable_installation_imports_from_the_checkout(source, python):
    """``pip install -e .`` builds in place and links."""
    run(sys.executable, '-m', 'pip', '--python', python, 'install',
        '--no-deps', '--no-build-isolation', '-e',
        source)
    check_imports(python, source)
    for command in ('fuel-download', 'fuel-convert', 'fuel-info'):
        assert 'usage' in run(python, source / 'bin' / command, '--help')


@pytest.mark.full
def test_sdist_installed_with_build_requirements_imports(sdist, python):
    """The declared build requirements suffice."""
    run(sys.executable, '-m', 'pip', '--python', python, 'install',
        '--no-deps', sdist)
    check_imports(python, python.parents[1])


@pytest.mark.full
def test_wheel_runs_the_quickstart_where_nothing_else_is(wheel, tmp_path):
    """In an empty environment with an empty home, and without a compiler."""
    run(sys.executable, '-m', 'venv', tmp_path / 'venv')
    python = tmp_path / 'venv' / 'bin' / 'python'
    alone = {'PATH': str(python.parent), 'CC': '/bin/false',
             'HOME': str(tmp_path / 'home')}
    (tmp_path / 'home').mkdir()
    # Only released as sources, but all Python.
    run(python, '-m', 'pip', 'install', '--only-binary=:all:',
        '--no-binary=picklable-itertools', f'{wheel}[examples]')
    output = run(python, '-P', ROOT / 'examples' / 'iris_quickstart.py',
                 tmp_path / 'iris', variables=alone)
    assert 'Accuracy on' in output
