"""The environments that ``bin/test`` and ``bin/quickstart`` make."""
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fuel

ROOT = Path(__file__).parents[2]
CLONED = ['setup.cfg', 'setup.py', 'pyproject.toml', 'MANIFEST.in',
          'README.rst', 'LICENSE', 'fuel', 'bin', 'examples']
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
        elif '--outdir' in command:
            Path(command[-2]).mkdir()
            (command[-2] / 'fuel-1.0-py3-none-any.whl').touch()
    monkeypatch.setattr(module, 'run', record)
    return module


def steps(environment):
    """Return what was done since the last call, in words."""
    words = ['make' if 'venv' in command else
             'build' if '--outdir' in command else
             'reinstall' if '--no-deps' in command else 'install'
             for command in environment.commands]
    environment.commands.clear()
    return words


def test_environment_is_made_once(environment):
    """A second run does nothing."""
    python = environment.prepare('.venv', ['examples'])
    version = '.'.join(map(str, sys.version_info[:2]))
    assert environment.ROOT / f'.venv-{version}' in python.parents
    assert ['make', 'install'] == steps(environment)
    environment.prepare('.venv', ['examples'])
    assert [] == steps(environment)


def test_environment_of_tests_is_installed_from_its_wheel(environment):
    """The tests find what was installed, and the sources of that."""
    python = environment.prepare('.venv-test', ['test'])
    wheel, = (python.parents[1] / environment.DISTRIBUTIONS).iterdir()
    commands = list(environment.commands)
    assert ['make', 'install', 'build', 'install'] == steps(environment)
    assert f'{wheel}[test]' == commands[-1][-1]
    (environment.ROOT / 'fuel' / 'streams.py').write_text('changed')
    environment.prepare('.venv-test', ['test'])
    assert ['install', 'build', 'reinstall'] == steps(environment)


def test_environment_of_a_bridge_shares_the_wheel_of_the_tests(environment):
    """What it needs first is installed first, and nothing is built twice."""
    environment.prepare('.venv-test', ['test'])
    wheel, = environment.ROOT.glob('.venv-test-*/*/*.whl')
    steps(environment)
    needed = ['numpy<1.24', "--no-build-isolation 'chainer == 7'"]
    for _ in range(2):
        python = environment.prepare(
            '.venv-test-chainer', ['test'], before=needed, share_wheel=True)
    assert [['install', 'numpy<1.24'],
            ['install', '--no-build-isolation', 'chainer == 7'],
            ['install', f'{wheel}[test]']] == [
        command[command.index('install'):]
        for command in environment.commands if 'install' in command]
    assert not (python.parents[1] / environment.DISTRIBUTIONS).exists()
    steps(environment)
    environment.prepare('.venv-test-chainer', ['test'], before=needed[:1],
                        share_wheel=True)
    assert ['make', 'install', 'install'] == steps(environment)


def test_environment_of_a_bridge_builds_what_nobody_has_built(environment):
    """The tests of a bridge run by themselves too, also anew."""
    for _ in range(2):
        environment.prepare('.venv-test-torch', ['test', 'torch'],
                            fresh=True, share_wheel=True)
        assert ['make', 'install', 'build', 'install'] == steps(environment)
    (environment.ROOT / 'fuel' / 'streams.py').write_text('changed')
    environment.prepare('.venv-test', ['test'])
    steps(environment)
    environment.prepare('.venv-test-torch', ['test', 'torch'],
                        share_wheel=True)
    assert ['reinstall'] == steps(environment)


def test_environment_after_a_change_of_sources_is_reinstalled(environment):
    """Requirements are left alone, generated files do not matter."""
    environment.prepare('.venv', [])
    steps(environment)
    (environment.ROOT / 'fuel' / 'streams.c').write_text('generated')
    environment.prepare('.venv', [])
    assert [] == steps(environment)
    (environment.ROOT / 'fuel' / 'streams.py').write_text('changed')
    environment.prepare('.venv', [])
    assert ['reinstall'] == steps(environment)


@pytest.mark.parametrize('name', ['setup.cfg', 'constraints.txt'])
def test_environment_after_a_change_of_requirements_is_remade(
        environment, name):
    """So it never has what is no longer asked for."""
    constraints = environment.ROOT / 'constraints.txt'
    constraints.write_text('')
    environment.prepare('.venv', [], str(constraints))
    steps(environment)
    (environment.ROOT / name).write_text('changed')
    environment.prepare('.venv', [], str(constraints))
    assert ['make', 'install'] == steps(environment)


def test_environment_interrupted_is_remade(environment, monkeypatch):
    """What was never finished is not trusted."""
    with monkeypatch.context() as patch:
        patch.setattr(environment, 'install', lambda *_: sys.exit(1))
        with pytest.raises(SystemExit, match='1'):
            environment.prepare('.venv', [])
    assert ['make'] == steps(environment)
    environment.prepare('.venv', [])
    assert ['make', 'install'] == steps(environment)


def test_environment_with_a_damaged_stamp_is_remade(environment):
    """A stamp that cannot be read says nothing."""
    python = environment.prepare('.venv', [])
    steps(environment)
    (python.parents[1] / environment.STAMP).write_text('{')
    environment.prepare('.venv', [])
    assert ['make', 'install'] == steps(environment)


def test_python_too_old_is_refused(environment, tmp_path):
    """The text says which version was found and which is needed."""
    old = tmp_path / 'python2.7'
    old.write_text(
        f"#!/bin/sh\necho '{json.dumps([str(old), 2, 7])}'\n")
    old.chmod(0o755)
    with pytest.raises(SystemExit, match=r'is Python 2\.7, but Fuel needs'):
        environment.find_python(str(old))


def test_python_missing_is_refused(environment):
    """The text names the variable that chooses."""
    with pytest.raises(SystemExit, match="cannot run 'python9.9'.*PYTHON"):
        environment.find_python('python9.9')


def test_python_of_pyenv_is_found(environment, tmp_path, monkeypatch):
    """Without being on the path."""
    place = tmp_path / 'versions' / '9.9.1' / 'bin'
    place.mkdir(parents=True)
    (place / 'python').write_text(
        f"#!/bin/sh\necho '{json.dumps(['found', 9, 9])}'\n")
    (place / 'python').chmod(0o755)
    monkeypatch.setenv('PYENV_ROOT', str(tmp_path))
    assert ('found', '9.9') == environment.find_python('python9.9')


@pytest.mark.full
@pytest.mark.timeout(900)
def test_quickstart_from_a_clean_clone_succeeds_twice(tmp_path, own_home):
    """From nothing but Python, a compiler and a package index."""
    for name in CLONED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=GENERATED)
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    bare = {'HOME': str(own_home), 'PATH': os.environ['PATH'],
            'PYTHON': getattr(sys, '_base_executable', sys.executable)}
    for _ in range(2):
        result = subprocess.run(
            [tmp_path / 'bin' / 'quickstart'], env=bare, check=False,
            capture_output=True, text=True, timeout=450)
        assert 0 == result.returncode, result.stdout + result.stderr
        assert 'the batches are the same' in result.stdout
        assert '3.' in result.stdout
    assert 'Making' not in result.stdout
    assert [] == list(own_home.glob('.fuelrc'))


def test_checkout_that_was_not_built_says_how_to(tmp_path):
    """Anything that imports Fuel there gets to know, not of an import that
    is circular."""
    shutil.copytree(Path(fuel.__file__).parent, tmp_path / 'fuel',
                    ignore=GENERATED)
    found = subprocess.run(
        [sys.executable, '-c', 'import fuel.datasets'], cwd=tmp_path,
        env={**os.environ, 'PYTHONPATH': str(tmp_path)}, text=True,
        capture_output=True, check=False, timeout=100)
    assert 'build_ext --inplace' in found.stderr
