"""Braces in paths, as a shell expands them."""
from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

_RANGE = re.compile(
    r'(?:(-?\d+)\.\.(-?\d+)|([a-zA-Z])\.\.([a-zA-Z]))(?:\.\.(-?\d+))?')
# Most texts that one text may stand for.
MOST = 10 ** 6
# Most pairs of braces that are expanded, within and behind each other.
MOST_BRACES = 100


def expand_braces(text: str) -> list[str]:
    """Return the texts that a text with braces stands for, in order.

    Braces that a shell would leave as they are stay.

    Raises: ValueError if they are too many.

    Examples
    --------
    >>> expand_braces('{train,test}-{08..10}.tar')[:4]
    ['train-08.tar', 'train-09.tar', 'train-10.tar', 'test-08.tar']
    >>> expand_braces('{id}.tar')
    ['{id}.tar']
    """
    return _expanded(text, text, MOST_BRACES)


def _expanded(text: str, whole: str, left: int) -> list[str]:
    """Return the texts that a part of `whole` stands for.

    `left`: number of pairs of braces that may be expanded.
    """
    start = -1
    while (start := text.find('{', start + 1)) >= 0:
        parts, stop = _alternatives(text, start)
        if parts:
            if not left:
                raise ValueError(
                    f'{whole!r:.80} has more than {MOST_BRACES} pairs of '
                    'braces within or behind each other: list the paths')
            chosen = [each for part in parts
                      for each in _expanded(part, whole, left - 1)]
            rests = _expanded(text[stop:], whole, left - 1)
            if len(chosen) * len(rests) > MOST:
                raise _too_many(text)
            return [f'{text[:start]}{one}{rest}'
                    for one, rest in itertools.product(chosen, rests)]
    return [text]


def _alternatives(text: str, start: int) -> tuple[Sequence[str], int]:
    """Return the alternatives in the braces that open at `start`, and the end
    of the braces; no alternatives if they stay as they are."""
    depth, cuts = 0, [start]
    for place in range(start, len(text)):
        sign = text[place]
        depth += (sign == '{') - (sign == '}')
        if sign == ',' and depth == 1:
            cuts.append(place)
        if not depth:
            if len(cuts) == 1:
                return _sequence(text[start + 1:place]), place + 1
            return [text[first + 1:last] for first, last in itertools.pairwise(
                [*cuts, place])], place + 1
    return (), start


def _sequence(text: str) -> Sequence[str]:
    """Return the numbers, or letters, of a range such as ``000..012``."""
    found = _RANGE.fullmatch(text)
    if found is None:
        return ()
    first, last, *letters, step = found.groups()
    ends = [ord(letter) for letter in letters] if first is None else [
        int(first), int(last)]
    by = abs(int(step or 1)) or 1
    if abs(ends[1] - ends[0]) // by >= MOST:
        raise _too_many(f'{{{text}}}')
    numbers = range(ends[0], ends[1] + 1, by) if ends[0] <= ends[1] else range(
        ends[0], ends[1] - 1, -by)
    if first is None:
        return list(map(chr, numbers))
    is_padded = any(re.match(r'-?0\d', end) for end in (first, last))
    width = max(len(first), len(last)) * is_padded
    return [f'{number:0{width}}' for number in numbers]


def _too_many(text: str) -> ValueError:
    return ValueError(
        f'the braces of {text!r:.80} stand for more than {MOST} paths')
