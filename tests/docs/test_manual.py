"""The manual builds without a warning."""
import os
import subprocess
import sys
from pathlib import Path

import fuel

DOCS = Path(__file__).parents[2] / 'docs'


def test_manual_builds_without_a_warning(tmp_path):
    """Sphinx finds every page, link and docstring in order."""
    # The package under test is the one that is documented.
    environment = {**os.environ, 'PYTHONDEVMODE': '',
                   'PYTHONPATH': str(Path(fuel.__file__).parents[1])}
    result = subprocess.run(
        [sys.executable, '-m', 'sphinx', '-W', '--keep-going', '-q',
         '-b', 'html', '-d', tmp_path / 'doctrees', DOCS, tmp_path / 'html'],
        env=environment, capture_output=True, text=True, timeout=110,
        check=False)
    assert 0 == result.returncode, result.stderr
    assert (tmp_path / 'html' / 'index.html').exists()
