"""The differences that a page shows are those of programs that are run."""
import re

from support import changed_programs
from support.bridges import BRIDGES, ROOT

PAGE = ROOT / 'docs' / 'changes_to_your_program.rst'


def test_differences_are_those_of_the_programs():
    """To write them anew: python tests/support/changed_programs.py"""
    assert {f'{name}.diff' for name in changed_programs.NAMES} == {
        path.name for path in changed_programs.SHOWN.iterdir()}
    for name in changed_programs.NAMES:
        shown = (changed_programs.SHOWN / f'{name}.diff').read_text('utf-8')
        assert changed_programs.difference(name) == shown, name


def test_page_shows_each_difference_once():
    """It has at most eight."""
    shown = re.findall(r'^\.\. literalinclude:: changes/(\w+)\.diff$',
                       PAGE.read_text('utf-8'), re.MULTILINE)
    assert changed_programs.NAMES == sorted(shown)
    assert len(shown) <= 8


def test_each_pair_is_run_in_the_environment_of_a_bridge():
    """By a test that names it."""
    named = [name for bridge in BRIDGES.values()
             for path in bridge.folder.glob('test_changes.py')
             for name in re.findall(r"'(\w+)'", path.read_text('utf-8'))
             if name in changed_programs.NAMES]
    assert changed_programs.NAMES == sorted(named)
