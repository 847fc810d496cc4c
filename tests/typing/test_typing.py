"""Type checkers accept what works, and report typical mistakes."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fuel

FOLDER = Path(__file__).parent
EXAMPLES = FOLDER.parents[1] / 'examples'
TUTORIALS = 'photographs.py', 'sentences.py'


@pytest.fixture(scope='module')
def reported(tmp_path_factory):
    """Return what mypy reports of the files here and of the tutorials, by
    file and line: one run, which checks Fuel's own types once."""
    folder = tmp_path_factory.mktemp('mypy')
    (folder / 'mypy.ini').write_text('[mypy]\n')
    package = Path(fuel.__file__).parents[1]
    environment = {**os.environ, 'MYPYPATH': (
        '' if package.name == 'site-packages' else str(package))}
    done = subprocess.run(
        [sys.executable, '-m', 'mypy', '--strict', '--config-file', 'mypy.ini',
         '--follow-imports', 'silent', '--cache-dir', folder / 'cache',
         '--no-error-summary', '--hide-error-codes', '--no-color-output',
         '--ignore-missing-imports', FOLDER / 'good.py',
         FOLDER / 'mistakes.py', *(EXAMPLES / name for name in TUTORIALS)],
        cwd=folder, env=environment, capture_output=True, text=True,
        check=False, timeout=110)
    assert '' == done.stderr
    found = {}
    for line in done.stdout.splitlines():
        match = re.search(r'(\w+\.py):(\d+): (error|note): (.*)', line)
        assert match, line
        file, number, kind, text = match.groups()
        if kind == 'error':
            found.setdefault((file, int(number)), []).append(text)
    return found


def test_users_parts_and_loop_are_accepted(reported):
    """Data set, scheme, stage, stream and training loop, checked strictly."""
    assert {} == {place: texts for place, texts in reported.items()
                  if place[0] == 'good.py'}


@pytest.mark.parametrize('script', TUTORIALS)
def test_tutorial_passes_mypy(reported, script):
    """In its strict mode, with the types that Fuel ships."""
    assert {} == {place: texts for place, texts in reported.items()
                  if place[0] == script}


def expected_mistakes():
    """Return the line and the text of each mistake."""
    lines = (FOLDER / 'mistakes.py').read_text('utf-8').splitlines()
    parts = [(number, *line.partition('  # E: '))
             for number, line in enumerate(lines, 1)]
    return [pytest.param(number, text, id=code.strip())
            for number, code, mark, text in parts if mark]


@pytest.mark.parametrize('number, text', expected_mistakes())
def test_mistake_is_reported(reported, number, text):
    """At its line, with a text that says what was expected."""
    texts = reported.get(('mistakes.py', number), [])
    assert any(text in each for each in texts), texts


def test_nothing_else_is_reported(reported):
    """Lines without a mistake are accepted."""
    marked = {param.values[0] for param in expected_mistakes()}
    assert {} == {place: texts for place, texts in reported.items()
                  if place[0] == 'mistakes.py' and place[1] not in marked}
