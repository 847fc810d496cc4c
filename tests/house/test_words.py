"""The words of the sources are those of the page on development."""
import importlib.machinery
import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# As the baseline, it only goes down: lower it as soon as less is reached.
MOST_FINDINGS = 0


@pytest.fixture(scope='module')
def words():
    """Return the command as a module."""
    loader = importlib.machinery.SourceFileLoader(
        'words', str(ROOT / 'bin' / 'words'))
    spec = importlib.util.spec_from_loader('words', loader)
    module = importlib.util.module_from_spec(spec)
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    loader.exec_module(module)
    sys.dont_write_bytecode = writes
    return module


def test_findings_are_those_of_the_baseline(words):
    """A new finding fails, and so does a number that could be lower."""
    allowed, found = words.read_baseline(), words.count(words.sources())
    new = [name for name in found
           if found[name] - allowed.get(name, words.Counter())]
    assert [] == new, 'bin/words prints what to reword'
    assert words.as_text(found) == words.BASELINE.read_text('utf-8'), (
        'bin/words --lower writes the smaller numbers; commit them')
    assert sum(map(words.Counter.total, found.values())) <= MOST_FINDINGS
