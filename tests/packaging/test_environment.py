"""The environments that ``bin/test`` and ``bin/quickstart`` make."""
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
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
            ['install', '--use-pep517', f'{wheel}[test]']] == [
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


def test_lowest_python_is_found_wherever_it_is(
        environment, tmp_path, monkeypatch):
    """On the path, of the system or of pyenv; of no other minor release."""
    monkeypatch.setattr(environment, 'SYSTEM_FOLDERS', [])
    monkeypatch.setenv('PYENV_ROOT', str(tmp_path))
    monkeypatch.setenv('PATH', f'{tmp_path / "none"}:{tmp_path / "path"}')
    write_interpreter(tmp_path / 'path' / 'python3', 3, 12, 0)
    write_interpreter(tmp_path / 'versions/3.10.1/bin/python', 3, 10, 1)
    assert environment.find_lowest_python() is None
    for path, numbers in (
            ('path/python3.11', (3, 11, 10)), ('system/python3', (3, 11, 9)),
            ('versions/3.11.2/bin/python', (3, 11, 2))):
        write_interpreter(tmp_path / path, *numbers)
        monkeypatch.setattr(environment, 'SYSTEM_FOLDERS', [
            str(tmp_path / Path(path).parent)])
        assert (str(tmp_path / path), '.'.join(map(str, numbers))) == (
            environment.find_lowest_python())


def test_python_missing_is_refused(environment):
    """The text names the variable that chooses."""
    with pytest.raises(SystemExit, match="cannot run 'python9.9'.*PYTHON"):
        environment.find_python('python9.9')


def test_python_of_pyenv_is_found(environment, tmp_path, monkeypatch):
    """Without being on the path."""
    python = tmp_path / 'versions' / '9.9.1' / 'bin' / 'python'
    write_interpreter(python, 9, 9, 1)
    monkeypatch.setenv('PYENV_ROOT', str(tmp_path))
    assert (str(python), '9.9') == environment.find_python('python9.9')


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


def test_quiet_command_gives_signs_of_life(environment, capsys):
    """Compilers take minutes; what ends soon is not reported."""
    environment.HEARTBEAT = .05
    nap = [sys.executable, '-c', 'import time; time.sleep(.5)']
    assert 0 == environment.call(nap, quiet=True)
    assert '... still at it after' in capsys.readouterr().out
    environment.HEARTBEAT = 60
    assert 3 == environment.call(
        [sys.executable, '-c', 'raise SystemExit(3)'], quiet=True)
    assert '' == capsys.readouterr().out


def test_no_lock_file_is_left(environment):
    """The checkout holds what it held, and the environment."""
    before = set(os.listdir(environment.ROOT))
    python = environment.prepare('.venv', [], editable=True)
    assert {python.parents[1].name} == set(
        os.listdir(environment.ROOT)) - before


def test_lock_admits_one_at_a_time(environment, tmp_path):
    """Though each owner removes its file."""
    held, log = [], []

    def work():
        for _ in range(50):
            with environment.locked(tmp_path / 'a.lock'):
                held.append(1)
                log.append(len(held))
                held.pop()
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [1] * 200 == log
    assert not (tmp_path / 'a.lock').exists()
