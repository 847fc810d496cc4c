"""The environments that commands make, and errors of an unbuilt Fuel."""
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import numpy
import pytest

import fuel

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
    (tmp_path / 'fuel').mkdir()
    for name in (*module.BUILD_INPUTS[:-1], 'fuel/streams.py',
                 'constraints.txt'):
        (tmp_path / name).write_text('')
    (tmp_path / 'pyproject.toml').write_text(
        '[build-system]\nrequires = ["Cython>=3"]')
    monkeypatch.setattr(module, 'ROOT', tmp_path)
    monkeypatch.setenv('PYTHON', sys.executable)
    module.commands = []

    def record(*command):
        words = [str(part) for part in command]
        if 'venv' in words:
            # With what it held, as the option --clear says.
            (Path(words[-1]) / module.STAMP).unlink(missing_ok=True)
        elif '--outdir' in words:
            assert str(tmp_path / module.KERNELS) == (
                os.environ['FUEL_KEPT_KERNELS'])
            Path(words[-2]).mkdir()
            Path(words[-2], 'fuel-1.0-py3-none-any.whl').touch()
        if '--outdir' in words or not any('.venv-build' in word
                                          for word in words):
            module.commands.append(words)
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
    """From the wheel that its tests find; nothing else is left."""
    before = set(os.listdir(environment.ROOT))
    python = environment.prepare('.venv', ['examples', 'test'])
    version = '.'.join(map(str, sys.version_info[:2]))
    assert environment.ROOT / f'.venv-{version}' in python.parents
    wheel, = (python.parents[1] / environment.DISTRIBUTIONS).iterdir()
    assert f'{wheel}[examples,test]' == environment.commands[-1][-1]
    assert ['make', 'build', 'install'] == steps(environment)
    environment.prepare('.venv', ['examples', 'test'])
    assert [] == steps(environment)
    assert {f'.venv-{version}', f'.venv-build-{version}',
            environment.KERNELS} == set(os.listdir(environment.ROOT)) - before


def test_environment_after_a_change_of_sources_is_reinstalled(environment):
    """Again after an interruption; generated files do not matter."""
    environment.prepare('.venv', [])
    steps(environment)
    (environment.ROOT / 'fuel' / 'streams.c').write_text('generated')
    environment.prepare('.venv', [])
    assert [] == steps(environment)
    (environment.ROOT / 'fuel' / 'streams.py').write_text('changed')
    interrupt(environment, '.venv')
    environment.prepare('.venv', [])
    assert ['build', 'reinstall'] == steps(environment)


def interrupt(environment, name):
    """End the preparation of an environment before the package is there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(environment, 'install', lambda *_: sys.exit('ended'))
        with pytest.raises(SystemExit, match='ended'):
            environment.prepare(name, [])
    environment.commands.clear()


@pytest.mark.parametrize('change', ['setup.cfg', 'constraints.txt', 'stamp',
                                    'interruption', 'before', 'fresh'])
def test_environment_is_made_anew(environment, change):
    """After a change of requirements, so that it never has more than is
    asked for; if it may not be whole; and on demand."""
    root = environment.ROOT
    options = {'constraints': str(root / 'constraints.txt')}
    if change == 'interruption':
        interrupt(environment, '.venv')
        options = {}
    else:
        python = environment.prepare('.venv', [], **options)
    if change == 'stamp':
        (python.parents[1] / environment.STAMP).write_text('{')
    elif (root / change).exists():
        (root / change).write_text('changed')
    elif change == 'before':
        options['before'] = ['numpy']
    elif change == 'fresh':
        options['fresh'] = True
    steps(environment)
    environment.prepare('.venv', [], **options)
    assert 'make' == steps(environment)[0]


def test_kernels_are_kept_within_bounds_until_they_are_forgotten(
        environment, monkeypatch):
    """Those that were used last."""
    kernels = environment.ROOT / environment.KERNELS
    kernels.mkdir()
    for age in range(4):
        (kernels / str(age)).touch()
        os.utime(kernels / str(age), (1e9 - age, 1e9 - age))
    monkeypatch.setattr(environment, 'MOST_KERNELS', 2)
    environment.prepare('.venv', [])
    assert ['0', '1'] == sorted(os.listdir(kernels))
    environment.forget_kernels()
    assert [] == os.listdir(kernels)


def write_interpreter(path, *numbers):
    """Write a program that answers as an interpreter of a version would."""
    path.parent.mkdir(parents=True, exist_ok=True)
    answer = json.dumps([str(path), *numbers])
    path.write_text(f"#!/bin/sh\necho '{answer}'\n")
    path.chmod(0o755)


def test_python_that_cannot_be_used_is_refused(environment, tmp_path):
    """The text says why, and names the variable that chooses."""
    old = tmp_path / 'python2.7'
    write_interpreter(old, 2, 7, 18)
    for command, why in ((str(old), r'is Python 2\.7, but Fuel needs'),
                         ('python9.9', "cannot run 'python9.9'")):
        with pytest.raises(SystemExit, match=f'{why}.*PYTHON'):
            environment.find_python(command)


def test_python_of_an_active_environment_is_the_one_below_it(
        environment, tmp_path):
    """Commands work the same there: an environment is not made again, and
    not from itself."""
    subprocess.run([sys.executable, '-m', 'venv', '--without-pip',
                    tmp_path / 'active'], check=True, timeout=100)
    assert environment.find_python(sys.executable) == (
        environment.find_python(str(tmp_path / 'active' / 'bin' / 'python')))


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
    """Python sources count at once; a kernel that is gone is built, and each
    if one or what it includes has changed."""
    kernel = environment.ROOT / 'fuel' / 'rows.pyx'
    kernel.touch()
    version = ''.join(map(str, sys.version_info[:2]))
    built = kernel.with_name(f'rows.cpython-{version}-x.so')

    def prepared(**options):
        environment.prepare('.venv', ['examples'], **options)
        done = steps(environment)
        built.touch()
        return done
    assert ['make', 'install'] == prepared(editable=True)
    (environment.ROOT / 'fuel' / 'streams.py').write_text('changed')
    assert [] == prepared(editable=True)
    built.unlink()
    assert ['reinstall'] == prepared(editable=True)
    for suffix in ('.pyx', '.pxd', '.pxi'):
        kernel.with_suffix(suffix).write_text('changed')
        assert ['reinstall'] == prepared(editable=True)
    assert ['make', 'build', 'install'] == prepared()


def test_lock_admits_one_at_a_time(environment, tmp_path):
    """Four threads that take a lock over and over never share it."""
    held, log = [], []

    def work():
        for _ in range(50):
            with environment.locked(tmp_path / 'new'):
                held.append(1)
                log.append(len(held))
                held.pop()
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [1] * 200 == log


@pytest.fixture
def commands(tmp_path):
    """Return a folder with the commands, for which the interpreter of the
    tests is a prepared environment."""
    shutil.copytree(ROOT / 'bin', tmp_path / 'bin',
                    ignore=shutil.ignore_patterns('__pycache__'))
    with open(tmp_path / 'bin' / '_environment.py', 'a') as file:
        file.write(f'def prepare(*_): return Path({sys.executable!r})\n')
    (tmp_path / 'pyproject.toml').touch()
    return tmp_path / 'bin'


def test_tests_of_the_checkout_itself_are_refused(commands):
    """They would not notice what an installation lacks."""
    with open(commands / '_environment.py', 'a') as file:
        file.write(f'ROOT = Path({fuel.__file__!r}).parents[1]\n')
    done = subprocess.run(
        [sys.executable, commands / 'test'], capture_output=True, text=True,
        check=False, timeout=100)
    assert 'that is the checkout' in done.stderr


@pytest.mark.skipif(os.name == 'nt', reason='the signal is of POSIX')
def test_interrupted_tests_are_summed_up(commands):
    """By pytest, which the terminal interrupts too; no traceback follows."""
    module = commands.parent / 'test_long.py'
    module.write_text(
        'import time\ndef test_long():\n'
        '    print("started", flush=True)\n    time.sleep(60)\n')
    with subprocess.Popen(
            [sys.executable, commands / 'test', '-s', '-n0', module],
            start_new_session=True, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE) as process:
        for line in process.stdout:
            if 'started' in line:
                break
        os.killpg(process.pid, signal.SIGINT)
        out, errors = process.communicate(timeout=50)
    assert 'no tests ran in' in out
    assert '' == errors
    assert 130 == process.returncode
