"""The first program of README goes on at the very batch after a kill."""
import pickle
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.doctest_sessions import ROOT, code_blocks

from fuel.bin import fuel_convert

README = (ROOT / 'README.rst').read_text('utf-8')
SHOWN = re.search(r'\$ python train\.py (\d+)\n(.*?)   Killed\n'
                  r'   \$ python train\.py\n(.*?)\n\n', README, re.DOTALL)


def read(folder):
    """Return the weights and the position of a checkpoint."""
    weights, epoch, position = pickle.loads(
        (folder / 'checkpoint').read_bytes())
    return weights.tolist(), epoch, position


@pytest.fixture
def train(tmp_path, monkeypatch):
    """Return what runs the program of README in a folder."""
    sys.path.insert(0, str(ROOT / 'examples'))
    import iris_quickstart
    sys.path.remove(str(ROOT / 'examples'))
    iris_quickstart.write_raw_file(tmp_path / 'iris.data')
    assert not fuel_convert.main(
        ['iris', '-d', str(tmp_path), '-o', str(tmp_path)])
    monkeypatch.setenv('FUEL_DATA_PATH', str(tmp_path))
    program, = code_blocks(README)

    def train(name, *arguments, status=0):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        (folder / 'train.py').write_text(program)
        done = subprocess.run(
            [sys.executable, 'train.py', *arguments], cwd=folder, text=True,
            capture_output=True, check=False, timeout=100)
        assert done.returncode == status, done.stderr
        return done.stdout.split('\n')[:-1], folder
    return train


def test_killed_run_goes_on_as_readme_shows(train):
    """Both runs print what README shows, and the weights are those of a run
    without a kill."""
    number, *shown = SHOWN.groups()
    first, second = [[line.strip() for line in text.strip().splitlines()]
                     for text in shown]
    killed, folder = train('killed', number, status=-signal.SIGKILL)
    assert first == killed
    resumed, _ = train('killed')
    assert second == resumed
    everything, other = train('whole')
    assert first + second == everything
    assert read(other) == read(folder)


@pytest.mark.parametrize('number', ['1', '6'])
def test_kill_at_the_edges_of_an_epoch(train, number):
    """No batch is left out, and none comes twice."""
    killed, folder = train('killed', number, status=-signal.SIGKILL)
    resumed, _ = train('killed')
    everything, other = train('whole')
    assert everything == killed + resumed
    assert read(other) == read(folder)


def test_front_page_shows_the_program_of_readme():
    """It includes the part between two comments, which are there."""
    page = Path(ROOT / 'docs' / 'index.rst').read_text('utf-8')
    start, = re.findall(r':start-after: (.*)', page)
    end, = re.findall(r':end-before: (.*)', page)
    part = README.partition(start)[2].partition(end)[0]
    assert SHOWN[0] in part
    assert code_blocks(README) == code_blocks(part)
