"""The build compiles no kernel twice where built ones are kept."""
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COPIED = ['setup.py', 'setup.cfg', 'pyproject.toml', 'README.rst', 'LICENSE',
          'fuel/version.py']
IMPORT = 'import one, two; print(one.number(), two.number())'


@pytest.fixture
def checkout(tmp_path):
    """Return a small checkout with two kernels."""
    place = tmp_path / 'checkout'
    (place / 'fuel').mkdir(parents=True)
    for name in COPIED:
        shutil.copy(ROOT / name, place / name)
    (place / 'fuel' / '__init__.py').touch()
    (place / 'fuel' / 'shared.pxd').write_text('cdef enum:\n    SHARED = 1')
    for name in ('one', 'two'):
        (place / 'fuel' / f'{name}.pyx').write_text(
            'from fuel.shared cimport SHARED\n'
            'def number():\n    return SHARED')
    return place


@pytest.fixture
def build(checkout, tmp_path):
    """Return a function that builds as commands do, from a copy; it returns
    what the kernels return, and how many of them were compiled."""
    compiler, log = tmp_path / 'compiler', tmp_path / 'log'
    compiler.write_text(
        f'#!/bin/sh\necho "$*" >> {log}\n'
        f'exec {sysconfig.get_config_var("CC")} "$@"\n')
    compiler.chmod(0o755)
    (tmp_path / 'kept').mkdir()
    places = iter(range(10))

    def run(**variables):
        place = tmp_path / f'build{next(places)}'
        shutil.copytree(checkout, place)
        log.write_text('')
        subprocess.run(
            [sys.executable, 'setup.py', '-q', 'build_ext'], cwd=place,
            check=True, capture_output=True, timeout=100, env={
                **os.environ, 'CC': str(compiler), **variables,
                'FUEL_KEPT_KERNELS': str(tmp_path / 'kept')})
        built, = place.glob('build/lib*/fuel')
        numbers = subprocess.run(
            [sys.executable, '-P', '-c', IMPORT], check=True, text=True,
            capture_output=True, timeout=100,
            env={**os.environ, 'PYTHONPATH': str(built)}).stdout
        return (*map(int, numbers.split()), log.read_text().count(' -c '))
    return run


def test_only_kernels_that_changed_are_compiled(checkout, build):
    """A change of Python compiles none, one of a declaration each."""
    assert (1, 1, 2) == build()
    (checkout / 'fuel' / '__init__.py').write_text('changed = True')
    assert (1, 1, 0) == build()
    (checkout / 'fuel' / 'two.pyx').write_text('def number():\n    return 2')
    assert (1, 2, 1) == build()
    (checkout / 'fuel' / 'shared.pxd').write_text('cdef enum:\n    SHARED = 3')
    assert (3, 2, 2) == build()
    # Kept kernels have other flags.
    assert (3, 2, 2) == build(CFLAGS='-O1')
