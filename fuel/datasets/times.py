"""Times as text, such as tables and JSON hold them."""
from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy
from numpy.typing import NDArray

# A date, or a date and a time of no zone.
TIME = re.compile(r'\d{4}-\d\d-\d\d(?P<time>[T ]\d\d:\d\d'
                  r'(:\d\d(?P<fraction>\.\d{1,6})?)?)?')
# From coarse to fine.
UNITS = ('', 'D', 's', 'us')
# Units that do not hold all years of four digits.
FINEST = 'ns', 'ps', 'fs', 'as'
DAYS = 'datetime64[D]'
ZONE = re.compile(r'.*\d(Z|[+-]\d\d(:?\d\d)?)', re.IGNORECASE)


def type_of_times(texts: Iterable[str]) -> numpy.dtype[Any] | None:
    """Return the coarsest type that holds all of some times of ISO 8601 and
    of no zone; None if one of them is none, or there are none."""
    unit = ''
    for text in texts:
        found = TIME.fullmatch(text)
        if found is None:
            return None
        unit = max(unit, 'us' if found['fraction'] else
                   's' if found['time'] else 'D', key=UNITS.index)
    return numpy.dtype(f'datetime64[{unit}]') if unit else None


def as_times(texts: Sequence[str | None],
             dtype: numpy.dtype[Any]) -> NDArray[Any]:
    """Return texts as times; those of a zone in UTC, and NaT for what is
    empty or None.

    Raises: ValueError if a text is no time, or is finer than the type.
    """
    plain = list(map(_plain, texts))
    # Of the unit of the finest; without those that are none, which have none.
    there = [text for text in plain if text != 'NaT']
    exact = numpy.array(plain, numpy.array(there, 'datetime64').dtype
                        if there else dtype)
    times: NDArray[Any] = exact.astype(dtype)
    are_right = times.astype(exact.dtype) == exact
    if numpy.datetime_data(exact.dtype)[0] in FINEST:
        # One fine time makes this the unit of all, and NumPy does not say
        # which are out of its range.
        are_right &= exact.astype(DAYS) == numpy.array(plain, DAYS)
    if not (are_right | numpy.isnat(exact)).all():
        raise ValueError(f'a time is finer than {dtype}, or out of its range')
    return times


def _plain(text: str | None) -> str:
    """Return a time as NumPy reads it."""
    text = (text or '').strip()
    if not text:
        return 'NaT'
    # NumPy knows names of times, such as that of this moment.
    if not text[0].isdigit() and text[0] not in '+-':
        raise ValueError(f'{text!r} is no time, such as 2024-02-29T12:30')
    if ':' in text and ZONE.fullmatch(text):
        return datetime.fromisoformat(text).astimezone(UTC).replace(
            tzinfo=None).isoformat()
    return text
