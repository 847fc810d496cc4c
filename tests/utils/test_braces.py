"""Braces in paths."""
import itertools
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel.utils.braces import expand_braces

WORDS = st.text('ab0.-', max_size=3)
NUMBERS = st.from_regex('-?0{0,2}[0-9]{1,2}', fullmatch=True)
STEPS = st.sampled_from(['', '..1', '..2', '..-3', '..0'])
RANGES = st.one_of(
    st.builds('{{{}..{}{}}}'.format, NUMBERS, NUMBERS, STEPS),
    st.builds('{{{}..{}{}}}'.format, st.sampled_from('acf'),
              st.sampled_from('acf'), STEPS),
    st.sampled_from(['{a}', '{}', '{1..}', '{..3}', '{1..b}', '{1...3}']))
PATTERNS = st.recursive(
    st.one_of(WORDS, RANGES), lambda inner: st.one_of(
        st.builds('{}{}'.format, inner, inner),
        st.lists(inner, min_size=2, max_size=3).map(
            lambda parts: f'{{{",".join(parts)}}}')), max_leaves=5)


@pytest.mark.skipif(shutil.which('bash') is None, reason='needs a shell')
@given(patterns=st.lists(PATTERNS, min_size=5, max_size=5))
def test_braces_are_expanded_as_by_a_shell(patterns):
    """Nested, next to each other, and those that a shell does not expand."""
    script = '\n'.join(f"printf '%s\\n' x{one}x ''" for one in patterns)
    printed = subprocess.run(['bash', '-c', script], check=True,
                             capture_output=True, text=True).stdout
    wanted = [list(group) for is_word, group in itertools.groupby(
        printed.split('\n'), bool) if is_word]
    assert wanted == [expand_braces(f'x{one}x') for one in patterns]


def test_too_many_are_an_error():
    """They would fill the memory."""
    for text in ('{0..99999999}', '{0..9999}{0..9999}'):
        with pytest.raises(ValueError, match='more than 1000000 paths'):
            expand_braces(text)


@pytest.mark.parametrize('make', [
    lambda count: '{a,' * count + 'b' + '}' * count,
    lambda count: '{1..1}' * count])
def test_too_many_braces_are_an_error(make):
    """Within each other and behind each other."""
    assert {*'ab', '1' * 100} >= {*expand_braces(make(100))}
    for count in (101, 1500):
        with pytest.raises(ValueError, match=(
                'has more than 100 pairs of braces .*: list the paths')):
            expand_braces(make(count))
    assert ['{' * 1500] == expand_braces('{' * 1500)
