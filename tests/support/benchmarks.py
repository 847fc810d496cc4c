"""Running benchmarks at a tiny size."""
import os
import subprocess
import sys
from pathlib import Path

from support import bridges

import fuel

FOLDER = Path(__file__).parents[2] / 'benchmarks'


def scripts():
    """Return the names of the benchmarks that need no bridge."""
    others = {name for bridge in bridges.BRIDGES.values()
              for name in bridge.benchmarks}
    return sorted({path.name for path in FOLDER.glob('*.py')}
                  - {'measure.py'} - others)


def run_tiny(script, folder):
    """Run a benchmark once, and return the table that it prints."""
    return run(script, folder, '--tiny')


def run(script, folder, *arguments):
    """Run a benchmark in a process of its own, and return what it prints."""
    done = subprocess.run(
        [sys.executable, FOLDER / script, *arguments], cwd=folder,
        env={**os.environ,
             'PYTHONPATH': os.pathsep.join(filter(None, [
                 str(Path(fuel.__file__).parent.parent),
                 os.environ.get('PYTHONPATH')]))},
        capture_output=True, text=True, timeout=280, check=False)
    assert 0 == done.returncode, done.stderr
    return done.stdout
