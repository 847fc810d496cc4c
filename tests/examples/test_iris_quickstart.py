"""The first thing that a newcomer runs."""
import hashlib
import importlib.util
import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import fuel
from fuel.downloaders.registry import dataset_facts

PACKAGES = str(Path(fuel.__file__).parents[1])
SCRIPT = Path(__file__).parents[2] / 'examples' / 'iris_quickstart.py'


def run_script(directory):
    """Run the example in an interpreter of its own; return its output."""
    result = subprocess.run(
        [sys.executable, SCRIPT, directory], check=False, timeout=100,
        capture_output=True, text=True,
        env={**os.environ, 'PYTHONPATH': PACKAGES})
    assert 0 == result.returncode, result.stdout + result.stderr
    # Nothing that a newcomer takes for a fault.
    written, = result.stderr.splitlines()
    assert written.startswith('wrote ')
    return result.stdout


@pytest.fixture
def example():
    """Return the example as a module."""
    spec = importlib.util.spec_from_file_location('iris_quickstart', SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_quickstart_twice_learns_and_resumes(tmp_path):
    """It reaches its accuracy, continues exactly, and can be repeated."""
    first, second = run_script(tmp_path), run_script(tmp_path)
    assert first == second
    accuracy = float(re.search(r'held-out flowers: ([\d.]+)', first)[1])
    assert accuracy >= 0.93
    assert 'the batches are the same' in first
    assert '$ fuel-convert iris' in first
    assert 'fuel.converters' in first
    assert ['iris.data', 'iris.hdf5'] == sorted(os.listdir(tmp_path))


def test_quickstart_raw_file_is_the_original(example, tmp_path):
    """Bit for bit."""
    example.write_raw_file(tmp_path / 'iris.data')
    content = (tmp_path / 'iris.data').read_bytes()
    original, = dataset_facts('iris')['files']
    assert original['sha256'] == hashlib.sha256(content).hexdigest()


def test_quickstart_below_the_accuracy_fails(
        example, tmp_path, monkeypatch, capsys):
    """The exit status tells that the model did not learn."""
    monkeypatch.setenv('PYTHONPATH', PACKAGES)
    monkeypatch.setattr(example, 'NUM_EPOCHS', 0)
    assert 1 == example.main([str(tmp_path)])
    assert 'the batches are the same' in capsys.readouterr().out


def test_quickstart_other_batches_are_noticed(example):
    """The comparison can fail."""
    batch = example.numpy.zeros((2, 4)), example.numpy.zeros((2, 1))
    other = batch[0] + 1, batch[1]
    assert example.are_equal([batch], [batch])
    assert not example.are_equal([batch], [other])
    assert not example.are_equal([batch], [])


def test_quickstart_advice_can_be_pasted(tmp_path):
    """Into a shell, also where the path has spaces."""
    shown = run_script(tmp_path / 'two words').splitlines()
    command = shown[shown.index('Try next:') + 1]
    done = subprocess.run(command, shell=True, check=True, text=True,
                          capture_output=True, timeout=100,
                          env={**os.environ, 'PYTHONPATH': PACKAGES})
    assert '150\n' == done.stdout


@pytest.mark.skipif(os.name == 'nt', reason='the signal is of POSIX')
@pytest.mark.parametrize('seconds', [0, .5])
def test_interrupted_command_is_one_line(tmp_path, seconds):
    """Ctrl-C ends what bin/quickstart runs, and shows no traceback; also
    while that is being started, which takes some seconds."""
    launcher = (SCRIPT.parents[1] / 'bin' / 'quickstart').read_text()
    (tmp_path / 'quickstart').write_text(launcher)
    environment = SCRIPT.parents[1] / 'bin' / '_environment.py'
    (tmp_path / 'real.py').write_text(environment.read_text())
    (tmp_path / '_environment.py').write_text(textwrap.dedent(f"""
        import subprocess, sys, time
        from pathlib import Path
        from real import call
        class Slow(subprocess.Popen):
            def __init__(self, *args, **kwargs):
                super().__init__(*args, **kwargs)
                time.sleep({seconds})
        subprocess.Popen = Slow
        ROOT = Path(__file__).parent
        def prepare(name, extras, editable):
            return Path(sys.executable)
    """))
    (tmp_path / 'examples').mkdir()
    (tmp_path / 'examples' / 'iris_quickstart.py').write_text(
        'import time; print("started", flush=True); time.sleep(60)')
    with subprocess.Popen(
            [sys.executable, tmp_path / 'quickstart'], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert 'started\n' == process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=50)
    assert 130 == process.returncode
    assert '' == out
    assert 'Interrupted; the next run does what is left.\n' == errors
