"""The words of the sources are those of the page on contributing."""
import importlib.machinery
import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# As the baseline, it only goes down: lower it as soon as less is reached.
MOST_FINDINGS = 1781


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


@pytest.mark.parametrize('text, rules', [
    ('def f():\n    """What it reads."""', ['first word']),
    ('def f():\n    r"""\n    Whether it reads."""', ['first word']),
    ('x = 1\n# How it is read.\n', ['first word']),
    ('#: Which of them.\nx = 1', ['first word']),
    ('x = 1  # And one more.', ['first word']),
    ('# The first line.\n# Which the second continues.', []),
    ('"""Reads rows. What is left stays."""', []),
    ('"""However fast they are."""', ['first word']),
    ('"""Whatsoever, Android, Order."""', []),
    ("print('# What of it')", []),
    ('"""Whether it reads (bool)."""', []),
    ("f'{x} is no number'", ['is no']),
    ("'these are '\n    f'no numbers'", ['is no']),
    ('# This is\n    # no number.', ['is no']),
    ('def test_text_that_is_no_number_raises():', ['is no']),
    ('There is no file, there are no rows: it is no longer there.', []),
    ('a file that is not there; this no; is none; his now', []),
    ('of which it reads one', ['of which']),
    ('leave it out of which_sources', []),
    ('all of\nwhich it reads, for whom it waits in\n  vain',
     ['of which', 'whom', 'in vain'])])
def test_rules_find_wording(words, text, rules):
    """In one line and over two, in names, docstrings, comments and texts."""
    assert rules == [rule for rule, _, _ in words.findings(text)]


def test_finding_has_the_line_of_the_word(words):
    """It is where the odd word stands, and not where its sentence begins."""
    assert [('first word', 3, '# What is left.')] == words.findings(
        'x = 1\n\n# What is left.\ny = 2\n')
    assert [('is no', 2, '# no number.')] == words.findings(
        '# This is\n# no number.\n')


def test_each_exception_says_why_and_is_needed(words):
    """What no file has is taken from the list."""
    texts = [path.read_text('utf-8') for path in words.sources()]
    for pattern, why in words.ALLOWED.items():
        assert why
        assert any(re.search(pattern, text, re.IGNORECASE)
                   for text in texts), pattern
    for name, why in words.FILES_LEFT_OUT.items():
        assert why
        assert (ROOT / name).exists(), name


@pytest.fixture
def small(words, tmp_path, monkeypatch):
    """Return the file of a small checkout, whose baseline is beside it."""
    monkeypatch.setattr(words, 'ROOT', tmp_path)
    monkeypatch.setattr(words, 'BASELINE', tmp_path / 'words.txt')
    path = tmp_path / 'fuel' / 'rows.py'
    path.parent.mkdir()
    path.write_text('# What is a row.\n')
    words.BASELINE.write_text('fuel/rows.py: first word 1\n')
    return path


def test_new_finding_is_printed_and_never_added(words, small, capsys):
    """In a file with others, and in one that has none yet."""
    assert not words.main([])
    before = words.BASELINE.read_text()
    small.write_text('# What is a row.\nx = 1\n# How it is read.\n')
    (small.parent / 'columns.py').write_text('# This is no row.\n')
    assert words.main(['--lower'])
    assert [
        'fuel/columns.py:1: is no: # This is no row.',
        'fuel/rows.py:1: first word: # What is a row.',
        'fuel/rows.py:3: first word: # How it is read.'
    ] == capsys.readouterr().out.splitlines()
    assert before == words.BASELINE.read_text()
    assert words.main([str(small)])


def test_fewer_findings_are_written(words, small):
    """Also if the file is gone, and not if another file is named."""
    small.write_text('# Describes a row.\n')
    other = small.with_name('columns.py')
    other.write_text('')
    assert not words.main(['--lower', str(other)])
    assert words.BASELINE.read_text()
    assert not words.main(['--lower'])
    assert '' == words.BASELINE.read_text()
    words.BASELINE.write_text('fuel/gone.py: of which 2, in vain 1\n')
    assert not words.main(['--lower'])
    assert '' == words.BASELINE.read_text()
