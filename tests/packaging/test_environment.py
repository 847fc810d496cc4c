"""The environment that ``bin/quickstart`` makes, and errors of an unbuilt
Fuel."""
import importlib.util
import json
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import numpy
import pytest

ROOT = Path(__file__).parents[2]
GENERATED = shutil.ignore_patterns('*.c', '*.cpp', '*.so', '__pycache__')


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """Return the module, with a small checkout and with recorded commands
    instead of run ones."""
    spec = importlib.util.spec_from_file_location(
        '_environment', ROOT / 'bin' / '_environment.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in module.SOURCES:
        (tmp_path / name).write_text(name)
    (tmp_path / 'fuel').unlink()
    (tmp_path / 'fuel').mkdir()
    (tmp_path / 'fuel' / 'streams.py').write_text('')
    monkeypatch.setattr(module, 'ROOT', tmp_path)
    monkeypatch.setenv('PYTHON', sys.executable)
    module.commands = []

    def record(*command):
        module.commands.append([str(part) for part in command])
        if 'venv' in command:
            Path(command[-1]).mkdir()
    monkeypatch.setattr(module, 'run', record)
    return module


def steps(environment):
    """Return what was done since the last call, in words."""
    words = ['make' if 'venv' in command else
             'reinstall' if '--no-deps' in command else 'install'
             for command in environment.commands]
    environment.commands.clear()
    return words


def test_environment_interrupted_is_remade(environment, monkeypatch):
    """What was never finished is not trusted."""
    with monkeypatch.context() as patch:
        patch.setattr(environment, 'install', lambda *_: sys.exit(1))
        with pytest.raises(SystemExit, match='1'):
            environment.prepare('.venv', [])
    assert ['make'] == steps(environment)
    environment.prepare('.venv', [])
    assert ['make', 'install'] == steps(environment)


def write_interpreter(path, *numbers):
    """Write a program that answers as an interpreter of a version would."""
    path.parent.mkdir(parents=True, exist_ok=True)
    answer = json.dumps([str(path), *numbers])
    path.write_text(f"#!/bin/sh\necho '{answer}'\n")
    path.chmod(0o755)


def test_python_too_old_is_refused(environment, tmp_path):
    """The text says which version was found and which is needed."""
    old = tmp_path / 'python2.7'
    write_interpreter(old, 2, 7, 18)
    with pytest.raises(SystemExit, match=r'is Python 2\.7, but Fuel needs'):
        environment.find_python(str(old))


def test_python_missing_is_refused(environment):
    """The text names the variable that chooses."""
    with pytest.raises(SystemExit, match="cannot run 'python9.9'.*PYTHON"):
        environment.find_python('python9.9')


def import_from(folder, *path):
    """Return the last line of an import that fails in a folder."""
    program = f'import sys; sys.path[1:1] = {path!r}; import fuel.kernels'
    found = subprocess.run(
        [sys.executable, '-S', '-c', program], cwd=folder, text=True,
        capture_output=True, check=False, timeout=100)
    assert 0 != found.returncode
    return found.stderr.splitlines()[-1]


@pytest.fixture
def unbuilt(tmp_path):
    """Return a checkout that was not built."""
    shutil.copytree(ROOT / 'fuel', tmp_path / 'clone' / 'fuel',
                    ignore=GENERATED)
    return tmp_path / 'clone'


def test_checkout_that_was_not_built_says_how_to(unbuilt, packages):
    """Anything that imports Fuel there gets to know, not of an import that
    is circular."""
    error = import_from(unbuilt, packages)
    assert f'Fuel is imported from the checkout {unbuilt}' in error
    assert f'pip install -e {unbuilt}' in error
    assert 'build_ext --inplace' in error
    assert 'hides' not in error


def test_checkout_that_hides_an_installed_fuel_says_so(
        unbuilt, tmp_path, packages):
    """It names both folders, and how to get at the installed one."""
    installed = tmp_path / 'site'
    (installed / 'fuel' / 'kernels').mkdir(parents=True)
    (installed / 'fuel' / 'kernels' / f'rows{EXTENSION_SUFFIXES[0]}').touch()
    error = import_from(unbuilt, packages, str(installed))
    assert (f'the checkout {unbuilt} hides the Fuel that is installed in '
            f'{installed}') in error
    assert 'in another folder or with -P' in error


def test_broken_installation_is_not_called_a_checkout(tmp_path, packages):
    """It has no sources to build."""
    shutil.copytree(ROOT / 'fuel', tmp_path / 'fuel',
                    ignore=shutil.ignore_patterns(
                        *('*.c', '*.cpp', '*.so', '*.py[xc]', '*.pxd')))
    error = import_from(tmp_path, packages)
    assert 'install Fuel again' in error
    assert 'hides' not in error


@pytest.fixture
def packages(tmp_path):
    """Return a folder with the other packages that are installed."""
    others = tmp_path / 'others'
    others.mkdir()
    for package in Path(numpy.__file__).parents[1].iterdir():
        if 'fuel' not in package.name:
            (others / package.name).symlink_to(package)
    return str(others)


def test_link_to_the_checkout_is_built_in_place_and_once(environment):
    """Python sources count at once; a kernel that is new or gone is built."""
    kernel = environment.ROOT / 'fuel' / 'rows.pyx'
    kernel.write_text('')
    version = ''.join(map(str, sys.version_info[:2]))
    built = kernel.with_name(f'rows.cpython-{version}-x.so')
    python = environment.prepare('.venv', ['examples'], editable=True)
    assert ['-e', f'{environment.ROOT}[examples]'] == (
        environment.commands[-1][-2:])
    assert str(python) == environment.commands[-1][0]
    assert ['make', 'install'] == steps(environment)
    built.touch()
    (environment.ROOT / 'fuel' / 'streams.py').write_text('changed')
    environment.prepare('.venv', ['examples'], editable=True)
    assert [] == steps(environment)
    built.unlink()
    environment.prepare('.venv', ['examples'], editable=True)
    assert ['reinstall'] == steps(environment)
    built.touch()
    kernel.write_text('changed')
    environment.prepare('.venv', ['examples'], editable=True)
    assert ['reinstall'] == steps(environment)
    environment.prepare('.venv', ['examples'])
    assert ['make', 'install'] == steps(environment)
