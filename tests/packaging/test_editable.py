"""An editable installation is found by Python and by type checkers."""
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILD = 'from setuptools import build_meta as b; b.build_editable("..")'


@pytest.fixture(scope='module')
def installed(tmp_path_factory):
    """Return a clone named as the package, and the environment that has it.

    Its kernels are left out, which take minutes to compile.
    """
    folder = tmp_path_factory.mktemp('editable')
    clone = folder / 'fuel'
    shutil.copytree(ROOT / 'fuel', clone / 'fuel', ignore=(
        shutil.ignore_patterns('*.pyx', '*.c', '*.so', '__pycache__')))
    for name in ('setup.cfg', 'setup.py', 'pyproject.toml', 'README.rst',
                 'LICENSE', 'MANIFEST.in'):
        shutil.copy(ROOT / name, clone)
    subprocess.run([sys.executable, '-c', BUILD], cwd=clone, check=True,
                   capture_output=True, timeout=100)
    venv.create(folder / 'venv', symlinks=True)
    site_packages, = folder.glob('venv/lib/python*/site-packages')
    wheel, = folder.glob('*.whl')
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site_packages)
    return clone, folder / 'venv' / 'bin' / 'python'


@pytest.fixture
def place(request, installed, tmp_path):
    """Return where a program is."""
    clone, _ = installed
    return {'in the clone': clone, 'beside it': clone.parent,
            'elsewhere': tmp_path}[request.param]


@pytest.mark.parametrize('place', ['in the clone', 'beside it', 'elsewhere'],
                         indirect=True)
def test_editable_installation_is_imported(installed, place):
    """A script and a session import the clone, not a namespace package."""
    clone, python = installed
    program = 'import fuel; print(fuel.__file__)'
    (place / 'script.py').write_text(program)
    for arguments in (['-c', program], ['script.py']):
        found = subprocess.run(
            [python, *arguments], cwd=place, capture_output=True, text=True,
            check=False, timeout=60)
        assert f'{clone / "fuel" / "__init__.py"}\n' == found.stdout, (
            found.stderr)


@pytest.mark.parametrize('place', ['beside it', 'elsewhere'], indirect=True)
def test_editable_installation_is_found_by_type_checkers(installed, place):
    """With the types of the package."""
    _, python = installed
    (place / 'typed.py').write_text(
        'from fuel.version import version\nreveal_type(version)\n')
    found = subprocess.run(
        [sys.executable, '-m', 'mypy', '--python-executable', python,
         '--config-file', '/dev/null', '--cache-dir', '/dev/null',
         '--follow-imports', 'silent', 'typed.py'],
        cwd=place, capture_output=True, text=True, check=False, timeout=100)
    assert re.search(r'Revealed type is "(builtins\.)?str"', found.stdout), (
        found.stdout)
    assert 0 == found.returncode
