"""How long the tests take is estimated from what was recorded."""
import json
import shutil
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest
from support import durations, processes

CONFTEST = """
    pytest_plugins = ['support.durations']
    def pytest_addoption(parser):
        parser.addoption('--full', action='store_true')
"""
PROBE = """
    import time
    import pytest
    def test_short():
        time.sleep(0.2)
    @pytest.mark.full
    def test_long():
        time.sleep(0.4)
"""


@pytest.mark.parametrize('arguments, processes, full, line', [
    (['tests', '--with=sundial'], None, False,
     '4 min in one process; --full adds 10 min'),
    (['tests'], None, False,
     '2 min in one process; --full adds 10 min'),
    (['tests'], 2, False, '60 s in 2 processes; --full adds 5 min'),
    (['tests'], None, True,
     '12 min in one process, 10 min of it for long forms'),
    (['tests/test_b.py::test'], None, False,
     '20 s in one process; --full adds 0 s')])
def test_estimate_is_printed_for_what_is_run(
        tmp_path, monkeypatch, arguments, processes, full, line):
    """The header states the time, and what ``--full`` adds."""
    path = tmp_path / 'tests' / 'durations.json'
    path.parent.mkdir()
    path.write_text('{"tests/one/test_a.py": [100, 600],\n'
                    '"tests/test_b.py": [20, 0],\n'
                    '"tests/interop/sundial/test_c.py": [120, 0]}')
    bridge = path.parent / 'interop' / 'sundial'
    bridge.mkdir(parents=True)
    (bridge / 'environment.cfg').touch()
    monkeypatch.setattr(durations, 'TABLE', path)
    config = SimpleNamespace(
        args=arguments, invocation_params=SimpleNamespace(dir=tmp_path),
        option=SimpleNamespace(numprocesses=processes),
        getoption={'full': full, 'bridges': [
            name.partition('=')[2] for name in arguments
            if '--with' in name]}.get)
    assert f'estimated time: {line}' == durations.pytest_report_header(config)


@pytest.mark.parametrize('options', [(), ('-n', '2')])
def test_durations_are_recorded_by_file(tmp_path, options):
    """Long forms are counted apart, and kept while they do not run."""
    support = tmp_path / 'tests' / 'support'
    support.mkdir(parents=True)
    shutil.copy(durations.__file__, support)
    (tmp_path / 'tests' / 'conftest.py').write_text(
        textwrap.dedent(CONFTEST))
    file = tmp_path / 'tests' / 'test_probe.py'
    file.write_text(textwrap.dedent(PROBE))
    (tmp_path / 'pytest.ini').write_text(
        '[pytest]\nmarkers = full\npythonpath = tests\n')
    for more in (['--full'], ['-k', 'short']):
        status, output, _ = processes.run_python(
            '-m', 'pytest', '-p', 'no:cacheprovider', '-c',
            str(tmp_path / 'pytest.ini'), '--rootdir', str(tmp_path),
            '--record-durations', *options, *more, str(file))
        assert 0 == status, output.decode()
        assert b'estimated time' in output
        table = json.loads(Path(
            tmp_path / 'tests' / 'durations.json').read_text())
        short, long = table['tests/test_probe.py']
        assert 0.2 <= short < 0.4 <= long
