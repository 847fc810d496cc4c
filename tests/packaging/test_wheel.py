"""The script that builds the distributions of a release."""
import importlib.util
import os
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def wheel(monkeypatch):
    """Return the script as a module."""
    monkeypatch.syspath_prepend(ROOT / 'bin')
    loader = SourceFileLoader('wheel_script', str(ROOT / 'bin' / 'wheel'))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader(loader.name, loader))
    monkeypatch.setattr('sys.dont_write_bytecode', True)
    loader.exec_module(module)
    return module


def test_each_version_that_is_found_gets_a_wheel(wheel, monkeypatch, capsys):
    """Those that are not are named; another version under the name of one
    that is missing does not count."""
    def interpreters(commands):
        known = {'python3.11': (3, 11, 2), 'python3.12': (3, 9, 1),
                 'python3.13': (3, 13, 0)}
        for command in commands:
            if command in known:
                yield f'/bin/{command}', known[command]

    monkeypatch.setattr(wheel, 'interpreters', interpreters)
    assert {'3.11': '/bin/python3.11',
            '3.13': '/bin/python3.13'} == wheel.find_pythons([])
    assert ['No wheel for Python 3.12, which is not found here',
            'No wheel for Python 3.14, which is not found here'] == (
                capsys.readouterr().out.splitlines())


def test_only_interpreters_that_are_named_get_a_wheel(wheel, monkeypatch):
    """Each under its version."""
    monkeypatch.setattr(wheel, 'find_python', {
        'a': ('/bin/a', '3.12'), 'b': ('/bin/b', '3.14')}.__getitem__)
    assert {'3.12': '/bin/a', '3.14': '/bin/b'} == wheel.find_pythons(
        ['a', 'b'])


def test_no_interpreter_is_an_error_that_says_what_to_do(wheel, monkeypatch):
    """The environment variable names one."""
    monkeypatch.setattr(wheel, 'interpreters', lambda commands: iter(()))
    with pytest.raises(SystemExit, match='environment variable PYTHON'):
        wheel.find_pythons([])


def test_variables_are_put_back(wheel, monkeypatch):
    """Also those that were deleted meanwhile."""
    monkeypatch.setenv('PYTHONPATH', 'somewhere')
    with wheel.variables(CC='/bin/false'):
        assert '/bin/false' == os.environ['CC']
        del os.environ['PYTHONPATH']
    assert 'somewhere' == os.environ['PYTHONPATH']
    assert '/bin/false' != os.environ.get('CC')
