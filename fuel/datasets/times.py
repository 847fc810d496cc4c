"""Times as text, in tables and JSON.

The unit of a type determines the form of its times: `datetime64[M]` reads
``2024-02`` and nothing else. So a number is never read as a year.
"""
from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

# A date, or a date and a time without a zone.
TIME = re.compile(r'\d{4}-\d\d-\d\d(?P<time>[T ]\d\d:\d\d'
                  r'(:\d\d(?P<fraction>\.\d{1,6})?)?)?', re.ASCII)
# From coarse to fine.
UNITS = ('', 'D', 's', 'us')
DATE = r'\d{4}-\d\d-\d\d'
# For each unit coarser than an hour, the form of its times, and an example.
FORMS = {'Y': (r'\d{4}', '2024'), 'M': (r'\d{4}-\d\d', '2024-02'),
         'W': (DATE, '2024-02-29'), 'D': (DATE, '2024-02-29')}
FINER = re.compile(
    rf'(?P<date>{DATE})'
    r'([T ](?P<clock>\d\d(:\d\d(:\d\d(\.(?P<fraction>\d{1,9}))?)?)?)'
    r'(?P<zone>Z|[+-]\d\d(:?\d\d)?)?)?', re.ASCII | re.IGNORECASE)
# Seconds in a unit, and the number of a unit in a second.
SECONDS = {'W': 7 * 86400, 'D': 86400, 'h': 3600, 'm': 60}
PARTS = {'s': 1, 'ms': 10 ** 3, 'us': 10 ** 6, 'ns': 10 ** 9,
         'ps': 10 ** 12, 'fs': 10 ** 15, 'as': 10 ** 18}
NANO = 10 ** 9
# The smallest 64-bit integer is NaT.
LARGEST = 2 ** 63 - 1


def type_of_times(texts: Iterable[str]) -> numpy.dtype[Any] | None:
    """Return the coarsest type that holds all of some ISO 8601 times.

    None if there are no texts, or if a text is not such a time or has a zone.
    """
    unit = ''
    for text in texts:
        found = TIME.fullmatch(text)
        if found is None:
            return None
        unit = max(unit, 'us' if found['fraction'] else
                   's' if found['time'] else 'D', key=UNITS.index)
    return numpy.dtype(f'datetime64[{unit}]') if unit else None


def check_unit(dtype: numpy.dtype[Any], source: str) -> None:
    """Raise a ValueError if the type of a source is datetime64 without a
    unit."""
    if dtype.kind == 'M' and numpy.datetime_data(dtype)[0] == 'generic':
        raise ValueError(
            f"dtypes={{{source!r}: 'datetime64'}} has no unit, which says how "
            f"times are written: pass 'datetime64[D]' for dates such as "
            f"2024-02-29, or 'datetime64[s]' for times such as "
            f"2024-02-29T12:30:00")


def advice_on_times(source: str, dtype: numpy.dtype[Any]) -> str:
    """Return advice for an error: how times of a type are written, and how to
    read other times."""
    unit, _ = numpy.datetime_data(dtype)
    form = FORMS[unit][1] if unit in FORMS else (
        '2024-02-29, 2024-02-29T12:30:00.5 or 2024-02-29 12:30+01:00')
    return (
        f"{dtype} is written as {form}: pass dtypes={{{source!r}: ...}} of "
        f"another unit; or take others as text, dtypes={{{source!r}: object}},"
        f" and convert them by a function in a Mapping; or take seconds since "
        f"1970 as integers, dtypes={{{source!r}: 'int64'}}, and make times of "
        f"them by .astype('datetime64[s]')")


def as_times(texts: Sequence[str | None],
             dtype: numpy.dtype[Any]) -> NDArray[Any]:
    """Convert texts to times. Times with a zone are converted to UTC; empty
    texts and None become NaT.

    Raises: ValueError if a text does not have the form of the type's unit, or
        if its time is finer than the unit or out of the range of the type.
    """
    plain = [(text or '').strip() for text in texts]
    places = [place for place, text in enumerate(plain) if text]
    times = numpy.full(len(plain), 'NaT', dtype)
    if places:
        times[places] = _ticks(
            [plain[place] for place in places], dtype).astype(dtype)
    return times


def _ticks(texts: Sequence[str], dtype: numpy.dtype[Any]) -> NDArray[Any]:
    """Return times as numbers of a type's units since 1970."""
    unit, count = numpy.datetime_data(dtype)
    if unit in ('Y', 'M'):
        _check(texts, re.compile(FORMS[unit][0], re.ASCII))
        ticks = _since_1970(texts, unit)
    else:
        ticks = _exact(*_parsed(texts, unit), unit)
    if count > 1:
        _refuse_unless((ticks % count == 0).all(), dtype)
        ticks //= count
    _refuse_unless((abs(ticks) <= LARGEST).all(), dtype)
    return ticks.astype(numpy.int64)


def _check(texts: Sequence[str], form: re.Pattern[str],
           ) -> list[re.Match[str]]:
    """Return the matches of texts with a form.

    Raises: ValueError if a text does not match.
    """
    found = []
    for text in texts:
        match = form.fullmatch(text)
        if match is None:
            raise ValueError(f'{text[:60]!r} is written in another way')
        found.append(match)
    return found


def _refuse_unless(is_right: object, dtype: numpy.dtype[Any]) -> None:
    if not is_right:
        raise ValueError(f'a time is finer than {dtype}, or out of its range')


def _since_1970(texts: Sequence[str], unit: str) -> NDArray[Any]:
    """Return times, parsed by NumPy, as numbers of units since 1970."""
    return numpy.array(texts, f'datetime64[{unit}]').astype(numpy.int64)


def _parsed(texts: Sequence[str], unit: str,
            ) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the whole seconds of times since 1970, and their nanoseconds."""
    if unit in FORMS:
        _check(texts, re.compile(FORMS[unit][0], re.ASCII))
        return _since_1970(texts, 's'), numpy.zeros(len(texts), numpy.int64)
    found = _check(texts, FINER)
    seconds = _since_1970([
        f'{one["date"]}T{(one["clock"] or "00").partition(".")[0]}'
        for one in found], 's')
    zones = numpy.array([_offset(one['zone'] or 'Z') for one in found])
    nanoseconds = numpy.array([
        int((one['fraction'] or '').ljust(9, '0')) for one in found])
    return seconds - zones, nanoseconds


def _offset(zone: str) -> int:
    """Return the seconds by which a zone is ahead of UTC."""
    if zone in 'Zz':
        return 0
    hours, minutes = int(zone[1:3]), int(zone[3:].lstrip(':') or 0)
    if hours > 23 or minutes > 59:
        raise ValueError(f'there is no zone {zone}')
    return (-60 if zone[0] == '-' else 60) * (60 * hours + minutes)


def _exact(seconds: NDArray[Any], nanoseconds: NDArray[Any],
           unit: str) -> NDArray[Any]:
    """Return times as numbers of a unit since 1970.

    The numbers are Python's integers where 64 bits may not hold them.

    Raises: ValueError if a time is finer than the unit.
    """
    dtype = numpy.dtype(f'datetime64[{unit}]')
    ticks: NDArray[Any]
    if unit in SECONDS:
        _refuse_unless(not nanoseconds.any() and not (
            seconds % SECONDS[unit]).any(), dtype)
        ticks = seconds // SECONDS[unit]
        return ticks
    parts = PARTS[unit]
    if (abs(seconds) >= LARGEST // parts - 1).any():
        seconds, nanoseconds = (
            seconds.astype(object), nanoseconds.astype(object))
    if parts >= NANO:
        ticks = seconds * parts + nanoseconds * (parts // NANO)
        return ticks
    rest = NANO // parts
    _refuse_unless(not (nanoseconds % rest).any(), dtype)
    ticks = seconds * parts + nanoseconds // rest
    return ticks
