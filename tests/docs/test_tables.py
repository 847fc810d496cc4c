"""Rows of tables are whole: docutils begins one with each first cell."""
import re
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob('*.rst'), *(ROOT / 'docs').rglob('*.rst'),
                *(ROOT / 'docs').rglob('*.inc'),
                *(ROOT / 'fuel').rglob('*.py')])
TABLE = re.compile(r'^(?P<border> *=+(?: +=+)+)\n(?P<rows>(?:.*\n)+?)'
                   r'(?P=border)\n(?=\s*(?:\n|"""|\Z))', re.MULTILINE)
# A cell that ends or begins with one of these is a part of a sentence.
ENDS = re.compile(
    r'(?:[,(]|\b(?:a|an|and|are|as|at|by|does|for|from|in|is|of|on|or|than|'
    r'that|the|to|which|with))$')
BEGINS = re.compile(r'(?:and|of|or|than|that|which)\b')


def torn_rows(text):
    """Yield the first cells of rows that were meant to be one."""
    for table in TABLE.finditer(text):
        width = re.match(' *=+', table['border']).end()
        lines = table['rows'].splitlines()
        cells = [line[:width].strip() for line in lines]
        for cell, below in pairwise(cells):
            if cell and below and (
                    ENDS.search(cell) or BEGINS.match(below)):
                yield f'{cell} / {below}'


@pytest.mark.parametrize('cells', [
    ('a reset, a short or', 'late answer'),
    ('schemes, streams,', 'transformers'),
    ('an answer with other bytes', 'than the request')])
def test_torn_row_is_found(cells):
    """The first column of such a table cannot go on in the next line."""
    border = f'{"=" * 30}  {"=" * 10}'
    rows = ''.join(f'{cell:32}text\n' for cell in ('whole', *cells, 'whole'))
    table = f'{border}\nwhat{" " * 28}follows\n{border}\n{rows}{border}\n'
    assert [' / '.join(cells)] == list(torn_rows(table))


def test_no_page_has_a_torn_row():
    """A wider column or a list-table has room for a long first cell."""
    torn = {f'{path.relative_to(ROOT)}: {row}' for path in PAGES
            for row in torn_rows(path.read_text('utf-8'))}
    assert not torn
