"""The programs of the tutorials run."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fuel

ROOT = Path(__file__).parents[2]
PACKAGES = str(Path(fuel.__file__).parents[1])
SCRIPTS = ['photographs.py', 'sentences.py']


def run(tmp_path, *arguments):
    """Run Python in a folder of its own; return the output."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=tmp_path, check=False,
        env={**os.environ, 'PYTHONPATH': PACKAGES,
             'OPENBLAS_NUM_THREADS': '1'}, text=True,
        capture_output=True, timeout=100)
    assert 0 == done.returncode, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize('script', SCRIPTS)
def test_tutorial_names_the_picture_of_the_overview(script):
    """Without one there is a placeholder."""
    picture, = re.findall(
        "^# sphinx_gallery_thumbnail_path = '(.*)'$",
        (ROOT / 'examples' / script).read_text('utf-8'), re.MULTILINE)
    assert (ROOT / 'docs' / picture).is_file()


def test_photographs_are_learned(tmp_path):
    """Most of those held out are recognised."""
    output = run(tmp_path, ROOT / 'examples' / 'photographs.py')
    assert float(re.search(r'held out: ([\d.]+)', output)[1]) > 0.8


def test_interrupted_language_model_has_the_same_weights(tmp_path):
    """Its perplexity falls to a third."""
    output = run(tmp_path, ROOT / 'examples' / 'sentences.py')
    before, after = map(int, re.findall(r'perplexity \w+: +(\d+)', output))
    assert after < before / 3
    assert 'the same weights as without the interruption: True' in output
