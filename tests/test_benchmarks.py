"""Every benchmark runs, so that none rots; no time is asserted."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

import fuel

FOLDER = Path(__file__).resolve().parent.parent / 'benchmarks'
SCRIPTS = sorted(path.name for path in FOLDER.glob('*.py')
                 if path.name != 'measure.py')


@pytest.mark.parametrize('script', SCRIPTS)
def test_benchmark_prints_its_table(script, tmp_path):
    """At a tiny size it prints a table with a target on some line."""
    run = subprocess.run(
        [sys.executable, FOLDER / script, '--tiny'], cwd=tmp_path,
        env={**os.environ,
             'PYTHONPATH': str(Path(fuel.__file__).parent.parent)},
        capture_output=True, text=True, timeout=110, check=False)
    assert 0 == run.returncode, run.stderr
    assert 'at least' in run.stdout
